"""The composition: what is said at the start, and how a daemon in memory starts and stops."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.requests import NewCluster
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.engines import Engines
from svcd.service import connect_rules
from svcd.settings import CloudSettings
from svcd.testing import FakeService, FakeServiceMixin
from tests.contract.store.rows import cluster
from tests.support.fakes import Api
from tests.unit.resources.bodies import LEAST, WHOLE


class ConnectRulesTests(SynchronousTestCase):
    """Which addresses of machines the settings allow."""

    def refusal(self, auth_url: str, *cidrs: str) -> str:
        """Why svcd does not connect to port 22 of 127.1.0.10."""
        rules = connect_rules(
            CloudSettings(kind="openstack", auth_url=auth_url, machine_cidrs=cidrs)
        )
        return "" if rules is None else rules.refusal("127.1.0.10", 22, False)

    def test_a_real_cloud(self) -> None:
        """No loopback address."""
        self.assertIn("a loopback address", self.refusal("https://identity.example/v3"))

    def test_a_development_cloud(self) -> None:
        """Its machines are loopback."""
        self.assertEqual(self.refusal("http://127.0.0.1:5000/v3"), "")

    def test_given_networks(self) -> None:
        """They hold in a development cloud too: it may be a real one on svcd's own host."""
        refusal = self.refusal("http://127.0.0.1:5000/v3", "10.0.0.0/24")
        self.assertIn("cloud.machine_cidrs", refusal)


class DaemonTests(FakeServiceMixin, SynchronousTestCase):
    """The rooms know of each other what they need."""

    def test_execution_starts_as_soon_as_its_cluster_is_active(self) -> None:
        """The controller of clusters wakes that of jobs: no tick is waited for."""
        svcd = self.fake_service({"workflow.poll_s": "500"})
        api = Api(svcd)
        cluster_id = api.new_cluster()
        execution = api.execute(api.new_job(), cluster_id, api.new_sources())
        svcd.advance(5)
        self.assertIsNotNone(api.get(f"/job-executions/{execution}")["workflow_job_id"])

    def test_a_cluster_without_an_engine_takes_no_jobs(self) -> None:
        """Told at once, while it is still being built."""
        svcd = self.fake_service()
        api = Api(svcd)
        group = {**WHOLE, "node_processes": ["namenode", "datanode"]}
        body = {**LEAST[NewCluster], "node_groups": [group]}
        cluster_id = api.post("/clusters", body)["cluster"]["id"]
        source, target = api.new_sources()
        path = f"/jobs/{api.new_job()}/execute"
        wanted = {"cluster_id": cluster_id, "input_id": source, "output_id": target}
        self.assertIn("has no workflow engine", api.post(path, wanted, 400)["error_message"])

    def test_deleting_a_cluster_ends_its_executions(self) -> None:
        """They are killed with a reason, and the engine is told."""
        svcd = self.fake_service()
        api = Api(svcd)
        cluster_id = api.active_cluster()
        sources = api.new_sources()
        execution = api.execute(api.new_job(), cluster_id, sources, {"svcd.fake.outcome": "hang"})
        svcd.advance(20)
        api.delete(f"/clusters/{cluster_id}")
        svcd.advance(60)
        shown = api.get(f"/job-executions/{execution}")
        self.assertEqual(shown["info"]["status"], "KILLED")
        api.get(f"/clusters/{cluster_id}", 404)

    def execute_on_transient(self, configs: dict[str, str]) -> tuple[FakeService, Api, str]:
        """An execution on a cluster that is made for it."""
        svcd = self.fake_service({"provisioning.endings_poll_s": "5"})
        api = Api(svcd)
        job_id, (source, target) = api.new_job(), api.new_sources()
        cluster = {**LEAST[NewCluster], "user_keypair_id": svcd.keypair}
        body = {"cluster": cluster, "input_id": source, "output_id": target}
        body["job_configs"] = {"configs": configs}
        made = api.post(f"/jobs/{job_id}/execute", body)["job_execution"]
        return svcd, api, made["id"]

    def test_transient_cluster_goes_when_its_job_is_done(self) -> None:
        """`cluster` in an execute request makes one."""
        svcd, api, execution = self.execute_on_transient({})
        shown = api.until_over(execution)
        self.assertEqual(shown["info"]["status"], "SUCCEEDED")
        svcd.advance(300)
        self.assertEqual(api.get("/clusters"), {"clusters": []})
        self.assertEqual(list(svcd.cloud.core.state.servers.values()), [])

    def test_transient_cluster_goes_when_its_running_job_is_deleted(self) -> None:
        """Though nothing tells of the job any more."""
        svcd, api, execution = self.execute_on_transient({"svcd.fake.outcome": "hang"})
        svcd.advance(60)
        self.assertEqual(api.get(f"/job-executions/{execution}")["info"]["status"], "RUNNING")
        api.delete(f"/job-executions/{execution}")
        svcd.advance(300)
        self.assertEqual(api.get("/clusters"), {"clusters": []})


class EnginesTests(SynchronousTestCase):
    """What the workflow is told of distributions."""

    def test_cluster_of_a_distribution_that_is_not_enabled_has_no_engine(self) -> None:
        """So its executions end, and it can be deleted."""
        engines = Engines(Distributions(("vanilla",), found=()))
        row = cluster(plugin_name="gone")
        self.assertIsNone(engines.endpoints(row))
        self.assertFalse(engines.has_engine(row))
        self.assertEqual(engines.job_types(row), ())
