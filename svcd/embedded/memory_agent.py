# mypy: allow-untyped-calls
"""An `IAgent` that hands requests to `twisted.web` sites in this process: no socket, no reactor.

The site's own request class does the work, so limits, routing and error bodies are the real ones;
only the bytes of HTTP/1.1 are missing. When a handler answers at once, the Deferred has fired when
`request` returns. Bodies stream, with back-pressure in both kinds of producer. Never use it as a
server for untrusted input: it does not parse requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectionLost, ConnectionRefusedError
from twisted.internet.interfaces import IConsumer, IProtocol, IPushProducer, IReactorTime
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import Request
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgent, IBodyProducer, IResponse
from twisted.web.resource import IResource
from twisted.web.server import Site
from zope.interface import implementer

_CLIENT = IPv4Address("TCP", "127.0.0.1", 31337)
_SERVER = IPv4Address("TCP", "127.0.0.1", 80)
_END_OF_CHUNKS = b"0\r\n\r\n"


@implementer(IAgent)
class MemoryAgent:
    """Serves origins such as `http://cloud.memory` that were given to `serve`; others are refused.

    Raises (by Deferred) ConnectionRefusedError, ConnectionLost; cancelling a request reaches the
    handler as a disconnect.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._sites: dict[bytes, Site] = {}
        self._streaming: dict[_Exchange, bytes] = {}

    def serve(self, origin: str, what: Site | IResource) -> None:
        """Answer requests to `origin` (scheme://host[:port], no slash at the end) with `what`."""
        site = what
        if not isinstance(site, Site):
            site = Site(what, reactor=self._clock, parsePOSTFormSubmission=False)
        self._sites[origin.encode("ascii")] = site

    def unserve(self, origin: str) -> None:
        """Refuse connections to `origin` from now on, and break off the answers that go on."""
        served = origin.encode("ascii")
        self._sites.pop(served, None)
        for exchange in [exchange for exchange, of in self._streaming.items() if of == served]:
            exchange.loseConnection()

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        """See IAgent."""
        slash = uri.find(b"/", uri.find(b"://") + 3)
        origin, path = (uri, b"/") if slash < 0 else (uri[:slash], uri[slash:])
        site = self._sites.get(origin)
        if site is None:
            return fail(ConnectionRefusedError(f"nothing serves {origin.decode('latin-1')}"))
        exchange = _Exchange(site)
        self._streaming[exchange] = origin
        exchange.ended = lambda: self._streaming.pop(exchange, None)
        return exchange.run(method, origin, path, headers, bodyProducer)


@implementer(IConsumer)
class _Upload:
    """Collects the request's body. It never pauses the producer, because memory is enough."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def write(self, data: bytes) -> None:
        self._request.handleContentChunk(data)

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """The producer paces itself."""

    def unregisterProducer(self) -> None:
        """Do nothing."""


@implementer(IPushProducer)
class _Exchange:
    """One request: the channel the server writes to, and the response's transport.

    ended: called when the answer is complete or broken off.
    """

    queued = False

    def __init__(self, site: Site) -> None:
        self.site = site
        self.factory = site
        self.transport = self
        self._request: Request | None = None
        self._response: _Response | None = None
        self._in_process = True
        self._done: Deferred[IResponse] = Deferred(self._cancelled)
        self._fired = False
        self._chunked = False
        self._producer: Any = None
        self._streaming = False
        self._paused = True
        self._pumping = False
        self._writing_headers = False
        self._lost_meanwhile: tuple[Request, Failure] | None = None
        self.ended: Callable[[], object] = lambda: None

    # ---- client side ----

    def run(
        self,
        method: bytes,
        origin: bytes,
        path: bytes,
        headers: Headers | None,
        body: IBodyProducer | None,
    ) -> Deferred[IResponse]:
        request = cast("Request", self.site.requestFactory(self, False))
        self._request = request
        sent = headers.copy() if headers is not None else Headers()
        if not sent.hasHeader(b"host"):
            sent.setRawHeaders(b"host", [origin.partition(b"://")[2]])
        length = 0 if body is None else body.length
        if isinstance(length, int):
            if body is not None:
                sent.setRawHeaders(b"content-length", [b"%d" % length])
            request.requestHeaders = sent
            request.gotLength(length)
        else:
            sent.setRawHeaders(b"transfer-encoding", [b"chunked"])
            request.requestHeaders = sent
            request.gotLength(None)
        if body is None:
            self._process(method, path)
        else:
            sending = body.startProducing(_Upload(request))
            sending.addCallbacks(
                lambda _: self._process(method, path), lambda failure: self._lost(failure)
            )
        return self._done

    def _process(self, method: bytes, path: bytes) -> None:
        request = self._request
        # otherwise the request was refused before its end
        if request is not None and self._response is None:
            request.requestReceived(method, path, b"HTTP/1.1")
        self._in_process = False
        if self._response is not None:
            self._fire(self._response)

    def _fire(self, result: IResponse | Failure) -> None:
        if not self._fired:
            self._fired = True
            if isinstance(result, Failure):
                self._done.errback(result)
            else:
                self._done.callback(result)

    def _cancelled(self, _: Deferred[IResponse]) -> None:
        self._fired = True
        self._lost(Failure(ConnectionLost("the client went away")))

    def _lost(self, reason: Failure) -> None:
        """End the exchange after the connection broke, on either side."""
        self.ended()
        request, self._request = self._request, None
        # the producer notices the end at its next piece
        if request is not None and self._writing_headers:
            self._lost_meanwhile = request, reason
        else:
            self._producer = None
            if request is not None and not request.finished:
                request.connectionLost(reason)
        if self._response is not None:
            self._response.end(reason)
        self._fire(reason)

    # ---- the response's transport, for the reader of the body ----

    def pauseProducing(self) -> None:
        """Pause the producer."""
        self._paused = True
        if self._producer is not None and self._streaming:
            self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume the producer."""
        self._paused = False
        if self._response is not None:
            self._response.flush()
        if self._producer is not None and self._streaming:
            self._producer.resumeProducing()
        self._pump()

    def stopProducing(self) -> None:
        """Break the connection, because the reader has gone."""
        self.loseConnection()

    def _pump(self) -> None:
        """Let a pull producer write until it ends or the reader pauses."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._producer is not None and not self._streaming:
                if self._paused and self._response is not None:
                    return  # the headers are sent, and no reader is attached yet
                self._producer.resumeProducing()
        finally:
            self._pumping = False

    @property
    def paused(self) -> bool:
        """Whether the reader wants no data now."""
        return self._paused

    # ---- the server's channel ----

    def getPeer(self) -> IPv4Address:
        """Some address."""
        return _CLIENT

    def getHost(self) -> IPv4Address:
        """Some address."""
        return _SERVER

    def isSecure(self) -> bool:
        """No TLS in memory."""
        return False

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Called once by the request."""
        self._chunked = headers.hasHeader(b"transfer-encoding")
        if self._chunked:
            headers.removeHeader(b"transfer-encoding")
        self._response = _Response(self, int(code), reason, headers)
        if not self._in_process:
            self._writing_headers = True
            self._fire(self._response)
            self._writing_headers = False

    def write(self, data: bytes) -> None:
        """A piece of the body."""
        if self._lost_meanwhile is not None:
            request, reason = self._lost_meanwhile
            if self._producer is not None:  # without a producer the answer ends with this piece
                self._producer = None
                request.connectionLost(reason)
        elif self._response is not None and not (self._chunked and data == _END_OF_CHUNKS):
            self._response.data(data)

    def writeSequence(self, pieces: Any) -> None:
        """A chunk: its length, end of line, itself, end of line."""
        parts = tuple(pieces)
        self.write(parts[-2] if self._chunked else b"".join(parts))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """The request's producer: it runs while the reader wants data."""
        self._producer, self._streaming = producer, streaming
        if streaming and self._paused and self._response is not None:
            producer.pauseProducing()  # until a reader is attached
        self._pump()

    def unregisterProducer(self) -> None:
        """The request's producer is done."""
        self._producer = None

    def requestDone(self, request: Request) -> None:
        """The answer is complete."""
        self.ended()
        self._request = None
        if self._response is not None:
            self._response.end(Failure(ResponseDone("Response body fully received")))
            if not self._in_process:
                self._fire(self._response)

    def loseConnection(self) -> None:
        """Break the connection, from either side."""
        self._lost(Failure(ConnectionLost("the connection was broken")))

    def refuse(self) -> None:
        """Refuse the connection, as without a listener."""
        self._lost(Failure(ConnectionRefusedError("connection refused")))

    abortConnection = loseConnection
    forceAbortClient = loseConnection


@implementer(IResponse)
class _Response:
    """The response that the client gets."""

    version = (b"HTTP", 1, 1)
    request = None
    previousResponse = None

    def __init__(self, exchange: _Exchange, code: int, phrase: bytes, headers: Headers) -> None:
        self._exchange = exchange
        self.code = code
        self.phrase = phrase
        self.headers = headers
        length = headers.getRawHeaders(b"content-length")
        self.length: Any = int(length[0]) if length else UNKNOWN_LENGTH
        self._waiting: list[bytes] = []
        self._reader: IProtocol | None = None
        self._ended: Failure | None = None

    def setPreviousResponse(self, response: IResponse) -> None:
        """See IResponse."""
        self.previousResponse = response

    def deliverBody(self, protocol: IProtocol) -> None:
        """See IResponse."""
        self._reader = protocol
        protocol.makeConnection(self._exchange)  # type: ignore[arg-type]
        self._exchange.resumeProducing()

    def data(self, data: bytes) -> None:
        """From the server."""
        if self._reader is not None and not self._exchange.paused and not self._waiting:
            self._reader.dataReceived(data)
        else:
            self._waiting.append(data)

    def end(self, reason: Failure) -> None:
        """From the server: no more data comes."""
        if self._ended is None:
            self._ended = reason
            self.flush()

    def flush(self) -> None:
        """Deliver the waiting data to the reader, if it is not paused."""
        reader = self._reader
        if reader is None:
            return
        while self._waiting and not self._exchange.paused:
            reader.dataReceived(self._waiting.pop(0))
        if not self._waiting and self._ended is not None:
            self._reader = None
            reader.connectionLost(self._ended)
