# mypy: allow-untyped-calls
"""Answers that are sent piece by piece: downloads, and streams of events without an end.

The pieces of a stream are encoded once for all its readers. A reader that does not keep up holds
pieces, up to a bound. Beyond the bound the connection is aborted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from zope.interface import implementer

from svcd.resources._bodies import Disconnected
from svcd.runtime.tasks import DeadlineExceeded, with_deadline

_MOST_WAITING: Final = 1 << 20
"""Bytes that may wait for one reader, beside those in the buffers of its connection."""


@frozen(kw_only=True, eq=False)
class Stream:
    """An answer that goes on until its reader or its writer ends it.

    begin: called once with the reader's side. end: called when the daemon stops. gone: called once
    after the end; not called when it has not begun.
    """

    begin: Callable[[Outlet], None]
    end: Callable[[], None]
    gone: Callable[[], None]
    content_type: bytes = b"text/event-stream"


@implementer(IPushProducer)
class Outlet:
    """The reader of an answer that is sent piece by piece.

    gone: called once, when the reader has disconnected, was aborted, or after the last piece.
    paused: the connection takes no data now. open: until `gone`.
    """

    def __init__(self, request: Any, gone: Callable[[], None] = lambda: None) -> None:
        self._request = request
        self._gone = gone
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._turn: Deferred[None] | None = None
        self.paused = False
        self.open = True
        request.notifyFinish().addErrback(lambda _: self._close())
        request.registerProducer(self, True)

    def write(self, piece: bytes) -> None:
        """Send `piece`, or keep it until the connection takes it."""
        if not self.open:
            return
        if not self.paused:
            self._request.write(piece)
            return
        self._waiting.append(piece)
        self._waiting_bytes += len(piece)
        if self._waiting_bytes > _MOST_WAITING:
            self.abort()

    async def ready(self, clock: IReactorTime, stall_s: float) -> None:
        """Wait until the connection takes data.

        Raises Disconnected when the reader has gone, or takes none for `stall_s`.
        """
        if self.paused and self.open:
            self._turn = Deferred()
            try:
                await with_deadline(clock, stall_s, "the reader", self._turn)
            except DeadlineExceeded:
                raise Disconnected from None
        if not self.open:
            raise Disconnected

    def end(self, last: bytes) -> None:
        """Send `last` and complete the answer; abort when the reader does not keep up."""
        if self.paused:
            self.abort()
        if self.open:
            self._request.write(last)
            self.release()
            self._request.finish()

    def release(self) -> None:
        """No piece follows."""
        if self.open:
            self._request.unregisterProducer()
            self._close()

    def abort(self) -> None:
        """Close the connection; what waits is lost."""
        if self.open:
            self._close()
            self._request.channel.transport.abortConnection()

    def _close(self) -> None:
        if self.open:
            self.open = False
            self._waiting.clear()
            self._gone()
            self._wake()

    def _wake(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None and not turn.called:
            turn.callback(None)

    def pauseProducing(self) -> None:
        """The buffers of the connection are full."""
        self.paused = True

    def resumeProducing(self) -> None:
        """The connection takes data again."""
        self.paused = False
        while self._waiting and not self.paused and self.open:
            piece = self._waiting.popleft()
            self._waiting_bytes -= len(piece)
            self._request.write(piece)
        self._wake()

    def stopProducing(self) -> None:
        """The connection was lost."""
        self._close()
