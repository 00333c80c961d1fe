"""A daemon that dies around the end of a job: nothing of the job is left in the cluster's HDFS."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeServiceMixin
from tests.fakes import Api


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
