# mypy: allow-untyped-calls
"""HTTP for all clients: one exchange with a deadline over all of it, a body cap, and streams.

It decides what counts as unreachable, late or nonsense, never what a status means. The error to
raise is made by a constructor that each client passes, so that no library exception gets out.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from attrs import field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    ConnectionLost,
    DNSLookupError,
    UserError,
)
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IConsumer, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web._newclient import (
    ParseError,
    RequestGenerationFailed,
    RequestNotSent,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.client import ResponseDone
from twisted.web.error import SchemeNotSupported
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.model.redaction import hidden, shown_url
from svcd.model.secret import Secret
from svcd.ports import Fault, PortError
from svcd.tasks import DeadlineExceeded, Gate, with_deadline

ErrorMaker = Callable[[str, Fault, str, "float | None"], PortError]
"""(service, kind, text, retry_after_s) -> the error to raise."""

_SAFE = ("GET", "HEAD", "OPTIONS")
_TOKENS = ("x-auth-token", "x-subject-token")
_LEAST_TOKEN = 16
"""Characters of one that is taken out of answers: services make longer ones."""
_HIGH_WATER_BYTES = 1 << 20


@frozen(kw_only=True)
class Answer:
    """A whole answer. headers: names in lower case, the last value of each.

    sent: the secrets of the request, which a refusal may repeat.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    sent: Sequence[Secret] = field(default=(), repr=False)

    def header(self, name: str) -> str:
        """The value of `name` (lower case), "" when absent."""
        return self.headers.get(name, "")

    def told(self, text: str) -> str:
        """`text` of this answer, for people: without the secrets that were sent."""
        return hidden(text, self.sent)

    def json(self) -> Any:
        """The body as JSON. Raises ValueError."""
        try:
            return msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return json.loads(self.body)  # more tolerant, for example of NaN
        except RecursionError:
            raise ValueError("nested too deeply") from None


@frozen(kw_only=True)
class Stream:
    """An answer whose body is still to come. size: of the body, None when not told."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    size: int | None
    pieces: AsyncIterator[bytes] = field(repr=False)


class HttpClient:
    """Requests by an agent.

    timeout_s: for a whole exchange, body included; of a stream: for the headers, and for each
    silence. gate: how many exchanges at once (streams hold no place).
    """

    def __init__(
        self,
        agent: IAgent,
        clock: IReactorTime,
        error: ErrorMaker,
        *,
        timeout_s: float = 30.0,
        max_body_bytes: int = 16 << 20,
        gate: Gate | None = None,
    ) -> None:
        self._agent = agent
        self._clock = clock
        self._error = error
        self._timeout_s = timeout_s
        self._max_body_bytes = max_body_bytes
        self._gate = gate

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout_s: float | None = None,
        max_body_bytes: int | None = None,
        service: str = "",
        repeatable: bool | None = None,
        secrets: Sequence[Secret] = (),
    ) -> Answer:
        """The answer, whatever its status. A token that was sent does not come back in its body.

        secrets: what is one in `body` (tokens in `headers` are known).
        repeatable: whether it is sent once more when its connection broke, as one does that the
        peer was just closing; None: when the method is safe.

        Raises what `error` makes: UNREACHABLE (nothing was done), TIMEOUT or SERVER_ERROR (it may
        have been done).
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        most = self._max_body_bytes if max_body_bytes is None else max_body_bytes
        tokens = _tokens(headers)
        sent = (*tokens, *secrets)

        async def once() -> Answer:
            response = await self._send(method, url, headers, _Bytes.of(body))
            reader = _Reader(most)
            response.deliverBody(reader)
            whole = await reader.whole
            for token in tokens:
                if len(token.reveal()) >= _LEAST_TOKEN:
                    whole = whole.replace(token.reveal().encode(), b"***")
            return Answer(status=response.code, headers=_headers(response), body=whole, sent=sent)

        async def exchange() -> Answer:
            try:
                return await with_deadline(self._clock, seconds, f"{method} {url}", once())
            except _BROKEN as error:
                safe = method in _SAFE if repeatable is None else repeatable
                if not safe or _cancelled(error):
                    raise
                return await with_deadline(self._clock, seconds, f"{method} {url}", once())

        try:
            if self._gate is None:
                return await exchange()
            async with self._gate:
                return await exchange()
        except _FAULTS as error:
            raise self._fault(service, method, url, error, sent) from None

    @asynccontextmanager
    async def stream_get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        service: str = "",
    ) -> AsyncIterator[Stream]:
        """The answer with its body in pieces, at the reader's pace; leaving the block ends it.

        Raises as `request`, also from the pieces.
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        try:
            response = await with_deadline(
                self._clock, seconds, f"GET {url}", self._send("GET", url, headers, None)
            )
        except _FAULTS as error:
            raise self._fault(service, "GET", url, error) from None
        reader = _Reader(None)
        response.deliverBody(reader)

        async def pieces() -> AsyncIterator[bytes]:
            try:
                while True:
                    piece = await with_deadline(
                        self._clock, seconds, f"GET {url}", reader.next_piece()
                    )
                    if piece is None:
                        return
                    yield piece
            except _FAULTS as error:
                raise self._fault(service, "GET", url, error) from None

        size = response.length if isinstance(response.length, int) else None
        try:
            yield Stream(
                status=response.code, headers=_headers(response), size=size, pieces=pieces()
            )
        finally:
            reader.abort()

    async def stream_put(
        self,
        url: str,
        content: AsyncIterator[bytes],
        size: int | None,
        *,
        method: str = "PUT",
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        service: str = "",
    ) -> Answer:
        """Send `content` in pieces (chunked when `size` is None); a silence ends it.

        Raises as `request`, and whatever `content` raises.
        """
        seconds = self._timeout_s if timeout_s is None else timeout_s
        producer = _Upload(content, size)

        async def send() -> Answer:
            response = await self._send(method, url, headers, producer)
            reader = _Reader(self._max_body_bytes)
            response.deliverBody(reader)
            return Answer(status=response.code, headers=_headers(response), body=await reader.whole)

        running = Deferred.fromCoroutine(send())
        late = False

        def check(seen: int) -> None:
            nonlocal late
            if producer.sent == seen and not producer.starved:
                late = True
                running.cancel()
            else:
                timers.append(self._clock.callLater(seconds, check, producer.sent))
                timers.pop(0)

        timers = [self._clock.callLater(seconds, check, -1)]
        try:
            return await running
        except _FAULTS as error:
            if producer.failure is not None:
                raise producer.failure from None
            cause = DeadlineExceeded(f"{method} {url}", seconds) if late else error
            raise self._fault(service, method, url, cause) from None
        finally:
            if timers[-1].active():
                timers[-1].cancel()

    def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        producer: IBodyProducer | None,
    ) -> Deferred[IResponse]:
        raw = Headers({name: [value] for name, value in (headers or {}).items()})
        try:
            target = url.encode("ascii")
        except UnicodeEncodeError:
            raise RequestNotSent(f"not a URL: {_shown(url)!r}") from None
        result: Deferred[IResponse] = self._agent.request(
            method.encode("ascii"), target, raw, producer
        )
        return result

    def _fault(
        self,
        service: str,
        method: str,
        url: str,
        error: BaseException,
        sent: Sequence[Secret] = (),
    ) -> PortError:
        """What a library's exception means. Raises CancelledError when the caller has gone."""
        if _cancelled(error):
            raise CancelledError from None
        where = f"{method} {_shown(url)}"
        if isinstance(error, DeadlineExceeded):
            text = f"{where} had no complete answer within {error.args[1]:g} s"
            return self._error(service, Fault.TIMEOUT, text, None)
        if isinstance(error, BodyTooLarge):
            text = f"{where} was answered with more than {error.args[0]} bytes"
            return self._error(service, Fault.SERVER_ERROR, text, None)
        if isinstance(error, _NOT_SENT):
            text = f"{where}: {shown_url(hidden(_why(error), sent))}"
            return self._error(service, Fault.UNREACHABLE, text, None)
        text = f"{where} broke off: {shown_url(hidden(_why(error), sent))}"
        return self._error(service, Fault.SERVER_ERROR, text, None)


class BodyTooLarge(Exception):
    """args[0]: the most bytes that were allowed."""


_NOT_SENT = (ConnectError, ConnectTimeout, DNSLookupError, RequestNotSent, SchemeNotSupported)
_BROKEN = (ResponseNeverReceived, RequestTransmissionFailed, ConnectionClosed)
_FAULTS = (
    DeadlineExceeded,
    BodyTooLarge,
    ConnectError,
    DNSLookupError,
    ConnectionClosed,
    UserError,
    ParseError,
    RequestGenerationFailed,
    RequestNotSent,
    RequestTransmissionFailed,
    ResponseFailed,
    PotentialDataLoss,
    SchemeNotSupported,
    CancelledError,
    ConnectingCancelledError,
)


def _cancelled(error: BaseException) -> bool:
    """Whether the caller gave up: a cancelled exchange ends with one of the agent's own errors."""
    reasons = getattr(error, "reasons", None) or ()
    values = [error, *(r.value for r in reasons if isinstance(r, Failure))]
    return any(isinstance(v, CancelledError | ConnectingCancelledError) for v in values)


def _why(error: BaseException) -> str:
    for reason in getattr(error, "reasons", None) or ():
        if isinstance(reason, Failure) and reason.value is not None:
            return str(reason.value).rstrip(".") or type(reason.value).__name__
    return str(error).rstrip(".") or type(error).__name__


def _shown(url: str) -> str:
    """Without the query, which may be long, and without what is nobody's business."""
    return shown_url(url.partition("?")[0])


def _tokens(headers: Mapping[str, str] | None) -> Sequence[Secret]:
    """Those among `headers`."""
    return [Secret(v) for name, v in (headers or {}).items() if name.lower() in _TOKENS and v]


def _headers(response: IResponse) -> Mapping[str, str]:
    return {
        name.decode("latin-1").lower(): values[-1].decode("utf-8", "replace")
        for name, values in response.headers.getAllRawHeaders()
    }


class _Reader(Protocol):
    """Collects a body: as a whole up to `most` bytes, or piece by piece with back-pressure."""

    def __init__(self, most: int | None) -> None:
        self.whole: Deferred[bytes] = Deferred(lambda _: self.abort())
        self._most = most
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._end: Failure | None = None
        self._turn: Deferred[None] | None = None
        self._paused = False

    def dataReceived(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._most is not None:
            if self._size > self._most and not self.whole.called:
                self.whole.errback(Failure(BodyTooLarge(self._most)))
                self.abort()
            return
        if self._size > _HIGH_WATER_BYTES and not self._paused:
            self._paused = True
            self.transport.pauseProducing()  # type: ignore[union-attr]
        self._wake()

    def connectionLost(self, reason: Failure = Failure(ConnectionLost())) -> None:  # noqa: B008
        self._end = reason
        if self._most is not None and not self.whole.called:
            if reason.check(ResponseDone, PotentialDataLoss):
                self.whole.callback(b"".join(self._pieces))
            else:
                self.whole.errback(reason)
        self._wake()

    async def next_piece(self) -> bytes | None:
        """A piece; None after the last one."""
        while not self._pieces:
            if self._end is not None:
                if self._end.check(ResponseDone, PotentialDataLoss):
                    return None
                self._end.raiseException()
            self._turn = Deferred()
            await self._turn
        piece = self._pieces.popleft()
        self._size -= len(piece)
        if self._paused and self._size < _HIGH_WATER_BYTES // 2:
            self._paused = False
            self.transport.resumeProducing()  # type: ignore[union-attr]
        return piece

    def abort(self) -> None:
        """Nobody wants the rest."""
        if self._end is None and self.transport is not None:
            self._pieces.clear()
            abort = getattr(self.transport, "abortConnection", None)
            (abort or self.transport.loseConnection)()

    def _wake(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.called:
            turn.callback(None)


@implementer(IBodyProducer)
class _Bytes:
    """A body that is there."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.length = len(body)

    @classmethod
    def of(cls, body: bytes | None) -> _Bytes | None:
        """None for no body."""
        return None if body is None else cls(body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self._body)
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def pauseProducing(self) -> None:
        """All is written already."""

    def resumeProducing(self) -> None:
        """All is written already."""

    def stopProducing(self) -> None:
        """All is written already."""


@implementer(IBodyProducer)
class _Upload:
    """Writes an asynchronous iterator's pieces while the consumer wants them.

    sent: bytes written; starved: it waits for `content`, not for the peer; failure: of `content`.
    """

    def __init__(self, content: AsyncIterator[bytes], size: int | None) -> None:
        self.length: Any = UNKNOWN_LENGTH if size is None else size
        self.sent = 0
        self.starved = False
        self.failure: BaseException | None = None
        self._content = content
        self._resumed: Deferred[None] | None = None
        self._paused = False
        self._stopped = False
        self._work: Deferred[None] | None = None

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        done: Deferred[None] = Deferred()
        self._work = Deferred.fromCoroutine(self._run(consumer)).addBoth(self._ended, done)
        return done

    def _ended(self, result: Failure | None, done: Deferred[None]) -> None:
        if not self._stopped:
            done.callback(result)

    async def _run(self, consumer: IConsumer) -> None:
        while True:
            self.starved = True
            try:
                piece = await anext(self._content, None)
            except CancelledError:
                raise
            except BaseException as error:
                self.failure = error
                raise
            finally:
                self.starved = False
            if piece is None:
                return
            if self._paused:
                self._resumed = Deferred()
                await self._resumed
            consumer.write(piece)
            self.sent += len(piece)

    def pauseProducing(self) -> None:
        self._paused = True

    def resumeProducing(self) -> None:
        self._paused = False
        resumed, self._resumed = self._resumed, None
        if resumed is not None:
            resumed.callback(None)

    def stopProducing(self) -> None:
        """From now on nothing is told: why it was stopped is known to who did it."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()
