from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.job import Execution, ExecutionStatus, Failure
from svcd.workflow.decide.lifecycle import MOVES, TERMINAL, advance, can_move, status_of
from tests.unit.workflow.decide import rows
from tests.unit.workflow.decide.rows import NOW

S = ExecutionStatus
LATER = rows.ago(-300)
FAILURE = Failure(code="UNKNOWN", step="job-node", text="x")


def execution(status: ExecutionStatus) -> Execution:
    return rows.execution(status=status, end_time=NOW if status in TERMINAL else None)


class Table(SynchronousTestCase):
    def test_every_pair_moves_as_the_table_says(self) -> None:
        """Each of the 49 pairs either moves or leaves the execution as it was."""
        allowed = {
            (S.PENDING, S.PREP),
            (S.PENDING, S.RUNNING),
            (S.PENDING, S.SUSPENDED),
            (S.PREP, S.RUNNING),
            (S.PREP, S.SUSPENDED),
            (S.RUNNING, S.SUSPENDED),
            (S.SUSPENDED, S.RUNNING),
            *((b, a) for b in (S.PENDING, S.PREP, S.RUNNING, S.SUSPENDED) for a in TERMINAL),
        }
        for before in S:
            for after in S:
                moved = advance(execution(before), after, LATER)
                self.assertEqual(can_move(before, after), (before, after) in allowed)
                expected = after if (before, after) in allowed else before
                self.assertIs(moved.status, expected, (before, after))

    def test_a_terminal_state_has_no_way_out(self) -> None:
        """No move leaves an end."""
        self.assertEqual([MOVES[s] for s in sorted(TERMINAL)], [frozenset()] * 3)

    def test_a_refused_move_changes_nothing_at_all(self) -> None:
        """A late answer cannot touch the record of an ended execution."""
        ended = execution(S.KILLED)
        self.assertIs(advance(ended, S.RUNNING, LATER, record={"a": 1}, failure=FAILURE), ended)
        self.assertIs(advance(ended, S.KILLED, LATER, record={"a": 1}, failure=FAILURE), ended)


class Fields(SynchronousTestCase):
    def test_an_end_sets_the_end_time_once(self) -> None:
        """The engine's moment wins over ours; without it the present one is taken."""
        self.assertEqual(advance(execution(S.RUNNING), S.SUCCEEDED, LATER).end_time, LATER)
        ended = advance(execution(S.RUNNING), S.SUCCEEDED, LATER, ended=NOW)
        self.assertEqual(ended.end_time, NOW)

    def test_the_start_time_is_kept(self) -> None:
        """A second start (a rerun) does not replace the first."""
        row = advance(execution(S.PREP), S.RUNNING, NOW, started=NOW)
        self.assertEqual(advance(row, S.SUSPENDED, LATER, started=LATER).start_time, NOW)

    def test_the_same_status_with_a_new_record_is_news(self) -> None:
        """A changed record is stored and dated."""
        row = advance(execution(S.RUNNING), S.RUNNING, LATER, record={"a": 1})
        self.assertEqual((row.record, row.updated_at), ({"a": 1}, LATER))

    def test_no_news_is_the_same_object(self) -> None:
        """So that nothing is written."""
        row = evolve(execution(S.RUNNING), record={"a": 1})
        self.assertIs(advance(row, S.RUNNING, LATER, record={"a": 1}), row)

    def test_a_success_is_complete_and_has_no_failure(self) -> None:
        """Only KILLED and FAILED take one, and keep how far they came."""
        row = evolve(execution(S.RUNNING), progress=0.5)
        for status, told in (
            (S.SUCCEEDED, (None, 1.0, 0)),
            (S.KILLED, (FAILURE, 0.5, 3)),
        ):
            after = advance(row, status, NOW, failure=FAILURE, return_code=3)
            self.assertEqual((after.failure, after.progress, after.return_code), told)

    def test_success_after_a_kill_that_failed_has_no_failure(self) -> None:
        """The reason of the kill was written first, and somebody resumed the job."""
        stuck = evolve(execution(S.RUNNING), failure=FAILURE)
        self.assertIsNone(advance(stuck, S.SUCCEEDED, NOW).failure)

    def test_leaving_suspension_forgets_its_begin(self) -> None:
        """The clock of a manual wait starts anew at the next suspension."""
        row = evolve(execution(S.SUSPENDED), suspended_since=NOW)
        self.assertIsNone(advance(row, S.RUNNING, LATER).suspended_since)

    def test_words_of_other_engines(self) -> None:
        """Old words map to ours, unknown ones to nothing."""
        words = ["RUNNING", "PREPSUSPENDED", "DONEWITHERROR", "Pending", "DANCING", None]
        self.assertEqual(
            [status_of(w) for w in words], [S.RUNNING, S.SUSPENDED, S.FAILED, None, None, None]
        )
