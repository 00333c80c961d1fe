"""The stream of changes at the door: limits, slow readers, tokens, roles, the end."""

from __future__ import annotations

import re
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.errors import ServiceUnavailable, Unauthorized
from svcd.testing import CLOUD_URL, Effect, FaultRule
from tests.support.api import now
from tests.support.fakes import MASTER, cluster_body
from tests.unit.resources.watching import SOURCE, Peer, WatchCase


class BoundTests(WatchCase):
    def test_watchers_of_a_tenant_are_limited(self) -> None:
        """The refusal names the setting; an end makes room."""
        first = self.peer(limits__watchers=2)
        first.watch()
        second, third = self.watching(first), self.watching(first)
        self.assertIn("400", third.head)
        self.assertIn(b"(limits.watchers)", third.transport.value())
        self.assertEqual(self.feeds(first).count(), 2)
        second.leave()
        third.transport.clear()
        third.watch()
        self.assertEqual(third.events, ["hello"])
        self.assertIn(b"svcd_watchers 2.0", first.service.call("GET", "/metrics").body)

    def test_a_watcher_that_ends_its_own_side_is_dropped(self) -> None:
        """Also while data waits for it."""
        peer = self.watching()
        slow = self.watching(peer)
        slow.channel.pauseProducing()
        for each in (peer, slow):
            each.channel.readConnectionLost()
            self.assertTrue(each.dropped)
        self.assertEqual(self.feeds(peer).count(), 0)

    def test_a_connection_serves_requests_after_its_stream(self) -> None:
        """When the peer ends its side then, it gets their answers."""
        peer = self.watching()
        peer.rest.end_streams()
        peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        peer.channel.readConnectionLost()
        self.assertEqual(peer.statuses(), [200, 200])

    def test_a_watcher_that_reads_nothing_is_dropped(self) -> None:
        """When more than a bound of bytes waits for it; the others go on."""
        peer = self.watching()
        slow = self.watching(peer)
        slow.channel.pauseProducing()
        for number in range(300):
            peer.add(name=f"n{number}", description="x" * 4000)
            peer.advance(0.07)
        self.assertTrue(slow.dropped)
        self.assertEqual(len(peer.frames), 301)
        self.assertLess(slow.transport.value().count(b"event"), 3)

    def test_a_watcher_that_pauses_gets_what_waited_in_order(self) -> None:
        peer = self.watching()
        peer.channel.pauseProducing()
        for name in "abc":
            peer.add(name=name)
            peer.advance(0.1)
        self.assertEqual(peer.events, ["hello"])
        peer.channel.resumeProducing()
        peer.advance(0.1)
        self.assertEqual(peer.names, list("abc"))

    def test_a_watcher_that_pauses_for_long_is_dropped(self) -> None:
        """Also when little waits for it."""
        peer = self.watching()
        peer.channel.pauseProducing()
        peer.advance(50)
        self.assertFalse(peer.dropped)
        peer.advance(20)
        self.assertTrue(peer.dropped)

    def test_an_unavailable_store_delays_the_stream(self) -> None:
        """Nothing is missed."""
        peer = self.watching()
        peer.add(name="a")
        peer.service.faults.add(FaultRule(where="store", method="read", times=2))
        peer.advance(20.2)
        self.assertEqual(peer.names, ["a"])

    def test_no_work_is_left_when_all_are_gone(self) -> None:
        """No timer for a tenant without watchers."""
        peer = self.peer()
        peer.advance(1)
        before = peer.service.activity()["timers"]
        peer.watch()
        peer.leave()
        peer.advance(30)
        self.assertLessEqual(peer.service.activity()["timers"], before)


class EndTests(WatchCase):
    def test_a_drain_says_bye(self) -> None:
        """The stream is complete, and the connection closes."""
        peer = self.watching()
        drained = Deferred.fromCoroutine(peer.site.drain(10.0))
        self.assertEqual(peer.frames[-1].event, "bye")
        self.assertIn("the daemon stops", peer.frames[-1].data["reason"])
        self.assertEqual((peer.complete, peer.closing), (True, True))
        peer.leave()
        self.assertTrue(now(drained))

    def test_a_slow_reader_does_not_delay_a_drain(self) -> None:
        """Its connection is aborted."""
        peer = self.watching()
        peer.channel.pauseProducing()
        drained = Deferred.fromCoroutine(peer.site.drain(10.0))
        self.assertTrue(peer.dropped)
        peer.leave()
        self.assertTrue(now(drained))

    def test_the_token_is_looked_at_again(self) -> None:
        """An invalid one ends the stream, an identity service that is down does not at once."""
        peer = self.watching()
        errors: list[Exception] = [ServiceUnavailable("identity is down")]

        async def check() -> None:
            if errors:
                raise errors[0]

        self.checked_by(peer, check)
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
        errors.clear()
        other = self.watching(peer)
        errors.append(ServiceUnavailable("identity is down"))
        other.advance(90)
        self.assertEqual(other.frames[-1].data, {"reason": "identity is down"})

    def test_a_slow_check_delays_no_comment_line(self) -> None:
        """The caller hears from the daemon while the identity service does not answer."""
        peer = self.watching()
        asked: list[Deferred[None]] = []

        async def check() -> None:
            asked.append(Deferred())
            await asked[-1]

        self.checked_by(peer, check)
        peer.advance(31)
        self.assertEqual(len(asked), 1)
        self.assertEqual(peer.body.count(b":\n"), 2)
        peer.leave()

    def test_slow_checks_keep_no_watcher_that_does_not_read(self) -> None:
        """However many there are."""
        peer = self.watching()
        others = [self.watching(peer) for _ in range(8)]
        self.checked_by(peer, Deferred)
        peer.advance(6)
        last = others[-1]
        last.channel.pauseProducing()
        last.advance(70)
        self.assertTrue(last.dropped)
        self.leave([peer, *others])

    def test_a_fault_of_the_check_ends_the_stream(self) -> None:
        """The reason has the incident of the log."""
        peer = self.watching()

        async def check() -> None:
            raise KeyError("bug")

        self.checked_by(peer, check)
        peer.advance(6)
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        self.assertRegex(peer.frames[-1].data["reason"], r"internal error, incident \w+")

    def test_a_fault_after_a_read_silences_nobody(self) -> None:
        """The watchers that had not been served get the changes from the next read."""
        peer = self.watching()
        other = self.watching(peer)
        outlet = self.group(peer)[0].outlet

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

    def group(self, peer: Peer) -> list[Any]:
        """The watchers of the tenant."""
        return list(self.feeds(peer)._feeds["demo"].queue)

    def test_roles_that_change_during_a_read_lose_nothing(self) -> None:
        """The watcher gets the change from the next read, as its new roles may see it."""
        peer = self.watching()
        other = self.watching(peer, "?kinds=data_sources")
        feeds, watcher = self.feeds(peer), self.group(peer)[0]
        found = feeds._read

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
        peer = self.watching(query="?kinds=clusters")
        other = self.watching(peer, "?kinds=clusters")

        async def hides() -> bool:
            return True

        self.patch(self.group(peer)[1], "access", hides)
        peer.advance(16)
        body = cluster_body(peer.service, "mine", 1)
        body["node_groups"][0]["node_processes"] = [*MASTER, "sparkconnect"]
        made = peer.service.call("POST", "/v1.1/demo/clusters", json=body)
        peer.advance(62)
        path = f"/v1.1/demo/clusters/{made.json['cluster']['id']}"
        shown = peer.service.call("GET", path).json["cluster"]["info"]["Spark"]["Connect"]
        found = [[f.data for f in each.frames if f.event == "cluster"] for each in (peer, other)]
        seen, masked = (each[-1]["info"]["Spark"]["Connect"] for each in found)
        self.assertEqual((seen, masked), (shown, re.sub("=.*", "=***", shown)))


class RoleTests(WatchCase):
    """With tokens, in project alpha."""

    def setUp(self) -> None:
        self.first = self.peer(auth__mode="keystone")
        self.service = self.first.service
        projects = self.service.cloud.core.projects.values()
        self.alpha = next(p.id for p in projects if p.name == "alpha")

    def connect(self, name: str) -> tuple[Peer, dict[str, str]]:
        """A watcher, and the header with its token."""
        token = self.service.token(name, project="alpha")
        return self.watching(self.first, token=token, tenant=self.alpha), {"X-Auth-Token": token}

    def test_readers_get_masked_credentials(self) -> None:
        """Writers get them as the interface shows them; neither is rendered for the other."""
        (member, writing), (reader, reading) = self.connect("alice"), self.connect("carol")
        path = f"/v1.1/{self.alpha}/data-sources"
        made = self.service.call("POST", path, SOURCE, headers=writing)
        self.assertEqual(made.status, 202, made.body)
        self.service.advance(0.1)
        path += f"/{made.json['data_source']['id']}"
        for watcher, token in ((member, writing), (reader, reading)):
            shown = self.service.call("GET", path, headers=token).json["data_source"]
            data = watcher.frames[-1].data
            self.assertEqual({k: data[k] for k in shown}, shown)
        self.assertIn(b"hush", member.body)
        self.assertNotIn(b"hush", reader.body)

    def test_a_watcher_that_ends_its_own_side_during_its_login_is_dropped(self) -> None:
        """Its stream ends as soon as it begins."""
        self.connect("carol")
        self.service.faults.add(where="identity", effect=Effect.DELAY, delay_s=2, method="GET")
        watcher, _ = self.connect("alice")
        watcher.channel.readConnectionLost()
        self.assertEqual(watcher.transport.value(), b"")
        self.service.advance(2.0)
        self.assertTrue(watcher.dropped)
        watcher.leave()
        self.assertEqual(self.feeds(self.service).count(), 1)

    def test_a_revoked_token_ends_the_stream(self) -> None:
        """When the identity service is asked again, after `auth.cache_s`."""
        watcher, token = self.connect("alice")
        self.service.call(
            "DELETE",
            f"{CLOUD_URL}/identity/v3/auth/tokens",
            headers={**token, "X-Subject-Token": token["X-Auth-Token"]},
        )
        self.service.advance(200)
        self.assertNotIn("bye", watcher.events)
        self.service.advance(120)
        self.assertEqual(watcher.frames[-1].event, "bye")
