# mypy: allow-untyped-calls
"""One HTTP connection, with the limits and deadlines that Twisted's parser does not have.

These are: a header deadline and a minimum body rate, which a few bytes now and then do not reset;
limits of the request line and the headers; exactly one `Host`; `100 Continue` only when a handler
reads the body; JSON errors for unreadable requests; and a lingering close, so that a peer that is
still sending can read the error.

Note: lingering close. Closing a socket with unread data makes the kernel send a reset, and the peer
may lose our answer. So the channel closes only its sending side after the answer and discards all
further input. It closes the connection at the peer's end of stream or after `_LINGER_S`.

Note: pipelining. A chunk of input may hold a thousand requests. The channel does not process the
next request while the answer to one still waits in its buffer. Otherwise a peer that reads nothing
would fill our memory with answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from twisted.internet.interfaces import (
    IDelayedCall,
    IHalfCloseableDescriptor,
    IHalfCloseableProtocol,
)
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel
from twisted.web.http_headers import Headers
from zope.interface import implementer

from svcd.errors import (
    BadRequest,
    HeadersTooLarge,
    RequestTimeout,
    SvcdError,
    UriTooLong,
)

if TYPE_CHECKING:
    from svcd.resources._site import ApiRequest, ApiSite

_LINGER_S = 2.0
"""Seconds that a lingering close waits for the peer's end of stream."""
_FLUSH_S = 15.0
"""Seconds without accepted data (or the idle time) after which a closing connection is aborted."""
_FIRST_S = 2.0
"""Seconds that a stop waits for the first request of a connection."""
_MAX_REQUEST_LINE = 16_384
"""Bytes of a request line."""
_MAX_LENGTH_DIGITS = 20
"""Characters of the value of Content-Length."""


@implementer(IHalfCloseableProtocol)
class ApiChannel(HTTPChannel):
    """A connection of the API."""

    MAX_LENGTH = 65_536
    totalHeadersSize = 65_536
    maxHeaders = 200

    site: ApiSite
    requests: list[ApiRequest]
    transport: Any
    callLater: Callable[..., IDelayedCall]
    timeOut: Any
    _networkProducer: Any

    def __init__(self) -> None:
        super().__init__()
        self._in_header = False
        self._in_body = False
        self._lingering = False
        self._half_closed = False
        self._timer: IDelayedCall | None = None
        self._body_bytes = 0
        self._unregistered = False
        self._unsent = 0
        self._closing: IDelayedCall | None = None
        self._asked = False

    # ---- life ----

    def connectionMade(self) -> None:
        super().connectionMade()
        self.site.opened(self)

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        self._stop_timer()
        self._all_sent()
        if self._closing is not None and self._closing.active():
            self._closing.cancel()
        super().connectionLost(reason)
        self.site.closed(self)

    def timeoutConnection(self) -> None:
        """Close an idle connection. Twisted's own method would log every one of them."""
        self.loseConnection()

    def readConnectionLost(self) -> None:
        """The peer has closed its sending side. It still gets the answers to its requests.

        An answer without an end ends here. The peer has probably gone: without further output the
        system does not tell a closed connection from a half-closed one.
        """
        self.persistent = False
        self._half_closed = True
        if self.requests and (end := self.requests[-1].end_answer) is not None:
            end()
            return
        if self._lingering or not self.requests or not self.requests[-1].complete:
            self._stop_timer()
            self.loseConnection()

    def answer_until_closed(self, request: ApiRequest, end: Callable[[], None]) -> None:
        """The answer to `request` has no end: call `end` when the peer closes its sending side."""
        request.end_answer = end
        if self._half_closed:
            self.abort()

    def writeConnectionLost(self) -> None:
        """Our sending side is closed, see `linger`."""

    def close_when_idle(self) -> None:
        """Accept no further request. Close now when no request is being answered.

        The first request of a new connection is on its way, so it gets `_FIRST_S` to arrive.
        """
        fresh = not self._asked or bool(self._buffer)
        if self.requests or self._lingering or not fresh:
            self.persistent = False
            if not self.requests and not self._lingering:
                self.loseConnection()
        else:  # Twisted's parser would ignore the request without `persistent`
            self.setTimeout(_FIRST_S)

    # ---- reading ----

    def dataReceived(self, data: bytes) -> None:
        if self._lingering:
            return
        if self._in_body:
            self._body_bytes += len(data)
        super().dataReceived(data)
        if self._timer is None and not self._lingering:
            if self._in_body:
                self._watch_body()
            elif not (self.paused or self._handlingRequest) and (self._in_header or self._buffer):
                self._timer = self.callLater(self.site.header_deadline_s, self._header_late)

    def lineReceived(self, line: bytes) -> None:
        if self._lingering:
            return
        if line and not self._in_header:
            self._in_header = True
            if len(line) > _MAX_REQUEST_LINE:
                self.refuse(
                    UriTooLong(f"the request line is longer than {_MAX_REQUEST_LINE} bytes")
                )
                return
        if self._receivedHeaderSize + len(line) > self.totalHeadersSize:
            self.refuse(
                HeadersTooLarge(f"the headers are larger than {self.totalHeadersSize} bytes")
            )
            return
        super().lineReceived(line)

    def rawDataReceived(self, data: bytes) -> None:
        if not self._lingering:
            super().rawDataReceived(data)

    def lineLengthExceeded(self, line: bytes) -> None:
        """A line that does not end within MAX_LENGTH."""
        if self._in_header:
            self.refuse(HeadersTooLarge(f"a header line is longer than {self.MAX_LENGTH} bytes"))
        else:
            self.refuse(UriTooLong(f"the request line is longer than {_MAX_REQUEST_LINE} bytes"))

    def headerReceived(self, line: bytes) -> bool:
        if self._receivedHeaderCount >= self.maxHeaders:
            self.refuse(HeadersTooLarge(f"there are more than {self.maxHeaders} header lines"))
            return False
        name, _, value = line.partition(b":")
        if len(value.strip()) > _MAX_LENGTH_DIGITS and name.lower() == b"content-length":
            self.refuse(BadRequest(f"Content-Length has more than {_MAX_LENGTH_DIGITS} digits"))
            return False
        return bool(super().headerReceived(line))

    def allHeadersReceived(self) -> None:
        if self._lingering:
            return
        self._in_header = False
        self._asked = True
        self._stop_timer()
        request = self.requests[-1]
        self.persistent = self.checkPersistence(request, self._version) and not self.site.draining
        if self._version == b"HTTP/1.1":
            hosts = request.requestHeaders.getRawHeaders(b"Host")
            if hosts is None or len(hosts) != 1:
                self.refuse(BadRequest("HTTP/1.1 needs exactly one Host header"))
                return
        if self.length != 0:
            self._in_body = True
            self._body_bytes = 0
        request.gotLength(self.length)
        if self._in_body and not request.early:
            self.send_continue(request)

    def send_continue(self, request: ApiRequest) -> None:
        """Send `100 Continue` when the peer waits for it."""
        expect = request.requestHeaders.getRawHeaders(b"Expect")
        if expect and expect[0].lower() == b"100-continue" and self._version == b"HTTP/1.1":
            self._send100Continue()

    def allContentReceived(self) -> None:
        if self._lingering:
            return
        self._in_body = False
        self._stop_timer()
        super().allContentReceived()

    # ---- answering ----

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Write the head of an answer, with the lines of every answer first."""
        request = self.requests[-1]
        if self.site.draining or (request.early and not request.complete):
            self.persistent = False
        headers.removeHeader(b"Connection")
        close = b"" if self.persistent else b"Connection: close\r\n"
        lines = [b"%b: %b\r\n" % (n, v) for n, vs in headers.getAllRawHeaders() for v in vs]
        status = b"HTTP/1.1 %b %b\r\nServer: svcd\r\n" % (code, reason)
        date = b"Date: %b\r\n" % self.site.date()
        self.transport.writeSequence((status, date, close, *lines, b"\r\n"))

    # ---- refusing ----

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(BadRequest("the request is not HTTP that this server understands"))

    def refuse(self, error: SvcdError) -> None:
        """Answer unreadable input with `error`, or fail the body that is arriving."""
        if self._lingering or self.transport is None:
            return
        request = self.requests[-1] if self.requests else None
        if request is not None and request.early:
            request.body_failed(error)
            return
        self.site.refused(error)
        self.transport.write(self.site.raw_error(error))
        self.linger()

    def linger(self) -> None:
        """Close our sending side, discard input for a moment, then close the connection."""
        self._lingering = True
        self._in_header = self._in_body = False
        self._stop_timer()
        self.setTimeout(None)
        self._networkProducer.resumeProducing()
        if self.isSecure() or not IHalfCloseableDescriptor.providedBy(self.transport):
            self.loseConnection()
            return
        self._unregister()
        cast("Any", self.transport).loseWriteConnection()
        self._timer = self.callLater(_LINGER_S, self._lingered)

    def loseConnection(self) -> None:
        """Close after the peer has accepted all output, or accepts no more of it. Idempotent."""
        self._unregister()
        if self._closing is None:
            self._closing = self.callLater(self._flush_s(), self._check_closing, self._pending())
        self.transport.loseConnection()

    def _check_closing(self, before: int) -> None:
        left = self._pending()
        if left and left < before:
            self._closing = self.callLater(self._flush_s(), self._check_closing, left)
        else:
            self._closing = None
            self.abort()

    def _flush_s(self) -> float:
        return min(_FLUSH_S, float(self.site.timeOut or _FLUSH_S))

    def _pending(self) -> int:
        """Bytes that the transport still has to send."""
        inner = getattr(self.transport, "transport", self.transport)  # below TLS
        waiting: int = len(getattr(inner, "dataBuffer", b"")) + getattr(inner, "_tempDataLen", 0)
        return waiting - int(getattr(inner, "offset", 0))

    def _unregister(self) -> None:
        if not self._unregistered:
            self._unregistered = True
            self._networkProducer.unregisterProducer()

    def abort(self) -> None:
        """Abort the connection; unsent output is lost."""
        self.transport.abortConnection()

    def _lingered(self) -> None:
        self._timer = None
        self.loseConnection()

    def requestDone(self, request: Any) -> None:
        if request.complete:
            if self._waitingForTransport:
                self.paused = True  # the rest of the buffer waits for `resumeProducing`
                self._networkProducer.pauseProducing()
            super().requestDone(request)
            return
        self.requests.remove(request)
        self.linger()

    def resumeProducing(self) -> None:
        """All output is sent: process the requests that have arrived meanwhile."""
        self._all_sent()
        super().resumeProducing()
        if self.paused:
            self.paused = False
            self.dataReceived(b"")

    def unsent(self, size: int) -> None:
        """Count `size` written bytes until they are sent."""
        if self._waitingForTransport:
            self._unsent += size
            self.site.unsent_bytes += size

    def _all_sent(self) -> None:
        self.site.unsent_bytes -= self._unsent
        self._unsent = 0

    # ---- deadlines ----

    def _header_late(self) -> None:
        self._timer = None
        self.refuse(
            RequestTimeout(
                f"the header did not arrive within {self.site.header_deadline_s:g} seconds"
            )
        )

    def _watch_body(self) -> None:
        self._body_bytes = 0
        self._timer = self.callLater(self.site.header_deadline_s, self._check_body)

    def _check_body(self) -> None:
        self._timer = None
        least = self.site.header_deadline_s * self.site.min_body_rate_bytes
        request = self.requests[-1]
        if self._body_bytes >= least or request.body_paused():
            self._watch_body()
            return
        self.refuse(
            RequestTimeout(
                f"the body arrived at less than {self.site.min_body_rate_bytes} bytes a second"
            )
        )

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
