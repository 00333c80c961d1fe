"""The connection in memory on a virtual clock: bytes may come at any time, or not at all."""

from __future__ import annotations

import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import Effect
from tests.unit.resources.connected import NGT, NGTS, Connected, Full, chunked, head, new_template

UPLOAD = "/v1.1/demo/job-binary-internals/"
GET = head("GET", "/")
STREAM = b"".join(
    (
        head("GET", "/healthz"),
        head("PUT", UPLOAD + "a", "Transfer-Encoding: chunked") + chunked(b"abcde", 3),
        new_template("x"),
        head("PUT", UPLOAD + "b", "Content-Length: 4") + b"wxyz",
        head("GET", "/v1.1/demo/nope"),
        b"\r\n" + head("GET", "/", "Connection: close"),
    )
)
STATUSES = [200, 202, 202, 202, 404, 200]


class ChannelCase(SynchronousTestCase):
    def peer(self, of: Connected | None = None, **more: Any) -> Connected:
        made = Connected(of, **more)
        if of is None:
            self.addCleanup(made.service.close)
        return made

    def templates(self, peer: Connected, **headers: str) -> list[str]:
        """The names of the templates that were made."""
        answer = peer.service.call("GET", NGTS, headers=headers)
        return [each["name"] for each in answer.json["node_group_templates"]]

    def slow(self, peer: Connected, seconds: float) -> None:
        """New templates wait for the cloud."""
        peer.service.faults.add(
            where="compute", path="/flavors", effect=Effect.DELAY, delay_s=seconds
        )


class ByteTests(ChannelCase):
    @settings(max_examples=60, deadline=None)
    @given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=40))
    def test_any_split_of_the_bytes_is_answered_alike(self, cuts: set[int]) -> None:
        """Requests, chunks and lines may be cut anywhere; pipelined answers keep their order."""
        self.check(sorted(cuts))

    def test_byte_by_byte(self) -> None:
        """The extreme of it."""
        self.check(list(range(1, len(STREAM))))

    def check(self, cuts: list[int]) -> None:
        peer = Connected()
        for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
            peer.send(STREAM[begin:end])
        self.assertEqual(peer.statuses(), STATUSES)
        self.assertTrue(peer.closing)
        listed = peer.service.call("GET", "/v1.1/demo/job-binary-internals").json["binaries"]
        sizes = sorted((each["name"], each["datasize"]) for each in listed)
        self.assertEqual(sizes, [("a", 5), ("b", 4)])
        peer.service.close()

    @settings(max_examples=150, deadline=None)
    @given(data=st.binary(max_size=300), at=st.integers(0, len(STREAM)))
    def test_rubbish_is_never_a_bug(self, data: bytes, at: int) -> None:
        """Whatever is put into the stream: answers below 500, or none yet, and no logged error."""
        peer = Connected()
        peer.send(STREAM[:at], data, STREAM[at:])
        self.assertEqual([s for s in peer.statuses() if s >= 500], [])
        peer.advance(120.0)
        self.assertEqual([s for s in peer.statuses() if s >= 500], [])
        self.assertEqual(self.flushLoggedErrors(), [])
        self.assertTrue(peer.closing)
        peer.service.close()


class TimeTests(ChannelCase):
    def test_a_trickled_header_is_408(self) -> None:
        """Its time is absolute: trickled bytes do not extend it."""
        peer = self.peer(header_deadline_s=10.0)
        peer.send(b"GET / HTTP/1.1\r\n")
        for _ in range(9):
            peer.advance(1.0)
            peer.send(b"X: y\r\n")
        self.assertEqual(peer.statuses(), [])
        peer.advance(1.1)
        self.assertEqual(peer.statuses(), [408])

    def test_a_trickled_body_is_408_and_leaves_nothing(self) -> None:
        """Enough bytes keep it going for ever, too few end it."""
        peer = self.peer(header_deadline_s=10.0, min_body_rate_bytes=100)
        peer.send(head("PUT", UPLOAD + "a", "Content-Length: 100000"))
        for _ in range(50):
            peer.send(b"x" * 150)
            peer.advance(1.0)
        self.assertEqual(peer.statuses(), [])
        for _ in range(25):
            peer.send(b"x")
            peer.advance(1.0)
        self.assertEqual(peer.statuses(), [408])
        listed = peer.service.call("GET", "/v1.1/demo/job-binary-internals").json
        self.assertEqual(listed, {"binaries": []})

    def test_an_idle_connection_is_closed(self) -> None:
        """After its last answer, and when it never said anything."""
        for data in (b"", GET):
            peer = self.peer(idle_timeout_s=75.0)
            peer.send(data)
            peer.advance(74.0)
            self.assertFalse(peer.closing)
            peer.advance(2.0)
            self.assertTrue(peer.closing)

    def test_idle_connections_fill_no_log(self) -> None:
        """Neither a connection that is closed for its silence nor one that must be cut off."""
        told: list[Any] = []
        globalLogPublisher.addObserver(told.append)
        self.addCleanup(globalLogPublisher.removeObserver, told.append)
        peer = self.peer(idle_timeout_s=75.0)
        aborted = self.aborted(peer)
        peer.advance(76.0)
        self.assertEqual((peer.closing, aborted), (True, []))
        peer.advance(16.0)
        self.assertEqual((aborted, told), ([True], []))

    def test_a_closing_connection_may_take_its_time_but_not_stand_still(self) -> None:
        """As long as bytes go out it is left alone."""
        peer = self.peer(idle_timeout_s=75.0)
        aborted = self.aborted(peer)
        transport: Any = peer.transport
        transport.dataBuffer = b"x" * 1000
        peer.channel.loseConnection()
        for left in (999, 500, 499):
            transport.dataBuffer = b"x" * left
            peer.advance(15.1)
            self.assertEqual(aborted, [])
        peer.advance(15.1)
        self.assertEqual(aborted, [True])

    def aborted(self, peer: Connected) -> list[bool]:
        """An entry for each time that svcd aborts the connection."""
        aborted: list[bool] = []
        transport: Any = peer.transport
        transport.abortConnection = lambda: aborted.append(True)
        return aborted


class FullTests(ChannelCase):
    def test_a_large_body_that_cannot_be_kept_is_503(self) -> None:
        """The folder for it is gone; the rest of the body is thrown away."""
        self.patch(tempfile, "tempdir", "/nowhere")
        body = (NGT % b"w").ljust(300_000)
        for length, sent in (
            (f"Content-Length: {len(body)}", body),
            ("Transfer-Encoding: chunked", chunked(body)),
        ):
            peer = self.peer()
            peer.send(head("POST", NGTS, "Content-Type: application/json", length))
            for begin in range(0, len(sent), 65_000):
                peer.send(sent[begin : begin + 65_000])
            self.assertEqual(peer.statuses(), [503])
            self.assertIn(b"in /nowhere; try again", peer.transport.value())
            self.assertEqual(self.flushLoggedErrors(), [])

    def test_large_answers_that_nobody_reads_are_bounded(self) -> None:
        """Others are told to come again until they are read; small answers are given always."""
        first = self.peer()
        site: Any = first.site
        site.most_unsent_bytes = 150_000
        peers = [first, *(self.peer(first) for _ in range(3))]
        configs = b'{"general":{"Daemon JVM Options":"%b"}}' % (b"d" * 100_000)
        body = NGT[:-1] % b"w" + b',"node_configs":%b}' % configs
        kind = {"Content-Type": "application/json"}
        made = first.service.call("POST", NGTS, data=body, headers=kind)
        self.assertEqual(made.status, 202)
        for peer in peers:
            peer.transport.__class__ = Full
            peer.send(head("GET", NGTS))
        self.assertEqual([peer.statuses() for peer in peers], [[200], [200], [503], [503]])
        peers[2].channel.resumeProducing()
        peers[2].send(head("GET", "/healthz"))
        self.assertEqual(peers[2].statuses(), [503, 200])
        peers[0].channel.resumeProducing()
        peers[1].leave()
        self.assertEqual(site.unsent_bytes, 0)
        peers[3].channel.resumeProducing()
        peers[3].send(head("GET", NGTS))
        self.assertEqual(peers[3].statuses(), [503, 200])

    def test_a_peer_that_reads_nothing_is_not_answered_ahead(self) -> None:
        """Pipelined requests wait until the answer before them has left."""
        peer = self.peer(transport=Full, idle_timeout_s=75.0)
        peer.send(GET * 3)
        self.assertEqual(peer.statuses(), [200])
        self.assertEqual(peer.transport.producerState, "paused")
        peer.send(GET)
        peer.advance(30.0)
        self.assertEqual(peer.statuses(), [200])
        for answered in (2, 3, 4):
            peer.channel.resumeProducing()
            self.assertEqual(peer.statuses(), [200] * answered)
        peer.channel.resumeProducing()
        self.assertEqual(peer.transport.producerState, "producing")
        peer.advance(76.0)
        self.assertTrue(peer.closing)

    def test_a_connection_too_many_is_503(self) -> None:
        """It is closed, and the others are served."""
        peers = [self.peer(max_connections=2)]
        peers += [self.peer(peers[0]) for _ in range(2)]
        self.assertEqual([peer.closing for peer in peers], [False, False, True])
        (refused,) = peers[2].answers()
        self.assertEqual((refused.status, refused.headers["retry-after"]), (503, "1"))
        self.assertEqual(refused.json["error_name"], "SERVICE_UNAVAILABLE")
        peers[1].send(GET)
        self.assertEqual(peers[1].statuses(), [200])


class LeavingTests(ChannelCase):
    def test_caller_that_leaves_during_its_login_changes_nothing(self) -> None:
        """Its body is gone, nothing is made, and no failure is logged."""
        peer = self.peer(auth__mode="keystone")
        token = peer.service.token()
        slow = peer.service.faults.add(where="identity", effect=Effect.DELAY, delay_s=2.0)
        peer.send(new_template("x", f"X-Auth-Token: {token}"))
        peer.advance(1.0)
        self.assertEqual(slow.hits(), 1)
        peer.leave()
        slow.remove()
        peer.advance(10.0)
        self.assertEqual(peer.service.activity()["calls"], 0)
        self.assertEqual(self.flushLoggedErrors(ValueError), [])
        self.assertEqual(self.templates(peer, **{"X-Auth-Token": token}), [])

    def test_caller_that_leaves_while_its_key_is_looked_up_changes_nothing(self) -> None:
        """As during its login: the database of several daemons takes its time."""
        peer = self.peer()
        waiting: Deferred[None] = Deferred()
        store = peer.rest._store

        class Slow:
            async def read(self, work: Any) -> Any:
                await waiting
                return await store.read(work)

        self.patch(peer.rest, "_store", Slow())
        peer.send(new_template("x", "Idempotency-Key: k"))
        peer.leave()
        waiting.callback(None)
        self.assertEqual(peer.service.activity()["calls"], 0)
        self.assertEqual(self.flushLoggedErrors(ValueError), [])
        self.assertEqual(self.templates(peer), [])

    def test_caller_that_leaves_later_does_not_stop_the_work(self) -> None:
        """Nothing is cancelled, nothing is logged."""
        peer = self.peer()
        self.slow(peer, 5.0)
        peer.send(new_template("x"))
        peer.leave()
        self.assertEqual(self.templates(peer), [])
        peer.advance(5.0)
        self.assertEqual(self.templates(peer), ["x"])

    def test_upload_of_a_caller_that_leaves_is_not_kept(self) -> None:
        """Its name is free, and none of its bytes stay."""
        peer = self.peer()
        peer.send(head("PUT", UPLOAD + "half", "Content-Length: 1000000"), b"x" * 600_000)
        peer.leave()
        again = self.peer(peer)
        again.send(head("PUT", UPLOAD + "half", "Content-Length: 1") + b"y")
        self.assertEqual(again.statuses(), [202])
        connection = peer.service._database._connection
        pieces = connection.execute("select count(*) from pieces").fetchone()
        self.assertEqual(pieces[0], 1)

    def test_a_peer_that_only_ends_its_own_side_is_answered(self) -> None:
        """Complete requests are; an incomplete one never ends, and is dropped."""
        upload = head("PUT", UPLOAD + "c", "Content-Length: 9")
        for data, statuses in (
            (b"", []),
            (GET, [200]),
            (GET + GET, [200, 200]),
            (GET + b"GET / HT", [200]),
            (upload + b"abc", []),
        ):
            peer = self.peer()
            peer.send(data)
            peer.channel.readConnectionLost()
            self.assertEqual(peer.statuses(), statuses)
            self.assertTrue(peer.closing)
            peer.advance(120.0)
            self.assertEqual(peer.statuses(), statuses)


class DrainTests(ChannelCase):
    def drain(self, peer: Connected, seconds: float = 10.0) -> Deferred[bool]:
        return Deferred.fromCoroutine(peer.site.drain(seconds))

    def test_a_drain_closes_idle_connections_at_once(self) -> None:
        """They have had their answer."""
        peer = self.peer()
        peer.send(head("GET", "/healthz"))
        self.drain(peer)
        self.assertEqual((peer.statuses(), peer.closing), ([200], True))
        peer.leave()

    def test_a_drain_waits_for_the_first_request_of_a_connection(self) -> None:
        """It is on its way; the connection is closed after its answer."""
        peer = self.peer()
        late = self.peer(peer)
        self.drain(peer)
        newest = self.peer(peer)
        for each in (peer, newest):
            self.assertFalse(each.closing)
            each.send(head("GET", "/healthz"))
            self.assertEqual((each.statuses(), each.closing), ([200], True))
        self.assertFalse(late.closing)
        peer.advance(2.1)
        self.assertTrue(late.closing)
        for each in (peer, late, newest):
            each.leave()

    def test_a_drain_lets_a_running_request_finish(self) -> None:
        """Its answer says that the connection closes."""
        peer = self.peer()
        self.slow(peer, 2.0)
        peer.send(new_template("x"))
        drained = self.drain(peer)
        self.assertFalse(peer.closing)
        peer.advance(2.0)
        (answer,) = peer.answers()
        self.assertEqual((answer.status, answer.headers["connection"]), (202, "close"))
        peer.leave()
        self.assertTrue(self.successResultOf(drained))

    def test_a_drain_cuts_off_what_does_not_end(self) -> None:
        """The work goes on all the same."""
        peer = self.peer()
        self.slow(peer, 5.0)
        peer.send(new_template("x"))
        drained = self.drain(peer, 1.0)
        peer.advance(1.0)
        self.assertFalse(self.successResultOf(drained))
        self.assertTrue(peer.transport.disconnected)
        peer.leave()
        peer.advance(4.0)
        self.assertEqual(self.templates(peer), ["x"])
