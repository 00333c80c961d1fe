"""The stream of changes at the door: frames, cursors, tokens, limits, slow readers, the end."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.protocol import Protocol
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable, Unauthorized
from svcd.model.changes import KINDS, Cursor
from svcd.model.ids import DataSourceId
from svcd.testing import Effect, FakeService, FaultRule
from tests.contract.store.rows import source
from tests.support.api import daemon_of, now
from tests.support.fakes import MASTER, cluster_body
from tests.unit.resources.test_channel import Connected

_SOURCE = {
    "name": "in",
    "type": "objstore",
    "url": "objstore://box/in",
    "credentials": {"user": "ann", "password": "hush"},
}


@frozen
class Frame:
    """One event."""

    id: str
    event: str
    data: Any


def frames_of(body: bytes) -> list[Frame]:
    """The events of a stream; comments are left out."""
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
        if "event" in fields:
            data = json.loads(fields["data"])
            found.append(Frame(fields.get("id", ""), fields["event"], data))
    return found


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The content of chunks, and whether the last chunk has come."""
    found = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return found, True
        found += rest[:length]
        assert rest[length : length + 2] == b"\r\n", rest[:80]
        body = rest[length + 2 :]
    return found, False


class Peer(Connected):
    """A connection that watches."""

    def watch(self, query: str = "", method: str = "GET", token: str = "") -> None:
        """Send the request."""
        header = f"X-Auth-Token: {token}\r\n" if token else ""
        text = f"{method} /v1.1/demo/watch{query} HTTP/1.1\r\nHost: a\r\n{header}\r\n"
        self.channel.dataReceived(text.encode())
        self.advance(0.1)

    @property
    def head(self) -> str:
        return self.transport.value().partition(b"\r\n\r\n")[0].decode()

    @property
    def body(self) -> bytes:
        return unchunked(self.transport.value().partition(b"\r\n\r\n")[2])[0]

    @property
    def complete(self) -> bool:
        return unchunked(self.transport.value().partition(b"\r\n\r\n")[2])[1]

    @property
    def frames(self) -> list[Frame]:
        return frames_of(self.body)

    @property
    def events(self) -> list[str]:
        return [each.event for each in self.frames]

    def add(self, **changes: Any) -> str:
        """A data source; its id."""
        made = self.service.call("POST", "/v1.1/demo/data-sources", {**_SOURCE, **changes})
        assert made.status == 202, made.body
        return str(made.json["data_source"]["id"])


class WatchCase(SynchronousTestCase):
    def peer(self, of: Connected | None = None, **flags: Any) -> Peer:
        made = Peer(of, **flags)
        if of is None:
            self.addCleanup(made.service.close)
        return made


class StreamTests(WatchCase):
    def test_changes_come_as_events(self) -> None:
        """With the newest version of the record as the interface shows it."""
        peer = self.peer()
        peer.watch()
        self.assertIn("HTTP/1.1 200 OK", peer.head)
        self.assertIn("Content-Type: text/event-stream", peer.head)
        self.assertIn("Cache-Control: no-store", peer.head)
        self.assertEqual(peer.events, ["hello"])
        id_ = peer.add()
        peer.advance(0.1)
        shown = peer.service.call("GET", f"/v1.1/demo/data-sources/{id_}").json["data_source"]
        self.assertEqual(peer.frames[1].event, "data_source")
        self.assertEqual(peer.frames[1].data, {"change": "created", "version": 1, **shown})
        peer.service.call("DELETE", f"/v1.1/demo/data-sources/{id_}")
        peer.advance(0.1)
        self.assertEqual(peer.frames[2].data, {"id": id_, "change": "deleted", "version": 1})
        self.assertEqual(len({each.id for each in peer.frames}), 3)

    def test_every_kind_can_be_watched(self) -> None:
        """And a cluster's events come with it."""
        peer = self.peer()
        peer.watch()
        svcd = peer.service
        base = "/v1.1/demo"
        plugin = svcd.call("GET", f"{base}/plugins/fake").json["plugin"]
        version = plugin["versions"][0]
        processes = svcd.call("GET", f"{base}/plugins/fake/{version}").json["plugin"]
        names = [n for group_ in processes["node_processes"].values() for n in group_]
        group = {"name": "w", "plugin_name": "fake", "engine_version": version,
                 "flavor_id": svcd.flavor_id, "node_processes": names}  # fmt: skip
        made = svcd.call("POST", f"{base}/node-group-templates", group)
        self.assertEqual(made.status, 202, made.body)
        group_id = made.json["node_group_template"]["id"]
        node_groups = [{"name": "w", "count": 1, "node_group_template_id": group_id}]
        template = {"name": "t", "plugin_name": "fake", "engine_version": version,
                    "node_groups": node_groups}  # fmt: skip
        made = svcd.call("POST", f"{base}/cluster-templates", template)
        self.assertEqual(made.status, 202, made.body)
        cluster = {"name": "c", "plugin_name": "fake", "engine_version": version,
                   "cluster_template_id": made.json["cluster_template"]["id"],
                   "default_image_id": svcd.image_id, "user_keypair_id": svcd.keypair}  # fmt: skip
        made = svcd.call("POST", f"{base}/clusters", cluster)
        self.assertEqual(made.status, 202, made.body)
        cluster_id = made.json["cluster"]["id"]
        svcd.advance(300)
        put = svcd.call("PUT", f"{base}/job-binary-internals/x.pig", data=b"text")
        internal = put.json["job_binary_internal"]["id"]
        binary = {"name": "x", "url": f"internaldb://{internal}"}
        made = svcd.call("POST", f"{base}/job-binaries", binary)
        job = {"name": "j", "type": "Pig", "mains": [made.json["job_binary"]["id"]]}
        made = svcd.call("POST", f"{base}/jobs", job)
        job_id = made.json["job"]["id"]
        run = {"cluster_id": cluster_id}
        for name in ("in", "out"):
            run[f"{name}put_id"] = peer.add(name=name, url=f"objstore://box/{name}")
        made = svcd.call("POST", f"{base}/jobs/{job_id}/execute", run)
        self.assertEqual(made.status, 202, made.body)
        svcd.advance(60)
        self.assertEqual(set(peer.events), {"hello", *KINDS.values()})
        last = {(f.event, f.data.get("id")): f.data for f in peer.frames}
        shown = svcd.call("GET", f"{base}/clusters/{cluster_id}").json["cluster"]
        seen = last["cluster", cluster_id]
        self.assertEqual({k: v for k, v in seen.items() if k not in ("change", "version")}, shown)
        events = [f.data for f in peer.frames if f.event == "cluster_event"]
        listed = svcd.call("GET", f"{base}/clusters/{cluster_id}/events").json["events"]
        self.assertEqual([e["number"] for e in events], list(range(1, len(listed) + 1)))
        self.assertEqual(events, [{"cluster_id": cluster_id, **each} for each in listed])
        self.assertEqual(last["job", job_id]["mains"][0]["name"], "x")

    def test_changes_soon_after_each_other_share_a_piece(self) -> None:
        """The first comes at once, those after it together, within 100 ms."""
        peer = self.peer()
        peer.watch("?kinds=data_sources")
        peer.advance(1.0)
        peer.transport.clear()
        peer.add(name="a")
        peer.advance(0.0)
        self.assertEqual(peer.transport.value().count(b"event: "), 1)
        pieces = []
        peer.channel.transport.write = pieces.append
        for name in "bcd":
            peer.add(name=name)
        peer.advance(0.09)
        self.assertEqual([each.count(b"event: ") for each in pieces], [3])

    def test_kinds_are_chosen(self) -> None:
        """Clusters bring their events."""
        peer = self.peer()
        peer.watch("?kinds=jobs,clusters")
        peer.add()
        peer.advance(0.1)
        self.assertEqual(peer.events, ["hello"])
        other = self.peer(peer)
        other.watch("?kinds=jobs&kinds=data_sources")
        peer.add(name="b")
        peer.advance(0.1)
        self.assertEqual(other.events, ["hello", "data_source"])

    def test_unknown_kinds_are_refused(self) -> None:
        """The answer lists the kinds."""
        peer = self.peer()
        for kinds in ("job", "jobs,nope", "jobs%00", "\u00fc".encode().hex()):
            answer = peer.service.treq.get(peer.service.url + f"/v1.1/demo/watch?kinds={kinds}")
            self.assertEqual(now(answer).code, 400)
        peer.watch("?kinds=job")
        self.assertIn("400", peer.head)
        self.assertIn(
            b"?kinds: job is not a kind; the kinds are clusters, ", peer.transport.value()
        )

    def test_other_methods_are_sane(self) -> None:
        """HEAD has the headers only; a change is refused; v1.0 has no such route."""
        peer = self.peer()
        peer.watch(method="HEAD")
        self.assertIn("text/event-stream", peer.head)
        self.assertEqual(peer.transport.value().partition(b"\r\n\r\n")[2], b"")
        peer.transport.clear()
        peer.watch(method="POST")
        self.assertIn("405", peer.head)
        call = peer.service.treq.get(peer.service.url + "/v1.0/demo/watch")
        self.assertEqual(now(call).code, 404)

    def test_http_1_0_gets_no_chunks(self) -> None:
        """The end of the connection is the end of the answer."""
        peer = self.peer()
        peer.channel.dataReceived(
            b"GET /v1.1/demo/watch HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
        )
        peer.advance(0.1)
        self.assertNotIn("chunked", peer.head)
        self.assertIn("Connection: close", peer.head)
        body = peer.transport.value().partition(b"\r\n\r\n")[2]
        self.assertEqual([f.event for f in frames_of(body)], ["hello"])

    def test_a_comment_line_comes_every_15_seconds(self) -> None:
        """With a fresh cursor. The time-out of requests does not count."""
        peer = self.peer(request_timeout_s=5)
        peer.watch()
        first = peer.frames[0].id
        peer.advance(61)
        beats = re.findall(r"^:\nid: (\S+)$", peer.body.decode(), re.MULTILINE)
        self.assertEqual(len(beats), 4)
        self.assertNotEqual(beats[-1], first)
        self.assertEqual(peer.events, ["hello"])
        self.assertFalse(peer.transport.disconnecting)

    def test_other_tenants_see_nothing(self) -> None:
        """Each has a feed of its own."""
        peer = self.peer()
        peer.watch()
        other = {**_SOURCE, "name": "theirs"}
        peer.service.call("POST", "/v1.1/other/data-sources", other)
        peer.advance(20)
        self.assertEqual(peer.events, ["hello"])

    def test_the_fake_streams_by_treq_only(self) -> None:
        """`call` would never return."""
        service = FakeService()
        self.addCleanup(service.close)
        with self.assertRaisesRegex(ValueError, "no end"):
            service.call("GET", "/v1.1/demo/watch?kinds=jobs")
        reader = _Reader()
        answer = now(service.treq.get(service.url + "/v1.1/demo/watch"))
        answer.original.deliverBody(reader)
        service.advance(0.1)
        service.call("POST", "/v1.1/demo/data-sources", _SOURCE)
        service.advance(0.1)
        self.assertEqual([f.event for f in frames_of(reader.got)], ["hello", "data_source"])
        last = frames_of(reader.got)[-1].id
        service.restart()
        self.assertIsInstance(reader.ended, ConnectionLost)
        again = _Reader()
        service.call("POST", "/v1.1/demo/data-sources", {**_SOURCE, "name": "b"})
        now(service.treq.get(service.url + f"/v1.1/demo/watch?since={last}")).original.deliverBody(
            again
        )
        service.advance(0.1)
        self.assertEqual([f.data["name"] for f in frames_of(again.got)], ["b"])


class _Reader(Protocol):
    def __init__(self) -> None:
        self.got = b""
        self.ended: BaseException | None = None

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.ended = reason.value if reason else None


class CursorTests(WatchCase):
    def test_since_goes_on_without_gap_or_repetition(self) -> None:
        """From any event, also one in the middle of a piece."""
        peer = self.peer()
        peer.watch()
        for name in "abcd":
            peer.add(name=name)
        peer.advance(0.2)
        names = [f.data["name"] for f in peer.frames[1:]]
        self.assertEqual(names, list("abcd"))
        for index, frame in enumerate(peer.frames):
            other = self.peer(peer)
            other.watch(f"?since={frame.id}")
            self.assertEqual([f.data["name"] for f in other.frames], names[index:])
            other.channel.connectionLost(Failure(ConnectionLost()))
        late = self.peer(peer)
        late.watch(f"?since={peer.frames[2].id}")
        peer.add(name="e")
        peer.advance(0.1)
        self.assertEqual([f.data["name"] for f in late.frames], ["c", "d", "e"])

    def test_many_changes_come_in_parts(self) -> None:
        """A client that was away gets all of them once, while new ones are made."""
        peer = self.peer()
        peer.watch()
        start = peer.frames[0].id
        store = daemon_of(peer.service).services.store

        async def many(tx: Any) -> None:
            for n in range(1300):
                record = evolve(source(), id=DataSourceId(f"ds-{n:04}"), name=f"n{n:04}",
                                tenant_id="demo")  # fmt: skip
                await tx.data_sources.add(record)

        now(Deferred.fromCoroutine(store.tx(many)))
        late = self.peer(peer)
        late.watch(f"?since={start}")
        peer.add(name="z")
        peer.advance(2.0)
        wanted = [f"n{n:04}" for n in range(1300)] + ["z"]
        self.assertEqual([f.data["name"] for f in late.frames], wanted)
        self.assertEqual([f.data["name"] for f in peer.frames[1:]], wanted)

    def test_a_read_for_many_cursors_is_bounded(self) -> None:
        """All watchers that were away share its bytes, and each gets its turn."""
        peer = self.peer()
        peer.watch()
        store = daemon_of(peer.service).services.store
        starts: list[str] = []
        names = [f"n{n:04}" for n in range(240)]
        for first in (0, 60, 120, 180):
            starts.append(peer.frames[-1].id)

            async def some(tx: Any, first: int = first) -> None:
                for name in names[first : first + 60]:
                    record = evolve(source(), id=DataSourceId(name), name=name,
                                    tenant_id="demo", description="x" * 30_000)  # fmt: skip
                    await tx.data_sources.add(record)

            now(Deferred.fromCoroutine(store.tx(some)))
            peer.advance(0.2)
        late = [self.peer(peer) for _ in starts]
        sizes = [0]

        def hear(where: str, method: str, path: str) -> None:
            if (where, method) == ("store", "read"):
                sizes.append(sum(len(each.transport.value()) for each in late))

        peer.service.faults.listen(hear)
        for each, start in zip(late, starts, strict=True):
            text = f"GET /v1.1/demo/watch?since={start} HTTP/1.1\r\nHost: a\r\n\r\n"
            each.channel.dataReceived(text.encode())
        peer.advance(2.0)
        for number, each in enumerate(late):
            self.assertEqual([f.data["name"] for f in each.frames], names[number * 60 :])
        hear("store", "read", "")
        self.assertGreater(sizes[-1], 18_000_000)
        self.assertLess(max(b - a for a, b in itertools.pairwise(sizes)), 6_000_000)

    def test_cursors_that_cannot_be_used_are_reset(self) -> None:
        """The client lists anew and goes on with the cursor of the answer."""
        peer = self.peer()
        peer.watch()
        good = Cursor.parse(peer.frames[0].id)
        assert good is not None
        values: Any = {name: getattr(good, name) for name in ("epoch", "made_s", "since")}
        strange = Cursor(**{**values, "epoch": "other"}).text
        future = Cursor(**{**values, "since": "999999999"}).text
        for since in ("", "garbage", "%00%ff", "A" * 12_000, strange, future):
            other = self.peer(peer)
            other.watch(f"?since={since}")
            self.assertEqual(other.events, ["reset"], since[:40])
            again = self.peer(peer)
            again.watch(f"?since={other.frames[0].id}")
            self.assertEqual(again.events, [], since[:40])

    def test_an_old_cursor_is_reset(self) -> None:
        """After a day. The comment lines of an open stream bring younger ones."""
        peer = self.peer()
        peer.watch()
        first = peer.frames[0].id
        peer.advance(23 * 3600)
        young = self.peer(peer)
        young.watch(f"?since={first}")
        self.assertEqual(young.events, [])
        peer.advance(3601)
        beats = re.findall(r"^:\nid: (\S+)$", peer.body.decode(), re.MULTILINE)
        for since, events in ((first, ["reset"]), (beats[-1], [])):
            other = self.peer(peer)
            other.watch(f"?since={since}")
            self.assertEqual(other.events, events)

    def test_a_restore_begins_another_epoch(self) -> None:
        """Here by its rows: the tables are made anew, and the next start writes an epoch."""
        peer = self.peer()
        peer.watch()
        first = peer.frames[0].id
        database = peer.service._database
        database._connection.execute("delete from feed")
        peer.service.advance(5)
        peer.service.restart()
        other = self.peer(peer)
        other.watch(f"?since={first}")
        self.assertEqual(other.events, ["reset"])


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
        found = rest._authorize

        async def authorize(x: Any, tenant: str | None) -> Any:
            if errors:
                raise errors[0]
            return await found(x, tenant)

        rest._authorize = authorize
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

        rest._authorize = authorize
        peer.advance(31)
        self.assertEqual(len(asked), 1)
        self.assertEqual(peer.body.count(b":\n"), 2)
        peer.channel.connectionLost(Failure(ConnectionLost()))

    def test_roles_that_change_during_a_read_lose_nothing(self) -> None:
        """The watcher gets the change from the next read, as its new roles may see it."""
        peer = self.peer()
        peer.watch()
        other = self.peer(peer)
        other.watch("?kinds=data_sources")
        feeds = daemon_of(peer.service).services.feeds
        (group,) = feeds._feeds["demo"].groups.values()
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
        (group,) = feeds._feeds["demo"].groups.values()

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
        (group,) = feeds._feeds["demo"].groups.values()
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

        rest._authorize = authorize
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
        made = self.service.call("POST", f"{self.path}/data-sources", _SOURCE, headers=headers)
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
