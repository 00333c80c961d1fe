"""Jobs of type Spark on the scripted engine: what is shown of them, and what is left of them."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule
from svcd.errors import InvalidReference
from svcd.model.cluster import MachineFacts
from svcd.model.job import Execution, JobType
from svcd.model.requests import ExecuteRequest, NewJob, NewJobBinary
from tests.unit.workflow.support import CALLER, CLUSTER, YarnCase

LAUNCHER = "application_1767225600000_0001"
PROGRAM = f"{LAUNCHER}2"
SLOW = {"svcd.fake.run_s": "60"}


class SparkTests(YarnCase):
    def setUp(self) -> None:
        super().setUp()
        self.fake_engines.types = (JobType.SPARK,)

    def spark(self, name: str = "count.py", configs: Any = None, **fields: Any) -> Execution:
        job = self.run_to_end(self.jobs.create_job(CALLER, self.job(name)))
        return self.execute(job.id, configs, **fields)

    def job(self, name: str) -> NewJob:
        new = NewJobBinary(name=name, url="internaldb://i1")
        binary = self.run_to_end(self.jobs.create_job_binary(CALLER, new))
        return NewJob(name=name, type=JobType.SPARK, mains=(binary.id,))

    def action(self, row: Execution) -> Any:
        (action,) = [a for a in self.info(row.id)["actions"] if a["name"] == "job-node"]
        return action

    def test_image_without_spark_is_refused(self) -> None:
        """With the command that makes another; a machine without a tree of software runs a fake."""
        job = self.run_to_end(self.jobs.create_job(CALLER, self.job("count.py")))
        request = ExecuteRequest(cluster_id=CLUSTER)
        for software, refused in (((), False), (("hadoop", "spark"), False), (("hadoop",), True)):
            facts = MachineFacts(home="/home/svcd", prefix="/opt/svcd", software=software)
            group = self.cluster(CLUSTER, "c1").node_groups[0]
            (instance,) = group.instances
            worker = evolve(instance, facts=facts)
            group = evolve(group, node_processes=("nodemanager", "oozie"), instances=(worker,))
            self.set_cluster(node_groups=(group,))
            if refused:
                work = self.jobs.execute(CALLER, job.id, request)
                error = self.fail_to_end(work, InvalidReference)
                self.assertIn("c1-master-001 has no Spark: make an image", str(error.message))
                self.assertIn("svcd image build fake /opt/svcd", str(error.message))
            else:
                self.run_to_end(self.jobs.execute(CALLER, job.id, request))

    def test_program_is_shown_while_it_runs(self) -> None:
        """The engine names it only after its end."""
        row = self.spark(configs=SLOW)
        self.clock.advance(30)
        action = self.action(row)
        self.assertEqual(action["externalChildIDs"], PROGRAM)
        (child,) = action["children"]
        self.assertEqual((child["id"], child["state"]), (PROGRAM, "RUNNING"))
        self.assertGreater(child["progress"], 0)
        self.assertTrue(child["trackingUrl"].endswith(f"/proxy/{PROGRAM}/"))

    def test_cancel_leaves_no_staging_folder(self) -> None:
        """Spark leaves it when YARN kills the application. A silent manager is waited for."""
        for is_silent in (False, True):
            row = self.spark(f"{is_silent}.py", SLOW)
            self.clock.advance(20)
            (child,) = self.action(row)["children"]
            files, folder = self.scripted.files, f"/user/hadoop/.sparkStaging/{child['id']}"
            files.write(f"{folder}/__spark_conf__.zip", "svcd", b"x", self.clock.seconds())
            if is_silent:
                self.faults.add(FaultRule(where="yarn", effect=Effect.RESET_BEFORE))
            self.run_to_end(self.jobs.cancel(CALLER, row.id))
            self.assertEqual(self.info(row.id)["status"], "KILLED")
            self.clock.advance(10)
            self.assertEqual(files.exists(folder), is_silent)
            self.faults.clear()
            self.clock.advance(40)
            self.assertFalse(files.exists(folder))
            self.assertEqual(self.action(row)["children"][0]["id"], child["id"])

    def test_exit_code_of_a_python_program(self) -> None:
        words = f"{PROGRAM} FAILED: User application exited with status 3"
        row = self.spark(configs={"svcd.fake.outcome": "fail", "svcd.fake.error": words})
        self.clock.advance(20)
        self.assertEqual(self.execution(row.id).return_code, 3)
        self.assertIn("status 3", self.info(row.id)["failure"]["text"])
