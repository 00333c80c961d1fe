"""The command: runs the benchmarks that are named, all without a name, and prints their figures."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import (
    bodies,
    cloud,
    commands,
    console,
    fakes,
    forward,
    growth,
    jobs,
    postgres,
    requests,
    restart,
    running,
    start,
    watch,
)
from benchmarks.figures import Figure, as_json, table

BENCHMARKS: Mapping[str, Callable[[bool], list[Figure]]] = {
    "requests": requests.run,
    "postgres": postgres.run,
    "fakes": fakes.run,
    "growth": growth.run,
    "bodies": bodies.run,
    "forward": forward.run,
    "watch": watch.run,
    "start": start.run,
    "commands": commands.run,
    "jobs": jobs.run,
    "running": running.run,
    "console": console.run,
    "restart": restart.run,
    "cloud": cloud.run,
    "cloud-embedded": cloud.run_embedded,
}


def main(arguments: list[str]) -> int:
    """The exit code: 1 when `--check` finds a target that is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, coarser figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
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
    if given.json is not None:
        given.json.write_text(as_json(figures, _machine()) + "\n", encoding="utf-8")
    return 1 if given.check and not all(f.met for f in figures) else 0


def _machine() -> Mapping[str, object]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
