from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from svcd.embedded.faults import Effect, FaultRule
from svcd.errors import (
    InvalidData,
    InvalidReference,
    NotFound,
    PlatformError,
    PlatformTimeout,
)
from svcd.model.cluster import ClusterStatus
from svcd.model.ids import ClusterId, JobId
from svcd.model.job import Execution, ExecutionStatus, JobConfigs, JobType
from svcd.model.requests import (
    ExecuteRequest,
    GivenCredentials,
    NewCluster,
    NewDataSource,
    NewJob,
    NewJobBinary,
)
from svcd.ports.engine import LauncherLimits
from svcd.workflow.decide.rules import job_faults
from tests.unit.workflow.support import (
    CALLER,
    CLUSTER,
    IN,
    JAR,
    OUT,
    PIG,
    RunningCase,
    WorkflowCase,
)

S = ExecutionStatus
HANG = {"svcd.fake.outcome": "hang"}


class Objects(WorkflowCase):
    def test_a_data_source_that_no_job_could_be_told_is_refused(self) -> None:
        """Every place at once, and nothing of the account."""
        account = GivenCredentials(user="u\ufffe", password="p\uffff")
        new = NewDataSource(name="d", type="hdfs", url="/d\uffff", credentials=account)
        error = self.fail_to_end(self.jobs.create_data_source(CALLER, new), InvalidData)
        self.assertEqual(
            str(error).split("\n"),
            [
                "$.url: contains U+FFFF, which XML does not allow",
                "$.credentials.user: contains U+FFFE, which XML does not allow",
                "$.credentials.password: contains U+FFFF, which XML does not allow",
            ],
        )

    def test_the_name_of_a_file(self) -> None:
        """Any name that Linux has; without one it is the record's."""
        for number, name in enumerate(
            ("my data.csv", "_größe.py", "l" * 255, "a\nb", "\x01\r\x7f")
        ):
            new = NewJobBinary(name=f"n{number}", file_name=name, url="internaldb://i1")
            made = self.run_to_end(self.jobs.create_job_binary(CALLER, new))
            self.assertEqual((made.name, made.file), (f"n{number}", name))
        plain = NewJobBinary(name="plain", url="internaldb://i1")
        self.assertEqual(self.run_to_end(self.jobs.create_job_binary(CALLER, plain)).file, "plain")
        for name in ("a/b", ".", "..", "a\x00", "\ud800", "ö" * 128):
            new = NewJobBinary(name="wrong", file_name=name, url="internaldb://i1")
            error = self.fail_to_end(self.jobs.create_job_binary(CALLER, new), InvalidData)
            self.assertTrue(error.message.startswith("$.file_name: "), error.message)

    def test_the_files_of_a_job_have_different_names(self) -> None:
        ids = []
        for number in range(2):
            new = NewJobBinary(name=f"n{number}", file_name="a b", url="internaldb://i1")
            ids.append(self.run_to_end(self.jobs.create_job_binary(CALLER, new)).id)
        job = NewJob(name="j", type=JobType.SHELL, mains=(ids[0],), libs=(ids[1],))
        error = self.fail_to_end(self.jobs.create_job(CALLER, job), InvalidData)
        self.assertEqual(
            error.message,
            "$.libs[0]: its file has the same name as that of $.mains[0]: give one another",
        )


class Rules(WorkflowCase):
    def test_binaries_by_type(self) -> None:
        """Which of (nothing, a main, a library) each type takes."""
        taken = {
            job_type.value: tuple(
                not job_faults(job_type, mains, libs)
                for mains, libs in (((), ()), (("m",), ()), ((), ("l",)), (("m",), ("l",)))
            )
            for job_type in JobType
        }
        self.assertEqual(
            taken,
            {
                "Pig": (False, True, False, True),
                "Hive": (False, False, False, False),
                "Shell": (False, True, False, True),
                "Spark": (False, True, False, True),
                "Jar": (False, True, True, True),
                "MapReduce": (False, False, True, False),
                "Java": (False, False, True, False),
            },
        )

    def test_a_binary_given_twice_is_refused(self) -> None:
        self.assertEqual(
            job_faults(JobType.JAR, (), ("a", "b", "a")), ["$.libs: given more than once: a"]
        )


class Execute(WorkflowCase):
    def refused(self, kind: type[Exception], job: JobId = PIG, **fields: Any) -> str:
        request = ExecuteRequest(
            **{"cluster_id": CLUSTER, "input_id": IN, "output_id": OUT, **fields}
        )
        error = self.fail_to_end(self.jobs.execute(CALLER, job, request), kind)
        self.assertEqual(self.tx(lambda tx: tx.executions.unfinished()), [])
        return str(error.message)

    def test_a_cluster_that_goes_or_failed_is_refused(self) -> None:
        for status in (ClusterStatus.DELETING, ClusterStatus.ERROR):
            self.set_cluster(status=status)
            self.assertIn(status.value, self.refused(InvalidReference))

    def test_a_launcher_that_no_node_can_hold_is_refused(self) -> None:
        """While the cluster is made its nodes are not known yet, and the start finds the fault."""
        self.fake_engines.launcher_limits = LauncherLimits(queue="launchers", most_cores=8)
        configs = JobConfigs(configs={"oozie.launcher.vcores": 9})
        told = (
            '$.job_configs.configs["oozie.launcher.vcores"]: the launcher of the job would have 9'
            " cores; on this cluster it has at most 8 in YARN's queue launchers; give at most 8"
        )
        self.assertEqual(self.refused(InvalidData, job_configs=configs), told)
        request = ExecuteRequest(
            cluster_id=CLUSTER, input_id=IN, output_id=OUT, job_configs=configs
        )
        error = self.fail_to_end(self.jobs.plan(CALLER, PIG, request), InvalidData)
        self.assertEqual(error.message, told)
        self.set_cluster(status=ClusterStatus.WAITING)
        row = self.run_to_end(self.jobs.execute(CALLER, PIG, request))
        self.set_cluster(status=ClusterStatus.ACTIVE)
        self.controller.wake()
        self.clock.advance(5)
        failure = self.execution(row.id).failure
        assert failure is not None
        self.assertEqual(failure.code, "DOCUMENT_REFUSED")
        self.assertEqual(failure.text, f"{told}; correct the named value")

    def test_a_type_the_cluster_cannot_run_is_refused(self) -> None:
        self.fake_engines.types = (JobType.PIG,)
        self.assertIn("cannot run Jar jobs; it runs Pig", self.refused(InvalidReference, JAR))
        self.fake_engines.types = (JobType.HIVE,)
        self.assertIn("it runs no jobs", self.refused(InvalidReference, JAR))

    def test_what_no_definition_can_hold_is_refused(self) -> None:
        """With its place; also what only the submission would hold."""
        for name, place in (("a", ".a"), ("oozie.use.it", '["oozie.use.it"]')):
            told = f"$.job_configs.configs{place}: contains U+FFFF, which XML does not allow"
            configs = JobConfigs(configs={name: "\uffff"})
            self.assertEqual(self.refused(InvalidData, job_configs=configs), told)

    def test_a_job_whose_output_is_its_input_is_refused(self) -> None:
        """The same data source, or another one for the same folder."""
        told = (
            "$.output_id: input and output are the same folder, and a job must not write to its "
            "input; use another data source"
        )
        self.assertEqual(self.refused(InvalidData, output_id=IN), told)
        account = GivenCredentials(user="bob", password="other")
        for number, url in enumerate(("objstore://box.svc/in/", "objstore://box/in")):
            new = NewDataSource(name=f"in-{number}", type="objstore", url=url, credentials=account)
            again = self.run_to_end(self.jobs.create_data_source(CALLER, new))
            self.assertEqual(self.refused(InvalidData, JAR, output_id=again.id), told)

    def test_a_cluster_without_an_engine_is_refused(self) -> None:
        """In any status, and a transient one before it is made."""
        told = (
            "$.cluster_id: cluster no-engine has no workflow engine and runs no jobs; "
            "use a cluster with the workflow engine among its processes"
        )
        for status in (ClusterStatus.ACTIVE, ClusterStatus.WAITING):
            self.set_cluster(name="no-engine", status=status)
            self.assertEqual(self.refused(InvalidReference), told)
        new = NewCluster(name="no-engine", plugin_name="fake", engine_version="1.0")
        self.assertEqual(self.refused(InvalidReference, cluster_id=None, cluster=new), told)

    def test_a_transient_cluster_is_made_for_the_job(self) -> None:
        """After the checks: a refused request makes no cluster."""
        new = NewCluster(name="brief", plugin_name="fake", engine_version="1.0")
        self.refused(InvalidData, cluster_id=None, cluster=new, input_id=None)
        self.assertEqual(self.made_clusters, [])
        row = self.execute(cluster_id=None, cluster=new)
        self.assertEqual([each.is_transient for each in self.made_clusters], [True])
        self.assertEqual((row.cluster_id, row.status), (ClusterId("c2"), S.PENDING))


class Cancel(RunningCase):
    def running(self, **configs: str) -> Execution:
        row = self.execute(configs={**HANG, **configs})
        self.clock.advance(1)
        return row

    def test_a_job_that_waits_or_is_being_staged_never_starts(self) -> None:
        self.set_cluster(status=ClusterStatus.SPAWNING)
        waiting = self.execute()
        after = self.run_to_end(self.jobs.cancel(CALLER, waiting.id))
        self.assertEqual(after.status, S.KILLED)
        self.set_cluster(status=ClusterStatus.ACTIVE)
        self.objects.lag_s = 3.0
        staged = self.execute()
        self.clock.advance(1)
        after = self.run_to_end(self.jobs.cancel(CALLER, staged.id))
        self.assertEqual(after.status, S.KILLED)
        self.clock.advance(30)
        self.assertEqual(self.scripted.submissions, 0)

    def test_a_job_that_is_being_submitted_is_killed_when_it_arrives(self) -> None:
        self.faults.add(
            FaultRule(where="engine", method="POST", effect=Effect.DELAY, delay_s=2.0, times=1)
        )
        row = self.execute()
        self.clock.advance(1)
        after = self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual(after.status, S.KILLED)
        [job] = self.scripted.jobs.values()
        self.assertEqual(job.status(self.clock.seconds()), "KILLED")

    def test_a_dead_engine_keeps_the_wish(self) -> None:
        """Answered in time, and carried out when the engine is back."""
        row = self.running()
        rule = self.faults.add(FaultRule(where="engine", effect=Effect.TIMEOUT_BEFORE))
        began = self.clock.seconds()
        error = self.fail_to_end(self.jobs.cancel(CALLER, row.id), PlatformTimeout)
        self.assertLess(self.clock.seconds() - began, 5.2)
        self.assertIn("has recorded the cancel", error.message)
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        rule.remove()
        self.clock.advance(60)
        after = self.execution(row.id)
        self.assertEqual((after.status, after.failure), (S.KILLED, None))

    def test_a_kill_that_was_carried_out_with_a_fault_is_answered_killed(self) -> None:
        """With a dead name node Oozie kills the job, and says that it could not remove a folder."""
        row = self.running()
        self.scripted.untidy = True
        after = self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual((after.status, after.failure), (S.KILLED, None))

    def test_an_engine_that_stays_dead_ends_the_job_as_wished(self) -> None:
        """KILLED, since that was asked for, and without a failure."""
        row = self.running()
        self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.fail_to_end(self.jobs.cancel(CALLER, row.id), PlatformError)
        self.clock.advance(2000)
        after = self.execution(row.id)
        self.assertEqual((after.status, after.failure), (S.KILLED, None))

    def test_an_end_that_was_faster_is_answered(self) -> None:
        """The kill has no effect on a job that succeeded in between."""
        row = self.execute(configs={"svcd.fake.run_s": "6"})
        self.clock.advance(7)  # ended at the engine, not read yet
        self.assertEqual(self.execution(row.id).status, S.RUNNING)
        after = self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual(after.status, S.SUCCEEDED)


class Delete(RunningCase):
    def gone(self, row: Execution) -> bool:
        return self.tx(lambda tx: tx.executions.find(row.id)) is None

    def test_a_running_one_is_killed_first(self) -> None:
        """Hidden at once, gone when its job is dead."""
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        rule = self.faults.add(FaultRule(where="engine", effect=Effect.RESET_BEFORE))
        self.run_to_end(self.jobs.delete_execution(CALLER, row.id))
        self.fail_to_end(self.jobs.cancel(CALLER, row.id), NotFound)
        self.assertFalse(self.gone(row))
        rule.remove()
        self.clock.advance(30)
        self.assertTrue(self.gone(row))
        [job] = self.scripted.jobs.values()
        self.assertEqual(job.status(self.clock.seconds()), "KILLED")


class Log(WorkflowCase):
    def test_the_engines_log_and_the_programs_output(self) -> None:
        """Passwords are taken out; the machine's address stands for its name."""
        self.probe.answer(
            r"/ws/v1/cluster/apps/",
            200,
            b'{"app": {"amContainerLogs": '
            b'"http://c1-master-001:8042/node/containerlogs/container_1_1_01_000001/hadoop"}}',
        )
        said = b"hello, password secret\n==> engine <==\n"
        self.probe.answer(r"container_1_1_01_000001/stdout", 200, said)
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        text = self.run_to_end(self.jobs.log(CALLER, row.id)).decode()
        self.assertIn(f"==> job execution {row.id}: RUNNING <==", text)
        self.assertIn("stdout <==\nhello, password ***\n ==> engine <==\n", text)
        self.assertIn("==> engine <==\n", text)
        self.assertIn("INFO submitted", text)
        hosts = {urlsplit(url).hostname for url in self.probe.asked}
        self.assertEqual(hosts, {"127.1.0.2", "cloud.memory"})

    def test_a_silent_engine_is_named_in_the_text(self) -> None:
        row = self.execute(configs=HANG)
        self.clock.advance(1)
        self.agent.unserve("http://cloud.memory")
        text = self.run_to_end(self.jobs.log(CALLER, row.id)).decode()
        self.assertIn("==> engine <==\nnot available: ", text)
