"""The story of a job execution, with literal values."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.execution_outcome import ExecutionOutcome
from svcd.model.failures import Code
from svcd.model.ids import Timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.model.wire_job_story import (
    EngineStep,
    ExecutionFault,
    ExecutionStory,
    ExecutionWork,
    WorkKind,
)
from svcd.workflow.decide.story import story_of
from tests.unit.workflow.decide import rows
from tests.unit.workflow.decide.rows import cluster

CREATED = Timestamp("2026-01-01 00:00:01.500000")
STARTED = Timestamp("2026-01-01 00:00:06.000000")
ENDED = Timestamp("2026-01-01 00:01:00.000000")
ACTION = {
    "name": "job-node",
    "type": "pig",
    "status": "RUNNING",
    "startTime": "Thu, 01 Jan 2026 00:00:07 GMT",
    "endTime": None,
    "externalId": "application_1_1",
    "externalStatus": "RUNNING",
    "consoleUrl": "http://rm:8088/proxy/job_1_1/",
    "errorCode": None,
    "errorMessage": None,
}
STEP = EngineStep(
    name="job-node",
    type="pig",
    status="RUNNING",
    began="2026-01-01T00:00:07",
    ended=None,
    external_id="application_1_1",
    external_status="RUNNING",
    error_code="",
    error_text="",
    page="http://rm:8088/proxy/application_1_1/",
)


def execution(status: str = "Pending", *actions: dict[str, Any], **more: Any) -> Execution:
    record = {"actions": list(actions)}
    return rows.execution(status=ExecutionStatus(status), record=record, created_at=CREATED, **more)


def story(row: Execution, on: Cluster | None = None) -> ExecutionStory:
    return story_of(row, on or cluster())


def work(kind: WorkKind, **fields: Any) -> ExecutionWork:
    """What is to be told of the present work; other fields are not known."""
    names = ("since", "until", "progress", "wait", "cluster_status")
    return ExecutionWork(kind=kind, **{**dict.fromkeys(names), **fields})


class WorkTests(SynchronousTestCase):
    """The present work of an execution that has not ended."""

    def test_submit_on_an_active_cluster_and_on_one_that_is_gone(self) -> None:
        for on in (cluster(), None):
            told = story_of(execution(), on).work
            self.assertEqual(told, work(WorkKind.SUBMIT, since="2026-01-01T00:00:01"))

    def test_cluster_that_is_not_active_is_the_work_of_a_pending_one_only(self) -> None:
        on = cluster(ClusterStatus.SPAWNING)
        told = story(execution(), on).work
        assert told is not None
        self.assertEqual((told.kind, told.cluster_status), ("cluster", "Spawning"))
        self.assertEqual(story(execution("RUNNING"), on).work, work(WorkKind.RUN))

    def test_run_since_the_engine_began_it_with_its_progress(self) -> None:
        row = execution("RUNNING", start_time=STARTED, progress=0.5)
        wanted = work(WorkKind.RUN, since="2026-01-01T00:00:06", progress=0.5)
        self.assertEqual(story(row).work, wanted)

    def test_a_missing_thing_comes_first_with_its_meaning_and_advice(self) -> None:
        code = Code.ENGINE_UNREACHABLE
        text = f"refused; {code.advice}" if code.advice else "refused"
        waiting = Waiting(code=code, step="submit", text=text, since=STARTED, until=ENDED)
        fault = ExecutionFault(
            code="ENGINE_UNREACHABLE",
            step="submit",
            text="refused",
            meaning=code.meaning,
            advice=code.advice,
        )
        times = {"since": "2026-01-01T00:00:06", "until": "2026-01-01T00:01:00"}
        told = story(execution(waiting=waiting), cluster(ClusterStatus.SPAWNING)).work
        self.assertEqual(told, work(WorkKind.WAIT, wait=fault, **times))


class EndTests(SynchronousTestCase):
    def test_outcomes(self) -> None:
        """The engine calls three ends KILLED."""
        for status, code, outcome in (
            ("RUNNING", "", ExecutionOutcome.GOING_ON),
            ("SUCCEEDED", "", ExecutionOutcome.SUCCEEDED),
            ("FAILED", "", ExecutionOutcome.FAILED),
            ("KILLED", "", ExecutionOutcome.CANCELLED),
            ("KILLED", "EXIT_CODE", ExecutionOutcome.FAILED),
            ("KILLED", "KILLED_ELSEWHERE", ExecutionOutcome.KILLED),
            ("KILLED", "CLUSTER_GONE", ExecutionOutcome.KILLED),
        ):
            failure = Failure(code=code, step="s", text="t") if code else None
            told = story(execution(status, failure=failure))
            self.assertEqual(told.outcome, outcome, (status, code))
            self.assertEqual(told.work is None, status != "RUNNING")

    def test_failure(self) -> None:
        """Its advice stands beside its text. An unknown code has neither meaning nor advice."""
        advice = Code.OUTPUT_EXISTS.advice
        failure = Failure(code="OUTPUT_EXISTS", step="job-node", text=f"/out exists; {advice}")
        self.assertEqual(
            story(execution("KILLED", failure=failure)).failure,
            ExecutionFault(
                code="OUTPUT_EXISTS",
                step="job-node",
                text="/out exists",
                meaning=Code.OUTPUT_EXISTS.meaning,
                advice=advice,
            ),
        )
        strange = story(execution("KILLED", failure=evolve(failure, code="STRANGE"))).failure
        assert strange is not None
        self.assertEqual((strange.meaning, strange.advice), ("", ""))
        self.assertEqual(strange.text, failure.text)


class StepTests(SynchronousTestCase):
    def test_actions_that_work(self) -> None:
        """Without control nodes; the page is that of the application."""
        start = {"name": ":start:", "type": ":START:", "status": "OK"}
        self.assertEqual(story(execution("RUNNING", start, ACTION)).steps, [STEP])

    def test_what_the_engine_does_not_know(self) -> None:
        """It writes a sign in its place."""
        bare = {"name": "job-node", "externalId": "-", "consoleUrl": "-", "startTime": "soon"}
        (step,) = story(execution("RUNNING", bare)).steps
        self.assertEqual((step.external_id, step.page, step.began), ("", "", None))

    def test_an_action_without_an_end(self) -> None:
        """Of an execution that has ended: the engine may be gone before it writes the time."""
        (step,) = story(execution("KILLED", ACTION, end_time=ENDED)).steps
        self.assertEqual((step.began, step.ended), (STEP.began, "2026-01-01T00:01:00"))
