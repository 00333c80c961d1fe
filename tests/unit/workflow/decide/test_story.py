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


def story(row: Execution, status: ClusterStatus = ClusterStatus.ACTIVE) -> ExecutionStory:
    return story_of(row, cluster(status=status))


class WorkTests(SynchronousTestCase):
    def work(self, row: Execution, on: Cluster | None) -> ExecutionWork:
        work = story_of(row, on).work
        assert work is not None
        return work

    def test_submit(self) -> None:
        """On an Active cluster, and on one that does not exist any more."""
        for on in (cluster(status=ClusterStatus.ACTIVE), None):
            self.assertEqual(
                self.work(execution(), on),
                ExecutionWork(
                    kind=WorkKind.SUBMIT,
                    since="2026-01-01T00:00:01",
                    until=None,
                    progress=None,
                    wait=None,
                    cluster_status=None,
                ),
            )

    def test_cluster_that_is_not_active(self) -> None:
        """Of a pending execution only."""
        on = cluster(status=ClusterStatus.SPAWNING)
        work = self.work(execution(), on)
        self.assertEqual((work.kind, work.cluster_status), ("cluster", "Spawning"))
        work = self.work(execution("RUNNING"), on)
        self.assertEqual((work.kind, work.since, work.cluster_status), ("run", None, None))

    def test_run(self) -> None:
        """Since the engine began it, with its progress."""
        row = execution("RUNNING", start_time=STARTED, progress=0.5)
        work = self.work(row, None)
        self.assertEqual(
            (work.kind, work.since, work.progress), ("run", "2026-01-01T00:00:06", 0.5)
        )

    def test_wait(self) -> None:
        """The missing thing comes first, with its meaning and advice."""
        code = Code.ENGINE_UNREACHABLE
        text = f"refused; {code.advice}" if code.advice else "refused"
        waiting = Waiting(code=code, step="submit", text=text, since=STARTED, until=ENDED)
        self.assertEqual(
            self.work(execution(waiting=waiting), cluster(status=ClusterStatus.SPAWNING)),
            ExecutionWork(
                kind=WorkKind.WAIT,
                since="2026-01-01T00:00:06",
                until="2026-01-01T00:01:00",
                progress=None,
                wait=ExecutionFault(
                    code="ENGINE_UNREACHABLE",
                    step="submit",
                    text="refused",
                    meaning=code.meaning,
                    advice=code.advice,
                ),
                cluster_status=None,
            ),
        )


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
