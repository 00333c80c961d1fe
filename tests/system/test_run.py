"""The closing line of a test run, and what runs beside what."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.run import AGAIN, EXHAUSTIVE, Result, joined, lanes, left_out, times

_SLOW = """
from twisted.trial.unittest import SynchronousTestCase
from tests.support.sample import SAMPLE, SLOW, leave_out

class FastTests(SynchronousTestCase):
    def test_cases(self):
        leave_out("tests.cases", 3 if SAMPLE else 100, 100, "cases")

class SlowTests(SynchronousTestCase):
    skip = SLOW

    def test_slow(self):
        pass
"""
_LIVE = """
from twisted.trial.unittest import SynchronousTestCase

class LiveTests(SynchronousTestCase):
    def test_one(self):
        pass
"""
_STORY = """
from pathlib import Path
from twisted.trial.unittest import SynchronousTestCase

class Story(SynchronousTestCase):
    def test_good(self):
        pass

    def test_once(self):
        mark = Path(r"{folder}") / "mark"
        if not mark.exists():
            mark.touch()
            self.fail("the first time")

    def test_bad(self):
        self.addCleanup(self.fail, "in the cleanup too")
        self.fail("always")

    def test_skipped(self):
        self.skipTest("not here")
"""


class LanesTests(SynchronousTestCase):
    """Which module runs where."""

    def test_groups_of_everything(self) -> None:
        """The name and the text of a module decide; the longest groups come first."""
        live = [f"tests.live.test_{number}" for number in range(8)]
        modules = {
            **dict.fromkeys(live, ""),
            "tests.hostile.test_c": "",
            "tests.live.test_b": "from tests.support.real_openstack import given",
            "tests.live.test_console_a": "",
            "tests.simulation.test_a": "",
            "tests.causes.test_d": "",
            "tests.system.test_e": "",
            "tests.unit.test_f": "import json",
        }
        self.assertEqual(
            list(lanes(modules, sample=False).items()),
            [
                ("rest", ["tests.unit.test_f", "tests.system.test_e", "tests.causes.test_d"]),
                ("platform", ["tests.live.test_b"]),
                ("simulation", ["tests.simulation.test_a"]),
                ("live 2", live[7:]),
                ("live 1", live[:7]),
                ("hostile", ["tests.hostile.test_c"]),
                ("console", ["tests.live.test_console_a"]),
            ],
        )

    def test_of_a_sample_the_live_modules_run_beside_the_rest(self) -> None:
        """Whatever they wait for."""
        names = ("tests.live.test_console_b", "tests.secrets.test_lives")
        self.assertEqual(
            lanes(dict.fromkeys(names, ""), sample=True),
            {"rest": ["tests.secrets.test_lives"], "live": ["tests.live.test_console_b"]},
        )

    def test_results_add_up(self) -> None:
        """Failures and what was left out are named, in the order of the groups."""
        first = Result(passed=3, failed=("a",), skipped=1, left_out=("x",))
        second = Result(passed=2, failed=("b",), skipped=0, left_out=("y",))
        both = joined([first, second])
        self.assertEqual(both.line(), "5 passed, 2 failed, 1 skipped")
        self.assertEqual((both.failed, both.left_out), (("a", "b"), ("x", "y")))


class TimesTests(SynchronousTestCase):
    """The table of a run's times."""

    def test_the_slowest_tests_and_the_sums_of_the_folders(self) -> None:
        """Ten tests at most; a folder below the third level counts with the one above it."""
        seconds = {f"tests.unit.cli.test_a.OneTests.test_{n}": 1.0 for n in range(10)}
        seconds["tests.live.test_b.OneTests.test_x"] = 20.0
        seconds["tests.unit.store.lease.test_c.OneTests.test_y"] = 0.25
        table = times(seconds)
        self.assertEqual(
            table[:3],
            (
                "seconds  the slowest tests",
                "   20.0  tests.live.test_b.OneTests.test_x",
                "    1.0  tests.unit.cli.test_a.OneTests.test_0",
            ),
        )
        self.assertEqual(
            table[11:],
            (
                "seconds  tests  by folder",
                "   20.0      1  tests.live",
                "   10.0     10  tests.unit.cli",
                "    0.2      1  tests.unit.store",
            ),
        )


class LeftOutTests(SynchronousTestCase):
    """The lines above the closing line."""

    def test_skipped_tests_are_counted_by_module_and_reason(self) -> None:
        """Only the first line of a reason is shown."""
        skipped = [
            ("tests.test_b.OneTests.test_1", "slow"),
            ("tests.test_a.OneTests.test_1", "no server\nmore"),
            ("tests.test_b.TwoTests.test_2", "slow"),
        ]
        self.assertEqual(
            left_out(skipped),
            ("tests.test_a: 1 test (no server)", "tests.test_b: 2 tests (slow)"),
        )


class ClosingLineTests(SynchronousTestCase):
    """The process, as `make test` runs it."""

    def _ran(self, *tests: str, **environment: str) -> tuple[int, list[str]]:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        story = _STORY.format(folder=folder)
        (folder / "story_of_a_run.py").write_text(story, encoding="utf-8")
        return self._trial(folder, [f"story_of_a_run.Story.{t}" for t in tests], environment)

    def _trial(
        self, folder: Path, tests: Sequence[str], environment: Mapping[str, str]
    ) -> tuple[int, list[str]]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("SVCD_TEST_")}
        here = Path(__file__).absolute().parents[2]
        path = os.pathsep.join([str(folder), str(here)])
        done = subprocess.run(
            [sys.executable, "-m", "tests.run", *tests],
            env={**kept, "PYTHONPATH": path, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()

    def test_what_failed_is_named_once_and_counted(self) -> None:
        """A test that fails in its body and in a cleanup is one failed test."""
        code, lines = self._ran("test_good", "test_bad", "test_skipped")
        self.assertEqual(code, 1)
        self.assertEqual(
            lines[-2:],
            ["failed: story_of_a_run.Story.test_bad", "1 passed, 1 failed, 1 skipped"],
        )

    def test_a_failure_is_tried_again_where_that_is_wanted(self) -> None:
        """What passes then is named; what fails twice has failed."""
        code, lines = self._ran("test_good", "test_once", "test_bad", **{AGAIN: "5"})
        self.assertEqual(code, 1)
        self.assertEqual(
            lines[-2:],
            [
                "failed at first, passed when run again: story_of_a_run.Story.test_once",
                "2 passed, 1 failed, 0 skipped",
            ],
        )
        code, lines = self._ran("test_once", **{AGAIN: "5"})
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 0 skipped"))

    def _suite(self, *tests: str, **environment: str) -> list[str]:
        """The end of a run of a package `tests` with a slow suite and one of many cases."""
        folder = Path(self.mktemp()).absolute()
        tests_ = Path(__file__).absolute().parents[1]
        for package in ("tests", "tests/support", "tests/live"):
            (folder / package).mkdir(parents=True)
            (folder / package / "__init__.py").touch()
        for name in ("run.py", "support/sample.py"):
            (folder / "tests" / name).write_bytes((tests_ / name).read_bytes())
        (folder / "tests/test_some.py").write_text(_SLOW, encoding="utf-8")
        (folder / "tests/live/test_one.py").write_text(_LIVE, encoding="utf-8")
        code, lines = self._trial(folder, tests, environment)
        self.assertEqual(code, 0, lines)
        return [line for line in lines if line.startswith("left out: ")] + lines[-1:]

    def test_a_sample_runs_and_the_rest_is_named(self) -> None:
        """Slow suites are skipped; suites of many cases say how many they left."""
        self.assertEqual(
            self._suite("tests"),
            [
                "left out: tests.test_some: 1 test (slow: SVCD_TEST_EXHAUSTIVE=1 runs it)",
                "left out: tests.cases: 97 of 100 cases",
                "2 passed, 0 failed, 1 skipped",
            ],
        )

    def test_everything_runs_when_it_is_asked_for(self) -> None:
        """By the environment, or by the name of the tests."""
        closing = ["3 passed, 0 failed, 0 skipped"]
        self.assertEqual(self._suite("tests", **{EXHAUSTIVE: "1"}), closing)
        self.assertEqual(self._suite("tests.test_some", "tests.live.test_one"), closing)
