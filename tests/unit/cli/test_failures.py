"""The page of failures."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.failures import page

FILE = Path(__file__).parents[3] / "docs" / "failures.md"


class PageTests(SynchronousTestCase):
    def test_the_file_is_up_to_date(self) -> None:
        """Make it anew with: python -m svcd.cli.failures > docs/failures.md."""
        self.assertEqual(FILE.read_text(encoding="utf-8"), page())
