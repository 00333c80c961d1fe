"""`python -m tests.causes`: the commonest mistakes in jobs of each type, on real Hadoop.

One cluster of a master and two workers runs the programs of `tests.causes.cells`. The table says
which failure svcd found, and whether it is the expected one. `--record` writes the texts that svcd
decided by to tests/fixtures/causes, where a unit test decides by them again. The exit code is 1
when a cell is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.causes.cells import CELLS, Cell
from tests.causes.run import FIXTURES, Run
from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import watchdog


def chosen(only: Sequence[str]) -> Sequence[Cell]:
    """The cells of these types or `TYPE/CELL` names in this order; all cells without any."""
    known = {each.type for each in CELLS} | {each.name for each in CELLS}
    for each in only:
        if each not in known:
            raise SystemExit(f"no cell {each!r}; there are: {' '.join(sorted(known))}")
    return [each for name in only for each in CELLS if name in (each.type, each.name)] or CELLS


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.causes", description=__doc__)
    parser.add_argument(
        "--only", action="append", default=[], metavar="TYPE[/CELL]", help="run only these cells"
    )
    parser.add_argument(
        "--record",
        nargs="?",
        type=Path,
        const=FIXTURES,
        metavar="FOLDER",
        help="write what svcd read of each cell, into tests/fixtures/causes by default",
    )
    parser.add_argument("--at-once", type=int, default=3, help="jobs at the same time")
    parser.add_argument(
        "--within", type=float, default=7200.0, metavar="S", help="begin no cell after so long"
    )
    parser.add_argument("--image", type=Path, default=None, help="software tree of vanilla")
    options = parser.parse_args(arguments)
    cells, image = chosen(options.only), options.image or vanilla_prefix()
    state = Path(tempfile.mkdtemp(prefix="svcd-causes-"))
    code = 1

    def begin(_reactor: Any) -> Deferred[None]:
        async def work() -> None:
            nonlocal code
            run = Run(state, image, options.record, options.within)
            code = await run.to_end(cells, options.at_once)

        return Deferred.fromCoroutine(work())

    try:
        react(begin)
    finally:
        watchdog().end()  # also of a run that was interrupted
        shutil.rmtree(state, ignore_errors=True)
        sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
