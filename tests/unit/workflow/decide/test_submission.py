"""How an execution comes to its engine: rows and answers, and what follows, as literal values."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterStatus
from svcd.model.failures import Code
from svcd.model.job import Doubt, Execution, ExecutionStatus, Failure, Waiting
from svcd.workflow.decide import submission
from svcd.workflow.decide.failures import failure
from svcd.workflow.decide.lifecycle import SUBMITS, Move, Submit, submit_move, submit_of
from svcd.workflow.decide.steps import (
    Adopt,
    Again,
    Denied,
    Done,
    End,
    Fail,
    FindJob,
    Forget,
    Found,
    KillLate,
    RemoveDefinition,
    Rest,
    Retry,
    Start,
    Step,
)
from svcd.workflow.decide.submission import Follow, Seen, follow, plan
from tests.unit.workflow.decide.rows import NOW, NOW_S, ago, cluster, execution

S = ExecutionStatus
FOLDER = "/user/hadoop/svcd/e"
JOB = "0000000-W"
SILENT = Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text="connection refused")


def unknown(least_s: float) -> Retry:
    text = "the engine does not know the job yet"
    return Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=text, least_s=least_s)


def submitting(**fields: Any) -> Execution:
    """One whose submit has been written down."""
    return execution(
        **{"submitting": True, "staged": True, "submits": 1, "workflow_dir": FOLDER, **fields}
    )


ROWS = {
    Submit.IDLE: execution(),
    Submit.SENT: submitting(),
    Submit.DENIED: submitting(doubt=Doubt(denied_at=ago(5))),
    Submit.FENCED: submitting(doubt=Doubt(denied_at=ago(25), fenced_at=ago(5))),
    Submit.UNHEARD: submitting(doubt=Doubt(fenced_at=ago(5))),
    Submit.TAKEN: execution(workflow_job_id=JOB),
}


SEEN = Seen(cluster=cluster(), user="hadoop")


class TableTests(SynchronousTestCase):
    def test_every_pair_moves_as_the_table_says(self) -> None:
        """48 pairs: a move that the table does not hold changes nothing at all."""
        self.assertEqual({submit_of(row) for row in ROWS.values()}, set(Submit))
        for state, row in ROWS.items():
            self.assertIs(submit_of(row), state)
            for move in Move:
                fields = {"workflow_job_id": JOB} if move is Move.TAKE else {}
                after = submit_move(row, move, NOW_S, **fields)
                if move in SUBMITS[state]:
                    self.assertIs(submit_of(after), SUBMITS[state][move], (state, move))
                else:
                    self.assertIs(after, row, (state, move))

    def test_nothing_is_sent_anew_without_a_proof(self) -> None:
        """From a submit that may have arrived, only a refusal or the whole procedure leads back."""
        back = {
            (state, move)
            for state, moves in SUBMITS.items()
            for move, after in moves.items()
            if after is Submit.IDLE and move is not Move.END
        }
        self.assertEqual(back, {(Submit.SENT, Move.TURN_AWAY), (Submit.FENCED, Move.CLEAR)})


class PlanTests(SynchronousTestCase):
    def planned(self, row: Execution, seen: Seen = SEEN) -> Step:
        return plan(row, seen, NOW_S)

    def failed(self, row: Execution, seen: Seen) -> tuple[str, str]:
        step = self.planned(row, seen)
        assert isinstance(step, End) and step.failure is not None, step
        return step.status.value, step.failure.code

    def test_first_start_stages_and_submits(self) -> None:
        self.assertEqual(self.planned(execution()), Start(folder=FOLDER, stage=True))

    def test_each_submit_has_a_folder_of_its_own(self) -> None:
        row = execution(submits=1)
        self.assertEqual(self.planned(row), Start(folder=f"{FOLDER}-2", stage=True))

    def test_what_is_staged_is_not_staged_again(self) -> None:
        row = execution(staged=True, workflow_dir=FOLDER)
        self.assertEqual(self.planned(row), Start(folder=FOLDER, stage=False))

    def test_unfinished_cluster_is_waited_for(self) -> None:
        seen = Seen(cluster=cluster(ClusterStatus.SPAWNING), user="hadoop")
        self.assertEqual(self.planned(execution(), seen), Rest())

    def test_next_try_is_waited_for(self) -> None:
        self.assertEqual(self.planned(execution(retry_at=ago(-7))), Rest(wait_s=7.0))

    def test_unwanted_one_ends_before_its_submit(self) -> None:
        for wish in ("cancel_requested", "delete_requested"):
            self.assertEqual(self.planned(execution(**{wish: True})), End(status=S.KILLED))
        row = execution(cancel_requested=True, retry_at=ago(-7))
        self.assertEqual(self.planned(row), End(status=S.KILLED))

    def test_deleted_cluster_ends_it(self) -> None:
        seen = Seen(cluster=cluster(ClusterStatus.DELETING), user="hadoop")
        self.assertEqual(self.planned(execution(), seen), End(status=S.KILLED))
        self.assertEqual(self.failed(execution(), Seen(cluster=None)), ("FAILED", "CLUSTER_GONE"))

    def test_cluster_that_cannot_run_it_fails_it(self) -> None:
        broken = Seen(cluster=cluster(ClusterStatus.ERROR, status_description="no host"))
        self.assertEqual(self.failed(execution(), broken), ("FAILED", "CLUSTER_FAILED"))
        bare = Seen(cluster=cluster())
        self.assertEqual(self.failed(execution(), bare), ("FAILED", "NO_ENGINE"))

    def test_engine_is_asked_before_anything_is_sent_again(self) -> None:
        """Also on a cluster in Error, and when the execution is not wanted any more."""
        for row in (submitting(), submitting(cancel_requested=True)):
            for status in (ClusterStatus.ACTIVE, ClusterStatus.ERROR):
                seen = Seen(cluster=cluster(status), user="hadoop")
                self.assertEqual(self.planned(row, seen), FindJob())

    def test_cancel_asks_early(self) -> None:
        row = submitting(cancel_requested=True, retry_at=ago(-5))
        self.assertEqual(self.planned(row), FindJob(early=True))

    def test_given_up_one_is_watched(self) -> None:
        row = submitting(status=S.FAILED, doubt=Doubt(watch_until=ago(-500)))
        self.assertEqual(self.planned(row), FindJob())
        self.assertEqual(self.planned(evolve(row, retry_at=ago(-9))), Rest(wait_s=9.0))
        for seen in (
            Seen(cluster=None),
            Seen(cluster=cluster()),
            Seen(cluster=cluster(ClusterStatus.DELETING), user="hadoop"),
        ):
            self.assertEqual(self.planned(row, seen), Forget())

    def test_ended_or_running_one_needs_nothing(self) -> None:
        for row in (execution(status=S.KILLED), execution(workflow_job_id=JOB)):
            self.assertEqual(self.planned(row), Rest())


class RecoveryTests(SynchronousTestCase):
    """What became of a submit whose answer was lost."""

    def follows(self, row: Execution, answer: Found | Denied | Retry, **how: bool) -> Follow:
        return follow(row, FindJob(**how), answer, NOW_S)

    def denied(self, row: Execution) -> Follow:
        return self.follows(row, Denied())

    def test_found_job_is_followed(self) -> None:
        for row in (ROWS[Submit.SENT], ROWS[Submit.DENIED]):
            self.assertEqual(self.follows(row, Found(job_id=JOB)), Follow(step=Adopt(job_id=JOB)))

    def test_job_found_after_its_definition_was_removed_is_killed(self) -> None:
        for row in (ROWS[Submit.FENCED], ROWS[Submit.UNHEARD]):
            self.assertEqual(
                self.follows(row, Found(job_id=JOB)), Follow(step=KillLate(job_id=JOB))
            )

    def test_job_found_after_giving_up_is_killed(self) -> None:
        row = submitting(status=S.FAILED)
        self.assertEqual(self.follows(row, Found(job_id=JOB)), Follow(step=KillLate(job_id=JOB)))

    def test_first_no_is_written_down(self) -> None:
        wanted = Follow(move=Move.DENY, step=unknown(10.0))
        self.assertEqual(self.denied(ROWS[Submit.SENT]), wanted)
        self.assertEqual(self.denied(ROWS[Submit.UNHEARD]), wanted)

    def test_no_is_not_believed_before_it_has_lasted(self) -> None:
        self.assertEqual(self.denied(ROWS[Submit.DENIED]), Follow(step=unknown(5.0)))
        self.assertEqual(self.denied(ROWS[Submit.FENCED]), Follow(step=unknown(5.0)))

    def test_definition_is_removed_after_ten_seconds_of_no(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(10)))
        self.assertEqual(self.denied(row), Follow(step=RemoveDefinition(folder=FOLDER)))

    def test_removal_begins_another_ten_seconds(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(10)))
        follows = follow(row, RemoveDefinition(folder=FOLDER), Done(), NOW_S)
        self.assertEqual(follows, Follow(move=Move.FENCE, step=unknown(10.0)))
        after = submit_move(row, Move.FENCE, NOW_S)
        self.assertEqual(after.doubt, Doubt(denied_at=ago(10), fenced_at=NOW))
        self.assertEqual(self.denied(after), Follow(step=unknown(10.0)))

    def test_removal_that_fails_proves_nothing(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(10)))
        follows = follow(row, RemoveDefinition(folder=FOLDER), SILENT, NOW_S)
        self.assertEqual(follows, Follow(step=SILENT))

    def test_submit_is_over_after_both_waits(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(30), fenced_at=ago(10)))
        self.assertEqual(self.denied(row), Follow(move=Move.CLEAR, step=Again()))
        after = submit_move(row, Move.CLEAR, NOW_S)
        self.assertEqual(after, execution(submits=1))

    def test_silence_begins_the_present_wait_again(self) -> None:
        for state in (Submit.DENIED, Submit.FENCED):
            wanted = Follow(move=Move.SILENCE, step=SILENT)
            self.assertEqual(self.follows(ROWS[state], SILENT), wanted)
        for state in (Submit.SENT, Submit.UNHEARD):
            self.assertEqual(self.follows(ROWS[state], SILENT), Follow(step=SILENT))

    def test_silence_after_the_removal_counts_from_the_next_no(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(3), fenced_at=ago(300)))
        self.assertEqual(self.denied(row), Follow(step=unknown(7.0)))

    def test_early_no_proves_nothing(self) -> None:
        row = submitting(doubt=Doubt(denied_at=ago(100)))
        self.assertEqual(self.follows(row, Denied(), early=True), Follow(step=Rest()))

    def test_late_job_that_is_killed_fails_the_execution(self) -> None:
        text = "the engine took the submit too late (0000000-W, killed: its files had gone)"
        wanted = End(status=S.FAILED, failure=failure(Code.ENGINE_UNREACHABLE, "submit", text))
        follows = follow(ROWS[Submit.FENCED], KillLate(job_id=JOB), Done(), NOW_S)
        self.assertEqual(follows, Follow(step=wanted))

    def test_late_job_of_a_given_up_one_is_noted(self) -> None:
        row = submitting(status=S.FAILED)
        follows = follow(row, KillLate(job_id=JOB), Done(), NOW_S)
        self.assertEqual(follows, Follow(step=Adopt(job_id=JOB)))
        after = submission.adopted(row, JOB, NOW_S)
        self.assertEqual((after.status, after.workflow_job_id), (S.FAILED, JOB))


class StartTests(SynchronousTestCase):
    START = Start(folder=FOLDER, stage=True)

    def test_outcomes_of_a_start(self) -> None:
        row = execution()
        refused = failure(Code.ENGINE_REFUSED, "submit", "E0701")
        for outcome, step in (
            (Found(job_id=JOB), Adopt(job_id=JOB)),
            (Fail(failure=refused), End(status=S.FAILED, failure=refused)),
            (SILENT, SILENT),
            (Done(), Again()),
        ):
            self.assertEqual(follow(row, self.START, outcome, NOW_S), Follow(step=step))

    def test_submit_is_written_down_before_the_call(self) -> None:
        after = submission.sent(execution(attempts=3), FOLDER, NOW_S)
        self.assertEqual(after, submitting(attempts=3, retry_at=ago(-10)))

    def test_unwanted_one_is_not_submitted(self) -> None:
        for row in (execution(cancel_requested=True), execution(status=S.KILLED)):
            self.assertIs(submission.sent(row, FOLDER, NOW_S), row)

    def test_taken_one_begins(self) -> None:
        row = submitting(attempts=2, retry_at=ago(-10))
        after = submission.adopted(row, JOB, NOW_S)
        self.assertEqual(
            (after.status, after.workflow_job_id, after.submitting, after.attempts, after.retry_at),
            (S.PREP, JOB, False, 0, None),
        )


class RetryTests(SynchronousTestCase):
    def retried(self, row: Execution, retry: Retry = SILENT, until_s: float = 60.0) -> Execution:
        return submission.retried(row, retry, 4.0, NOW_S + until_s, NOW_S)

    def test_wait_is_shown_from_the_first_try_on(self) -> None:
        after = self.retried(execution())
        shown = failure(Code.ENGINE_UNREACHABLE, "submit", "connection refused").text
        waiting = Waiting(
            code="ENGINE_UNREACHABLE", step="submit", text=shown, since=NOW, until=ago(-60)
        )
        self.assertEqual(after, evolve(execution(), attempts=1, retry_at=ago(-4), waiting=waiting))

    def test_same_wait_keeps_its_beginning(self) -> None:
        waiting = Waiting(code="ENGINE_UNREACHABLE", step="submit", text="x", since=ago(30))
        after = self.retried(execution(waiting=waiting))
        assert after.waiting is not None
        self.assertEqual(after.waiting.since, ago(30))

    def test_submit_that_was_turned_away_is_none(self) -> None:
        """What is staged stays."""
        after = self.retried(submitting(), evolve(SILENT, unsent=True))
        self.assertEqual(
            (after.submitting, after.submits, after.staged, after.workflow_dir),
            (False, 0, True, FOLDER),
        )

    def test_last_try_fails_it(self) -> None:
        after = self.retried(execution(attempts=6), until_s=3.9)
        assert after.failure is not None
        self.assertEqual((after.status, after.submitting), (S.FAILED, False))
        self.assertTrue(after.failure.text.startswith("connection refused (7 tries)"))

    def test_last_try_while_a_submit_is_out_is_watched_on(self) -> None:
        """For an hour; the failure says so."""
        after = self.retried(submitting(doubt=Doubt(denied_at=ago(5))), until_s=3.9)
        assert after.failure is not None
        self.assertEqual((after.status, after.submitting, after.attempts), (S.FAILED, True, 0))
        self.assertEqual(after.doubt, Doubt(denied_at=ago(5), watch_until=ago(-3600)))
        self.assertIn("the engine may still take it", after.failure.text)

    def test_cancelled_one_is_killed_at_its_last_try(self) -> None:
        after = self.retried(execution(cancel_requested=True), until_s=0.0)
        self.assertEqual((after.status, after.failure), (S.KILLED, None))

    def test_watch_goes_on_until_its_end(self) -> None:
        row = submitting(status=S.FAILED, doubt=Doubt(watch_until=ago(-1)))
        after = self.retried(row, until_s=1.0)
        self.assertEqual((after.submitting, after.attempts, after.retry_at), (True, 1, ago(-4)))
        after = self.retried(row, until_s=0.0)
        self.assertEqual((after.submitting, after.doubt, after.workflow_dir), (False, None, FOLDER))

    def test_one_that_ended_meanwhile_stays_as_it_is(self) -> None:
        row = execution(status=S.KILLED)
        self.assertIs(self.retried(row), row)

    def test_long_wait_for_a_place_is_shown(self) -> None:
        """With its begin and its end; the start takes it away again."""
        row = submission.queued(execution(), NOW_S - 12, NOW_S + 100, NOW_S)
        assert row.waiting is not None
        shown = (row.waiting.code, row.waiting.step, row.waiting.since, row.waiting.until)
        self.assertEqual(shown, ("START_WAITS", "start", ago(12), ago(-100)))
        self.assertTrue(submission.is_as_planned(evolve(row, version=2), execution()))
        self.assertFalse(submission.is_as_planned(evolve(row, cancel_requested=True), execution()))
        self.assertEqual(submission.served(row), execution())

    def test_wait_for_a_place_does_not_hide_another_wait(self) -> None:
        waiting = Waiting(code="STAGING_FAILED", step="staging", text="no answer", since=ago(60))
        row = execution(waiting=waiting, attempts=2)
        self.assertIs(submission.queued(row, NOW_S - 12, NOW_S + 100, NOW_S), row)
        self.assertIs(submission.served(row), row)
        after = submission.queued(row, NOW_S - 12, NOW_S - 1, NOW_S)
        given_up = Failure(code="STAGING_FAILED", step="staging", text="no answer (2 tries)")
        self.assertEqual((after.status, after.failure), (S.FAILED, given_up))

    def test_deadline_of_a_start_ends_a_wait_for_a_place(self) -> None:
        """One that had passed before the wait began leaves a minute."""
        after = submission.queued(execution(), NOW_S - 12, NOW_S - 1, NOW_S)
        assert after.failure is not None
        self.assertEqual((after.status, after.failure.code), (S.FAILED, "START_WAITS"))
        after = submission.queued(submitting(), NOW_S - 12, NOW_S - 1, NOW_S)
        assert after.failure is not None
        self.assertTrue(after.submitting)
        self.assertIn("the engine may still take it", after.failure.text)
        after = submission.queued(execution(), NOW_S - 12, NOW_S - 600, NOW_S)
        assert after.waiting is not None
        self.assertEqual((after.status, after.waiting.until), (S.PENDING, ago(-48)))
        row = execution(cancel_requested=True)
        self.assertIs(submission.queued(row, NOW_S - 12, NOW_S - 1, NOW_S), row)

    def test_last_try_counts_from_the_active_cluster(self) -> None:
        """Or from the request, if that came later; or from now, when a clock was set back."""
        for status_since, wanted in ((50, 250.0), (200, 200.0), (-90, 300.0)):
            seen = cluster()
            seen = evolve(seen, status_since=ago(status_since))
            last = submission.last_try(execution(), seen, 300.0, NOW_S)
            self.assertEqual(last - NOW_S, wanted)
