"""Keeps a peer that floods svcd from taking all of the reactor's time.

A peer can send what is cheap to send and costly to read, for example packets of one byte, without
end. So svcd first reads small pieces, and larger ones while they take no time. After a piece that
took long it pauses the connection for a multiple of this time. Other connections and requests get
the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from svcd.runtime.slices import Slices

_FIRST_BYTES: Final = 4096
"""Bytes of the first piece, and of a piece after one that took long."""
_MOST_BYTES: Final = 65_536
"""Bytes of a piece after several ones that took no time; each may be twice as large."""
_SHORT_S: Final = 0.002
"""A piece that takes less time is not followed by a pause."""
_PAUSE: Final = 4.0
"""The pause, as a multiple of the time that the piece took."""
_MOST_PAUSE_S: Final = 0.2


class Pace:
    """Delivers the bytes of one connection. transport: of the connection.

    slices: shares the time of a turn with other connections; None: bytes are read at once.
    """

    def __init__(self, clock: IReactorTime, transport: Any, slices: Slices | None = None) -> None:
        transport.bufferSize = _FIRST_BYTES  # of Twisted's TCP connections
        self._clock = clock
        self._transport = transport
        self._slices = slices
        self._late = b""  # the bytes that wait for a slice; the connection is paused meanwhile
        self._reader: Callable[[bytes], object]  # of these bytes
        self._wanted = True
        self._pause: IDelayedCall | None = None

    def deliver(self, receive: Callable[[bytes], object], data: bytes) -> None:
        """Call `receive(data)` now or in a later turn, and pause the connection if it takes long.

        An exception of `receive` in a later turn aborts the connection, as Twisted does now.
        """
        if self._late:
            self._late += data
        elif self._slices is None:
            self._receive(receive, data)
        elif not self._slices.offer(partial(self._receive, receive, data)):
            self._late, self._reader = data, receive
            self._transport.pauseProducing()
            self._slices.later(self._receive_late)

    def _receive_late(self) -> None:
        data, self._late = self._late, b""
        if not data:  # the connection was closed meanwhile
            return
        self._resume()
        try:
            self._receive(self._reader, data)
        except BaseException:
            self._transport.abortConnection()
            raise

    def _receive(self, receive: Callable[[bytes], object], data: bytes) -> None:
        began = self._clock.seconds()
        receive(data)
        spent_s = self._clock.seconds() - began
        size: int = self._transport.bufferSize
        if spent_s < _SHORT_S:
            self._transport.bufferSize = min(_MOST_BYTES, 2 * size)
        elif self._pause is None:
            pause_s = min(_MOST_PAUSE_S, spent_s * _PAUSE)
            self._transport.bufferSize = _FIRST_BYTES
            self._transport.pauseProducing()
            self._pause = self._clock.callLater(pause_s, self._over)

    def pause(self) -> None:
        """The reader wants no more bytes for now."""
        self._wanted = False
        self._transport.pauseProducing()

    def resume(self) -> None:
        """The reader wants bytes again."""
        self._wanted = True
        self._resume()

    def end(self) -> None:
        """The connection is closed. Bytes that wait for a slice are read now."""
        try:
            self._receive_late()
        finally:
            if self._pause is not None:
                self._pause.cancel()
                self._pause = None

    def _over(self) -> None:
        self._pause = None
        self._resume()

    def _resume(self) -> None:
        """Read on, unless there is still a reason for a pause."""
        if self._wanted and self._pause is None and not self._late:
            self._transport.resumeProducing()
