"""Deadlines, caps, retries and streams of the HTTP client, against a resource in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectingCancelledError
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web._newclient import ResponseNeverReceived
from twisted.web.iweb import IAgent, IResponse
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from svcd.clients.http import HttpClient
from svcd.clock import VirtualClock
from svcd.embedded.memory_agent import MemoryAgent
from svcd.ports import Fault, PortError
from svcd.tasks import Gate
from tests.embedded.cloud.rig import Rig


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

    def test_an_answer_has_status_headers_and_body(self) -> None:
        """Names of headers are in lower case."""
        answer = self.run_(self.http.request("POST", "http://odd/echo", body=b"abc"))
        self.assertEqual((answer.status, answer.body), (200, b"abc"))
        self.assertEqual(answer.header("content-length"), "3")
        self.assertEqual(answer.header("absent"), "")

    def test_nobody_there_is_unreachable(self) -> None:
        """Nothing was done."""
        error = self.fault(self.http.request("POST", "http://nobody/x", service="s"))
        self.assertEqual(error.kind, Fault.UNREACHABLE)
        self.assertTrue(error.text.startswith("s: POST http://nobody/x: "), error.text)

    def test_silence_is_a_timeout_and_ends_the_exchange(self) -> None:
        """The server sees a disconnect."""
        error = self.fault(self.http.request("GET", "http://odd/hang"))
        self.assertEqual(error.kind, Fault.TIMEOUT)
        self.assertEqual(len(self.odd.gone), 1)

    def test_a_stalled_body_is_a_timeout(self) -> None:
        """The deadline is over the whole exchange, not only the headers."""
        error = self.fault(self.http.request("GET", "http://odd/half"))
        self.assertEqual(error.kind, Fault.TIMEOUT)
        self.assertEqual(len(self.odd.gone), 1)

    def test_a_broken_safe_call_is_sent_once_more(self) -> None:
        """The connection was one that the peer was just closing."""
        answer = self.run_(self.http.request("GET", "http://odd/break-once"))
        self.assertEqual(answer.body, b"second")

    def test_a_broken_unsafe_call_is_not(self) -> None:
        """It may have been done."""
        error = self.fault(self.http.request("POST", "http://odd/break"))
        self.assertEqual(error.kind, Fault.SERVER_ERROR)
        self.assertEqual(self.odd.seen, [b"POST /break"])

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

    def test_the_gate_lets_one_in_after_the_other(self) -> None:
        """A place is given back after a time-out."""
        http = HttpClient(self.agent, self.clock, make_error, timeout_s=5.0, gate=Gate(1))
        self.fault(http.request("GET", "http://odd/hang"))
        self.assertEqual(self.run_(http.request("GET", "http://odd/big")).status, 200)

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

    def test_an_unanswered_upload_is_a_timeout(self) -> None:
        """No progress for that time."""

        async def content() -> AsyncIterator[bytes]:
            yield b"abc"

        error = self.fault(self.http.stream_put("http://odd/hang", content(), 3))
        self.assertEqual(error.kind, Fault.TIMEOUT)

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
