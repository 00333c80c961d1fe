"""Transient clusters end when their last execution has ended."""

from __future__ import annotations

from typing import Any

from tests.support.cloud_watch import WatchedCloudTestCase
from tests.system.test_failures import START


class TransientTests(WatchedCloudTestCase):
    def transient(self) -> str:
        return self.create(is_transient=True)

    def execute(self, cluster_id: str) -> str:
        return self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources())

    def status(self, cluster_id: str) -> Any:
        return self.api.cluster(cluster_id)["status"]

    def test_cluster_stays_until_it_has_had_an_execution(self) -> None:
        cluster_id = self.transient()
        self.api.until_status(cluster_id, "Active")
        self.svcd.advance(300)
        self.assertEqual(self.status(cluster_id), "Active")
        execution_id = self.execute(cluster_id)
        self.svcd.advance(3)
        self.assertEqual(self.status(cluster_id), "Active")
        self.api.until_over(execution_id)
        self.gone(cluster_id, 120)

    def test_cluster_stays_while_another_execution_goes_on(self) -> None:
        cluster_id = self.transient()
        short = self.execute(cluster_id)
        job = self.api.get("/jobs")["jobs"][0]["id"]
        sources = self.api.new_sources("more")
        long = self.api.execute(job, cluster_id, sources, {"svcd.fake.run_s": "200"})
        self.api.until_over(short)
        self.svcd.advance(100)
        self.assertEqual(self.status(cluster_id), "Active")
        self.api.until_over(long)
        self.gone(cluster_id, 120)

    def test_cluster_in_error_goes_too_unless_failures_are_kept(self) -> None:
        """Its executions have failed, and nobody can use it."""
        for on_failure in ("remove", "keep"):
            self.begin(provisioning__on_failure=on_failure)
            self.fault("ssh", path=START, status=1)
            cluster_id = self.transient()
            self.api.until_over(self.execute(cluster_id))
            if on_failure == "remove":
                self.gone(cluster_id, 200)
            else:
                self.svcd.advance(300)
                self.assertEqual(self.status(cluster_id), "Error")

    def test_cluster_whose_deletion_failed_is_left_to_its_owner(self) -> None:
        """Its description names what is left."""
        self.begin(provisioning__delete_deadline_s="100")
        stuck = self.fault("compute", method="DELETE", path="/servers/", status=500)
        cluster_id = self.transient()
        self.api.until_over(self.execute(cluster_id))
        self.assertIn("LEFTOVERS: ", self.failed(cluster_id))
        stuck.remove()
        self.svcd.advance(300)
        self.assertEqual(self.status(cluster_id), "Error")
