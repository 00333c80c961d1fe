"""`python -m tests.simulation`: many seeds, or one to be read; with --cases the enumeration."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Sequence
from multiprocessing.pool import Pool

from tests.simulation import enumeration, history
from tests.simulation.enumeration import OPERATIONS, Case, Result
from tests.simulation.history import Outcome


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--show", action="store_true", help="the story of each seed")
    parser.add_argument(
        "--cases",
        nargs="*",
        metavar="OPERATION",
        help=f"every call and what can befall it, of {', '.join(OPERATIONS)}; none: all",
    )
    parser.add_argument("--every", type=int, default=1, help="only one case in so many")
    given = parser.parse_args(arguments)
    with multiprocessing.Pool(maxtasksperchild=50) as pool:
        if given.cases is not None:
            return _enumerate(pool, given.cases or list(OPERATIONS), given.every)
        return _simulate(pool, range(given.first, given.first + given.seeds), given.show)


def _simulate(pool: Pool, seeds: range, show: bool) -> int:
    began = time.monotonic()
    failed = 0
    told: Counter[str] = Counter(calls=0, crashes=0, stops=0, freezes=0)
    daemons: Counter[int] = Counter()
    for outcome in pool.imap(_run, seeds, chunksize=5):
        told.update({what: getattr(outcome, what) for what in told})
        daemons[outcome.daemons] += 1
        failed += bool(outcome.breaches)
        if outcome.breaches or show:
            print("\n".join(outcome.story))
            print(f"replay: make simulate SEEDS=1 FROM={outcome.seed} ARGS=--show\n", flush=True)
    counts = ", ".join(f"{count} {what}" for what, count in told.items())
    shared = ", ".join(f"{daemons[n]} with {n} daemons" for n in sorted(daemons) if n > 1)
    seconds = time.monotonic() - began
    print(
        f"{len(seeds)} seeds, {failed} failed, {counts}, {shared or 'one daemon'}, {seconds:.0f} s"
    )
    return 1 if failed else 0


def _enumerate(pool: Pool, names: Sequence[str], every: int) -> int:
    began = time.monotonic()
    wanted = [each for name in names for each in enumeration.cases(OPERATIONS[name])]
    wanted = wanted[::every]
    failed: Counter[str] = Counter()
    for result in pool.imap(_play, wanted, chunksize=10):
        if result.breaches:
            failed[result.case.operation] += 1
            case = result.case
            told = f"{case.operation}, call {case.position}, {case.variant}: {result.call}"
            breaches = [f"  {each}" for each in result.breaches]
            print("\n".join([*result.story, told, *breaches, ""]), flush=True)
    ran = Counter(each.operation for each in wanted)
    for name, count in ran.items():
        print(f"{name}: {count} cases, {failed[name]} failed")
    seconds = time.monotonic() - began
    print(f"{len(wanted)} cases, {failed.total()} failed, {seconds:.0f} s")
    return 1 if failed else 0


def _run(seed: int) -> Outcome:
    """A defect of the simulation itself is told as a failed seed too."""
    try:
        return history.run(seed)
    except Exception as error:
        text = f"seed {seed}: the history broke off: {type(error).__name__}: {error}"
        return Outcome(seed=seed, story=(text,), breaches=(text,))


def _play(case: Case) -> Result:
    try:
        return enumeration.play(case)
    except Exception as error:
        text = f"the case broke off: {type(error).__name__}: {error}"
        return Result(case=case, call="", story=(text,), breaches=(text,))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
