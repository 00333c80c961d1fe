"""Times of an execution's row that cannot be, and those that can."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.ids import Timestamp
from svcd.model.job import Doubt, Execution, Waiting
from svcd.workflow.decide.clock_skew import Bounds
from tests.unit.workflow.decide.rows import NOW, NOW_S, execution

LATER = Timestamp("2026-01-01 13:00:00.000000")


class BoundsTests(SynchronousTestCase):
    def sound(self, row: Execution) -> Execution:
        return Bounds(NOW_S).corrected(row)

    def test_row_whose_times_can_be_stays_the_same_object(self) -> None:
        """A back-off of some seconds, a doubt, a wait; `created_at` is never changed."""
        row = execution(
            created_at=LATER,
            retry_at=Timestamp("2026-01-01 12:01:00.000000"),
            suspended_since=NOW,
            doubt=Doubt(denied_at=NOW, watch_until=LATER),
            waiting=Waiting(code="c", step="s", text="t", since=NOW, until=LATER),
        )
        self.assertIs(self.sound(row), row)

    def test_try_that_seems_an_hour_away_is_due(self) -> None:
        row = execution(created_at=LATER, retry_at=LATER)
        self.assertEqual(self.sound(row), evolve(row, retry_at=None))

    def test_times_of_waiting_begin_now(self) -> None:
        wait = Waiting(code="c", step="s", text="t", since=LATER)
        row = execution(created_at=LATER, suspended_since=LATER, waiting=wait)
        wanted = evolve(row, suspended_since=NOW, waiting=evolve(wait, since=NOW))
        self.assertEqual(self.sound(row), wanted)

    def test_both_waits_of_a_doubt_begin_again(self) -> None:
        """Too short a one could let a job run twice."""
        row = execution(created_at=LATER, doubt=Doubt(denied_at=NOW, fenced_at=LATER))
        self.assertEqual(self.sound(row), evolve(row, doubt=Doubt(denied_at=NOW, fenced_at=NOW)))

    def test_watch_is_an_hour_at_most(self) -> None:
        row = execution(
            created_at=LATER, doubt=Doubt(watch_until=Timestamp("2036-01-01 12:00:00.000000"))
        )
        self.assertEqual(self.sound(row), evolve(row, doubt=Doubt(watch_until=LATER)))
