"""`FakeService.kill` and `restart`: a daemon that dies at some moment, and the one after it."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.testing import FakeServiceMixin, FaultRule
from tests.support.fakes import Api, cluster_body


class RestartTests(FakeServiceMixin, SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.api = Api(self.svcd)

    def test_restarted_daemon_goes_on_with_the_rows(self) -> None:
        """A cluster that was being made becomes Active, with one server an instance."""
        cluster_id = self.api.new_cluster(workers=2)
        self.svcd.restart()
        self.assertEqual(self.api.until_status(cluster_id, "Active")["status"], "Active")
        self.assertEqual(self.svcd.cloud.calls["compute POST /v2.1/servers"], 3)

    def test_killed_daemon_refuses_connections_and_does_nothing(self) -> None:
        """However much time passes."""
        self.api.new_cluster()
        self.svcd.kill()
        self.svcd.advance(3600)
        self.assertEqual(list(self.svcd.cloud.core.state.servers.values()), [])
        with self.assertRaises(Exception) as caught:
            self.svcd.call("GET", "/healthz")
        self.assertIn("nothing serves", str(caught.exception))

    def test_request_under_way_ends_when_the_daemon_dies(self) -> None:
        """As a connection that broke; what it had sent is carried out."""
        self.svcd.faults.add(where="compute", path="/flavors", effect="delay", delay_s=5)
        self.svcd.faults.add(
            where="image", method="PATCH", path="/images/", effect="delay", delay_s=5
        )
        url = f"{self.svcd.url}/v1.1/{self.svcd.tenant}/images/{self.svcd.image_id}/tag"
        asked: Deferred[Any] = self.svcd.treq.post(url, json={"tags": ["new"]})
        self.svcd.advance(1)
        self.svcd.kill()
        self.failureResultOf(asked, ConnectionLost)
        self.svcd.advance(5)
        image = self.svcd.cloud.core.image(self.svcd.image_id)
        self.assertIn("_svc_tag_new", {} if image is None else image.properties)

    def test_dead_daemon_has_nothing_under_way(self) -> None:
        """No timer of it is left."""
        self.api.new_cluster()
        self.svcd.kill()
        self.assertEqual(self.svcd.activity()["timers"], 0)

    def test_resting_daemon_has_only_the_timers_of_its_loops(self) -> None:
        """They are as many as at the start."""
        before = dict(self.svcd.activity())
        cluster_id = self.api.active_cluster()
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(60)
        self.assertEqual(self.svcd.activity(), before)
        self.assertEqual([before[k] for k in ("clusters", "executions", "calls")], [0, 0, 0])

    def test_start_without_a_store_fails(self) -> None:
        """And succeeds when it is there again."""
        rule = self.svcd.faults.add(where="store")
        self.assertRaises(ServiceUnavailable, self.svcd.restart)
        rule.remove()
        self.svcd.restart()
        self.api.get("/clusters")

    def test_death_inside_a_call_leaves_its_effect_and_no_record(self) -> None:
        """A server that was made at that moment is adopted by the next daemon."""
        body = cluster_body(self.svcd, "mine", 1)
        made: list[str] = []

        def die_at_the_first_server(where: str, method: str, path: str) -> FaultRule | None:
            if not made and (where, method) == ("compute", "POST") and path.endswith("/servers"):
                made.append(path)
                self.svcd.kill()
            return None

        self.svcd.faults.listen(die_at_the_first_server)
        cluster_id = self.api.post("/clusters", body)["cluster"]["id"]
        self.svcd.advance(60)
        self.assertEqual(len(self.svcd.cloud.core.state.servers), 1)
        self.svcd.restart()
        self.api.until_status(cluster_id, "Active")
        self.assertEqual(self.svcd.cloud.calls["compute POST /v2.1/servers"], 2)


class StoreFaultTests(FakeServiceMixin, SynchronousTestCase):
    def test_write_whose_answer_is_lost_is_done(self) -> None:
        """The caller hears 503, and the row is there."""
        svcd = self.fake_service()
        api = Api(svcd)
        svcd.faults.add(
            where="store", method="tx", effect="timeout_after", times=1, path="", after=0
        )
        body = {"name": "in", "type": "hdfs", "url": "hdfs://h/in"}
        api.post("/data-sources", body, status=503)
        self.assertEqual([s["name"] for s in api.get("/data-sources")["data_sources"]], ["in"])


class LateTests(FakeServiceMixin, SynchronousTestCase):
    """Effect.LATE: what was sent arrives, whether its sender still waits or not."""

    def test_cloud_carries_out_what_nobody_waits_for(self) -> None:
        """The caller's time is over long before."""
        svcd = self.fake_service({"cloud.timeout_s": "5"})
        api = Api(svcd)
        svcd.faults.add(
            where="image", method="PATCH", path="/images/", effect="late", delay_s=20, times=1
        )
        api.ask("POST", f"/images/{svcd.image_id}/tag", 504, json={"tags": ["new"]})
        image = svcd.cloud.core.image(svcd.image_id)
        self.assertNotIn("_svc_tag_new", {} if image is None else image.properties)
        svcd.advance(20)
        image = svcd.cloud.core.image(svcd.image_id)
        self.assertIn("_svc_tag_new", {} if image is None else image.properties)

    def test_engine_carries_out_what_nobody_waits_for(self) -> None:
        """A submit that arrives after its time."""
        svcd = self.fake_service()
        api = Api(svcd)
        cluster_id = api.active_cluster()
        svcd.faults.add(
            where="engine", method="POST", path="/v1/jobs", effect="late", delay_s=90, times=1
        )
        api.execute(api.new_job(), cluster_id, api.new_sources())
        svcd.advance(80)
        engine = svcd.engines.engine(cluster_id)
        self.assertEqual(engine.submissions, 0)
        svcd.advance(11)
        self.assertEqual(engine.submissions, 1)


class StartTests(FakeServiceMixin, SynchronousTestCase):
    def test_daemon_that_is_killed_while_it_starts_stays_dead(self) -> None:
        """The next start succeeds."""
        svcd = self.fake_service()
        reads: list[str] = []

        def die_at_the_second_read(where: str, method: str, path: str) -> FaultRule | None:
            reads.append(where)
            if len(reads) == 2:
                svcd.kill()
            return None

        svcd.faults.listen(die_at_the_second_read)
        svcd.restart()
        self.assertEqual((len(reads), svcd.activity()["timers"]), (2, 0))
        svcd.restart()
        self.assertEqual(Api(svcd).get("/clusters"), {"clusters": []})
