"""`python -m tests.secrets --lines 1000000`: lives by seed, until so many lines were searched.

Counted are the lines of logs, error answers, metrics, events, stories and /openapi.json; the reprs
of records are searched too, and not counted. A leak is printed with the seed that repeats it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import Final

from twisted.logger import globalLogBeginner

from tests.secrets.life import lived

_ROUNDS: Final = 8
_CROWD: Final = 1000
_SHOWN: Final = 5


def _quiet() -> None:
    """Tracebacks are expected, and Life has an observer of its own."""
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    warnings.simplefilter("ignore")


def _search(seed: int) -> tuple[Counter[str], Sequence[str]]:
    """One life: what was searched, and the leaks with their seed."""
    life = lived(seed, _ROUNDS, _CROWD)
    leaks = [f"seed {seed}: {leak}" for leak in life.leaks()]
    searched = {"lines": life.lines, "records": life.records, "secrets": life.canaries.count}
    return Counter(searched | {"echoes": life.evil.echoed, "lives": 1}), leaks[:_SHOWN]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.secrets")
    parser.add_argument("--lines", type=int, default=1_000_000, help="how many, at least")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    total: Counter[str] = Counter()
    failed = 0
    with multiprocessing.Pool(initializer=_quiet, maxtasksperchild=20) as pool:
        seeds = count(given.first)
        while total["lines"] < given.lines:
            batch = [next(seeds) for _ in range(multiprocessing.cpu_count())]
            for searched, leaks in pool.map(_search, batch, chunksize=1):
                total.update(searched)
                failed += bool(leaks)
                print("\n".join(leaks), end="\n" if leaks else "", flush=True)
    counts = ", ".join(f"{number} {what}" for what, number in total.items())
    print(f"{counts}, {failed} lives with leaks, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
