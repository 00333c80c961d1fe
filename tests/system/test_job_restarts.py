"""A daemon that dies around the end of a job: nothing of the job is left in the cluster's HDFS."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService, FakeServiceMixin
from tests.support.fakes import Api, cluster_body


class EndTests(FakeServiceMixin, SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = self.fake_service({"workflow.poll_s": "5"})
        self.api = Api(self.svcd)
        self.cluster_id = self.api.active_cluster()
        self.files = self.svcd.engines.engine(self.cluster_id).files

    def execute(self, **configs: str) -> tuple[str, str]:
        """The id of an execution, and its folder in HDFS."""
        job_id, sources = self.api.new_job(), self.api.new_sources()
        told = {f"svcd.fake.{name}": value for name, value in configs.items()}
        execution_id = self.api.execute(job_id, self.cluster_id, sources, told)
        return execution_id, f"/user/svcd/svcd/{execution_id}"

    def test_folder_of_an_ended_job_is_removed_by_the_next_daemon(self) -> None:
        """The one before died within the moment that it leaves the engine to end its record."""
        execution_id, folder = self.execute()
        self.api.until_over(execution_id)
        self.assertTrue(self.files.exists(folder))
        self.svcd.restart()
        self.svcd.advance(60)
        self.assertFalse(self.files.exists(folder))
        status = self.api.get(f"/job-executions/{execution_id}")["info"]["status"]
        self.assertEqual(status, "SUCCEEDED")

    def test_folder_goes_when_the_write_of_the_end_was_not_answered(self) -> None:
        """The row was written all the same, and nobody looks at it again."""
        execution_id, folder = self.execute(run_s="12")
        self.svcd.advance(11)
        lost = self.svcd.faults.add(where="store", method="tx", effect="timeout_after", times=1)
        self.api.until_over(execution_id)
        self.assertEqual(lost.hits(), 1)
        self.svcd.advance(60)
        self.assertFalse(self.files.exists(folder))

    def test_folder_of_a_job_that_is_deleted_amid_its_staging(self) -> None:
        """A file is still on its way then, and would make the folder anew."""
        self.svcd.faults.add(where="hdfs", path="op=CREATE", effect="delay", delay_s=10.0)
        execution_id, folder = self.execute()
        self.svcd.advance(1)
        self.api.delete(f"/job-executions/{execution_id}")
        self.svcd.advance(120)
        self.assertFalse(self.files.exists(folder))

    def test_folder_made_again_by_a_write_of_a_dead_daemon_goes_too(self) -> None:
        """The write took effect after the end of the job, when the folder had been removed."""
        slow = self.svcd.faults.add(where="hdfs", path="workflow.xml", effect="delay", delay_s=25.0)
        execution_id, folder = self.execute()
        self.svcd.advance(2)
        self.assertEqual(slow.hits(), 1)
        self.svcd.kill()
        slow.remove()
        self.svcd.restart()
        self.api.until_over(execution_id)
        self.svcd.advance(10)
        self.assertFalse(self.files.exists(folder))
        self.files.write(f"{folder}/workflow.xml", "svcd", b"<late/>", self.svcd.clock.seconds())
        self.svcd.advance(120)
        self.assertFalse(self.files.exists(folder))


class TransientTests(FakeServiceMixin, SynchronousTestCase):
    def test_cluster_of_an_execution_is_never_there_without_it(self) -> None:
        """The daemon dies at each write of the request in turn: nothing is there, or both are."""
        for nth in (1, 2):
            svcd = self.fake_service()
            api = Api(svcd)
            job_id, sources = api.new_job(), api.new_sources()
            writes: list[str] = []

            def hear(
                where: str,
                method: str,
                path: str,
                writes: list[str] = writes,
                svcd: FakeService = svcd,
                nth: int = nth,
            ) -> None:
                if (where, method) == ("store", "tx"):
                    writes.append(path)
                    if len(writes) == nth:
                        svcd.kill()

            svcd.faults.listen(hear)
            body = {
                "cluster": cluster_body(svcd, "brief", 1),
                "input_id": sources[0],
                "output_id": sources[1],
                "job_configs": {"configs": {}, "args": {}, "params": {}},
            }
            url = f"{svcd.url}/v1.1/{svcd.tenant}/jobs/{job_id}/execute"
            svcd.treq.post(url, json=body).addErrback(lambda _: None)
            svcd.advance(1)
            svcd.restart()
            clusters = api.get("/clusters")["clusters"]
            executions = api.get("/job-executions")["job_executions"]
            self.assertEqual(
                [e["cluster_id"] for e in executions], [c["id"] for c in clusters], nth
            )
            svcd.advance(300)
            self.assertEqual(api.get("/clusters")["clusters"], [])
