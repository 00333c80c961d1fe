"""The stream of changes at the door: frames, kinds and cursors."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol

from svcd.model.changes import KINDS, Cursor
from svcd.model.ids import DataSourceId
from svcd.testing import FakeService
from tests.contract.store.rows import source
from tests.support.api import daemon_of, now
from tests.support.fakes import Api
from tests.unit.resources.watching import SOURCE, Peer, WatchCase, frames_of


def add_many(peer: Peer, names: Sequence[str], **more: Any) -> None:
    """Data sources, in one transaction."""

    async def many(tx: Any) -> None:
        for name in names:
            id_ = DataSourceId(f"id-{name}")
            await tx.data_sources.add(evolve(source(), id=id_, name=name, tenant_id="demo", **more))

    now(Deferred.fromCoroutine(daemon_of(peer.service).services.store.tx(many)))


class StreamTests(WatchCase):
    def test_changes_come_as_events(self) -> None:
        """With the newest version of the record as the interface shows it."""
        peer = self.watching()
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
        """And a cluster's events come with it, numbered as in the list."""
        peer = self.watching()
        svcd, api = peer.service, Api(peer.service)
        plugin = {"plugin_name": "fake", "engine_version": "0.1"}
        processes = ["namenode", "datanode"]
        group = {**plugin, "name": "w", "flavor_id": "2", "node_processes": processes}
        made = api.post("/node-group-templates", group)["node_group_template"]
        groups = [{"name": "w", "count": 1, "node_group_template_id": made["id"]}]
        api.post("/cluster-templates", {**plugin, "name": "t", "node_groups": groups})
        cluster_id, job_id = api.active_cluster(), api.new_job()
        api.execute(job_id, cluster_id, api.new_sources())
        svcd.advance(60)
        self.assertEqual(set(peer.events), {"hello", *KINDS.values()})
        last = {(f.event, f.data.get("id")): f.data for f in peer.frames}
        seen = last["cluster", cluster_id]
        shown = {k: v for k, v in seen.items() if k not in ("change", "version")}
        listed = api.get("/clusters")["clusters"]
        self.assertEqual(listed, [shown])
        self.assertEqual(
            {**shown, "usage": api.cluster(cluster_id)["usage"]}, api.cluster(cluster_id)
        )
        events = [f.data for f in peer.frames if f.event == "cluster_event"]
        listed = api.get(f"/clusters/{cluster_id}/events")["events"]
        self.assertEqual([e["number"] for e in events], list(range(1, len(listed) + 1)))
        self.assertEqual(events, [{"cluster_id": cluster_id, **each} for each in listed])
        self.assertEqual(last["job", job_id]["mains"][0]["name"], "count.pig")

    def test_changes_soon_after_each_other_share_a_piece(self) -> None:
        """The first comes at once, those after it together, within 100 ms."""
        peer = self.watching(query="?kinds=data_sources")
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
        """By one parameter or by several."""
        peer = self.watching(query="?kinds=jobs,clusters")
        other = self.watching(peer, "?kinds=jobs&kinds=data_sources")
        peer.add()
        peer.advance(0.1)
        self.assertEqual((peer.events, other.events), (["hello"], ["hello", "data_source"]))

    def test_unknown_kinds_are_refused(self) -> None:
        """The answer lists the kinds."""
        peer = self.peer()
        peer.watch("?kinds=job")
        self.assertIn("400", peer.head)
        told = b"?kinds: job is not a kind; the kinds are clusters, "
        self.assertIn(told, peer.transport.value())

    def test_only_get_of_v1_1_streams(self) -> None:
        """HEAD has the headers only; a change is refused; v1.0 has no such route."""
        peer = self.watching(method="HEAD")
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
        peer.send(b"GET /v1.1/demo/watch HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        peer.advance(0.1)
        self.assertNotIn("chunked", peer.head)
        self.assertIn("Connection: close", peer.head)
        body = peer.transport.value().partition(b"\r\n\r\n")[2]
        self.assertEqual([f.event for f in frames_of(body)], ["hello"])

    def test_a_comment_line_comes_every_15_seconds(self) -> None:
        """With a fresh cursor. The time-out of requests does not count."""
        peer = self.peer(request_timeout_s=5)
        peer.watch()
        peer.advance(61)
        beats = re.findall(r"^:\nid: (\S+)$", peer.body.decode(), re.MULTILINE)
        self.assertEqual(len(beats), 4)
        self.assertNotEqual(beats[-1], peer.frames[0].id)
        self.assertEqual((peer.events, peer.closing), (["hello"], False))

    def test_other_tenants_see_nothing(self) -> None:
        """Each has a feed of its own."""
        peer = self.watching()
        peer.service.call("POST", "/v1.1/other/data-sources", {**SOURCE, "name": "theirs"})
        peer.advance(20)
        self.assertEqual(peer.events, ["hello"])

    def test_the_fake_streams_by_treq_only(self) -> None:
        """`call` would never return. A restart ends the stream, and the cursor goes on."""
        service = FakeService()
        self.addCleanup(service.close)
        with self.assertRaisesRegex(ValueError, "no end"):
            service.call("GET", "/v1.1/demo/watch?kinds=jobs")
        reader = self.read(service, "")
        service.call("POST", "/v1.1/demo/data-sources", SOURCE)
        service.advance(0.1)
        frames = frames_of(reader.got)
        self.assertEqual([f.event for f in frames], ["hello", "data_source"])
        service.restart()
        self.assertTrue(reader.ended)
        service.call("POST", "/v1.1/demo/data-sources", {**SOURCE, "name": "b"})
        again = self.read(service, f"?since={frames[-1].id}")
        self.assertEqual([f.data["name"] for f in frames_of(again.got)], ["b"])

    def read(self, service: FakeService, query: str) -> _Reader:
        reader = _Reader()
        answer = now(service.treq.get(f"{service.url}/v1.1/demo/watch{query}"))
        answer.original.deliverBody(reader)
        service.advance(0.1)
        return reader


class _Reader(Protocol):
    def __init__(self) -> None:
        self.got = b""
        self.ended = False

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: object = None) -> None:
        self.ended = True


class CursorTests(WatchCase):
    def test_since_goes_on_without_gap_or_repetition(self) -> None:
        """From any event, also one in the middle of a piece."""
        peer = self.watching()
        for name in "abcd":
            peer.add(name=name)
        peer.advance(0.2)
        self.assertEqual(peer.names, list("abcd"))
        for index, frame in enumerate(peer.frames):
            other = self.watching(peer, f"?since={frame.id}")
            self.assertEqual(other.names, peer.names[index:])
            other.leave()
        late = self.watching(peer, f"?since={peer.frames[2].id}")
        peer.add(name="e")
        peer.advance(0.1)
        self.assertEqual(late.names, ["c", "d", "e"])

    def test_last_event_id_resumes_and_wins_over_since(self) -> None:
        """A reader of server-sent events connects again to the same address, with this header."""
        peer = self.watching()
        for name in "abc":
            peer.add(name=name)
        peer.advance(0.2)
        hello, first, second, _ = (frame.id for frame in peer.frames)
        for query in ("", f"?since={hello}", "?since=nonsense", f"?since={hello}&since={first}"):
            self.assertEqual(self.watching(peer, query, last=second).names, ["c"], query)

    def test_a_wrong_last_event_id_is_reset(self) -> None:
        """Also when `since` is right. An empty one is none: a reader has had no event yet."""
        peer = self.watching()
        since = peer.frames[0].id
        peer.add()
        for last in ("nonsense", "\u00fc", f"{since}\r\nLast-Event-ID: {since}"):
            other = self.watching(peer, f"?since={since}", last=last)
            self.assertEqual(other.events, ["reset"], last)
        for query, events in (("", ["hello"]), (f"?since={since}", ["data_source"])):
            self.assertEqual(self.watching(peer, query, last="").events, events)

    def test_many_changes_come_in_parts(self) -> None:
        """A client that was away gets all of them once, while new ones are made."""
        peer = self.watching()
        names = [f"n{n:04}" for n in range(1300)]
        add_many(peer, names)
        late = self.watching(peer, f"?since={peer.frames[0].id}")
        peer.add(name="z")
        peer.advance(2.0)
        self.assertEqual(late.names, [*names, "z"])
        self.assertEqual(peer.names, [*names, "z"])

    def test_a_read_for_many_cursors_is_bounded(self) -> None:
        """All watchers that were away share its bytes, and each gets its turn."""
        peer = self.watching()
        starts: list[str] = []
        names = [f"n{n:04}" for n in range(240)]
        for first in (0, 60, 120, 180):
            starts.append(peer.frames[-1].id)
            add_many(peer, names[first : first + 60], description="x" * 30_000)
            peer.advance(0.2)
        late = [self.peer(peer) for _ in starts]
        sizes = [0]

        def hear(where: str, method: str, path: str) -> None:
            if (where, method) == ("store", "read"):
                sizes.append(sum(len(each.transport.value()) for each in late))

        peer.service.faults.listen(hear)
        for each, start in zip(late, starts, strict=True):
            text = f"GET /v1.1/demo/watch?since={start} HTTP/1.1\r\nHost: a\r\n\r\n"
            each.send(text.encode())
        peer.advance(2.0)
        for number, each in enumerate(late):
            self.assertEqual(each.names, names[number * 60 :])
        hear("store", "read", "")
        self.assertGreater(sizes[-1], 18_000_000)
        self.assertLess(max(b - a for a, b in itertools.pairwise(sizes)), 6_000_000)

    def test_cursors_that_cannot_be_used_are_reset(self) -> None:
        """The client lists anew and goes on with the cursor of the answer."""
        peer = self.watching()
        good = Cursor.parse(peer.frames[0].id)
        assert good is not None
        values: Any = {name: getattr(good, name) for name in ("epoch", "made_s", "since")}
        strange = Cursor(**{**values, "epoch": "other"}).text
        future = Cursor(**{**values, "since": "999999999"}).text
        for since in ("", "garbage", "%00%ff", "A" * 12_000, strange, future):
            other = self.watching(peer, f"?since={since}")
            self.assertEqual(other.events, ["reset"], since[:40])
            again = self.watching(peer, f"?since={other.frames[0].id}")
            self.assertEqual(again.events, [], since[:40])

    def test_an_old_cursor_is_reset(self) -> None:
        """After a day. The comment lines of an open stream bring younger ones."""
        peer = self.watching()
        first = peer.frames[0].id
        peer.leave()
        peer.advance(23 * 3600)
        young = self.watching(peer, f"?since={first}")
        self.assertEqual(young.events, [])
        peer.advance(3601)
        beats = re.findall(r"^:\nid: (\S+)$", young.body.decode(), re.MULTILINE)
        for since, events in ((first, ["reset"]), (beats[-1], [])):
            self.assertEqual(self.watching(peer, f"?since={since}").events, events)

    def test_a_restore_begins_another_epoch(self) -> None:
        """Here by its rows: the tables are made anew, and the next start writes an epoch."""
        peer = self.watching()
        peer.service._database._connection.execute("delete from feed")
        peer.service.advance(5)
        peer.service.restart()
        other = self.watching(peer, f"?since={peer.frames[0].id}")
        self.assertEqual(other.events, ["reset"])
