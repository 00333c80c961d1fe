"""A daemon that dies around the end of a job: nothing of the job is left in the cluster's HDFS."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService, FakeServiceMixin
from tests.support.fakes import Api, cluster_body


class EndTests(FakeServiceMixin, SynchronousTestCase):
    def test_folder_of_an_ended_job_is_removed_by_the_next_daemon(self) -> None:
        """The one before died within the moment that it leaves the engine to end its record."""
        svcd = self.fake_service()
        api = Api(svcd)
        cluster_id = api.active_cluster()
        execution_id = api.execute(api.new_job(), cluster_id, api.new_sources())
        api.until_over(execution_id)
        files = svcd.engines.engine(cluster_id).files
        folder = f"/user/svcd/svcd/{execution_id}"
        self.assertTrue(files.exists(folder))
        svcd.restart()
        svcd.advance(60)
        self.assertFalse(files.exists(folder))
        status = api.get(f"/job-executions/{execution_id}")["info"]["status"]
        self.assertEqual(status, "SUCCEEDED")

    def test_folder_goes_when_the_write_of_the_end_was_not_answered(self) -> None:
        """The row was written all the same, and nobody looks at it again."""
        svcd = self.fake_service({"workflow.poll_s": "5"})
        api = Api(svcd)
        cluster_id = api.active_cluster()
        sources = api.new_sources()
        execution_id = api.execute(api.new_job(), cluster_id, sources, {"svcd.fake.run_s": "12"})
        svcd.advance(11)
        lost = svcd.faults.add(where="store", method="tx", effect="timeout_after", times=1)
        api.until_over(execution_id)
        self.assertEqual(lost.hits(), 1)
        svcd.advance(60)
        folder = f"/user/svcd/svcd/{execution_id}"
        self.assertFalse(svcd.engines.engine(cluster_id).files.exists(folder))

    def test_folder_of_a_job_that_is_deleted_amid_its_staging(self) -> None:
        """A file is still on its way then, and would make the folder anew."""
        svcd = self.fake_service({"workflow.poll_s": "5"})
        api = Api(svcd)
        cluster_id = api.active_cluster()
        svcd.faults.add(where="hdfs", path="op=CREATE", effect="delay", delay_s=10.0)
        execution_id = api.execute(api.new_job(), cluster_id, api.new_sources())
        svcd.advance(1)
        deleted = svcd.call("DELETE", f"/v1.1/{svcd.tenant}/job-executions/{execution_id}")
        self.assertEqual(deleted.status, 204)
        svcd.advance(120)
        folder = f"/user/svcd/svcd/{execution_id}"
        self.assertFalse(svcd.engines.engine(cluster_id).files.exists(folder))

    def test_folder_made_again_by_a_write_of_a_dead_daemon_goes_too(self) -> None:
        """The write took effect after the end of the job, when the folder had been removed."""
        svcd = self.fake_service({"workflow.poll_s": "5"})
        api = Api(svcd)
        cluster_id = api.active_cluster()
        slow = svcd.faults.add(where="hdfs", path="workflow.xml", effect="delay", delay_s=25.0)
        execution_id = api.execute(api.new_job(), cluster_id, api.new_sources())
        svcd.advance(2)
        self.assertEqual(slow.hits(), 1)
        svcd.kill()
        slow.remove()
        svcd.restart()
        api.until_over(execution_id)
        svcd.advance(10)
        files = svcd.engines.engine(cluster_id).files
        folder = f"/user/svcd/svcd/{execution_id}"
        self.assertFalse(files.exists(folder))
        files.write(f"{folder}/workflow.xml", "svcd", b"<late/>", svcd.clock.seconds())
        svcd.advance(120)
        self.assertFalse(files.exists(folder))


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
