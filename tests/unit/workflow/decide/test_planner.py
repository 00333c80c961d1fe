"""What executions need at a tick, and what answers make of them, as literal values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from svcd.model import engine_record
from svcd.model.cluster import ClusterStatus
from svcd.model.failures import Code
from svcd.model.ids import ClusterId, ExecutionId
from svcd.model.job import Execution, ExecutionStatus, Waiting
from svcd.model.secret import Secret
from svcd.ports.engine import JobLine
from svcd.workflow.decide import masking, planner, stalls
from svcd.workflow.decide.failures import failure
from svcd.workflow.decide.planner import Due, Look, Memory, News, Observed
from svcd.workflow.decide.steps import (
    Condemn,
    End,
    FindJob,
    KillJob,
    MarkOutage,
    Outage,
    ReadRecord,
    Rest,
    Start,
    Step,
    TidyUp,
)
from tests.support.steps import ended
from tests.unit.workflow.decide.rows import C1, NOW_S, ago, cluster, execution

S = ExecutionStatus
MOST_S = 300.0
NOTHING = Memory()


def tree(status: str = "RUNNING", **action: Any) -> Mapping[str, Any]:
    """The engine's record of a workflow with one action."""
    made = {"id": "W@job-node", "name": "job-node", "type": "pig", "status": "RUNNING"}
    return {
        "status": status,
        "lastModTime": "Thu, 01 Jan 2026 11:59:00 GMT",
        "createdTime": "Thu, 01 Jan 2026 11:50:00 GMT",
        "actions": [{**made, "externalId": "application_1_0001", "endTime": None, **action}],
    }


def running(id_: str = "e", **fields: Any) -> Execution:
    return execution(
        id_,
        **{"status": S.RUNNING, "workflow_job_id": "W", "record": tree(), **fields},
    )


def waiting(code: Code, since_s: float = 60.0, until_s: float | None = None) -> Waiting:
    until = None if until_s is None else ago(-until_s)
    return Waiting(code=code, step="job-node", text="t", since=ago(since_s), until=until)


class DueTests(SynchronousTestCase):
    def test_each_row_needs_one_thing(self) -> None:
        rows = [
            execution("ended", status=S.FAILED),
            execution("watched", status=S.FAILED, submitting=True),
            execution("new"),
            execution("later", retry_at=ago(-1)),
            execution("cancelled", retry_at=ago(-1), cancel_requested=True),
            running("one"),
            running("two", cluster_id=ClusterId("c2")),
            running("three"),
        ]
        by_id = {row.id: row for row in rows}
        self.assertEqual(
            planner.due(rows, NOW_S),
            Due(
                ended=["ended"],
                starts=["watched", "new", "cancelled"],
                at_engines={
                    C1: [by_id[ExecutionId("one")], by_id[ExecutionId("three")]],
                    ClusterId("c2"): [by_id[ExecutionId("two")]],
                },
            ),
        )


class PlanTests(SynchronousTestCase):
    """The next step in each phase."""

    LINE = JobLine(id="W", status="RUNNING", last_modified="Thu, 01 Jan 2026 11:59:00 GMT")

    def plan(self, row: Execution, look: Look | None = None, **observed: Any) -> Step:
        known = {"cluster": cluster(), "user": "hadoop", "manual_deadline_s": MOST_S}
        return planner.plan(row, Observed(look=look, **{**known, **observed}), NOW_S)

    def test_new_execution_is_started(self) -> None:
        folder = "/user/hadoop/svcd/e"
        self.assertEqual(self.plan(execution()), Start(folder=folder, stage=True))
        self.assertEqual(self.plan(execution(submitting=True)), FindJob())
        killed = End(status=S.KILLED)
        self.assertEqual(self.plan(execution(cancel_requested=True)), killed)

    def test_record_is_read_once_after_the_submit_and_then_when_the_line_changes(self) -> None:
        look = Look(lines={"W": self.LINE})
        self.assertEqual(self.plan(running(status=S.PREP, record={})), ReadRecord())
        self.assertEqual(self.plan(running()), Rest())
        self.assertEqual(self.plan(running(), look), Rest())
        self.assertEqual(self.plan(running(), Look()), ReadRecord())
        changed = Look(lines={"W": replace(self.LINE, status="SUCCEEDED")})
        self.assertEqual(self.plan(running(), changed), ReadRecord())
        self.assertEqual(self.plan(running(), changed, is_read=True), Rest())
        sample = evolve(look, samples=frozenset({ExecutionId("e")}))
        self.assertEqual(self.plan(running(), sample), ReadRecord())

    def test_wait_that_the_record_may_end_is_read(self) -> None:
        """One that only the ResourceManager can end is not, nor one of very many (see the tick)."""
        look = Look(lines={"W": self.LINE})
        ours = running(waiting=waiting(Code.ENGINE_UNREACHABLE))
        self.assertEqual(self.plan(ours, look), ReadRecord())
        self.assertEqual(self.plan(running(waiting=waiting(Code.NO_WORKERS)), look), Rest())
        held = running(record=tree(externalId=None), waiting=waiting(Code.STEP_WAITS))
        self.assertEqual(self.plan(held, look), Rest())
        self.assertTrue(planner.is_unlaunched(held))

    def test_unwanted_job_is_killed_when_its_engine_answers(self) -> None:
        row = running(cancel_requested=True)
        self.assertEqual(self.plan(row), KillJob())
        self.assertEqual(self.plan(running(delete_requested=True)), KillJob())
        silent = Outage(since=NOW_S - 5, until=NOW_S + 595, text="refused")
        marks = MarkOutage(outage=silent)
        self.assertEqual(self.plan(row, Look(outage=silent)), marks)
        first = Look(outage=evolve(silent, since=NOW_S))
        self.assertEqual(self.plan(row, first), Rest())

    def test_job_that_would_last_for_ever_is_condemned_by_its_new_record(self) -> None:
        held = tree("SUSPENDED")
        held["actions"][0]["status"] = "START_MANUAL"
        row = running(status=S.SUSPENDED, record=held, suspended_since=ago(300))
        look = Look(lines={"W": replace(self.LINE, status="SUSPENDED")})
        self.assertEqual(self.plan(row, look), ReadRecord())
        step = self.plan(row, look, is_read=True)
        assert isinstance(step, Condemn)
        self.assertEqual(step.failure.code, "START_GAVE_UP")

    def test_job_without_its_cluster_ends(self) -> None:
        step = self.plan(running(), cluster=None, user=None)
        assert isinstance(step, End) and step.failure is not None
        self.assertEqual((step.status, step.failure.code), (S.KILLED, "CLUSTER_GONE"))
        cancelled = self.plan(running(cancel_requested=True), cluster=None, user=None)
        self.assertEqual(cancelled, End(status=S.KILLED))
        going = cluster(ClusterStatus.DELETING)
        self.assertEqual(self.plan(running(), Look(), cluster=going), Rest())

    def test_end_is_tidied_up_when_the_programs_have_ended(self) -> None:
        row = running(status=S.SUCCEEDED, updated_at=ago(1))
        self.assertEqual(self.plan(row), Rest(wait_s=2.0))
        self.assertEqual(self.plan(evolve(row, delete_requested=True)), TidyUp())
        self.assertEqual(self.plan(evolve(row, updated_at=ago(3))), TidyUp())
        self.assertEqual(self.plan(evolve(row, updated_at=ago(-60))), TidyUp())
        watched = execution(status=S.FAILED, submitting=True)
        self.assertEqual(self.plan(watched), FindJob())

    def test_start_that_ends_in_a_bug_again_and_again_is_given_up(self) -> None:
        end = planner.broken(execution(), "i1")
        assert end is not None and end.failure is not None
        self.assertEqual((end.status, end.failure.code), (S.FAILED, "INTERNAL"))
        self.assertIsNone(planner.broken(execution(), ""))
        self.assertIsNone(planner.broken(running(), "i1"))


class AbsorbedTests(SynchronousTestCase):
    def after(self, row: Execution, status: ExecutionStatus, tree_: Mapping[str, Any]) -> Execution:
        broken = failure(Code.EXCEPTION, "job-node", "no luck")
        bad = broken if status in (S.KILLED, S.FAILED) else None
        news = News(status=status, record=ended(masking.reading(tree_, ())), failure=bad)
        return planner.absorbed(row, news, NOW_S, MOST_S)

    def test_failure_comes_with_the_end_unless_it_was_wished(self) -> None:
        """The reason for which svcd killed it goes before."""
        reason = failure(Code.START_GAVE_UP, "workflow", "x")
        for row, code in (
            (running(), "EXCEPTION"),
            (running(cancel_requested=True), None),
            (planner.condemned(running(), reason), "START_GAVE_UP"),
        ):
            after = self.after(row, S.KILLED, tree("KILLED"))
            self.assertEqual((after.status, after.failure and after.failure.code), (S.KILLED, code))

    def test_step_that_is_tried_again_is_shown(self) -> None:
        held = tree(status="RUNNING", externalId=None)
        [action] = held["actions"]
        action["status"] = "START_RETRY"
        action["errorMessage"] = "JA006: Connection refused"
        after = self.after(running(), S.RUNNING, held)
        assert after.waiting is not None
        self.assertEqual(
            (after.waiting.code, after.waiting.since, after.waiting.until),
            ("RESOURCES_UNREACHABLE", ago(0), None),
        )

    def test_suspended_job_that_waits_for_a_person_has_a_deadline(self) -> None:
        held = tree("SUSPENDED")
        held["actions"][0]["status"] = "START_MANUAL"
        after = self.after(running(), S.SUSPENDED, held)
        assert after.waiting is not None
        self.assertEqual((after.suspended_since, after.waiting.until), (ago(0), ago(-300)))

    def test_step_that_is_not_handed_on_is_shown_after_a_while(self) -> None:
        held = tree(externalId=None)
        early = running(start_time=ago(44))
        self.assertIsNone(self.after(early, S.RUNNING, held).waiting)
        late = self.after(running(start_time=ago(45)), S.RUNNING, held).waiting
        assert late is not None
        self.assertEqual((late.code, late.since), ("STEP_WAITS", ago(45)))

    def test_wait_for_yarn_lasts_while_the_same_step_runs(self) -> None:
        row = running(waiting=waiting(Code.NO_WORKERS))
        self.assertEqual(self.after(row, S.RUNNING, tree()).waiting, row.waiting)
        other = tree(id="W@other", name="other")
        self.assertIsNone(self.after(row, S.RUNNING, other).waiting)


class OverdueTests(SynchronousTestCase):
    def code(self, row: Execution, memory: Memory = NOTHING) -> str:
        found = planner.overdue(row, memory, NOW_S, MOST_S)
        return "" if found is None else found.code

    def test_job_that_waits_for_a_person_unless_a_person_suspended_it(self) -> None:
        held = tree("SUSPENDED")
        held["actions"][0]["status"] = "START_MANUAL"
        row = running(status=S.SUSPENDED, record=held)
        self.assertEqual(self.code(evolve(row, suspended_since=ago(299))), "")
        self.assertEqual(self.code(evolve(row, suspended_since=ago(300))), "START_GAVE_UP")
        ours = evolve(row, record=tree("SUSPENDED"), suspended_since=ago(9000))
        self.assertEqual(self.code(ours), "")

    def test_job_that_never_begins(self) -> None:
        """By the engine's clock, but not before the request."""
        row = running(status=S.PREP, created_at=ago(9000))
        self.assertEqual(self.code(row), "START_GAVE_UP")
        self.assertEqual(self.code(evolve(row, created_at=ago(299))), "")

    def test_nothing_is_there_to_run_it(self) -> None:
        """Past its deadline, and seen twice by this daemon."""
        row = running(waiting=waiting(Code.NO_WORKERS, 600.0, 0.0))
        for troubles, code in ((0, ""), (1, ""), (2, "NO_WORKERS")):
            memory = Memory(steps=stalls.Memory(troubles=troubles))
            self.assertEqual(self.code(row, memory), code)
        seen = Memory(steps=stalls.Memory(troubles=9))
        self.assertEqual(self.code(running(waiting=waiting(Code.NO_WORKERS, 60, 1)), seen), "")
        self.assertEqual(self.code(running(waiting=waiting(Code.STEP_WAITS, 9000)), seen), "")


class OutageTests(SynchronousTestCase):
    def test_first_silence_is_not_shown(self) -> None:
        found = planner.outage(Memory(), "refused", NOW_S, 600.0)
        self.assertEqual((found.since, found.until), (NOW_S, NOW_S + 600))
        self.assertFalse(planner.shows_outage(running(), found, NOW_S))

    def test_second_silence_is_shown_once(self) -> None:
        found = planner.outage(Memory(silent_since=NOW_S - 5), "refused", NOW_S, 600.0)
        self.assertTrue(planner.shows_outage(running(), found, NOW_S))
        after = planner.waits_for_engine(running(), found, NOW_S)
        assert after.waiting is not None
        self.assertEqual(
            (after.waiting.code, after.waiting.since, after.waiting.until),
            ("ENGINE_UNREACHABLE", ago(0), ago(-595)),
        )
        self.assertFalse(planner.shows_outage(after, found, NOW_S))

    def test_an_unread_record_counts_from_the_first_failed_read_of_this_daemon(self) -> None:
        """Also when the row shows a wait of long ago: of an outage, or of another daemon."""
        row = running(waiting=waiting(Code.ENGINE_UNREACHABLE, 9000, -10))
        first = planner.unread(None, "refused", NOW_S, 600.0)
        self.assertEqual((first.since, first.until), (NOW_S, NOW_S + 600))
        self.assertFalse(planner.shows_outage(row, first, NOW_S))
        self.assertFalse(planner.shows_outage(running(), first, NOW_S))
        second = planner.unread(NOW_S - 5, "refused", NOW_S, 600.0)
        self.assertEqual((second.since, second.until), (NOW_S - 5, NOW_S + 595))
        self.assertTrue(planner.shows_outage(running(), second, NOW_S))

    def test_outage_that_lasts_fails_a_job(self) -> None:
        found = planner.outage(Memory(silent_since=NOW_S - 600), "refused", NOW_S, 600.0)
        after = planner.without_engine(running(), found, NOW_S)
        assert after.failure is not None
        self.assertEqual((after.status, after.failure.code), (S.FAILED, "ENGINE_UNREACHABLE"))
        self.assertIn("no answer for 600 s: refused", after.failure.text)
        cancelled = planner.without_engine(running(cancel_requested=True), found, NOW_S)
        self.assertEqual((cancelled.status, cancelled.failure), (S.KILLED, None))


class StallTests(SynchronousTestCase):
    """When the ResourceManager is asked about a step."""

    STEP = ("W@job-node", "job-node")

    def test_step_is_asked_about_when_it_has_been_quiet(self) -> None:
        row = running()
        memory, ask = stalls.consider(stalls.Memory(), [row], NOW_S)
        self.assertEqual((dict(memory.steps), ask), ({row.id: (self.STEP, NOW_S)}, ()))
        memory, ask = stalls.consider(memory, [row], NOW_S + 29)
        self.assertEqual(ask, ())
        memory, ask = stalls.consider(memory, [row], NOW_S + 30)
        self.assertEqual((memory.asked_at, ask), (NOW_S + 30, [row]))
        memory, ask = stalls.consider(memory, [row], NOW_S + 49)
        self.assertEqual(ask, ())

    def test_next_step_is_quiet_from_its_beginning(self) -> None:
        before = stalls.Memory(steps={ExecutionId("e"): (self.STEP, NOW_S - 100)}, troubles=3)
        row = running(record=tree(id="W@next", name="next"))
        memory, ask = stalls.consider(before, [row], NOW_S)
        self.assertEqual(memory.steps[row.id], (("W@next", "next"), NOW_S))
        self.assertEqual((memory.troubles, ask), (0, ()))

    def test_found_trouble_is_asked_about_at_each_round(self) -> None:
        row = running(waiting=waiting(Code.NO_WORKERS))
        self.assertEqual(stalls.consider(stalls.Memory(), [row], NOW_S)[1], [row])

    def test_troubles_are_counted_until_a_round_without(self) -> None:
        for metrics, troubles in (
            (stalls.ClusterMetrics(error="refused"), 3),
            (stalls.ClusterMetrics(active=0), 3),
            (stalls.ClusterMetrics(active=1), 0),
            (stalls.ClusterMetrics(), 0),
        ):
            after = stalls.answered(stalls.Memory(troubles=2), metrics)
            self.assertEqual(after.troubles, troubles, metrics)

    def test_others_are_not_asked_about(self) -> None:
        for row in (
            running(cancel_requested=True),
            running(status=S.SUSPENDED),
            running(record=tree(externalId="-")),
            running(waiting=waiting(Code.ENGINE_UNREACHABLE)),
        ):
            old = stalls.Memory(steps={row.id: (self.STEP, NOW_S - 100)})
            self.assertEqual(stalls.consider(old, [row], NOW_S)[1], ())


class TidyTests(SynchronousTestCase):
    def test_record_of_a_kill_is_completed(self) -> None:
        """Only of the same end, and not for one that is deleted."""
        row = running(status=S.KILLED, record=tree("KILLED"))
        self.assertTrue(planner.needs_last_record(row))
        self.assertFalse(planner.needs_last_record(evolve(row, delete_requested=True)))
        last = ended(masking.reading(tree("KILLED", endTime="x"), ()))
        self.assertEqual(planner.completed(row, last).record, last.tree)
        self.assertFalse(planner.needs_last_record(planner.completed(row, last)))
        other = ended(masking.reading(tree("SUCCEEDED"), ()))
        self.assertIs(planner.completed(row, other), row)

    def test_folder_is_left_after_a_quarter_of_an_hour(self) -> None:
        self.assertFalse(planner.leaves_folder(running(end_time=ago(899)), NOW_S))
        self.assertTrue(planner.leaves_folder(running(end_time=ago(900)), NOW_S))
        self.assertTrue(planner.leaves_folder(running(end_time=ago(-900)), NOW_S))


class RecordTests(SynchronousTestCase):
    def test_row_of_a_former_release_is_read(self) -> None:
        """Whatever the engine left out."""
        self.assertEqual(engine_record.parsed({}), engine_record.Record())
        odd = engine_record.parsed(
            {"status": None, "actions": [None, {"name": 1}], "lastModTime": 3}
        )
        self.assertEqual((odd.status, odd.modified, len(odd.actions)), ("", None, 1))

    def test_secret_that_is_a_word_of_the_engine_leaves_the_status(self) -> None:
        self.assertEqual(ended(masking.reading(tree(), [Secret("RUNNING")])).status, "RUNNING")

    def test_times_are_read_from_http_dates(self) -> None:
        found = engine_record.parsed(tree())
        self.assertEqual((found.created, found.ended), (ago(600), None))


class PruneTests(SynchronousTestCase):
    """Which ended executions are deleted after their days."""

    def test_the_time_from_which_they_are_kept(self) -> None:
        self.assertEqual(planner.kept_since(864_000.0, 1), 777_600.0)
        self.assertEqual(planner.kept_since(864_000.0, 11), 0.0)
        self.assertEqual(planner.kept_since(864_000.0, 10**12), 0.0)

    def test_only_what_ended_before(self) -> None:
        for row, wanted in (
            (execution(status=S.SUCCEEDED, end_time=ago(11)), True),
            (execution(status=S.FAILED, end_time=ago(10)), False),
            (execution(status=S.FAILED, end_time=ago(9)), False),
            (execution(status=S.RUNNING), False),
            (execution(status=S.FAILED, end_time=ago(11), submitting=True), False),
        ):
            self.assertIs(planner.is_to_prune(row, ago(10)), wanted, row)


class InterruptedStartTests(SynchronousTestCase):
    def test_a_late_write_may_follow_a_start_without_a_job(self) -> None:
        """A cancel alone may end the row after a failed try; a restart may end it by any step."""
        end, tidy = End(status=S.KILLED), TidyUp()
        for row, step, expected in (
            (execution(workflow_job_id=None, workflow_dir="/d", attempts=1), tidy, True),
            (execution(workflow_job_id=None, workflow_dir="/d"), end, True),
            (execution(workflow_job_id=None, workflow_dir="/d"), tidy, False),
            (execution(workflow_job_id=None, attempts=1), tidy, False),
            (execution(workflow_job_id="W", workflow_dir="/d", attempts=1), tidy, False),
        ):
            self.assertIs(planner.has_interrupted_start(row, step), expected, (row, step))
