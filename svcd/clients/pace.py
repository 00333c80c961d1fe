"""Shares the time of a turn of the reactor among all peers that send bytes.

A peer can send what is cheap to send and costly to read, for example packets of one byte, without
end. So svcd reads small pieces, each in a slice, see `svcd.runtime.slices`. Meanwhile the
connection is paused, and other connections and requests get their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from svcd.runtime.slices import Slices

PIECE_BYTES: Final = 4096
"""Most bytes of one read: a few milliseconds of work for costly bytes, one for others.

A large object takes 4 ms a MiB more than with the 64 KiB of Twisted."""


class Pace:
    """Delivers the bytes of one connection to `receive`, in slices. transport: of the connection.

    A reader that pauses the connection must do so again when more bytes come.
    """

    def __init__(self, transport: Any, slices: Slices, receive: Callable[[bytes], object]) -> None:
        transport.bufferSize = PIECE_BYTES  # the size of one read of Twisted's TCP connections
        self._transport = transport
        self._slices = slices
        self._receive = receive
        self._late = b""  # the bytes that wait for a slice

    def deliver(self, data: bytes) -> None:
        """Pass `data` on, now or in a slice of a later turn.

        An exception of the receiver in a later turn aborts the connection, as Twisted does now.
        """
        if self._late:
            self._late += data
        elif not self._slices.offer(partial(self._receive, data)):
            self._late = data
            self._transport.pauseProducing()
            self._slices.later(self.catch_up)

    def catch_up(self) -> None:
        """Pass the bytes on that wait for a slice; also at the end of the connection."""
        data, self._late = self._late, b""
        if not data:
            return
        self._transport.resumeProducing()
        try:
            self._receive(data)
        except BaseException:
            self._transport.abortConnection()
            raise
