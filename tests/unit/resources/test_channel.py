"""The connection in memory on a virtual clock: bytes may arrive in any way."""

from __future__ import annotations

import re
import tempfile
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import StringTransport
from twisted.logger import globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.resources.api import Rest
from svcd.testing import Effect, FakeService
from tests.support.api import daemon_of

NGT = (
    b'{"name":"%b","plugin_name":"vanilla","engine_version":"3.5.0","flavor_id":"2",'
    b'"node_processes":["datanode"]}'
)
STREAM = b"".join(
    (
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PUT /v1.1/demo/job-binary-internals/a HTTP/1.1\r\nHost: a\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
        b"POST /v1.0/demo/node-group-templates HTTP/1.1\r\nHost: a\r\n",
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(NGT % b"x"),
        NGT % b"x",
        b"PUT /v1.1/demo/job-binary-internals/b HTTP/1.1\r\nHost: a\r\n",
        b"Content-Length: 4\r\n\r\nwxyz",
        b"GET /v1.1/demo/nope HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    )
)
STATUSES = [200, 202, 202, 202, 404, 200]


class Connected:
    """A service with one connection to a transport in memory. of: one with the same service.

    flags: settings of `server`, or `section__key`.
    """

    def __init__(self, of: Connected | None = None, **flags: Any) -> None:
        named = {k.replace("__", ".") if "__" in k else f"server.{k}": v for k, v in flags.items()}
        given = {"plugins.enabled": "vanilla,fake", **{k: str(v) for k, v in named.items()}}
        self.service = of.service if of else FakeService({"server.hosts": "a", **given})
        self.site = daemon_of(self.service).site
        self.channel: Any = self.site.buildProtocol(None)
        self.transport = StringTransport()
        self.channel.makeConnection(self.transport)

    @property
    def rest(self) -> Rest:
        return daemon_of(self.service).resource

    def advance(self, seconds: float) -> None:
        self.service.advance(seconds)

    def statuses(self) -> list[int]:
        found = re.findall(rb"HTTP/1\.1 (\d\d\d) ", self.transport.value())
        return [int(each) for each in found]


class _Full(StringTransport):
    """Its buffer is over the mark after every write."""

    def writeSequence(self, data: Any) -> None:
        super().writeSequence(data)
        self.producer.pauseProducing()


class ChannelTests(SynchronousTestCase):
    @settings(max_examples=60, deadline=None)
    @given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=40))
    def test_any_split_of_the_bytes_is_answered_alike(self, cuts: set[int]) -> None:
        """Requests, chunks and lines may be cut anywhere."""
        self.check(sorted(cuts))

    def test_byte_by_byte(self) -> None:
        """The extreme of it."""
        self.check(list(range(1, len(STREAM))))

    def check(self, cuts: list[int]) -> None:
        peer = Connected()
        for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
            peer.channel.dataReceived(STREAM[begin:end])
        self.assertEqual(peer.statuses(), STATUSES)
        self.assertTrue(peer.transport.disconnecting)
        listed = peer.service.call("GET", "/v1.1/demo/job-binary-internals").json["binaries"]
        sizes = sorted((each["name"], each["datasize"]) for each in listed)
        self.assertEqual(sizes, [("a", 5), ("b", 4)])
        peer.service.close()

    @settings(max_examples=150, deadline=None)
    @given(data=st.binary(max_size=300), at=st.integers(0, len(STREAM)))
    def test_rubbish_is_never_a_bug(self, data: bytes, at: int) -> None:
        """Whatever is put into the stream: answers below 500, or none yet, and no logged error."""
        peer = Connected()
        for piece in (STREAM[:at], data, STREAM[at:]):
            peer.channel.dataReceived(piece)
        self.assertEqual([s for s in peer.statuses() if s >= 500], [])
        peer.advance(120.0)
        self.assertEqual([s for s in peer.statuses() if s >= 500], [])
        self.assertEqual(self.flushLoggedErrors(), [])
        self.assertTrue(peer.transport.disconnecting)
        peer.service.close()

    def test_a_header_has_its_time(self) -> None:
        """Absolute: trickled bytes do not extend it."""
        peer = Connected(header_deadline_s=10.0)
        peer.channel.dataReceived(b"GET / HTTP/1.1\r\n")
        for _ in range(9):
            peer.advance(1.0)
            peer.channel.dataReceived(b"X: y\r\n")
        self.assertEqual(peer.statuses(), [])
        peer.advance(1.1)
        self.assertEqual(peer.statuses(), [408])
        peer.service.close()

    def test_a_body_has_its_rate(self) -> None:
        """Enough bytes keep it going for ever, too few end it."""
        peer = Connected(header_deadline_s=10.0, min_body_rate_bytes=100)
        peer.channel.dataReceived(
            b"PUT /v1.1/demo/job-binary-internals/a HTTP/1.1\r\nHost: a\r\n"
            b"Content-Length: 100000\r\n\r\n"
        )
        for _ in range(50):
            peer.channel.dataReceived(b"x" * 150)
            peer.advance(1.0)
        self.assertEqual(peer.statuses(), [])
        for _ in range(25):
            peer.channel.dataReceived(b"x")
            peer.advance(1.0)
        self.assertEqual(peer.statuses(), [408])
        peer.service.close()

    def test_an_idle_connection_is_closed(self) -> None:
        """After its last answer, and when it never said anything."""
        for data in (b"", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"):
            peer = Connected(idle_timeout_s=75.0)
            peer.channel.dataReceived(data)
            peer.advance(74.0)
            self.assertFalse(peer.transport.disconnecting)
            peer.advance(2.0)
            self.assertTrue(peer.transport.disconnecting)
            peer.service.close()

    def test_a_large_body_that_cannot_be_kept_is_503(self) -> None:
        """The folder for it is gone; whatever else arrives of it is thrown away."""
        self.patch(tempfile, "tempdir", "/nowhere")
        body = (NGT % b"w").ljust(300_000)
        for length in (b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked"):
            sent = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if b"T" in length else body
            peer = Connected()
            peer.channel.dataReceived(
                b"POST /v1.0/demo/node-group-templates HTTP/1.1\r\nHost: a\r\n"
                b"Content-Type: application/json\r\n%b\r\n\r\n" % length
            )
            for begin in range(0, len(sent), 65_000):
                peer.channel.dataReceived(sent[begin : begin + 65_000])
            self.assertEqual(peer.statuses(), [503])
            self.assertIn(b"in /nowhere; try again", peer.transport.value())
            self.assertEqual(self.flushLoggedErrors(), [])
            peer.service.close()

    def test_large_answers_that_nobody_reads_are_bounded(self) -> None:
        """Others are told to come again until they are read; small answers are given always."""
        peers = [Connected()]
        site: Any = peers[0].site
        site.most_unsent_bytes = 150_000
        for _ in range(3):
            peers.append(Connected(of=peers[0]))
        configs = b'{"general":{"Daemon JVM Options":"%b"}}' % (b"d" * 100_000)
        body = NGT[:-1] % b"w" + b',"node_configs":%b}' % configs
        made = peers[0].service.call(
            "POST",
            "/v1.1/demo/node-group-templates",
            data=body,
            headers={"Content-Type": "application/json"},
        )
        self.assertEqual(made.status, 202)
        get = b"GET /v1.1/demo/node-group-templates HTTP/1.1\r\nHost: a\r\n\r\n"
        for peer in peers:
            peer.transport.__class__ = _Full
            peer.channel.dataReceived(get)
        self.assertEqual([peer.statuses() for peer in peers], [[200], [200], [503], [503]])
        peers[2].channel.resumeProducing()
        peers[2].channel.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(peers[2].statuses(), [503, 200])
        peers[0].channel.resumeProducing()
        peers[1].channel.connectionLost(Failure(ConnectionLost()))
        self.assertEqual(site.unsent_bytes, 0)
        peers[3].channel.resumeProducing()
        peers[3].channel.dataReceived(get)
        self.assertEqual(peers[3].statuses(), [503, 200])
        peers[0].service.close()

    def test_caller_that_leaves_during_its_login_changes_nothing(self) -> None:
        """Its body is gone, nothing is made, and no failure is logged."""
        peer = Connected(auth__mode="keystone")
        token = peer.service.token()
        slow = peer.service.faults.add(where="identity", effect=Effect.DELAY, delay_s=2.0)
        head = b"X-Auth-Token: %b\r\nContent-Type: application/json\r\n" % token.encode()
        body = NGT % b"x"
        peer.channel.dataReceived(
            b"POST /v1.0/demo/node-group-templates HTTP/1.1\r\nHost: a\r\n"
            b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
        )
        peer.advance(1.0)
        self.assertEqual(slow.hits(), 1)
        peer.channel.connectionLost(Failure(ConnectionLost()))
        slow.remove()
        peer.advance(10.0)
        self.assertEqual(peer.service.activity()["calls"], 0)
        self.assertEqual(self.flushLoggedErrors(ValueError), [])
        shown = peer.service.call(
            "GET", "/v1.0/demo/node-group-templates", headers={"X-Auth-Token": token}
        )
        self.assertEqual((shown.status, shown.json), (200, {"node_group_templates": []}))
        peer.service.close()

    def test_caller_that_leaves_while_its_key_is_looked_up(self) -> None:
        """As during its login: the database of several daemons takes its time."""
        peer = Connected()
        waiting: Deferred[None] = Deferred()
        store = peer.rest._store

        class Slow:
            async def read(self, work: Any) -> Any:
                await waiting
                return await store.read(work)

        self.patch(peer.rest, "_store", Slow())
        body = NGT % b"x"
        peer.channel.dataReceived(
            b"POST /v1.0/demo/node-group-templates HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )
        peer.channel.connectionLost(Failure(ConnectionLost()))
        waiting.callback(None)
        self.assertEqual(peer.service.activity()["calls"], 0)
        self.assertEqual(self.flushLoggedErrors(ValueError), [])
        shown = peer.service.call("GET", "/v1.0/demo/node-group-templates")
        self.assertEqual((shown.status, shown.json), (200, {"node_group_templates": []}))
        peer.service.close()

    def test_a_drain_closes_idle_connections_at_once(self) -> None:
        """They have had their answer."""
        peer = Connected()
        peer.channel.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        Deferred.fromCoroutine(peer.site.drain(10.0))
        self.assertEqual((peer.statuses(), peer.transport.disconnecting), ([200], True))
        peer.channel.connectionLost(Failure(ConnectionLost()))
        peer.service.close()

    def test_a_drain_waits_for_the_first_request_of_a_connection(self) -> None:
        """It is on its way; the connection is closed after its answer."""
        peer = Connected()
        late = Connected(of=peer)
        Deferred.fromCoroutine(peer.site.drain(10.0))
        newest = Connected(of=peer)
        for each in (peer, newest):
            self.assertFalse(each.transport.disconnecting)
            each.channel.dataReceived(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual((each.statuses(), each.transport.disconnecting), ([200], True))
        self.assertFalse(late.transport.disconnecting)
        peer.advance(2.1)
        self.assertTrue(late.transport.disconnecting)
        for each in (peer, late, newest):
            each.channel.connectionLost(Failure(ConnectionLost()))
        peer.service.close()

    def test_idle_connections_fill_no_log(self) -> None:
        """One that is closed for its silence is nothing to tell, nor one that must be cut off."""
        told: list[Any] = []
        globalLogPublisher.addObserver(told.append)
        self.addCleanup(globalLogPublisher.removeObserver, told.append)
        peer = Connected(idle_timeout_s=75.0)
        aborted: list[bool] = []
        peer.transport.abortConnection = lambda: aborted.append(True)  # type: ignore[method-assign]
        peer.advance(76.0)
        self.assertEqual((peer.transport.disconnecting, aborted), (True, []))
        peer.advance(16.0)
        self.assertEqual((aborted, told), ([True], []))
        peer.service.close()

    def test_a_closing_connection_may_take_its_time_but_not_stand_still(self) -> None:
        """As long as bytes go out it is left alone."""
        peer = Connected(idle_timeout_s=75.0)
        aborted: list[bool] = []
        transport: Any = peer.transport
        transport.abortConnection = lambda: aborted.append(True)
        transport.dataBuffer = b"x" * 1000
        peer.channel.loseConnection()
        for left in (999, 500, 499):
            transport.dataBuffer = b"x" * left
            peer.advance(15.1)
            self.assertEqual(aborted, [])
        peer.advance(15.1)
        self.assertEqual(aborted, [True])
        peer.service.close()

    def test_a_query_may_hold_any_bytes(self) -> None:
        """Percent-encoded text beyond ASCII, and bytes that are no text, are values like others."""
        for query in (b"name=caf%C3%A9", b"name=%FF%00", b"limit=%D9%A3", b"%C2%B2=1", b"%zz&=&&"):
            peer = Connected()
            peer.channel.dataReceived(
                b"GET /v1.1/demo/data-sources?%b HTTP/1.1\r\nHost: a\r\n\r\n" % query
            )
            self.assertEqual(len(peer.statuses()), 1, query)
            self.assertLess(peer.statuses()[0], 500)
            peer.service.close()

    def test_a_length_of_thousands_of_digits_is_answered(self) -> None:
        """Python refuses to convert such a number; the peer is told all the same."""
        peer = Connected()
        peer.channel.dataReceived(
            b"POST /v1.1/demo/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: %b\r\n\r\n"
            % (b"9" * 6000)
        )
        self.assertEqual(peer.statuses(), [400])
        peer.service.close()

    def test_a_peer_that_only_ends_its_own_side_is_answered(self) -> None:
        """Complete requests are; what is incomplete never ends, and is dropped."""
        get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        upload = b"PUT /v1.1/demo/job-binary-internals/c HTTP/1.1\r\nHost: a\r\n"
        cases: list[tuple[bytes, list[int]]] = [
            (b"", []),
            (get, [200]),
            (get + get, [200, 200]),
            (get + b"GET / HT", [200]),
            (upload + b"Content-Length: 9\r\n\r\nabc", []),
        ]
        for data, statuses in cases:
            peer = Connected()
            peer.channel.dataReceived(data)
            peer.channel.readConnectionLost()
            self.assertEqual(peer.statuses(), statuses)
            self.assertTrue(peer.transport.disconnecting)
            peer.advance(120.0)
            self.assertEqual(peer.statuses(), statuses)
            peer.service.close()

    def test_a_peer_that_reads_nothing_is_not_answered_ahead(self) -> None:
        """Pipelined requests wait until the answer before them has left."""
        peer = Connected(idle_timeout_s=75.0)
        peer.transport = _Full()
        peer.channel = peer.site.buildProtocol(None)
        peer.channel.makeConnection(peer.transport)
        get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        peer.channel.dataReceived(get * 3)
        self.assertEqual(peer.statuses(), [200])
        self.assertEqual(peer.transport.producerState, "paused")
        peer.channel.dataReceived(get)
        peer.advance(30.0)
        self.assertEqual(peer.statuses(), [200])
        for answered in (2, 3, 4):
            peer.channel.resumeProducing()
            self.assertEqual(peer.statuses(), [200] * answered)
        peer.channel.resumeProducing()
        self.assertEqual(peer.transport.producerState, "producing")
        peer.advance(76.0)
        self.assertTrue(peer.transport.disconnecting)
        peer.service.close()
