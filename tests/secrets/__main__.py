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
from collections.abc import Sequence
from itertools import count

from attrs import frozen
from twisted.logger import globalLogBeginner

from tests.secrets.life import Life

_SHOWN = 5


@frozen(kw_only=True)
class Searched:
    """What came of one life. lines, records: searched; evil: echoes of peers."""

    seed: int
    lines: int
    records: int
    canaries: int
    evil: int
    leaks: Sequence[str]


def search(seed: int, rounds: int = 8, crowd: int = 20) -> Searched:
    """One life and the search in what it said."""
    life = Life(seed, rounds, crowd)
    try:
        life.happen()
    finally:
        life.end()
    return Searched(
        seed=seed,
        lines=life.lines,
        records=life.records,
        canaries=life.canaries.count,
        evil=life.evil.echoed,
        leaks=list(life.leaks())[:_SHOWN],
    )


def _quiet() -> None:
    """Tracebacks are expected, and Life has an observer of its own."""
    globalLogBeginner.beginLoggingTo([], redirectStandardIO=False, discardBuffer=True)
    warnings.simplefilter("ignore")


def _run(task: tuple[int, int, int]) -> Searched:
    return search(*task)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.secrets")
    parser.add_argument("--lines", type=int, default=1_000_000, help="how many, at least")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--rounds", type=int, default=8, help="of each life")
    parser.add_argument("--crowd", type=int, default=1000, help="further requests of each round")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    given = parser.parse_args(arguments)
    began = time.monotonic()
    lines = records = canaries = evil = lives = failed = 0
    with multiprocessing.Pool(given.jobs, _quiet, maxtasksperchild=20) as pool:
        tasks = ((seed, given.rounds, given.crowd) for seed in count(given.first))
        while lines < given.lines:
            batch = [next(tasks) for _ in range(given.jobs)]
            for each in pool.map(_run, batch, chunksize=1):
                lives += 1
                lines += each.lines
                records += each.records
                canaries += each.canaries
                evil += each.evil
                failed += bool(each.leaks)
                for leak in each.leaks:
                    print(f"seed {each.seed}: {leak}", flush=True)
    print(
        f"{lines} lines and {records} records of {lives} lives searched for {canaries} secrets,"
        f" {evil} echoes of evil peers, {failed} lives with leaks,"
        f" {time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
