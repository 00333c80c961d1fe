# mypy: allow-untyped-calls
"""The HTTP server of the API: requests that know their limits before their body, and draining.

Only this module and `_channel` know Twisted's parser. The resource also works without them (in
memory).

Note: early requests. A request with a streamed body, or with a declared length over the limit, is
processed at the end of its headers (`early`). When the answer comes before the body is `complete`,
the server closes the connection after the answer.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from twisted.internet.interfaces import IAddress, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.http import datetimeToString
from twisted.web.server import Request, Site

from svcd.errors import ContentTooLarge, ServiceUnavailable, SvcdError
from svcd.resources._answers import raw_error
from svcd.resources._bodies import Disconnected, StreamedBody
from svcd.resources._channel import ApiChannel
from svcd.resources._running import Running
from svcd.runtime.tasks import DeadlineExceeded, with_deadline

if TYPE_CHECKING:
    from svcd.resources._rest import Rest

log = Logger()

LARGE_ANSWER_BYTES = 65_536
"""The server counts the unsent bytes of answers that are larger than this."""
_IN_MEMORY_BYTES = 65_536
"""A larger body that is not streamed goes to a file, so that slow peers do not fill memory."""


class ApiRequest(Request):
    """A request of the API.

    early: the request is processed before its body has arrived. complete: the body has arrived.
    too_large: the limit that the body exceeds, else None. body: the body of a streamed request.
    unkept: the error when the server could not store the body, else None. end_answer: ends an
    answer that has no end of its own, else None.
    """

    channel: ApiChannel
    content: Any
    defaultContentType = None
    early = False
    complete = False
    too_large: int | None = None
    unkept: SvcdError | None = None
    end_answer: Callable[[], None] | None = None
    body: StreamedBody | None = None
    _limit = 0
    _received = 0

    def gotLength(self, length: int | None) -> None:
        """The headers have arrived: refuse, stream or store the body."""
        if length == 0:
            self.content = io.BytesIO()
            return
        channel = self.channel
        self._limit, streams = channel.site.door.body_rule(channel._command, channel._path)
        if length is not None and length > self._limit:
            self.too_large = self._limit
            self._begin()
        elif streams:
            network = channel._networkProducer
            self.body = StreamedBody(
                length,
                network.pauseProducing,
                network.resumeProducing,
                lambda: channel.send_continue(self),
            )
            self._begin()
        elif length is not None and length <= _IN_MEMORY_BYTES:
            self.content = io.BytesIO()
        else:
            self.content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115

    def handleContentChunk(self, data: bytes) -> None:
        """Take a part of the body. Bytes beyond the limit are discarded."""
        if self.too_large is not None or self.unkept is not None or self.finished:
            return
        self._received += len(data)
        if self._received > self._limit:
            self.too_large = self._limit
            if self.body is not None:
                self.body_failed(too_large(self._limit))
            else:
                self._begin()
        elif self.body is not None:
            self.body.push(data)
        else:
            try:
                self.content.write(data)
            except OSError as error:
                self._not_kept(error)
                self._begin()

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The whole request has arrived."""
        self.complete = True
        if self.body is not None:
            self.body.end()
        elif not self.early:
            self._describe(command, path, version)
            try:
                self.content.seek(0)  # flushes the buffer of the file
            except OSError as error:
                self._not_kept(error)
            self.process()

    def body_failed(self, error: SvcdError) -> None:
        """The rest of the body cannot be read."""
        if self.body is not None:
            self.body.fail(error)

    def body_paused(self) -> bool:
        """Whether svcd has paused the body, so that its low rate is not the peer's fault."""
        return self.body is not None and self.body.paused

    def _not_kept(self, error: OSError) -> None:
        """The body could not be stored: the folder is full, or too many files are open."""
        with suppress(OSError):
            self.content.close()
        self.content = io.BytesIO()
        log.warn("A body could not be stored in {folder}: {error}", folder=_folder(), error=error)
        self.unkept = ServiceUnavailable(
            f"the server cannot store the body: {error.strerror} in {_folder()}; try again"
        )

    def _begin(self) -> None:
        channel = self.channel
        self.early = True
        self.content = io.BytesIO()
        self._describe(channel._command, channel._path, channel._version)
        self.process()

    def _describe(self, command: bytes, path: bytes, version: bytes) -> None:
        self.method, self.uri, self.clientproto = command, path, version
        self.path, question, query = path.partition(b"?")
        self.args = _parameters(query) if question else {}

    def process(self) -> None:
        """Pass the request to the door, which never raises."""
        self.site = self.channel.site
        self.site.door.render(self)

    def crowded(self) -> bool:
        """Whether the limit of unsent bytes is reached, so that no large answer may follow."""
        site = self.channel.site
        return site.unsent_bytes >= site.most_unsent_bytes

    def connectionLost(self, reason: Failure) -> None:
        """The peer has disconnected."""
        if self.body is not None:
            self.body.fail(Disconnected())
        super().connectionLost(reason)


def _folder() -> str:
    """The folder for temporary files, for a message. The system may have none."""
    try:
        return tempfile.gettempdir()
    except OSError:
        return "the folder for temporary files"


def _parameters(query: bytes) -> dict[bytes, list[bytes]]:
    """The decoded query parameters. `urllib.parse.parse_qs` fails for bytes beyond ASCII."""
    parameters: dict[bytes, list[bytes]] = {}
    for part in query.split(b"&"):
        if part:
            name, _, value = part.replace(b"+", b" ").partition(b"=")
            parameters.setdefault(unquote_to_bytes(name), []).append(unquote_to_bytes(value))
    return parameters


def too_large(limit: int) -> SvcdError:
    """The error for a body that is larger than `limit` bytes."""
    return ContentTooLarge(f"the body is larger than {limit} bytes, the most for this request")


class _Refusing(Protocol):
    """A connection above `max_connections`: it gets `answer` and is closed."""

    transport: Any

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def connectionMade(self) -> None:
        self.transport.write(self._answer)
        self.transport.loseConnection()


class ApiSite(Site):
    """The server. Durations in seconds.

    header_deadline_s: time for the header of a request, and the span over which the rate of a body
    is measured. max_connections: open at once; further connections get a 503 and are closed.
    most_unsent_bytes: of large answers that slow readers have not read; above this limit a request
    with a large answer gets a 503.
    """

    requestFactory = ApiRequest

    def __init__(
        self,
        door: Rest,
        clock: IReactorTime,
        *,
        header_deadline_s: float = 10.0,
        min_body_rate_bytes: int = 1000,
        idle_timeout_s: float = 75.0,
        max_connections: int = 20_000,
        most_unsent_bytes: int = 268_435_456,
    ) -> None:
        super().__init__(door, reactor=clock, timeout=idle_timeout_s, parsePOSTFormSubmission=False)
        self.door = door
        self.draining = False
        self.header_deadline_s = header_deadline_s
        self.min_body_rate_bytes = min_body_rate_bytes
        self.most_unsent_bytes = most_unsent_bytes
        self.unsent_bytes = 0
        self._max_connections = max_connections
        self._clock = clock
        self._channels: set[ApiChannel] = set()
        self._open = Running()

    def acceptableProtocols(self) -> list[bytes]:
        return [b"http/1.1"]

    def startFactory(self) -> None:
        """Does nothing: Twisted would open its own access log and start a clock for it."""

    def stopFactory(self) -> None:
        """Does nothing, see startFactory."""

    def log(self, request: Request) -> None:  # type: ignore[override]
        """Does nothing: the door writes the access log."""

    def buildProtocol(self, addr: IAddress | None) -> Protocol:  # type: ignore[override]
        """A channel for a new connection."""
        if len(self._channels) >= self._max_connections:
            self.door.metrics.refused("too_many")
            error = ServiceUnavailable("too many connections; try again", 1)
            return _Refusing(self.raw_error(error))
        channel = ApiChannel()
        channel.factory = self
        channel.site = self
        channel.requestFactory = self.requestFactory
        channel.callLater = self._clock.callLater
        channel.timeOut = self.timeOut
        return channel

    # ---- called by channels ----

    def opened(self, channel: ApiChannel) -> None:
        """`channel` was opened."""
        self._channels.add(channel)
        self._open.begun()
        self.door.metrics.connections(len(self._channels))
        if self.draining:
            channel.close_when_idle()

    def closed(self, channel: ApiChannel) -> None:
        """`channel` was closed."""
        self._channels.discard(channel)
        self.door.metrics.connections(len(self._channels))
        self._open.ended()

    def raw_error(self, error: SvcdError) -> bytes:
        """The answer to an unreadable request."""
        return raw_error(error, self.door.new_request_id())

    def refused(self, error: SvcdError) -> None:
        """Count an unreadable request in the metrics."""
        self.door.metrics.refused("too_slow" if error.status == 408 else "bad_request")

    def date(self) -> bytes:
        """The value of the header `Date`."""
        text: bytes = datetimeToString(self.door.now())
        return text

    # ---- stopping ----

    async def drain(self, seconds: float) -> bool:
        """Close idle connections, and wait for the other connections and for all handlers.

        Returns whether all ended within `seconds`. Connections that did not are aborted.
        """
        self.draining = True
        for channel in list(self._channels):
            channel.close_when_idle()
        self.door.end_streams()
        try:
            await with_deadline(self._clock, seconds, "draining", self._all_ended())
        except DeadlineExceeded:
            for channel in list(self._channels):
                channel.abort()
            return False
        return True

    async def _all_ended(self) -> None:
        await self._open.idle()
        await self.door.idle()
