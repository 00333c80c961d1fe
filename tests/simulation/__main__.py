"""`python -m tests.simulation [--seeds N] [--from N] [--jobs N]`: many seeds, or one to be read."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence

from tests.simulation.history import Outcome, run


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first one")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--show", action="store_true", help="the story of each seed")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    failed = calls = crashes = 0
    seeds = range(given.first, given.first + given.seeds)
    with multiprocessing.Pool(min(given.jobs, given.seeds), maxtasksperchild=50) as pool:
        for outcome in pool.imap(_guarded, seeds, chunksize=5):
            calls += outcome.calls
            crashes += outcome.crashes
            failed += bool(outcome.breaches)
            if outcome.breaches or given.show:
                print("\n".join(outcome.story))
                print(
                    f"replay: make simulate SEEDS=1 FROM={outcome.seed} ARGS=--show\n", flush=True
                )
    seconds = time.monotonic() - began
    print(
        f"{given.seeds} seeds, {failed} failed, {calls} calls, {crashes} crashes, {seconds:.0f} s"
    )
    return 1 if failed else 0


def _guarded(seed: int) -> Outcome:
    """A defect of the simulation itself is told as a failed seed too."""
    try:
        return run(seed)
    except Exception as error:
        text = f"seed {seed}: the history broke off: {type(error).__name__}: {error}"
        return Outcome(seed=seed, story=(text,), breaches=(text,), calls=0, crashes=0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
