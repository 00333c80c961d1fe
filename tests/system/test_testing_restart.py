"""`FakeService.kill` and `restart`: a daemon that dies at some moment, and the one after it."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.testing import FakeServiceMixin, FaultRule
from tests.support.fakes import Api


class RestartTests(FakeServiceMixin, SynchronousTestCase):
    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.api = Api(self.svcd)

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
