"""The page of failures, and the explanation of one code."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.failures import explained, page
from svcd.model.failures import Code

FILE = Path(__file__).parents[3] / "docs" / "failures.md"


class PageTests(SynchronousTestCase):
    def test_the_file_is_up_to_date(self) -> None:
        """Make it anew with: python -m svcd.cli.failures > docs/failures.md."""
        self.assertEqual(FILE.read_text(encoding="utf-8"), page())

    def test_one_code_explained(self) -> None:
        """Of what, what has happened, what to do."""
        self.assertEqual(
            explained(Code.INPUT_MISSING),
            "INPUT_MISSING: of a job execution\n"
            "  The job's input does not exist.\n"
            "  What to do: check the named path.\n",
        )
        self.assertNotIn("What to do", explained(Code.FORBIDDEN))
