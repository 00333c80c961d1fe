"""Requests that wait for a change (`?wait=S`): the answer comes with it, or after S seconds.

A drain ends all waits early, with the present result. A wait ends when its caller disconnects. The
door's time limit for a request begins after the longest wait.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from svcd.errors import ServiceUnavailable
from svcd.ports.store import Store
from svcd.resources._bodies import Disconnected
from svcd.resources._call import Call

T = TypeVar("T")

MOST: Final = 200
"""Requests of one tenant that wait at the same time."""
LOOK_S: Final = 10.0
"""Seconds between two reads without an announced change: an announcement may be lost."""
_CALM_S: Final = 0.05
"""Seconds from a change to the read: one read is for all changes of this time."""


class _Wait:
    """One waiting request. over: svcd must answer it now."""

    def __init__(self, clock: IReactorTime) -> None:
        self.over = False
        self._clock = clock
        self._bell: Deferred[None] = Deferred()
        self._timer: IDelayedCall | None = None

    def change(self) -> None:
        """A record of the tenant has changed: read soon."""
        self._ring_in(_CALM_S)

    def end(self) -> None:
        """End the pause, and allow no further one."""
        self.over = True
        self._ring()

    async def pause(self, seconds: float) -> None:
        """Wait for `seconds`, for a change since the last pause, or for the end."""
        self._ring_in(seconds)
        await self._bell
        self._bell = Deferred()

    def close(self) -> None:
        """Forget the timer."""
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _ring_in(self, seconds: float) -> None:
        """Ring after `seconds`, or at the time of the timer when that is earlier."""
        timer = self._timer
        if timer is not None and timer.active():
            if timer.getTime() <= self._clock.seconds() + seconds:
                return
            timer.cancel()
        self._timer = self._clock.callLater(seconds, self._ring)

    def _ring(self) -> None:
        if not self._bell.called:
            self._bell.callback(None)


class Waits:
    """All waiting requests of a daemon. never: every request is answered at once, as with S = 0."""

    def __init__(self, store: Store, clock: IReactorTime) -> None:
        self.never = False
        self._store = store
        self._clock = clock
        self._ended = False
        self._open: dict[_Wait, str] = {}

    def end(self) -> None:
        """Answer all waiting requests now, and each later one at once."""
        self._ended = True
        for wait in list(self._open):
            wait.end()

    def open(self) -> int:
        """The number of requests that wait now."""
        return len(self._open)

    async def newer(
        self, call: Call, read: Callable[[], Awaitable[tuple[bool, T]]], look_s: float = LOOK_S
    ) -> T:
        """The result of `read` when it is newer, or after the seconds of `?wait`.

        read: returns whether its result is newer than the caller's, and the result. It is called
        once, then after changes of the tenant's rows and every `look_s` seconds.
        Raises ServiceUnavailable when too many requests of the tenant wait, and Disconnected.
        """
        seconds = call.query["wait"] or 0
        wait, end = _Wait(self._clock), self._clock.seconds() + seconds
        if not seconds or self.never or self._ended:
            return (await read())[1]
        if Counter(self._open.values())[call.tenant_id] >= MOST:
            raise ServiceUnavailable(
                f"{MOST} requests of the project wait already; ask again later, or without ?wait"
            )
        self._open[wait] = call.tenant_id
        ignore = self._store.on_change(call.tenant_id, wait.change)
        call.when_left(wait.end)
        try:
            is_newer, result = await read()
            while not (is_newer or wait.over) and (left := end - self._clock.seconds()) > 0:
                await wait.pause(min(look_s, left))
                if call.gone():
                    raise Disconnected
                is_newer, result = await read()
        finally:
            ignore()
            wait.close()
            del self._open[wait]
        return result
