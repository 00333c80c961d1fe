from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule
from svcd.embedded.oozie_jobs import Job
from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId
from svcd.model.job import Execution, ExecutionStatus
from svcd.settings import Workflow
from tests.unit.workflow.support import CALLER, CLUSTER, TENANT, RunningCase

S = ExecutionStatus
HANG = {"svcd.fake.outcome": "hang"}


class _Case(RunningCase):
    def wish(self, row: Execution, **changes: bool) -> None:
        wished = evolve(self.execution(row.id), **changes)
        self.assertTrue(self.tx(lambda tx: tx.executions.save(wished)))


class Waits(_Case):
    """What a job waits for is said while it waits."""

    workflow = Workflow(submit_deadline_s=120.0, unreachable_deadline_s=300.0)

    def events(self) -> Sequence[ClusterEvent]:
        return self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))

    def job(self) -> Job:
        [job] = self.scripted.jobs.values()
        return job

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
        told = [(e.step, e.outcome, e.code) for e in self.events()]
        self.assertEqual(told, [("job", "retry", "STAGING_FAILED"), ("job", "done", "")])
        self.assertIn(f"job execution {rows[0].id} waits (until ", self.events()[0].text)
        self.assertIn("HTTP 503", self.events()[0].text)

    def test_a_silent_engine_is_told_of_a_running_job(self) -> None:
        """The record is the last one that was read, and is shown as such."""
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.clock.advance(20)
        waiting = self.info(row.id)["waiting"]
        self.assertEqual(self.info(row.id)["status"], "RUNNING")
        self.assertEqual((waiting["code"], waiting["step"]), ("ENGINE_UNREACHABLE", "workflow"))
        self.assertEqual(waiting["until"], "2026-01-01T00:05:10")
        rule.remove()
        self.clock.advance(10)
        self.assertNotIn("waiting", self.info(row.id))

    def test_a_record_that_is_not_answered_is_told(self) -> None:
        """From the second lost answer on. The time in which no svcd runs does not count."""
        row = self.execute(configs={**HANG, "svcd.fake.holding": "PREP"})
        self.clock.advance(6)
        lost = FaultRule(where="engine", path="/job/.*show=info", status=503)
        once = self.faults.add(evolve(lost, times=1))
        self.clock.advance(10)
        self.assertEqual(once.hits(), 1)
        self.assertEqual(self.events(), [])
        self.faults.add(lost)
        self.clock.advance(15)
        self.assertEqual(self.info(row.id)["waiting"]["code"], "ENGINE_UNREACHABLE")
        self.run_to_end(self.controller.stop())
        self.clock.advance(400)
        self.controller = self.make_controller()
        self.controller.start()
        self.clock.advance(290)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        self.clock.advance(20)
        self.assertEqual(self.execution(row.id).status, S.FAILED)

    def test_many_steps_that_do_not_begin_are_not_all_looked_at(self) -> None:
        """The engine is in trouble already: a tick asks it for 20 of them, not for each."""
        rows = [self.execute(configs={**HANG, "svcd.fake.holding": "PREP"}) for _ in range(60)]
        self.clock.advance(300)
        codes = {self.info(row.id)["waiting"]["code"] for row in rows}
        self.assertEqual(codes, {"STEP_WAITS"})
        before = dict(self.scripted.calls)
        self.clock.advance(50)
        spent = {kind: self.scripted.calls[kind] - before[kind] for kind in ("GET jobs", "GET job")}
        self.assertEqual(spent, {"GET jobs": 10, "GET job": 200})

    def hang(self, number: int) -> Sequence[Execution]:
        """So many executions on a cluster whose file system accepts calls and never answers."""
        self.faults.add(FaultRule(where="hdfs", path="/c1/", effect=Effect.TIMEOUT_BEFORE))
        rows = [self.execute() for _ in range(number)]
        self.clock.advance(1)
        return rows

    def test_a_file_system_that_hangs_delays_no_other_cluster(self) -> None:
        """Of the same tenant either."""
        other = ClusterId("c2")
        self.tx(lambda tx: tx.clusters.add(self.cluster(other, "other")))
        self.hang(200)
        row = self.execute(cluster_id=other, configs=HANG)
        self.clock.advance(2)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)

    def test_a_wait_for_a_place_at_svcd_is_told(self) -> None:
        """After some seconds; it is forgotten with the start."""
        rows = self.hang(30)
        self.assertNotIn("waiting", self.info(rows[-1].id))
        self.clock.advance(15)
        waiting = self.info(rows[-1].id)["waiting"]
        self.assertEqual(
            (waiting["code"], waiting["step"], waiting["since"], waiting["until"]),
            ("START_WAITS", "start", "2026-01-01T00:00:00", "2026-01-01T00:02:00"),
        )
        self.assertNotIn("waiting", self.info(rows[0].id))
        self.clock.advance(17)
        self.assertEqual(self.info(rows[0].id)["waiting"]["code"], "STAGING_FAILED")
        self.assertNotIn("waiting", self.info(rows[-1].id))
        self.faults.clear()
        self.clock.advance(100)
        self.assertEqual({self.execution(row.id).status for row in rows}, {S.SUCCEEDED})
        self.assertEqual(self.scripted.submissions, 30)

    def test_deleted_executions_that_wait_for_a_place_leave_no_task(self) -> None:
        """However many of them end in one moment."""
        for row in self.hang(400):
            self.run_to_end(self.jobs.delete_execution(CALLER, row.id))
        self.faults.clear()
        self.clock.advance(300)
        self.assertEqual(self.controller.active(), 0)
        began = self.clock.seconds()
        self.run_to_end(self.controller.stop())
        self.assertEqual(self.clock.seconds(), began)


class Doubts(_Case):
    """A submit whose fate is not known: never twice, never unwatched."""

    workflow = Workflow(submit_deadline_s=300.0)

    def held(self, seconds: float, times: int | None = 1) -> None:
        """The engine sits on the submit that long, answers all else, and then takes it."""
        self.faults.add(
            FaultRule(
                where="engine", method="POST", effect=Effect.LATE, delay_s=seconds, times=times
            )
        )

    def test_a_held_submit_is_not_sent_twice(self) -> None:
        """The engine denies the job for longer than we wait, and accepts the submit after that."""
        self.held(200.0)
        row = self.execute(configs=HANG)
        self.clock.advance(190)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        self.clock.advance(600)
        self.assertEqual(self.scripted.submissions, 1)

    def given_up(self) -> Execution:
        """An execution that failed while its submit was in doubt: HDFS is gone too."""
        self.held(600.0)
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        rule = self.faults.add(FaultRule(where="hdfs", status=503))
        self.clock.advance(330)
        after = self.execution(row.id)
        self.assertEqual((after.status, after.end_time is None), (S.FAILED, False))
        assert after.failure is not None
        self.assertEqual(after.failure.code, "ENGINE_UNREACHABLE")
        self.assertIn("may still take it", after.failure.text)
        self.assertEqual(self.scripted.submissions, 0)
        self.rule = rule
        return row

    def killed(self) -> bool:
        [job] = self.scripted.jobs.values()
        return job.status(self.clock.seconds()) == "KILLED"

    def test_what_appears_after_giving_up_is_killed(self) -> None:
        row = self.given_up()
        self.clock.advance(350)
        self.assertTrue(self.killed())
        after = self.execution(row.id)
        self.assertEqual((after.status, after.submitting), (S.FAILED, False))

    def test_a_deleted_one_is_watched_too(self) -> None:
        """Its row goes when nothing can come any more."""
        row = self.given_up()
        self.wish(row, delete_requested=True)
        self.clock.advance(350)
        self.assertTrue(self.killed())
        self.rule.remove()
        self.clock.advance(100)
        self.assertIsNone(self.tx(lambda tx: tx.executions.find(row.id)))

    def test_the_watch_is_bounded(self) -> None:
        """An engine that never answers again is left after an hour."""
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
        self.held(200.0)
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        self.wish(row, cancel_requested=True)
        self.clock.advance(100)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.clock.advance(80)
        self.assertEqual(self.execution(row.id).status, S.KILLED)
        self.clock.advance(100)
        self.assertEqual(self.scripted.submissions, 0)


class Folders(_Case):
    """Nothing stays in HDFS."""

    def left(self) -> list[str]:
        prefix = "/user/hadoop/svcd/"
        return [path for path in self.scripted.files.nodes if path.startswith(prefix)]

    def delete(self, row: Execution) -> None:
        self.wish(row, delete_requested=True, cancel_requested=True)
        self.controller.wake()

    def test_a_dead_file_system_keeps_the_row_until_it_is_back(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        rule = self.faults.add(FaultRule(where="hdfs", status=503))
        self.delete(row)
        self.clock.advance(60)
        rule.remove()
        self.clock.advance(60)
        self.assertEqual(self.left(), [])
        self.assertIsNone(self.tx(lambda tx: tx.executions.find(row.id)))
