# mypy: allow-untyped-calls
"""Bodies of requests that are too large for memory, as async iterators.

This module holds at most a few pieces of a body. A body pauses its connection while the reader is
slower.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import IO

from twisted.internet.defer import Deferred

PIECE_BYTES = 262_144
"""Size of one piece of a body; only the last piece is smaller."""
_HIGH_BYTES = 2 * PIECE_BYTES
"""An upload pauses its connection when it holds this many unread bytes."""


class Disconnected(Exception):
    """The caller disconnected while the body was read or the answer was written."""


class Body(ABC):
    """The raw body of a request. size: declared bytes, None when chunked."""

    size: int | None = None

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def read(self) -> bytes:
        """The whole body; only for routes with a small limit."""
        return b"".join([piece async for piece in self])


class WholeBody(Body):
    """A body that has arrived already, in memory or in a file."""

    def __init__(self, content: IO[bytes], size: int) -> None:
        self.size = size
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := self._content.read(PIECE_BYTES):
            yield piece


class StreamedBody(Body):
    """A body that is still arriving. `pause` and `resume` act on its connection.

    started: called once, when the reader asks for the first piece (it sends `100 Continue`).
    The reader gets the error that is given to `fail`.
    """

    def __init__(
        self,
        size: int | None,
        pause: Callable[[], None],
        resume: Callable[[], None],
        started: Callable[[], None],
    ) -> None:
        self.size = size
        self._pause = pause
        self._resume = resume
        self._started: Callable[[], None] | None = started
        self._chunks: deque[bytes] = deque()
        self._held = 0
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._reader: Deferred[None] | None = None

    @property
    def paused(self) -> bool:
        """Whether this body has paused its connection."""
        return self._paused

    def push(self, data: bytes) -> None:
        """The connection received `data`."""
        self._chunks.append(data)
        self._held += len(data)
        if self._held >= _HIGH_BYTES and not self._paused:
            self._paused = True
            self._pause()
        if self._held >= PIECE_BYTES:
            self._wake()

    def end(self) -> None:
        """The whole body has arrived."""
        self._ended = True
        self._wake()

    def fail(self, error: Exception) -> None:
        """The rest of the body will not arrive: raise `error` at the reader."""
        if not self._ended and self._error is None:
            self._error = error
            self._wake()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._started is not None:
            started, self._started = self._started, None
            started()
        while True:
            if self._error is not None:
                raise self._error
            if self._held >= PIECE_BYTES or (self._ended and self._held):
                yield self._take()
            elif self._ended:
                return
            else:
                self._reader = Deferred()
                await self._reader

    def _wake(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.callback(None)

    def _take(self) -> bytes:
        parts: list[bytes] = []
        missing = PIECE_BYTES
        while missing and self._chunks:
            chunk = self._chunks.popleft()
            if len(chunk) > missing:
                self._chunks.appendleft(chunk[missing:])
                chunk = chunk[:missing]
            parts.append(chunk)
            missing -= len(chunk)
        piece = b"".join(parts)
        self._held -= len(piece)
        if self._paused and self._held < PIECE_BYTES:
            self._paused = False
            self._resume()
        return piece
