"""What a cluster's story tells of jobs that wait, when their rows change without the teller."""

from __future__ import annotations

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule, Handle
from svcd.model.job import Execution, ExecutionStatus
from svcd.settings import Workflow
from tests.unit.workflow.support import CALLER, CLUSTER, TENANT, RunningCase, WorkflowCase

HANG = {"svcd.fake.outcome": "hang"}
OUTAGE = ("retry", "ENGINE_UNREACHABLE")
END = ("done", "")


class OutageTests(RunningCase):
    """An engine that does not answer, again and again."""

    workflow = Workflow(unreachable_deadline_s=300.0)

    def told(self) -> list[tuple[str, str]]:
        events = self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))
        return [(event.outcome, event.code) for event in events]

    def running(self) -> Execution:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        return row

    def silence(self) -> Handle:
        """Long enough to be told of."""
        rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.clock.advance(20)
        return rule

    def test_outage_in_which_the_engine_lost_its_jobs(self) -> None:
        """Its end is told, and the next one too."""
        self.running()
        rule = self.silence()
        self.scripted.jobs.clear()
        rule.remove()
        self.clock.advance(10)
        self.assertEqual(self.told(), [OUTAGE, END])
        self.running()
        self.silence()
        self.assertEqual(self.told(), [OUTAGE, END, OUTAGE])

    def test_engine_whose_records_cannot_be_read(self) -> None:
        """It lists its jobs and answers nonsense on each: the job fails after the deadline."""
        self.faults.add(FaultRule(where="engine", path="show=info", status=200, body="[]"))
        row = self.running()
        self.clock.advance(20)
        self.assertEqual(self.told(), [OUTAGE])
        self.clock.advance(400)
        ended = self.execution(row.id)
        self.assertEqual(ended.status, ExecutionStatus.FAILED)
        assert ended.failure is not None
        self.assertEqual(ended.failure.code, "ENGINE_UNREACHABLE")
        self.assertIn("the answer is not a JSON object", ended.failure.text)

    def test_outage_whose_end_another_daemon_saw(self) -> None:
        """It has told the end; who drives the cluster again tells the next outage."""
        row = self.running()
        rule = self.silence()
        known = self.execution(row.id)
        ended = evolve(known, waiting=None)
        self.assertTrue(self.tx(lambda tx: tx.executions.save(ended)))
        rule.remove()
        self.clock.advance(10)
        self.silence()
        self.assertEqual(self.told(), [OUTAGE, OUTAGE])


class CancelTests(WorkflowCase):
    def test_cancel_of_a_waiting_job_ends_its_wait_in_the_events(self) -> None:
        """The request writes the end, not the task that told of the beginning."""
        self.controller.start()
        self.faults.add(FaultRule(where="hdfs", status=503))
        row = self.execute()
        self.clock.advance(5)
        after = self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual(after.status, ExecutionStatus.KILLED)
        events = self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))
        self.assertEqual(
            [(event.outcome, event.code) for event in events],
            [("retry", "STAGING_FAILED"), ("done", "")],
        )
