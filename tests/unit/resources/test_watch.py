"""The stream of changes at the door: frames, kinds and cursors."""

from __future__ import annotations

import itertools
import re
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from svcd.model.changes import KINDS, Cursor
from svcd.model.ids import DataSourceId
from svcd.testing import FakeService
from tests.contract.store.rows import source
from tests.support.api import daemon_of, now
from tests.unit.resources.watch import SOURCE, WatchCase, frames_of


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
        pieces: list[bytes] = []
        peer.channel.transport.writeSequence = lambda parts: pieces.append(b"".join(parts))
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
        other = {**SOURCE, "name": "theirs"}
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
        service.call("POST", "/v1.1/demo/data-sources", SOURCE)
        service.advance(0.1)
        self.assertEqual([f.event for f in frames_of(reader.got)], ["hello", "data_source"])
        last = frames_of(reader.got)[-1].id
        service.restart()
        self.assertIsInstance(reader.ended, ConnectionLost)
        again = _Reader()
        service.call("POST", "/v1.1/demo/data-sources", {**SOURCE, "name": "b"})
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

    def test_last_event_id_resumes_and_wins_over_since(self) -> None:
        """A reader of server-sent events connects again to the same address, with this header."""
        peer = self.peer()
        peer.watch()
        for name in "abc":
            peer.add(name=name)
        peer.advance(0.2)
        hello, first, second, _ = (frame.id for frame in peer.frames)
        for query in ("", f"?since={hello}", "?since=nonsense", f"?since={hello}&since={first}"):
            other = self.peer(peer)
            other.watch(query, last=second)
            self.assertEqual([f.data["name"] for f in other.frames], ["c"], query)

    def test_a_wrong_last_event_id_is_reset(self) -> None:
        """Also when `since` is right. An empty one is none: a reader has had no event yet."""
        peer = self.peer()
        peer.watch()
        since = peer.frames[0].id
        peer.add()
        for last in ("nonsense", "\u00fc", f"{since}\r\nLast-Event-ID: {since}"):
            other = self.peer(peer)
            other.watch(f"?since={since}", last=last)
            self.assertEqual(other.events, ["reset"], last)
        for query, events in (("", ["hello"]), (f"?since={since}", ["data_source"])):
            other = self.peer(peer)
            other.watch(query, last="")
            self.assertEqual(other.events, events)

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
