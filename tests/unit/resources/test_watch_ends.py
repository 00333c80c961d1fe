"""The stream of changes at the door: limits, slow readers, tokens, roles, the end."""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable, Unauthorized
from svcd.testing import Effect, FakeService, FaultRule
from tests.support.api import daemon_of, now
from tests.support.fakes import MASTER, cluster_body
from tests.unit.resources.watch import SOURCE, Frame, WatchCase, frames_of, unchunked


class BoundTests(WatchCase):
    def test_watchers_of_a_tenant_are_limited(self) -> None:
        """The refusal names the setting; an end makes room."""
        first = self.peer(limits__watchers=2)
        first.watch()
        second = self.peer(first)
        second.watch()
        third = self.peer(first)
        third.watch()
        self.assertIn("400", third.head)
        self.assertIn(b"(limits.watchers)", third.transport.value())
        feeds = daemon_of(first.service).services.feeds
        self.assertEqual(feeds.count(), 2)
        second.channel.connectionLost(Failure(ConnectionLost()))
        third.transport.clear()
        third.watch()
        self.assertEqual(third.events, ["hello"])
        metrics = first.service.call("GET", "/metrics").body
        self.assertIn(b"svcd_watchers 2.0", metrics)

    def test_a_watcher_that_ends_its_own_side_is_dropped(self) -> None:
        """Also while data waits for it."""
        peer = self.peer()
        peer.watch()
        slow = self.peer(peer)
        slow.watch()
        slow.channel.pauseProducing()
        peer.channel.readConnectionLost()
        self.assertTrue(peer.transport.disconnected)
        slow.channel.readConnectionLost()
        self.assertTrue(slow.transport.disconnected)
        self.assertEqual(daemon_of(peer.service).services.feeds.count(), 0)

    def test_a_connection_serves_requests_after_its_stream(self) -> None:
        """When the peer ends its side then, it gets their answers."""
        peer = self.peer()
        peer.watch()
        peer.rest.end_streams()
        peer.channel.dataReceived(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.channel.readConnectionLost()
        self.assertEqual(peer.statuses(), [200, 200])

    def test_a_watcher_that_reads_nothing_is_dropped(self) -> None:
        """When more than a bound of bytes waits for it; the others go on."""
        peer = self.peer()
        peer.watch()
        slow = self.peer(peer)
        slow.watch()
        slow.channel.pauseProducing()
        for number in range(300):
            peer.add(name=f"n{number}", description="x" * 4000)
            peer.advance(0.07)
        self.assertTrue(slow.transport.disconnected)
        self.assertEqual(len(peer.frames), 301)
        self.assertLess(slow.transport.value().count(b"event"), 3)

    def test_a_watcher_that_pauses_gets_what_waited(self) -> None:
        """In order."""
        peer = self.peer()
        peer.watch()
        peer.channel.pauseProducing()
        for name in "abc":
            peer.add(name=name)
            peer.advance(0.1)
        self.assertEqual(peer.events, ["hello"])
        peer.channel.resumeProducing()
        peer.advance(0.1)
        self.assertEqual([f.data["name"] for f in peer.frames[1:]], list("abc"))

    def test_a_watcher_that_pauses_for_long_is_dropped(self) -> None:
        """Also when little waits for it."""
        peer = self.peer()
        peer.watch()
        peer.channel.pauseProducing()
        peer.advance(50)
        self.assertFalse(peer.transport.disconnected)
        peer.advance(20)
        self.assertTrue(peer.transport.disconnected)

    def test_an_unavailable_store_delays_the_stream(self) -> None:
        """Nothing is missed."""
        peer = self.peer()
        peer.watch()
        peer.add(name="a")
        peer.service.faults.add(FaultRule(where="store", method="read", times=2))
        peer.advance(0.2)
        peer.advance(20)
        self.assertEqual([f.data["name"] for f in peer.frames[1:]], ["a"])

    def test_no_work_is_left_when_all_are_gone(self) -> None:
        """No timer for a tenant without watchers."""
        peer = self.peer()
        peer.advance(1)
        before = peer.service.activity()["timers"]
        peer.watch()
        peer.channel.connectionLost(Failure(ConnectionLost()))
        peer.advance(30)
        self.assertLessEqual(peer.service.activity()["timers"], before)


class EndTests(WatchCase):
    def test_a_drain_says_bye(self) -> None:
        """The stream is complete, and the connection closes."""
        peer = self.peer()
        peer.watch()
        drained = Deferred.fromCoroutine(peer.site.drain(10.0))
        self.assertEqual(peer.frames[-1].event, "bye")
        self.assertIn("the daemon stops", peer.frames[-1].data["reason"])
        self.assertTrue(peer.complete)
        self.assertTrue(peer.transport.disconnecting)
        peer.channel.connectionLost(Failure(ConnectionLost()))
        self.assertTrue(now(drained))

    def test_a_slow_reader_does_not_delay_a_drain(self) -> None:
        """Its connection is aborted."""
        peer = self.peer()
        peer.watch()
        peer.channel.pauseProducing()
        drained = Deferred.fromCoroutine(peer.site.drain(10.0))
        self.assertTrue(peer.transport.disconnected)
        peer.channel.connectionLost(Failure(ConnectionLost()))
        self.assertTrue(now(drained))

    def test_the_token_is_looked_at_again(self) -> None:
        """An invalid one ends the stream, an identity service that is down does not at once."""
        peer = self.peer()
        peer.watch()
        rest: Any = peer.rest
        errors: list[Exception] = [ServiceUnavailable("identity is down")]
        found = rest._callers.authenticate

        async def authorize(x: Any, tenant: str | None) -> Any:
            if errors:
                raise errors[0]
            return await found(x, tenant)

        rest._callers.authenticate = authorize
        peer.advance(50)
        self.assertNotIn("bye", peer.events)
        errors.clear()
        peer.advance(20)
        errors.append(ServiceUnavailable("identity is down"))
        peer.advance(50)
        self.assertNotIn("bye", peer.events)
        errors[0] = Unauthorized("the token has expired")
        peer.advance(6)
        self.assertEqual(peer.frames[-1].event, "bye")
        self.assertEqual(peer.frames[-1].data, {"reason": "the token has expired"})
        self.assertTrue(peer.complete)
        other = self.peer(peer)
        errors.clear()
        other.watch()
        errors.append(ServiceUnavailable("identity is down"))
        other.advance(90)
        self.assertEqual(other.frames[-1].data, {"reason": "identity is down"})

    def test_a_slow_check_delays_no_comment_line(self) -> None:
        """The caller hears from the daemon while the identity service does not answer."""
        peer = self.peer()
        peer.watch()
        rest: Any = peer.rest
        asked: list[Deferred[None]] = []

        async def authorize(x: Any, tenant: str | None) -> Any:
            asked.append(Deferred())
            await asked[-1]

        rest._callers.authenticate = authorize
        peer.advance(31)
        self.assertEqual(len(asked), 1)
        self.assertEqual(peer.body.count(b":\n"), 2)
        peer.channel.connectionLost(Failure(ConnectionLost()))

    def test_slow_checks_keep_no_watcher_that_does_not_read(self) -> None:
        """However many there are."""
        peer = self.peer()
        rest: Any = peer.rest
        peer.watch()
        others = [self.peer(peer) for _ in range(8)]
        for other in others:
            other.watch()

        async def authorize(x: Any, tenant: str | None) -> Any:
            await Deferred()

        rest._callers.authenticate = authorize
        peer.advance(6)
        last = others[-1]
        last.channel.pauseProducing()
        last.advance(70)
        self.assertTrue(last.transport.disconnected)
        for each in (peer, *others):
            each.channel.connectionLost(Failure(ConnectionLost()))

    def test_roles_that_change_during_a_read_lose_nothing(self) -> None:
        """The watcher gets the change from the next read, as its new roles may see it."""
        peer = self.peer()
        peer.watch()
        other = self.peer(peer)
        other.watch("?kinds=data_sources")
        feeds = daemon_of(peer.service).services.feeds
        group = list(feeds._feeds["demo"].queue)
        found = feeds._read
        watcher = group[0]

        async def read(*given: Any) -> Any:
            result = await found(*given)
            watcher.view = evolve(watcher.view, hides=not watcher.view.hides)
            patch.restore()
            return result

        patch = self.patch(feeds, "_read", read)
        peer.add()
        peer.advance(0.2)
        for each in (peer, other):
            self.assertEqual(each.events, ["hello", "data_source"])
        self.assertNotIn(b"hush", peer.body)
        self.assertIn(b"hush", other.body)
        peer.add(name="b")
        peer.advance(16)
        for each in (peer, other):
            self.assertEqual(each.events, ["hello", "data_source", "data_source"])
            self.assertTrue(each.body.count(b":\n"))

    def test_watchers_see_the_token_of_a_cluster_as_their_roles_allow(self) -> None:
        """In the link of Spark Connect."""
        peer = self.peer()
        peer.watch("?kinds=clusters")
        other = self.peer(peer)
        other.watch("?kinds=clusters")
        feeds = daemon_of(peer.service).services.feeds
        group = list(feeds._feeds["demo"].queue)

        async def hides() -> bool:
            return True

        self.patch(group[1], "access", hides)
        peer.advance(16)
        body = cluster_body(peer.service, "mine", 1)
        body["node_groups"][0]["node_processes"] = [*MASTER, "sparkconnect"]
        made = peer.service.call("POST", "/v1.1/demo/clusters", json=body)
        peer.service.advance(60)
        peer.advance(2)
        path = f"/v1.1/demo/clusters/{made.json['cluster']['id']}"
        shown = peer.service.call("GET", path).json["cluster"]["info"]["Spark"]["Connect"]
        found = [[f.data for f in each.frames if f.event == "cluster"] for each in (peer, other)]
        seen, masked = (each[-1]["info"]["Spark"]["Connect"] for each in found)
        self.assertEqual((seen, masked), (shown, re.sub("=.*", "=***", shown)))

    def test_a_fault_after_a_read_silences_nobody(self) -> None:
        """The watchers that had not been served get the changes from the next read."""
        peer = self.peer()
        peer.watch()
        other = self.peer(peer)
        other.watch()
        feeds = daemon_of(peer.service).services.feeds
        group = list(feeds._feeds["demo"].queue)
        outlet = group[0].outlet

        def write(piece: Any) -> None:
            patch.restore()
            raise KeyError("bug")

        patch = self.patch(outlet, "write", write)
        peer.add()
        peer.advance(6)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        peer.add(name="b")
        peer.advance(1)
        self.assertEqual(peer.events, ["hello", "data_source"])
        self.assertEqual(other.events, ["hello", "data_source", "data_source"])

    def test_a_fault_of_the_check_ends_the_stream(self) -> None:
        """The reason has the incident of the log."""
        peer = self.peer()
        peer.watch()
        rest: Any = peer.rest

        async def authorize(x: Any, tenant: str | None) -> Any:
            raise KeyError("bug")

        rest._callers.authenticate = authorize
        peer.advance(6)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertRegex(peer.frames[-1].data["reason"], r"internal error, incident \w+")


class RoleTests(SynchronousTestCase):
    """With tokens."""

    def setUp(self) -> None:
        self.service = FakeService({"auth.mode": "keystone", "server.hosts": "a"})
        self.addCleanup(self.service.close)

    def connect(self, name: str, project: str = "alpha") -> tuple[StringTransport, str]:
        """A watcher, and its token."""
        token = self.service.token(name, project=project)
        site = daemon_of(self.service).site
        channel: Any = site.buildProtocol(None)
        transport = StringTransport()
        channel.makeConnection(transport)
        core = self.service.cloud.core
        id_ = next(p.id for p in core.projects.values() if p.name == project)
        channel.dataReceived(
            f"GET /v1.1/{id_}/watch HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {token}\r\n\r\n".encode()
        )
        self.service.advance(0.1)
        self.path = f"/v1.1/{id_}"
        self.channel = channel
        return transport, token

    def frames(self, transport: StringTransport) -> list[Frame]:
        return frames_of(unchunked(transport.value().partition(b"\r\n\r\n")[2])[0])

    def test_readers_get_masked_credentials(self) -> None:
        """Writers get them as the interface shows them; neither is rendered for the other."""
        member, token = self.connect("alice")
        reader, reading = self.connect("carol")
        headers = {"X-Auth-Token": token}
        made = self.service.call("POST", f"{self.path}/data-sources", SOURCE, headers=headers)
        self.assertEqual(made.status, 202, made.body)
        self.service.advance(0.1)
        for transport, own in ((member, token), (reader, reading)):
            id_ = made.json["data_source"]["id"]
            shown = self.service.call(
                "GET", f"{self.path}/data-sources/{id_}", headers={"X-Auth-Token": own}
            ).json["data_source"]
            data = self.frames(transport)[-1].data
            self.assertEqual({k: data[k] for k in shown}, shown)
        self.assertIn(b"hush", member.value())
        self.assertNotIn(b"hush", reader.value())

    def test_a_watcher_that_ends_its_own_side_during_its_login_is_dropped(self) -> None:
        """Its stream ends as soon as it begins."""
        self.connect("carol")
        self.service.faults.add(where="identity", effect=Effect.DELAY, delay_s=2, method="GET")
        transport, _ = self.connect("alice")
        self.channel.readConnectionLost()
        self.assertEqual(transport.value(), b"")
        self.service.advance(2.0)
        self.assertTrue(transport.disconnected)
        self.channel.connectionLost(Failure(ConnectionLost()))
        self.assertEqual(daemon_of(self.service).services.feeds.count(), 1)

    def test_a_revoked_token_ends_the_stream(self) -> None:
        """When the identity service is asked again, after `auth.cache_s`."""
        transport, token = self.connect("alice")
        self.service.call(
            "DELETE",
            "http://cloud.test:8387/identity/v3/auth/tokens",
            headers={"X-Auth-Token": token, "X-Subject-Token": token},
        )
        self.service.advance(200)
        self.assertNotIn("bye", [f.event for f in self.frames(transport)])
        self.service.advance(120)
        self.assertEqual(self.frames(transport)[-1].event, "bye")

    def test_without_a_token_nothing_is_streamed(self) -> None:
        """Nor with one in the query."""
        _, token = self.connect("alice")
        url = f"{self.service.url}{self.path}/watch"
        for query in ("", f"?token={token}", f"?x-auth-token={token}"):
            answer = now(self.service.treq.get(url + query))
            self.assertEqual(answer.code, 401)
