from __future__ import annotations

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule
from svcd.errors import ServiceUnavailable
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId, InstanceId, http_date, iso_seconds
from svcd.model.job import Execution, ExecutionStatus
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.provisioning.distributions.spi import HttpProbe
from svcd.settings import Workflow
from tests.unit.workflow.support import CLUSTER, JAR, JAR_BYTES, SCRIPT, TENANT, WorkflowCase

S = ExecutionStatus
OF_C1 = HttpProbe(
    machine=InstanceId("i1"),
    what="oozie",
    url="http://cloud.memory/engine/c1/oozie/env",
    missing=lambda status, _: "" if status == 200 else "not there",
    identity="cluster c1",
)
"""The identity of the daemon of the cluster c1."""


class Running(WorkflowCase):
    def setUp(self) -> None:
        super().setUp()
        self.controller.start()

    def test_a_job_runs_to_its_end(self) -> None:
        """Pending, RUNNING with the engine's record, SUCCEEDED with both times."""
        row = self.execute()
        self.assertEqual((row.status, row.workflow_job_id), (S.PENDING, None))
        self.clock.advance(0.1)
        running = self.execution(row.id)
        self.assertEqual(running.status, S.RUNNING)
        self.assertEqual(self.info(row.id)["actions"][1]["status"], "RUNNING")
        self.assertEqual(self.info(row.id)["externalId"], row.id)
        self.clock.advance(12)
        ended = self.execution(row.id)
        self.assertEqual((ended.status, ended.failure), (S.SUCCEEDED, None))
        assert ended.start_time and ended.end_time
        self.assertEqual(iso_seconds(ended.start_time), "2026-01-01T00:00:00")
        self.assertEqual(iso_seconds(ended.end_time), "2026-01-01T00:00:05")
        self.assertEqual(self.scripted.submissions, 1)

    def test_everything_is_staged_before_the_submit(self) -> None:
        """Script beside the definition, libraries in lib under a name that the engine loads."""
        pig = self.execute()
        jar = self.execute(JAR)
        self.clock.advance(0.1)
        files = self.scripted.files
        top = f"/user/hadoop/svcd/{pig.id}"
        self.assertEqual(files.read(f"{top}/count.pig"), SCRIPT)
        self.assertEqual(files.read(f"{top}/lib/udf.jar"), b"PK\x03\x04 udf")
        self.assertEqual(files.nodes[top].permission, "700")
        self.assertEqual(files.read(f"/user/hadoop/svcd/{jar.id}/lib/wc.jar"), JAR_BYTES)

    def test_the_folder_is_removed_after_the_end(self) -> None:
        """It holds credentials and takes space."""
        row = self.execute()
        self.clock.advance(20)
        self.assertFalse(self.scripted.files.exists(f"/user/hadoop/svcd/{row.id}"))

    def test_credentials_do_not_reach_the_record(self) -> None:
        """The engine shows them in its configuration; we do not."""
        row = self.execute()
        self.clock.advance(0.1)
        raw = self.scripted.jobs[self.execution(row.id).workflow_job_id or ""].record(0.0)
        self.assertIn("secret", raw["actions"][1]["conf"])  # type: ignore[index]
        self.assertNotIn("secret", str(self.execution(row.id).record))

    def test_a_batch_costs_one_request_a_tick(self) -> None:
        """Thirty running jobs, one list; records only of those that changed."""
        for _ in range(30):
            self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(9.9)
        before = dict(self.scripted.calls)
        self.clock.advance(50)
        spent = {k: v - before[k] for k, v in self.scripted.calls.items() if v != before[k]}
        self.assertEqual(spent, {"GET jobs": 10})

    def test_a_job_waits_for_its_cluster(self) -> None:
        """Pending while the cluster is built, started when it is Active."""
        self.set_cluster(status=ClusterStatus.SPAWNING)
        row = self.execute()
        self.clock.advance(3600)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.set_cluster(status=ClusterStatus.ACTIVE)
        self.clock.advance(6)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)


class Failing(WorkflowCase):
    workflow = Workflow(submit_deadline_s=120.0, unreachable_deadline_s=60.0)

    def setUp(self) -> None:
        super().setUp()
        self.controller.start()

    def failed(self, row: Execution) -> tuple[str, str, str]:
        after = self.execution(row.id)
        assert after.failure is not None, after
        return after.status.value, after.failure.code, after.failure.step

    def test_a_failing_program_is_shown_as_the_engine_shows_it(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "fail", "svcd.fake.error": "no luck"})
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("KILLED", "EXCEPTION", "job-node"))
        info = self.info(row.id)
        self.assertEqual(
            info["failure"]["text"],
            "no luck; the log of this job execution has more",
        )
        self.assertEqual(info["actions"][1]["errorMessage"], "no luck")

    def test_a_job_does_not_start_on_a_strangers_engine(self) -> None:
        """No request but the look reaches it. An engine that does not show its cluster waits."""
        self.fake_engines.identities = (OF_C1,)
        self.probe.answer("/env", 200, b"cluster c2")
        row = self.execute()
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("FAILED", "FOREIGN_DAEMON", "start"))
        engine = self.engines.engine("c1")
        self.assertEqual((engine.calls, list(engine.files.nodes)), ({}, ["/"]))
        self.probe.answer("/env", 403, b"")
        row = self.execute()
        self.clock.advance(12)
        waiting = self.execution(row.id).waiting
        assert waiting is not None
        self.assertEqual(waiting.code, "ENGINE_UNREACHABLE")
        self.assertTrue(waiting.text.startswith("oozie: not there"), waiting.text)
        self.assertEqual((engine.calls, list(engine.files.nodes)), ({}, ["/"]))
        self.probe.answer("/env", 200, b"cluster c1")
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_a_silent_daemon_beside_engine_and_name_node_does_not_matter(self) -> None:
        """It is no stranger."""
        self.fake_engines.identities = (evolve(OF_C1, url="http://10.0.0.9:19888/env"),)
        self.probe.answer("/env", 503, b"")
        row = self.execute()
        self.clock.advance(12)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_a_long_staging_is_followed_by_a_second_look(self) -> None:
        """The stranger has come while the files were written."""
        self.fake_engines.identities = (OF_C1,)
        self.probe.answer("/env", 200, b"cluster c1")
        self.faults.add(
            FaultRule(where="hdfs", path="workflow.xml", effect=Effect.DELAY, delay_s=3.0)
        )
        row = self.execute()
        self.clock.advance(2)
        self.probe.answer("/env", 200, b"cluster c2")
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("FAILED", "FOREIGN_DAEMON", "start"))
        self.assertEqual(self.engines.engine("c1").submissions, 0)

    def test_nothing_is_removed_from_a_stranger(self) -> None:
        """The folder of the execution goes when the cluster's own file system is back."""
        self.fake_engines.identities = (OF_C1,)
        self.probe.answer("/env", 200, b"cluster c1")
        row = self.execute(configs={"svcd.fake.run_s": "5"})
        self.clock.advance(4)
        self.probe.answer("/env", 200, b"cluster c2")
        self.clock.advance(30)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)
        folder = f"/user/hadoop/svcd/{row.id}"
        self.assertIn(folder, self.engines.engine("c1").files.nodes)
        self.probe.answer("/env", 200, b"cluster c1")
        self.clock.advance(120)
        self.assertNotIn(folder, self.engines.engine("c1").files.nodes)

    def test_a_stranger_that_does_not_know_the_job_has_not_lost_it(self) -> None:
        """The job runs on at the cluster's own engine, and is found there again."""
        self.fake_engines.identities = (OF_C1,)
        self.probe.answer("/env", 200, b"cluster c1")
        row = self.execute(configs={"svcd.fake.run_s": "40"})
        self.clock.advance(4)
        engine = self.engines.engine("c1")
        jobs = dict(engine.jobs)
        engine.jobs.clear()
        self.probe.answer("/env", 200, b"cluster c2")
        self.clock.advance(20)
        shown = self.execution(row.id)
        self.assertEqual(shown.status, S.RUNNING)
        assert shown.waiting is not None
        self.assertIn("a program that is not of this cluster answers", shown.waiting.text)
        engine.jobs.update(jobs)
        self.probe.answer("/env", 200, b"cluster c1")
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_a_silent_failure_is_explained_by_the_history(self) -> None:
        """A failing task leaves the engine's record without a reason."""
        self.probe.answer(r"/ws/v1/cluster/apps/", 200, _AM)
        self.probe.answer(r"containerlogs/container_1_0001_01_000001/syslog", 200, _LOG)
        row = self.execute(configs={"svcd.fake.outcome": "silent"})
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("KILLED", "EXCEPTION", "job-node"))
        self.assertIn(
            "java.lang.IllegalStateException: bad line", self.info(row.id)["failure"]["text"]
        )
        self.assertIn(
            "http://cloud.memory/engine/c1/yarn/ws/v1/cluster/apps/application_1767225600000_0001",
            self.probe.asked,
        )

    def test_credentials_do_not_reach_the_explanation(self) -> None:
        """A program may have written down with what it logged in."""
        self.probe.answer(r"/ws/v1/cluster/apps/", 200, _AM)
        log = _LOG.replace(b"bad line", b"login refused: demo/secret")
        self.probe.answer(r"containerlogs/container_1_0001_01_000001/syslog", 200, log)
        row = self.execute(configs={"svcd.fake.outcome": "silent"})
        self.clock.advance(12)
        self.failed(row)
        self.assertIn("login refused: demo/***", self.info(row.id)["failure"]["text"])

    def test_an_internal_error_is_failed(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "error"})
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("FAILED", "VARIABLE_UNKNOWN", "job-node"))

    def test_a_job_that_waits_for_a_person_is_killed_with_the_reason(self) -> None:
        """SUSPENDED with START_MANUAL would last for ever."""
        row = self.execute(configs={"svcd.fake.outcome": "suspend"})
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.SUSPENDED)
        self.clock.advance(300)
        self.assertEqual(self.failed(row), ("KILLED", "RESOURCES_UNREACHABLE", "job-node"))

    def test_a_job_that_never_begins_is_killed_with_the_reason(self) -> None:
        """The engine died between taking the job and starting it."""
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(0.1)
        [job] = self.scripted.jobs.values()
        job.started_at = None
        early = evolve(self.execution(row.id), status=S.PREP)
        self.tx(lambda tx: tx.executions.save(early))
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.PREP)
        self.clock.advance(300)
        self.assertEqual(self.failed(row), ("KILLED", "START_GAVE_UP", "workflow"))

    def test_a_suspension_by_a_person_is_left_alone(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(6)
        self.scripted.get(self.execution(row.id).workflow_job_id or "").suspend(
            self.clock.seconds()
        )
        self.clock.advance(3600)
        self.assertEqual(self.execution(row.id).status, S.SUSPENDED)

    def test_a_cluster_in_error_fails_what_waits(self) -> None:
        self.set_cluster(status=ClusterStatus.SPAWNING)
        row = self.execute()
        self.set_cluster(status=ClusterStatus.ERROR, status_description="no host")
        self.clock.advance(6)
        self.assertEqual(self.failed(row), ("FAILED", "CLUSTER_FAILED", "start"))
        self.assertIn("no host", self.info(row.id)["failure"]["text"])

    def test_a_cluster_without_an_engine_fails_the_job(self) -> None:
        """It had one when the job was accepted."""
        self.set_cluster(status=ClusterStatus.SPAWNING)
        row = self.execute()
        self.set_cluster(status=ClusterStatus.ACTIVE, name="no-engine")
        self.clock.advance(6)
        self.assertEqual(self.failed(row), ("FAILED", "NO_ENGINE", "start"))

    def test_a_missing_binary_fails_the_job(self) -> None:
        del self.objects.objects[(TENANT, "box", "udf.jar")]
        row = self.execute()
        self.clock.advance(1)
        self.assertEqual(self.failed(row), ("FAILED", "BINARY_UNREADABLE", "staging"))

    def test_a_passing_fault_of_the_object_store_is_waited_for(self) -> None:
        self.objects.error = CloudError("object-store", Fault.SERVER_ERROR, "503")
        row = self.execute()
        self.clock.advance(20)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.objects.error = None
        self.clock.advance(30)
        self.assertIn(self.execution(row.id).status, (S.RUNNING, S.SUCCEEDED))

    def test_a_bug_does_not_keep_a_job_pending(self) -> None:
        """It ends with the incident that the log carries; others run."""
        self.objects.bug = True
        row = self.execute()
        other = self.execute(JAR)
        self.clock.advance(200)
        self.assertEqual(self.failed(row), ("FAILED", "INTERNAL", "start"))
        self.assertEqual(self.execution(other.id).status, S.SUCCEEDED)
        incidents = len(self.flushLoggedErrors(ZeroDivisionError))
        self.assertEqual(incidents, 8)

    def test_a_store_that_is_away_is_no_bug(self) -> None:
        """However often it was asked meanwhile."""
        self.objects.error = ServiceUnavailable("the database is locked")
        row = self.execute()
        self.clock.advance(400)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.objects.error = None
        self.clock.advance(70)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_what_cannot_start_in_time_fails_with_the_last_reason(self) -> None:
        self.faults.add(FaultRule(where="hdfs", status=503, body="<h1>down</h1>"))
        row = self.execute()
        self.clock.advance(200)
        self.assertEqual(self.failed(row), ("FAILED", "STAGING_FAILED", "staging"))
        self.assertEqual(self.scripted.submissions, 0)

    def test_a_refused_submit_fails_at_once(self) -> None:
        self.faults.add(
            FaultRule(
                where="engine",
                method="POST",
                status=400,
                headers={"oozie-error-code": "E0701", "oozie-error-message": "E0701: schema"},
            )
        )
        row = self.execute()
        self.clock.advance(1)
        self.assertEqual(self.failed(row), ("FAILED", "ENGINE_REFUSED", "submit"))
        self.assertIn("E0701: schema", self.info(row.id)["failure"]["text"])

    def test_a_silent_engine_fails_the_job_after_its_deadline(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(6)
        rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.clock.advance(50)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        self.clock.advance(30)
        self.assertEqual(self.failed(row), ("FAILED", "ENGINE_UNREACHABLE", "workflow"))
        rule.remove()

    def test_a_short_silence_is_forgotten(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(6)
        for _ in range(5):
            rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
            self.clock.advance(40)
            rule.remove()
            self.clock.advance(10)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)

    def test_a_job_the_engine_lost_fails(self) -> None:
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(6)
        self.scripted.jobs.clear()
        self.clock.advance(6)
        self.assertEqual(self.failed(row), ("FAILED", "ENGINE_LOST_JOB", "workflow"))


class ExactlyOnce(WorkflowCase):
    """However the submit's answer is lost, the job runs once."""

    def setUp(self) -> None:
        super().setUp()
        self.controller.start()

    def ends_once(self, row: Execution, advance_s: float = 90.0) -> None:
        self.clock.advance(advance_s)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)
        self.assertEqual(self.scripted.submissions, 1)

    def test_the_answer_is_lost_by_a_reset(self) -> None:
        self.faults.add(
            FaultRule(where="engine", method="POST", effect=Effect.RESET_AFTER, times=1)
        )
        self.ends_once(self.execute())

    def test_the_answer_never_comes(self) -> None:
        self.faults.add(
            FaultRule(where="engine", method="POST", effect=Effect.TIMEOUT_AFTER, times=1)
        )
        self.ends_once(self.execute(), 200)

    def test_the_answer_is_garbage(self) -> None:
        self.faults.add(FaultRule(where="engine", method="POST", effect=Effect.GARBAGE, times=1))
        self.ends_once(self.execute())

    def test_the_request_never_arrives(self) -> None:
        self.faults.add(
            FaultRule(where="engine", method="POST", effect=Effect.RESET_BEFORE, times=2)
        )
        self.ends_once(self.execute(), 200)

    def test_the_daemon_dies_between_submit_and_save(self) -> None:
        """A new daemon on the same rows finds the job by its external id."""
        self.faults.add(
            FaultRule(where="engine", method="POST", effect=Effect.TIMEOUT_AFTER, times=1)
        )
        row = self.execute()
        self.clock.advance(1)
        self.assertTrue(self.execution(row.id).submitting)
        self.run_to_end(self.controller.stop())
        self.controller = self.make_controller()
        self.controller.start()
        self.ends_once(row)

    def test_a_running_job_is_followed_by_a_new_daemon(self) -> None:
        row = self.execute(configs={"svcd.fake.run_s": "20"})
        self.clock.advance(6)
        self.run_to_end(self.controller.stop())
        self.controller = self.make_controller()
        self.controller.start()
        self.ends_once(row)


class Clusters(WorkflowCase):
    def setUp(self) -> None:
        super().setUp()
        self.controller.start()

    def test_a_delete_kills_what_runs_and_what_waits(self) -> None:
        """Finished executions keep their status."""
        done = self.execute()
        self.clock.advance(12)
        running = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(1)
        self.objects.lag_s = 1000.0
        waiting = self.execute()
        self.run_to_end(self.controller.kill_all_of(CLUSTER))
        statuses = [self.execution(row.id).status for row in (done, running, waiting)]
        self.assertEqual(statuses, [S.SUCCEEDED, S.KILLED, S.KILLED])
        job = self.scripted.jobs[self.execution(running.id).workflow_job_id or ""]
        self.assertEqual(job.status(self.clock.seconds()), "KILLED")

    def test_a_delete_is_bounded_when_the_engine_is_dead(self) -> None:
        rows = [self.execute(configs={"svcd.fake.outcome": "hang"}) for _ in range(3)]
        self.clock.advance(1)
        self.faults.add(FaultRule(where="engine", effect=Effect.TIMEOUT_BEFORE))
        began = self.clock.seconds()
        self.run_to_end(self.controller.kill_all_of(CLUSTER))
        self.assertLess(self.clock.seconds() - began, 16)
        for row in rows:
            self.assertEqual(self.execution(row.id).status, S.KILLED)

    def test_executions_of_a_dropped_cluster_end(self) -> None:
        """They still say where they ran, and every time in their `info` is set."""
        row = self.execute(configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(1)
        self.tx(lambda tx: tx.clusters.drop(CLUSTER))
        self.clock.advance(6)
        after = self.execution(row.id)
        self.assertEqual((after.status, after.cluster_id), (S.KILLED, CLUSTER))
        assert after.end_time is not None
        info = self.info(row.id)
        times = ("startTime", "lastModTime", "endTime")
        self.assertEqual(info["endTime"], http_date(after.end_time))
        self.assertEqual([info["actions"][1]["endTime"]], [http_date(after.end_time)])
        for part in (info, *info["actions"]):
            self.assertNotIn(None, [part.get(name, "") for name in times])

    def test_each_end_on_a_transient_cluster_is_told(self) -> None:
        """Provisioning looks whether the cluster has no more to do, and again after the log."""
        brief = ClusterId("c3")
        self.tx(lambda tx: tx.clusters.add(self.cluster(brief, "brief", is_transient=True)))
        self.clock.advance(600)
        self.assertEqual(self.noticed, [])
        first = self.execute(cluster_id=brief)
        self.execute(cluster_id=brief, configs={"svcd.fake.run_s": "60"})
        self.clock.advance(40)
        self.assertEqual(self.execution(first.id).status, S.SUCCEEDED)
        self.assertEqual(self.noticed, [brief] * 2)
        self.clock.advance(60)
        self.assertEqual(self.noticed, [brief] * 4)
        self.assertEqual(self.execution(first.id).status, S.SUCCEEDED)

    def test_engines_that_hang_delay_no_other(self) -> None:
        """Each has its own look in flight; a tick waits for none of them."""
        hanging = [ClusterId(f"hang-{number}") for number in range(40)]
        for cluster_id in hanging:
            self.tx(lambda tx, id_=cluster_id: tx.clusters.add(self.cluster(id_, id_)))  # type: ignore[misc]
            self.execute(cluster_id=cluster_id, configs={"svcd.fake.outcome": "hang"})
        self.clock.advance(6)
        self.faults.add(
            FaultRule(where="engine", method="GET", path="hang-", effect=Effect.TIMEOUT_BEFORE)
        )
        self.clock.advance(6)
        row = self.execute(configs={"svcd.fake.run_s": "1"})
        self.clock.advance(7)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_the_place_of_executions_follows_the_row_of_the_cluster(self) -> None:
        """It is made once for each version of the row, and dropped with the last execution."""
        rows = self.controller.rows
        before = rows.place_on(self.run_to_end(self._found()))
        self.assertIs(rows.place_on(self.run_to_end(self._found())), before)
        self.set_cluster(management_private_key=self.sealer.seal(Secret("another key")))
        after = rows.place_on(self.run_to_end(self._found()))
        assert before is not None and after is not None
        self.assertGreater(after.cluster.version, before.cluster.version)
        self.assertNotEqual(after.cluster, before.cluster)
        rows.retain(lambda id_: id_ == CLUSTER)
        self.assertIs(rows.place_on(after.cluster), after)
        self.run_to_end(self.controller.tick())
        self.assertIsNot(rows.place_on(after.cluster), after)

    async def _found(self) -> Cluster:
        found = await self.controller.rows.cluster(CLUSTER)
        assert found is not None
        return found


_AM = (
    b'{"app": {"amContainerLogs": '
    b'"http://c1-master-001:8042/node/containerlogs/container_1_0001_01_000001/hadoop"}}'
)
_LOG = b"INFO x\njava.lang.IllegalStateException: bad line\n\tat Foo\n"
