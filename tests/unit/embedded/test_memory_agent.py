"""Requests without sockets: what sites see, and how bodies flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twisted.internet.interfaces import IPullProducer
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request
from zope.interface import implementer

from svcd.embedded.memory_agent import MemoryAgent
from svcd.runtime.clock import VirtualClock


class Sink(Protocol):
    """Collects; pauses after each piece when told to."""

    def __init__(self, pausing: bool = False) -> None:
        self.pieces: list[bytes] = []
        self.end: Failure | None = None
        self.pausing = pausing

    def dataReceived(self, data: bytes) -> None:
        self.pieces.append(data)
        if self.pausing:
            self.transport.pauseProducing()  # type: ignore[union-attr]

    def connectionLost(self, reason: Failure = Failure(ResponseDone())) -> None:  # noqa: B008
        self.end = reason


class Leaver(Protocol):
    """Breaks the connection at once."""

    def connectionMade(self) -> None:
        self.transport.loseConnection()  # type: ignore[union-attr]

    def leave(self, response: Any) -> None:
        response.deliverBody(self)


@implementer(IPullProducer)
class Numbers:
    """Writes 0 to 9, one at a time."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.rest: Iterator[int] = iter(range(10))
        self.asked = 0

    def resumeProducing(self) -> None:
        self.asked += 1
        number = next(self.rest, None)
        if number is None:
            self.request.unregisterProducer()
            self.request.finish()
        else:
            self.request.write(b"%d" % number)

    def stopProducing(self) -> None:
        pass


class Site(Resource):
    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Request] = []
        self.gone: list[object] = []
        self.producer: Numbers | None = None

    def render(self, request: Request) -> Any:
        self.requests.append(request)
        request.notifyFinish().addErrback(self.gone.append)
        if request.path == b"/numbers":
            self.producer = Numbers(request)
            request.registerProducer(self.producer, False)
            return NOT_DONE_YET
        if request.path == b"/later":
            return NOT_DONE_YET
        request.setResponseCode(201)
        request.setHeader(b"x-seen", request.getHeader(b"host") or b"")
        return request.method + b" " + request.uri


class MemoryAgentTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.site = Site()
        self.agent = MemoryAgent(VirtualClock())
        self.agent.serve("http://a", self.site)

    def get(self, uri: bytes) -> Any:
        return self.successResultOf(self.agent.request(b"GET", uri))

    def test_a_paused_reader_holds_the_producer(self) -> None:
        """Nothing is asked for that nobody reads."""
        response = self.get(b"http://a/numbers")
        assert self.site.producer is not None
        self.assertEqual(self.site.producer.asked, 1)
        sink = Sink(pausing=True)
        response.deliverBody(sink)
        self.assertEqual((sink.pieces, self.site.producer.asked), ([b"0"], 1))
        for _ in range(11):
            sink.transport.resumeProducing()  # type: ignore[union-attr]
        self.assertEqual(b"".join(sink.pieces), b"0123456789")
        self.assertTrue(sink.end is not None)

    def test_a_reader_that_leaves_at_the_headers(self) -> None:
        """The handler is writing its first piece, and hears of it then."""
        waiting = self.agent.request(b"GET", b"http://a/later")
        waiting.addCallback(lambda response: Leaver().leave(response))
        numbers = Numbers(self.site.requests[0])
        self.site.requests[0].registerProducer(numbers, False)
        self.successResultOf(waiting)
        self.assertEqual((numbers.asked, len(self.site.gone)), (1, 1))
        other = self.agent.request(b"GET", b"http://a/later")
        other.addCallback(lambda response: Leaver().leave(response))
        self.site.requests[1].write(b"whole")
        self.site.requests[1].finish()
        self.successResultOf(other)
