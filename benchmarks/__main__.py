"""Run the named benchmarks, or all, and print their figures."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping

from benchmarks import (
    bodies,
    commands,
    console,
    fakes,
    growth,
    requests,
    running,
    start,
    watch,
)
from benchmarks.figures import Figure, table

BENCHMARKS: Mapping[str, Callable[[bool], list[Figure]]] = {
    "requests": requests.run,
    "fakes": fakes.run,
    "growth": growth.run,
    "bodies": bodies.run,
    "watch": watch.run,
    "start": start.run,
    "commands": commands.run,
    "running": running.run,
    "console": console.run,
}


def main(arguments: list[str]) -> int:
    """The exit code: 1 when `--check` finds a target that is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, coarser figures")
    parser.add_argument("--check", action="store_true", help="fail when a target is not met")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}: there are {', '.join(BENCHMARKS)}")
    figures: list[Figure] = []
    load = os.getloadavg()[0]
    for name, run in BENCHMARKS.items():
        if not given.names or name in given.names:
            print(f"running {name} …", file=sys.stderr, flush=True)
            figures += run(given.quick)
    print(table(figures))
    print(f"\nTargets are for two cores without other work; the load was {load:.1f} at the start.")
    return 1 if given.check and not all(f.met for f in figures) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
