# mypy: allow-untyped-calls
"""Bodies of requests and answers: bytes in memory, uploads in pieces, and readers.

A reader keeps no more than its limit. In both directions the faster side has to wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import IConsumer
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import UNKNOWN_LENGTH, IBodyProducer
from zope.interface import implementer

_HIGH_WATER_BYTES = 1 << 20
"""A reader in pieces pauses its connection above so many unread bytes."""


class BodyTooLarge(Exception):
    """A body exceeds its limit. args[0]: the limit in bytes."""


class Reader(Protocol):
    """Gives out a body piece by piece, as fast as the caller takes the pieces."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._end: Failure | None = None
        self._turn: Deferred[None] | None = None
        self._paused = False

    def dataReceived(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _HIGH_WATER_BYTES:
            self._paused = True
            self.transport.pauseProducing()  # type: ignore[union-attr]
        self._resume_caller()

    def connectionLost(self, reason: Failure = Failure(ConnectionLost())) -> None:  # noqa: B008
        self._end = reason
        self._resume_caller()

    async def whole(self, most: int) -> bytes:
        """The rest of the body. Raises BodyTooLarge above `most` bytes."""
        whole = bytearray()  # pieces of one byte would cost much more
        try:
            while (piece := await self.next_piece()) is not None:
                whole += piece
                if len(whole) > most:
                    raise BodyTooLarge(most)
            return bytes(whole)
        finally:
            whole.clear()  # the traceback of an error would keep it

    async def next_piece(self) -> bytes | None:
        """The next piece; None after the last one."""
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
        """Close the connection, unless the whole body has arrived."""
        if self._end is None and self.transport is not None:
            self._pieces.clear()
            abort = getattr(self.transport, "abortConnection", None)
            (abort or self.transport.loseConnection)()

    def _resume_caller(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.called:
            turn.callback(None)


@implementer(IBodyProducer)
class Bytes:
    """A body in memory."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.length = len(body)

    @classmethod
    def of(cls, body: bytes | None) -> Bytes | None:
        """The body for `body`; None when `body` is None."""
        return None if body is None else cls(body)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write the whole body, see IBodyProducer."""
        consumer.write(self._body)
        return succeed(None)

    def pauseProducing(self) -> None:
        """Does nothing: the whole body is written already."""

    def resumeProducing(self) -> None:
        """Does nothing: the whole body is written already."""

    def stopProducing(self) -> None:
        """Does nothing: the whole body is written already."""


@implementer(IBodyProducer)
class Upload:
    """Writes the pieces of an asynchronous iterator as fast as the consumer takes them.

    sent: bytes written. starved: it waits for `content` and not for the peer. failure: the error
    that `content` raised.
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
        """Stop without firing the Deferred: the caller knows why it stops the upload."""
        self._stopped = True
        if self._work is not None:
            self._work.cancel()
