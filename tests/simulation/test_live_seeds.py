"""Many histories of the whole service: in processes of their own, for they use all cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase, TestCase

from tests.simulation.history import run
from tests.support.sample import SAMPLE, leave_out

ROOT = Path(__file__).parents[2]
KNOWN = 10_000
"""The seeds of `make simulate`."""

SEEDS = int(os.environ.get("SVCD_TEST_SEEDS") or (100 if SAMPLE else 150))
LIMIT_S = 1800.0


def simulate(*arguments: str, hash_seed: str = "random") -> tuple[int, str]:
    """Exit code and output of `python -m tests.simulation`."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


class SeedsTests(TestCase):
    timeout = 2 * LIMIT_S

    def test_every_history_ends_well(self) -> None:
        """What must hold at every moment, at rest, and when all is gone: see `watch` and `rest`."""
        leave_out("tests.simulation", SEEDS, KNOWN, "seeds")
        code, output = simulate("--seeds", str(SEEDS))
        self.assertEqual(code, 0, output[-20_000:])
        self.assertIn(f"{SEEDS} seeds, 0 failed", output)

    def test_story_is_the_same_in_every_process(self) -> None:
        """Whatever the order of sets and dicts by hash is there."""
        _, first = simulate("--seeds", "3", "--from", "7", "--show", hash_seed="1")
        _, second = simulate("--seeds", "3", "--from", "7", "--show", hash_seed="2")
        stories = [text.rpartition("\n\n")[0] for text in (first, second)]
        self.assertIn("seed 7:", stories[0])
        self.assertEqual(stories[0], stories[1])


class ReplayTests(SynchronousTestCase):
    def test_seed_gives_the_same_story_again(self) -> None:
        """Byte for byte, with every call of the daemon."""
        for seed, daemons in ((3, 1), (8, 3), (11, 2)):
            first, second = run(seed), run(seed)
            self.assertEqual(first, second)
            self.assertEqual(first.daemons, daemons)
            self.assertNotEqual(first.story, run(seed + 1).story)
