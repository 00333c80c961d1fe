from __future__ import annotations

import json
from typing import Any

from svcd.embedded.faults import Effect, FaultRule
from svcd.errors import ServiceUnavailable
from svcd.model.ids import ClusterId, InstanceId, http_date
from svcd.model.job import Execution, ExecutionStatus
from svcd.provisioning.distributions.spi import HttpProbe
from svcd.settings import Workflow
from tests.unit.workflow.support import CLUSTER, JAR, JAR_BYTES, SCRIPT, RunningCase

S = ExecutionStatus
HANG = {"svcd.fake.outcome": "hang"}
OF_C1 = HttpProbe(
    machine=InstanceId("i1"),
    what="oozie",
    url="http://cloud.memory/engine/c1/oozie/env",
    missing=lambda status, _: "" if status == 200 else "not there",
    identity="cluster c1",
)
"""The identity of the daemon of the cluster c1."""


class Running(RunningCase):
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

    def test_credentials_do_not_reach_the_record(self) -> None:
        """The engine shows them in its configuration; we do not."""
        row = self.execute()
        self.clock.advance(0.1)
        raw = self.scripted.jobs[self.execution(row.id).workflow_job_id or ""].record(0.0)
        self.assertIn("secret", raw["actions"][1]["conf"])  # type: ignore[index]
        self.assertNotIn("secret", str(self.execution(row.id).record))


class StrangerTests(RunningCase):
    """Another program has the address of the cluster's engine."""

    def setUp(self) -> None:
        super().setUp()
        self.fake_engines.identities = (OF_C1,)
        self.shows("c1")

    def shows(self, cluster: str) -> None:
        """The engine at the address shows that it is of this cluster."""
        self.probe.answer("/env", 200, f"cluster {cluster}".encode())

    def failed(self, row: Execution) -> tuple[str, str, str]:
        after = self.execution(row.id)
        assert after.failure is not None, after
        return after.status.value, after.failure.code, after.failure.step

    def test_a_job_does_not_start_on_a_strangers_engine(self) -> None:
        """No request but the look reaches it. An engine that does not show its cluster waits."""
        self.shows("c2")
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
        self.shows("c1")
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_a_long_staging_is_followed_by_a_second_look(self) -> None:
        """The stranger has come while the files were written."""
        self.shows("c1")
        self.faults.add(
            FaultRule(where="hdfs", path="workflow.xml", effect=Effect.DELAY, delay_s=3.0)
        )
        row = self.execute()
        self.clock.advance(2)
        self.shows("c2")
        self.clock.advance(12)
        self.assertEqual(self.failed(row), ("FAILED", "FOREIGN_DAEMON", "start"))
        self.assertEqual(self.engines.engine("c1").submissions, 0)

    def test_nothing_is_removed_from_a_stranger(self) -> None:
        """The folder of the execution goes when the cluster's own file system is back."""
        self.shows("c1")
        row = self.execute(configs={"svcd.fake.run_s": "5"})
        self.clock.advance(4)
        self.shows("c2")
        self.clock.advance(30)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)
        folder = f"/user/hadoop/svcd/{row.id}"
        self.assertIn(folder, self.engines.engine("c1").files.nodes)
        self.shows("c1")
        self.clock.advance(120)
        self.assertNotIn(folder, self.engines.engine("c1").files.nodes)

    def test_a_stranger_that_does_not_know_the_job_has_not_lost_it(self) -> None:
        """The job runs on at the cluster's own engine, and is found there again."""
        self.shows("c1")
        row = self.execute(configs={"svcd.fake.run_s": "40"})
        self.clock.advance(4)
        engine = self.engines.engine("c1")
        jobs = dict(engine.jobs)
        engine.jobs.clear()
        self.shows("c2")
        self.clock.advance(20)
        shown = self.execution(row.id)
        self.assertEqual(shown.status, S.RUNNING)
        assert shown.waiting is not None
        self.assertIn("a program that is not of this cluster answers", shown.waiting.text)
        engine.jobs.update(jobs)
        self.shows("c1")
        self.clock.advance(60)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)


class FaultTests(RunningCase):
    workflow = Workflow(submit_deadline_s=120.0, unreachable_deadline_s=60.0)

    def test_a_silent_failure_is_explained_by_the_history(self) -> None:
        """A failing task leaves the engine's record without a reason. A log may show a login."""
        self.probe.answer(r"/ws/v1/cluster/apps/", 200, _AM)
        self.probe.answer(r"containerlogs/container_1_0001_01_000001/syslog", 200, _LOG)
        row = self.execute(configs={"svcd.fake.outcome": "silent"})
        self.clock.advance(12)
        self.assertEqual(self.info(row.id)["failure"]["code"], "EXCEPTION")
        self.assertIn(
            "java.lang.IllegalStateException: refused: demo/***",
            self.info(row.id)["failure"]["text"],
        )
        self.assertIn(
            "http://cloud.memory/engine/c1/yarn/ws/v1/cluster/apps/application_1767225600000_0001",
            self.probe.asked,
        )

    def test_the_engines_record_of_a_failure_is_completed_after_the_end(self) -> None:
        """The engine writes the end of the step seconds later than that of the workflow."""
        row = self.execute(configs={"svcd.fake.outcome": "error"})
        while self.execution(row.id).status is not S.FAILED:
            self.clock.advance(1)
        self.assertFalse(self.execution(row.id).engine_record.is_settled)
        [job] = self.scripted.jobs.values()
        record: Any = job.record(self.clock.seconds())
        actions = [{**action, "endTime": record["endTime"]} for action in record["actions"]]
        body = json.dumps({**record, "actions": actions})
        headers = {"content-type": "application/json"}
        self.faults.add(
            FaultRule(where="engine", path="show=info", status=200, body=body, headers=headers)
        )
        self.clock.advance(20)
        self.assertTrue(self.execution(row.id).engine_record.is_settled)

    def test_a_store_that_is_away_is_no_bug(self) -> None:
        """However often it was asked meanwhile."""
        self.objects.error = ServiceUnavailable("the database is locked")
        row = self.execute()
        self.clock.advance(400)
        self.assertEqual(self.execution(row.id).status, S.PENDING)
        self.objects.error = None
        self.clock.advance(70)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)

    def test_a_short_silence_is_forgotten(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(6)
        for _ in range(5):
            rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
            self.clock.advance(40)
            rule.remove()
            self.clock.advance(10)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)


class Clusters(RunningCase):
    def test_a_delete_is_bounded_when_the_engine_is_dead(self) -> None:
        rows = [self.execute(configs=HANG) for _ in range(3)]
        self.clock.advance(1)
        self.faults.add(FaultRule(where="engine", effect=Effect.TIMEOUT_BEFORE))
        began = self.clock.seconds()
        self.run_to_end(self.controller.kill_all_of(CLUSTER))
        self.assertLess(self.clock.seconds() - began, 16)
        for row in rows:
            self.assertEqual(self.execution(row.id).status, S.KILLED)

    def test_executions_of_a_dropped_cluster_end(self) -> None:
        """They still say where they ran, and every time in their `info` is set."""
        row = self.execute(configs=HANG)
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

    def test_engines_that_hang_delay_no_other(self) -> None:
        """Each has its own look in flight; a tick waits for none of them."""
        hanging = [ClusterId(f"hang-{number}") for number in range(40)]
        for cluster_id in hanging:
            self.tx(lambda tx, id_=cluster_id: tx.clusters.add(self.cluster(id_, id_)))  # type: ignore[misc]
            self.execute(cluster_id=cluster_id, configs=HANG)
        self.clock.advance(6)
        self.faults.add(
            FaultRule(where="engine", method="GET", path="hang-", effect=Effect.TIMEOUT_BEFORE)
        )
        self.clock.advance(6)
        row = self.execute(configs={"svcd.fake.run_s": "1"})
        self.clock.advance(7)
        self.assertEqual(self.execution(row.id).status, S.SUCCEEDED)


_AM = (
    b'{"app": {"amContainerLogs": '
    b'"http://c1-master-001:8042/node/containerlogs/container_1_0001_01_000001/hadoop"}}'
)
_LOG = b"INFO x\njava.lang.IllegalStateException: refused: demo/secret\n\tat Foo\n"
