"""A job that waits for HDFS, the engine or YARN: what is told of it, and how it is given up."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule, Handle
from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId
from svcd.model.job import Execution, ExecutionStatus
from svcd.settings import Workflow
from tests.unit.workflow.support import CALLER, CLUSTER, TENANT, RunningCase, YarnCase

S = ExecutionStatus
HANG = {"svcd.fake.outcome": "hang"}


class WaitingCase(RunningCase):
    workflow = Workflow(submit_deadline_s=120.0, unreachable_deadline_s=300.0)

    def events(self) -> Sequence[ClusterEvent]:
        return self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))

    def told(self) -> list[tuple[str, str]]:
        """The waits in the story of the cluster."""
        return [(event.outcome, event.code) for event in self.events()]

    def wish(self, row: Execution, **changes: bool) -> None:
        wished = evolve(self.execution(row.id), **changes)
        self.assertTrue(self.tx(lambda tx: tx.executions.save(wished)))

    def is_gone(self, row: Execution) -> bool:
        return self.tx(lambda tx: tx.executions.find(row.id)) is None


class WaitTests(WaitingCase):
    """What a job waits for is said while it waits."""

    def test_a_dead_name_node_is_told_at_once(self) -> None:
        """What is missing, since when, until when; and it is forgotten when it is back."""
        rule = self.faults.add(FaultRule(where="hdfs", effect=Effect.RESET_BEFORE))
        row = self.execute()
        self.clock.advance(0.5)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual(
            (waiting["code"], waiting["step"], waiting["since"], waiting["until"]),
            ("STAGING_FAILED", "staging", "2026-01-01T00:00:00", "2026-01-01T00:02:00"),
        )
        self.assertTrue(waiting["text"].startswith("file system: "), waiting["text"])
        self.assertEqual(self.info(row.id)["status"], "Pending")
        self.clock.advance(20)
        self.assertEqual(self.info(row.id)["waiting"]["since"], "2026-01-01T00:00:00")
        rule.remove()
        self.clock.advance(40)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)
        self.assertNotIn("waiting", self.info(row.id))

    def test_the_clusters_story_tells_of_it_once(self) -> None:
        """However many jobs wait for the same, and however often each is tried."""
        rule = self.faults.add(FaultRule(where="hdfs", status=503))
        rows = [self.execute() for _ in range(3)]
        self.clock.advance(60)
        rule.remove()
        self.clock.advance(40)
        self.assertEqual(self.told(), [("retry", "STAGING_FAILED"), ("done", "")])
        self.assertIn(f"job execution {rows[0].id} waits (until ", self.events()[0].text)
        self.assertIn("HTTP 503", self.events()[0].text)

    def test_a_cancel_of_a_waiting_job_ends_its_wait_in_the_story(self) -> None:
        """The request writes the end, not the task that told of the beginning."""
        self.faults.add(FaultRule(where="hdfs", status=503))
        row = self.execute()
        self.clock.advance(5)
        after = self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual(after.status, S.KILLED)
        self.assertEqual(self.told(), [("retry", "STAGING_FAILED"), ("done", "")])

    def test_outages_of_an_engine_are_told_also_when_it_lost_its_jobs(self) -> None:
        """Each begin and each end."""

        def silence() -> Handle:
            self.execute(configs=HANG)
            self.clock.advance(6)
            rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
            self.clock.advance(20)
            return rule

        rule = silence()
        self.scripted.jobs.clear()
        rule.remove()
        self.clock.advance(10)
        outage = [("retry", "ENGINE_UNREACHABLE"), ("done", "")]
        self.assertEqual(self.told(), outage)
        silence()
        self.assertEqual(self.told(), [*outage, outage[0]])

    def test_a_record_that_is_not_answered_is_told(self) -> None:
        """From the second lost answer on. The time in which no svcd runs does not count."""
        row = self.execute(configs={**HANG, "svcd.fake.holding": "PREP"})
        self.clock.advance(6)
        lost = FaultRule(where="engine", path="/job/.*show=info", status=503)
        once = self.faults.add(evolve(lost, times=1))
        self.clock.advance(10)
        self.assertEqual((once.hits(), self.events()), (1, []))
        self.faults.add(lost)
        self.clock.advance(15)
        self.assertEqual(self.info(row.id)["waiting"]["code"], "ENGINE_UNREACHABLE")
        self.run_to_end(self.controller.stop())
        self.clock.advance(400)
        self.restart()
        self.clock.advance(290)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        self.clock.advance(20)
        self.assertEqual(self.execution(row.id).status, S.FAILED)

    def test_a_file_system_that_hangs_delays_no_other_cluster_of_the_tenant(self) -> None:
        """Deleted executions that wait for a place leave no task."""
        other = ClusterId("c2")
        self.tx(lambda tx: tx.clusters.add(self.cluster(other, "other")))
        self.faults.add(FaultRule(where="hdfs", path="/c1/", effect=Effect.TIMEOUT_BEFORE))
        rows = [self.execute() for _ in range(200)]
        self.clock.advance(1)
        row = self.execute(cluster_id=other)
        self.clock.advance(2)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        for waiting in rows:
            self.run_to_end(self.jobs.delete_execution(CALLER, waiting.id))
        self.faults.clear()
        self.clock.advance(300)
        self.assertEqual(self.controller.active(), 0)

    def test_a_dead_file_system_keeps_a_deleted_row_until_its_folder_is_removed(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        rule = self.faults.add(FaultRule(where="hdfs", status=503))
        self.wish(row, delete_requested=True, cancel_requested=True)
        self.clock.advance(60)
        self.assertFalse(self.is_gone(row))
        rule.remove()
        self.clock.advance(60)
        self.assertTrue(self.is_gone(row))
        prefix = "/user/hadoop/svcd/"
        left = [path for path in self.scripted.files.nodes if path.startswith(prefix)]
        self.assertEqual(left, [])


class WorkerTests(YarnCase):
    workflow = Workflow(unreachable_deadline_s=600.0)

    def test_a_lost_worker_is_told_within_a_minute_and_forgotten_when_it_is_back(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        nodes = self.scripted.yarn.nodes
        nodes.clear()
        nodes["127.1.0.2"] = ("LOST", "")
        self.clock.advance(50)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual(
            (waiting["code"], waiting["step"], waiting["since"], waiting["until"]),
            ("NO_WORKERS", "job-node", "2026-01-01T00:00:35", "2026-01-01T00:10:35"),
        )
        told = "no worker of the cluster takes work: c1-master-001 is LOST"
        self.assertEqual(waiting["text"], told)
        nodes["127.1.0.9"] = ("RUNNING", "")
        self.clock.advance(25)
        self.assertNotIn("waiting", self.info(row.id))
        events = self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))
        found = [(event.outcome, event.code) for event in events]
        self.assertEqual(found, [("retry", "NO_WORKERS"), ("done", "")])

    def test_a_busy_cluster_is_told_and_ends_nothing(self) -> None:
        queued = "[Sun Nov 22 00:03:01 +0000 2026] Queue's AM resource limit exceeded."
        row = self.execute(configs={**HANG, "svcd.fake.queued": queued})
        self.clock.advance(60)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual((waiting["code"], waiting["until"]), ("STEP_WAITS", None))
        self.assertIn("and not begun it: Queue's AM resource limit exceeded.", waiting["text"])
        self.clock.advance(7200)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)


class DoubtTests(WaitingCase):
    """A submit whose fate is not known: never twice, never unwatched."""

    workflow = Workflow(submit_deadline_s=300.0)

    def held(self, seconds: float) -> Execution:
        """An execution whose submit the engine answers and takes so late; it answers all else."""
        late = FaultRule(
            where="engine", method="POST", effect=Effect.LATE, delay_s=seconds, times=1
        )
        self.faults.add(late)
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        return row

    def test_a_held_submit_is_not_sent_twice(self) -> None:
        """The engine denies the job for longer than svcd waits, and accepts the submit after that.

        The second submit has a folder of its own: the first one cannot find its definition.
        """
        row = self.held(200.0)
        self.clock.advance(189)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        [job] = self.scripted.jobs.values()
        self.assertIn(f"/user/hadoop/svcd/{row.id}-2/", job.app_path)
        self.assertFalse(self.scripted.files.exists(f"/user/hadoop/svcd/{row.id}"))
        self.clock.advance(600)
        self.assertEqual(self.scripted.submissions, 1)

    def given_up(self) -> Execution:
        """An execution that failed while its submit was in doubt: HDFS is gone too."""
        row = self.held(600.0)
        self.gone = self.faults.add(FaultRule(where="hdfs", status=503))
        self.clock.advance(330)
        after = self.execution(row.id)
        self.assertEqual((after.status, after.end_time is None), (S.FAILED, False))
        assert after.failure is not None
        self.assertEqual(after.failure.code, "ENGINE_UNREACHABLE")
        self.assertIn("may still take it", after.failure.text)
        self.assertEqual(self.scripted.submissions, 0)
        return row

    def killed(self) -> bool:
        [job] = self.scripted.jobs.values()
        return job.status(self.clock.seconds()) == "KILLED"

    def test_what_appears_after_giving_up_is_killed(self) -> None:
        """Also when another daemon goes on watching."""
        row = self.given_up()
        self.restart()
        self.clock.advance(350)
        self.assertTrue(self.killed())
        after = self.execution(row.id)
        self.assertEqual((after.status, after.submitting), (S.FAILED, False))

    def test_an_engine_that_never_answers_again_is_left_after_an_hour(self) -> None:
        row = self.given_up()
        self.faults.clear()
        self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.clock.advance(3000)
        self.assertEqual(len(self.tx(lambda tx: tx.executions.unfinished())), 1)
        self.clock.advance(900)
        self.assertEqual(self.tx(lambda tx: tx.executions.unfinished()), [])
        self.assertIn("may still take it", self.info(row.id)["failure"]["text"])

    def test_a_cancel_in_doubt_is_not_believed_too_early(self) -> None:
        """KILLED only when the submit can do nothing any more."""
        row = self.held(200.0)
        self.wish(row, cancel_requested=True)
        self.clock.advance(100)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.clock.advance(80)
        self.assertEqual(self.execution(row.id).status, S.KILLED)
        self.clock.advance(100)
        self.assertEqual(self.scripted.submissions, 0)
