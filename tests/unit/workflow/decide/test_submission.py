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


STAGED = execution(staged=True, workflow_dir=FOLDER)
GIVEN_UP = submitting(status=S.FAILED, doubt=Doubt(watch_until=ago(-500)))
KILLED = End(status=S.KILLED)
SPAWNING, ERROR, DELETING = (
    Seen(cluster=cluster(status), user="hadoop")
    for status in (ClusterStatus.SPAWNING, ClusterStatus.ERROR, ClusterStatus.DELETING)
)
GONE, BARE = Seen(cluster=None), Seen(cluster=cluster())

PLANS = {
    "a first start stages and submits": (execution(), SEEN, Start(folder=FOLDER, stage=True)),
    "each submit has a folder of its own": (
        execution(submits=1),
        SEEN,
        Start(folder=f"{FOLDER}-2", stage=True),
    ),
    "what is staged is not staged again": (STAGED, SEEN, Start(folder=FOLDER, stage=False)),
    "an unfinished cluster is waited for": (execution(), SPAWNING, Rest()),
    "the next try is waited for": (execution(retry_at=ago(-7)), SEEN, Rest(wait_s=7.0)),
    "a cancelled one ends before its submit": (execution(cancel_requested=True), SEEN, KILLED),
    "... also before its next try": (
        execution(cancel_requested=True, retry_at=ago(-7)),
        SEEN,
        KILLED,
    ),
    "a deleted one ends before its submit": (execution(delete_requested=True), SEEN, KILLED),
    "a cluster under deletion ends it": (execution(), DELETING, KILLED),
    "the engine is asked before anything is sent again": (submitting(), SEEN, FindJob()),
    "... also on a cluster in Error": (submitting(), ERROR, FindJob()),
    "... also when it is not wanted": (submitting(cancel_requested=True), SEEN, FindJob()),
    "... and at once for a cancel": (
        submitting(cancel_requested=True, retry_at=ago(-5)),
        SEEN,
        FindJob(early=True),
    ),
    "a given up one is watched": (GIVEN_UP, SEEN, FindJob()),
    "... until its next look": (evolve(GIVEN_UP, retry_at=ago(-9)), SEEN, Rest(wait_s=9.0)),
    "... not without a cluster": (GIVEN_UP, GONE, Forget()),
    "... nor an engine": (GIVEN_UP, BARE, Forget()),
    "... nor on a cluster under deletion": (GIVEN_UP, DELETING, Forget()),
    "an ended one needs nothing": (execution(status=S.KILLED), SEEN, Rest()),
    "one at the engine needs nothing": (execution(workflow_job_id=JOB), SEEN, Rest()),
}
"""Situation -> row, the cluster, and the planned step."""


class PlanTests(SynchronousTestCase):
    def test_each_situation_has_its_step(self) -> None:
        for situation, (row, seen, step) in PLANS.items():
            self.assertEqual(plan(row, seen, NOW_S), step, situation)

    def test_cluster_that_cannot_run_it_fails_it(self) -> None:
        for seen, code in (
            (GONE, "CLUSTER_GONE"),
            (ERROR, "CLUSTER_FAILED"),
            (BARE, "NO_ENGINE"),
        ):
            step = plan(execution(), seen, NOW_S)
            assert isinstance(step, End) and step.failure is not None, step
            self.assertEqual((step.status, step.failure.code), (S.FAILED, code))


TEN_OF_NO = submitting(doubt=Doubt(denied_at=ago(10)))
FENCED_TEN = submitting(doubt=Doubt(denied_at=ago(30), fenced_at=ago(10)))
REMOVE = RemoveDefinition(folder=FOLDER)


class RecoveryTests(SynchronousTestCase):
    """What became of a submit whose answer was lost."""

    def denied(self, row: Execution, **how: bool) -> Follow:
        return follow(row, FindJob(**how), Denied(), NOW_S)

    def test_found_job_is_followed_unless_its_definition_was_removed(self) -> None:
        """Or the execution was given up: then svcd kills the job."""
        adopt, kill = Follow(step=Adopt(job_id=JOB)), Follow(step=KillLate(job_id=JOB))
        for row, wanted in (
            (ROWS[Submit.SENT], adopt),
            (ROWS[Submit.DENIED], adopt),
            (ROWS[Submit.FENCED], kill),
            (ROWS[Submit.UNHEARD], kill),
            (submitting(status=S.FAILED), kill),
        ):
            self.assertEqual(follow(row, FindJob(), Found(job_id=JOB), NOW_S), wanted, row.doubt)

    def test_first_no_is_written_down_and_has_to_last(self) -> None:
        """Before and after the removal; after silence it counts from the next no."""
        first = Follow(move=Move.DENY, step=unknown(10.0))
        self.assertEqual(self.denied(ROWS[Submit.SENT]), first)
        self.assertEqual(self.denied(ROWS[Submit.UNHEARD]), first)
        for state in (Submit.DENIED, Submit.FENCED):
            self.assertEqual(self.denied(ROWS[state]), Follow(step=unknown(5.0)))
        row = submitting(doubt=Doubt(denied_at=ago(3), fenced_at=ago(300)))
        self.assertEqual(self.denied(row), Follow(step=unknown(7.0)))

    def test_definition_is_removed_after_ten_seconds_of_no(self) -> None:
        """An early no proves nothing, nor does a removal that fails."""
        self.assertEqual(self.denied(TEN_OF_NO), Follow(step=REMOVE))
        self.assertEqual(self.denied(TEN_OF_NO, early=True), Follow(step=Rest()))
        fenced = Follow(move=Move.FENCE, step=unknown(10.0))
        self.assertEqual(follow(TEN_OF_NO, REMOVE, Done(), NOW_S), fenced)
        self.assertEqual(follow(TEN_OF_NO, REMOVE, SILENT, NOW_S), Follow(step=SILENT))

    def test_submit_is_over_after_both_waits(self) -> None:
        self.assertEqual(self.denied(FENCED_TEN), Follow(move=Move.CLEAR, step=Again()))

    def test_silence_begins_the_present_wait_again(self) -> None:
        for state, move in (
            (Submit.DENIED, Move.SILENCE),
            (Submit.FENCED, Move.SILENCE),
            (Submit.SENT, None),
            (Submit.UNHEARD, None),
        ):
            wanted = Follow(move=move, step=SILENT)
            self.assertEqual(follow(ROWS[state], FindJob(), SILENT, NOW_S), wanted)

    def test_moves_write_their_times_or_forget_the_submit(self) -> None:
        after = submit_move(TEN_OF_NO, Move.FENCE, NOW_S)
        self.assertEqual(after.doubt, Doubt(denied_at=ago(10), fenced_at=NOW))
        self.assertEqual(submit_move(FENCED_TEN, Move.CLEAR, NOW_S), execution(submits=1))

    def test_late_job_that_is_killed_fails_an_execution_that_was_not_given_up(self) -> None:
        text = "the engine took the submit too late (0000000-W, killed: its files had gone)"
        wanted = End(status=S.FAILED, failure=failure(Code.ENGINE_UNREACHABLE, "submit", text))
        follows = follow(ROWS[Submit.FENCED], KillLate(job_id=JOB), Done(), NOW_S)
        self.assertEqual(follows, Follow(step=wanted))
        noted = follow(submitting(status=S.FAILED), KillLate(job_id=JOB), Done(), NOW_S)
        self.assertEqual(noted, Follow(step=Adopt(job_id=JOB)))


class StartTests(SynchronousTestCase):
    def test_outcomes_of_a_start(self) -> None:
        refused = failure(Code.ENGINE_REFUSED, "submit", "E0701")
        for outcome, step in (
            (Found(job_id=JOB), Adopt(job_id=JOB)),
            (Fail(failure=refused), End(status=S.FAILED, failure=refused)),
            (SILENT, SILENT),
            (Done(), Again()),
        ):
            start = Start(folder=FOLDER, stage=True)
            self.assertEqual(follow(execution(), start, outcome, NOW_S), Follow(step=step))

    def test_submit_is_written_down_before_the_call_if_it_is_wanted(self) -> None:
        after = submission.sent(execution(attempts=3), FOLDER, NOW_S)
        self.assertEqual(after, submitting(attempts=3, retry_at=ago(-10)))
        for row in (execution(cancel_requested=True), execution(status=S.KILLED)):
            self.assertIs(submission.sent(row, FOLDER, NOW_S), row)

    def test_taken_one_begins_and_a_given_up_one_stays_failed(self) -> None:
        after = submission.adopted(submitting(attempts=2, retry_at=ago(-10)), JOB, NOW_S)
        self.assertEqual(
            (after.status, after.workflow_job_id, after.submitting, after.attempts, after.retry_at),
            (S.PREP, JOB, False, 0, None),
        )
        after = submission.adopted(submitting(status=S.FAILED), JOB, NOW_S)
        self.assertEqual((after.status, after.workflow_job_id), (S.FAILED, JOB))


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
