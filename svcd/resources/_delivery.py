# mypy: allow-untyped-calls
"""Sends the answers of the door: whole answers, downloads and streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from svcd.resources._answers import INERT, REASONS, Answer, Download
from svcd.resources._bodies import PIECE_BYTES, Disconnected
from svcd.resources._call import Call
from svcd.resources._negotiate import takes_gzip
from svcd.resources._running import Running
from svcd.resources._site import LARGE_ANSWER_BYTES, ApiRequest
from svcd.resources._streams import Outlet, Stream

log = Logger()

_LIVE: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
"""Headers of a stream: no proxy may keep it."""
_BODILESS: Final = (204, 304)
"""Statuses of answers without a body and its headers."""


def unless_known(request: Any, answer: Answer) -> Answer:
    """`answer`, or a 304 when the caller has sent its ETag."""
    tag = (answer.headers or {}).get("ETag")
    known = request.requestHeaders.getRawHeaders(b"If-None-Match") if tag else None
    if tag is None or not known or request.method not in (b"GET", b"HEAD"):
        return answer
    tags = {part.strip().removeprefix(b"W/") for part in b",".join(known).split(b",")}
    own = tag.encode().removeprefix(b"W/")
    return Answer(304, headers=answer.headers) if {own, b"*"} & tags else answer


def packed(request: Any, answer: Answer) -> Answer:
    """`answer`, compressed when it can be and the caller takes gzip."""
    if not answer.packed or answer.status != 200:
        return answer
    given = b",".join(request.requestHeaders.getRawHeaders(b"Accept-Encoding") or ())
    if not takes_gzip(given):
        return answer
    headers = {**(answer.headers or {}), "Content-Encoding": "gzip"}
    return Answer(200, answer.packed, answer.content_type, headers)


def respond(request: Any, answer: Answer, request_id: str) -> None:
    """Send the whole `answer`."""
    if request._disconnected:
        return
    body = b"" if answer.status in _BODILESS else answer.body
    size = {} if answer.status in _BODILESS else _kind(answer.content_type, len(body))
    own = {"X-Request-Id": request_id, **(answer.headers or {})}
    _begin(request, answer.status, {**size, **own})
    request.write(body)
    if isinstance(request, ApiRequest) and len(body) > LARGE_ANSWER_BYTES:
        request.channel.unsent(len(body))
    request.finish()


def _kind(content_type: bytes, size: int) -> dict[str, str]:
    """The headers of a body of `size` bytes."""
    return {"Content-Type": content_type.decode(), "Content-Length": str(size)}


def _begin(request: Any, status: int, headers: Mapping[str, str]) -> None:
    """Set status and headers of an answer. A line end inside a value becomes a space."""
    request.setResponseCode(status, REASONS[status])
    for name, value in headers.items():
        request.setHeader(name, value)


class Delivery:
    """Sends the answers that take time, and counts them as running.

    finished: called with the call and the status, when a download ends and when a stream
    begins. stall_s: see `Options`.
    """

    def __init__(
        self,
        clock: IReactorTime,
        running: Running,
        finished: Callable[[Call, int], None],
        stall_s: float,
    ) -> None:
        self._clock = clock
        self._running = running
        self._finished = finished
        self._stall_s = stall_s
        self._streams: dict[Stream, None] = {}

    def end_streams(self) -> None:
        """End all streams: the daemon stops."""
        for stream in list(self._streams):
            stream.end()

    def download(self, call: Call, download: Download) -> None:
        """Start a download. It runs until it is complete or the caller disconnects."""
        request = call.request
        if request._disconnected:
            self._finished(call, 200)
            return
        kind = _kind(download.content_type, download.size)
        _begin(request, 200, {**kind, "X-Request-Id": call.request_id, **INERT})
        request.write(b"")  # sends the headers
        self._running.begun()

        def done(result: Any) -> None:
            if isinstance(result, Failure):
                if not result.check(Disconnected):
                    log.failure("A download was interrupted", failure=result)
                if not request._disconnected:
                    request.loseConnection()
            elif not request._disconnected:
                request.finish()
            self._finished(call, 200)
            self._running.ended()

        Deferred.fromCoroutine(self._pump(request, download)).addBoth(done)

    def stream(self, call: Call, stream: Stream) -> None:
        """Start a stream. It counts as answered now, and as running until its end."""
        request = call.request
        self._finished(call, 200)
        if request._disconnected:
            return
        kind = {"Content-Type": stream.content_type.decode(), "X-Request-Id": call.request_id}
        _begin(request, 200, {**kind, **_LIVE})
        if request.clientproto == b"HTTP/1.1":  # Twisted sends no such header to HEAD
            request.setHeader(b"Transfer-Encoding", b"chunked")
        request.write(b"")  # sends the headers
        if request.method == b"HEAD":
            request.finish()
            return
        self._running.begun()
        self._streams[stream] = None

        def gone() -> None:
            del self._streams[stream]
            stream.gone()
            self._running.ended()

        outlet = Outlet(request, gone)
        stream.begin(outlet)
        if isinstance(request, ApiRequest):
            request.channel.answer_until_closed(request, outlet.abort)
            if request.channel.site.draining:
                stream.end()

    def forget(self, download: Download) -> None:
        """Close `download` without sending it."""
        self._running.begun()

        def done(result: Any) -> None:
            if isinstance(result, Failure):
                log.failure("A download could not be closed", failure=result)
            self._running.ended()

        Deferred.fromCoroutine(_closed(download)).addBoth(done)

    async def _pump(self, request: Any, download: Download) -> None:
        """Send the pieces of `download`. Raises Disconnected, and the errors of their source."""
        site = request.channel.site if isinstance(request, ApiRequest) else None
        if site is not None:
            site.unsent_bytes += PIECE_BYTES
        try:
            if request.method != b"HEAD":
                await self._send(Outlet(request), download.pieces)
        finally:
            if site is not None:
                site.unsent_bytes -= PIECE_BYTES
            await _closed(download)

    async def _send(self, outlet: Outlet, pieces: AsyncIterator[bytes]) -> None:
        try:
            async for piece in pieces:
                await outlet.ready(self._clock, self._stall_s)
                outlet.write(piece)
        finally:
            outlet.release()


async def _closed(download: Download) -> None:
    """Close the source of the pieces of `download`."""
    close = getattr(download.pieces, "aclose", None)
    if close is not None:
        await close()
