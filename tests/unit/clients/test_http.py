"""Deadlines, caps, retries and streams of the HTTP client, against a resource in memory."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from traceback import walk_stack
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectingCancelledError, DNSLookupError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseNeverReceived
from twisted.web.iweb import IAgent, IResponse
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from svcd.clients.http import HttpClient
from svcd.embedded.memory_agent import MemoryAgent
from svcd.ports.faults import Fault, PortError
from svcd.runtime.clock import VirtualClock
from tests.unit.embedded.cloud.rig import Rig


def make_error(service: str, kind: Fault, text: str, after: float | None) -> PortError:
    return PortError(kind, f"{service}: {text}", after)


class Odd(Resource):
    """Behaves as its path says."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bytes] = []
        self.held: list[Request] = []
        self.gone: list[object] = []

    def render(self, request: Request) -> Any:
        self.seen.append(request.method + b" " + request.path)
        match request.path:
            case b"/echo":
                return request.content.read()
            case b"/hang":
                request.notifyFinish().addErrback(self.gone.append)
                self.held.append(request)
                return NOT_DONE_YET
            case b"/half":
                request.notifyFinish().addErrback(self.gone.append)
                request.setHeader(b"content-length", b"10")
                request.write(b"12345")
                return NOT_DONE_YET
            case b"/moved":
                request.redirect(b"http://odd/echo")
                request.setHeader(b"set-cookie", b"a=b; path=/")
                return b"there"
            case b"/packed":
                request.setHeader(b"content-encoding", b"gzip")
                return gzip.compress(b"abc", mtime=0)
            case b"/headers":
                fields = request.requestHeaders.getAllRawHeaders()
                return b" ".join(sorted(name.lower() for name, _ in fields))
            case b"/break":
                request.channel.abortConnection()
                return NOT_DONE_YET
            case b"/break-once":
                if len(self.seen) == 1:
                    request.channel.abortConnection()
                    return NOT_DONE_YET
                return b"second"
        return b"x" * 100


@implementer(IAgent)
class Silent:
    """Never answers; a cancelled request ends with `end`."""

    def __init__(self, end: Exception) -> None:
        self.asked = 0
        self._end = end

    def request(
        self, method: bytes, uri: bytes, headers: Any = None, bodyProducer: Any = None
    ) -> Deferred[IResponse]:
        self.asked += 1
        return Deferred(lambda asked: asked.errback(Failure(self._end)))


@implementer(IAgent)
class Callers:
    """An agent that notes the modules it is called through."""

    def __init__(self, agent: IAgent) -> None:
        self.modules: list[set[str]] = []
        self._agent = agent

    def request(
        self, method: bytes, uri: bytes, headers: Any = None, bodyProducer: Any = None
    ) -> Deferred[IResponse]:
        frames = [frame for frame, _ in walk_stack(None)]
        self.modules.append({str(frame.f_globals["__name__"]) for frame in frames})
        return self._agent.request(method, uri, headers, bodyProducer)


class HttpClientTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.agent = MemoryAgent(self.clock)
        self.odd = Odd()
        self.agent.serve("http://odd", self.odd)
        self.http = HttpClient(self.agent, self.clock, make_error, timeout_s=5.0)

    def run_(self, work: Any) -> Any:
        return Rig.run(self, work)  # type: ignore[arg-type]

    def fault(self, work: Any) -> PortError:
        return self.assertRaises(PortError, self.run_, work)

    def test_all_requests_leave_by_treq(self) -> None:
        """Whole exchanges and both kinds of streams."""
        callers = Callers(self.agent)
        http = HttpClient(callers, self.clock, make_error)

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"

        async def download() -> None:
            async with http.stream_get("http://odd/echo") as stream:
                self.assertEqual(stream.status, 200)

        for work in (
            http.request("GET", "http://odd/echo"),
            http.stream_put("http://odd/echo", content(), 3),
            download(),
        ):
            self.run_(work)
        self.assertEqual(["treq.client" in modules for modules in callers.modules], [True] * 3)

    def test_the_address_is_sent_as_it_is_given(self) -> None:
        """Without a path, and with parts that are encoded already."""
        for address, path in (
            ("http://odd", b"GET /"),
            ("http://odd/a%2Fb//c/../d;e?x=%20&y=1+2#z", b"GET /a%2Fb//c/../d;e"),
        ):
            self.run_(self.http.request("GET", address))
            self.assertEqual(self.odd.seen.pop(), path)

    def test_what_is_no_address_is_unreachable(self) -> None:
        """Nothing was sent."""
        for address in ("http://odd:x/", "http://[odd/", "odd://odd:x"):
            error = self.fault(self.http.request("POST", address, body=b""))
            self.assertEqual(error.kind, Fault.UNREACHABLE)
            self.assertIn("not a URL", error.text)
        self.assertEqual(self.odd.seen, [])

    def test_a_redirect_is_an_answer(self) -> None:
        """It is not followed, and its cookie is not sent with the next request."""
        answer = self.run_(self.http.request("GET", "http://odd/moved"))
        self.assertEqual((answer.status, answer.body), (302, b"there"))
        answer = self.run_(self.http.request("GET", "http://odd/headers", headers={"X-A": "1"}))
        self.assertEqual(answer.body, b"host x-a")

    def test_a_packed_body_stays_as_it_is(self) -> None:
        """Whole and streamed: its size is that of the header."""
        packed = gzip.compress(b"abc", mtime=0)
        self.assertEqual(self.run_(self.http.request("GET", "http://odd/packed")).body, packed)

        async def download() -> tuple[int | None, bytes]:
            async with self.http.stream_get("http://odd/packed") as stream:
                return stream.size, b"".join([piece async for piece in stream.pieces])

        self.assertEqual(self.run_(download()), (len(packed), packed))

    def test_silence_is_a_timeout_and_ends_the_exchange(self) -> None:
        """The server sees a disconnect."""
        error = self.fault(self.http.request("GET", "http://odd/hang"))
        self.assertEqual(error.kind, Fault.TIMEOUT)
        self.assertEqual(len(self.odd.gone), 1)

    def test_a_broken_call_that_may_be_repeated_is(self) -> None:
        """The caller knows, for example of a login."""
        work = self.http.request("POST", "http://odd/break-once", body=b"", repeatable=True)
        self.assertEqual(self.run_(work).body, b"second")

    def test_a_cancelled_call_ends_at_once(self) -> None:
        """It is no fault of the peer and not sent again, whatever the agent calls it."""
        for end in (
            CancelledError(),
            ConnectingCancelledError(IPv4Address("TCP", "10.0.0.1", 80)),
            ResponseNeverReceived([Failure(CancelledError())]),
            DNSLookupError("no such host"),
        ):
            agent = Silent(end)
            running = Deferred.fromCoroutine(
                HttpClient(agent, self.clock, make_error).request("GET", "http://odd/x")
            )
            running.cancel()
            self.failureResultOf(running, CancelledError)
            self.assertEqual(agent.asked, 1)

    def test_a_large_body_is_refused(self) -> None:
        """The cap holds for each call."""
        error = self.fault(self.http.request("GET", "http://odd/big", max_body_bytes=99))
        self.assertEqual(error.kind, Fault.SERVER_ERROR)
        self.assertIn("more than 99 bytes", error.text)
        answer = self.run_(self.http.request("GET", "http://odd/big", max_body_bytes=100))
        self.assertEqual(len(answer.body), 100)

    def test_a_tenant_has_so_many_places(self) -> None:
        """A place is given back after a time-out. Other tenants do not wait for it."""
        http = HttpClient(self.agent, self.clock, make_error, timeout_s=5.0, at_once=1)
        hanging = [
            Deferred.fromCoroutine(http.request("GET", "http://odd/hang", tenant="a"))
            for _ in range(2)
        ]
        self.clock.advance(1.0)
        self.assertEqual(len(self.odd.held), 1)
        other = http.request("GET", "http://odd/big", tenant="b")
        self.assertEqual(self.run_(other).status, 200)
        self.clock.advance(5.0)
        self.assertEqual(len(self.odd.held), 2)
        self.clock.advance(5.0)
        for each in hanging:
            self.failureResultOf(each, PortError)

    def test_an_upload_streams(self) -> None:
        """With and without a known size."""

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"
            yield b"def"

        for size in (6, None):
            answer = self.run_(self.http.stream_put("http://odd/echo", content(), size))
            self.assertEqual(answer.body, b"abcdef")

    def test_a_failing_source_fails_the_upload(self) -> None:
        """With its own exception."""

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"
            raise KeyError("gone")

        self.assertRaises(
            KeyError, self.run_, self.http.stream_put("http://odd/echo", content(), None)
        )

    def test_a_refused_or_broken_upload_is_a_fault(self) -> None:
        """UNREACHABLE when nothing was sent."""

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"

        error = self.fault(self.http.stream_put("http://nobody/", content(), 3))
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        error = self.fault(self.http.stream_put("http://odd/break", content(), 3))
        self.assertEqual(error.kind, Fault.SERVER_ERROR)

    def test_a_stalled_download_is_a_timeout(self) -> None:
        """What came before is read."""
        got: list[bytes] = []

        async def read() -> None:
            async with self.http.stream_get("http://odd/half") as stream:
                self.assertEqual(stream.size, 10)
                async for piece in stream.pieces:
                    got.append(piece)

        self.assertEqual(self.fault(read()).kind, Fault.TIMEOUT)
        self.assertEqual(got, [b"12345"])
        self.assertEqual(len(self.odd.gone), 1)

    def test_a_stalled_body_is_a_timeout(self) -> None:
        """The deadline is over the whole exchange, not only the headers."""
        error = self.fault(self.http.request("GET", "http://odd/half"))
        self.assertEqual(error.kind, Fault.TIMEOUT)
        self.assertEqual(len(self.odd.gone), 1)

    def test_an_unanswered_upload_is_a_timeout(self) -> None:
        """No progress for that time."""

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"

        error = self.fault(self.http.stream_put("http://odd/hang", content(), 3))
        self.assertEqual(error.kind, Fault.TIMEOUT)
