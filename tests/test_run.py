"""The closing line of a test run, and what runs beside what."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.run import AGAIN, LANES, Result, joined, lanes

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

    def test_what_uses_the_platform_runs_beside_the_rest(self) -> None:
        """The text of a module decides."""
        modules = {
            "tests.test_b": "from tests.real_openstack import given",
            "tests.test_a": "import json",
        }
        self.assertEqual(lanes(modules), (["tests.test_a"], ["tests.test_b"]))

    def test_results_add_up(self) -> None:
        """Failures of both lanes are named."""
        first = Result(passed=3, failed=("a",), skipped=1)
        second = Result(passed=2, failed=("b",), skipped=0)
        self.assertEqual(joined([first, second]).line(), "5 passed, 2 failed, 1 skipped")


class ClosingLineTests(SynchronousTestCase):
    """The process, as `make test` runs it."""

    def _ran(self, *tests: str, **environment: str) -> tuple[int, list[str]]:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        story = _STORY.format(folder=folder)
        (folder / "story_of_a_run.py").write_text(story, encoding="utf-8")
        kept = {k: v for k, v in os.environ.items() if k not in (AGAIN, LANES, "SVCD_TEST_RESULT")}
        here = Path(__file__).absolute().parent.parent
        path = os.pathsep.join([str(here), str(folder)])
        done = subprocess.run(
            [sys.executable, "-m", "tests.run", *(f"story_of_a_run.Story.{t}" for t in tests)],
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

    def test_success_is_0(self) -> None:
        """Nothing failed."""
        code, lines = self._ran("test_good")
        self.assertEqual((code, lines[-1]), (0, "1 passed, 0 failed, 0 skipped"))

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
