"""The drawings of states are those of the tables."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.support.states import drawn

PAGE = Path(__file__).parents[2] / "docs" / "states.md"


class StatesTests(SynchronousTestCase):
    def test_page_is_drawn_from_the_tables(self) -> None:
        """`python -m tests.support.states > docs/states.md`"""
        self.assertEqual(PAGE.read_text(), drawn())
