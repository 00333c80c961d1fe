"""The pulse of the reactor: a timer each second that says how late the reactor calls timers.

A late call means that something has held the reactor: no request was read or answered meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.runtime.tasks import Loop

PERIOD_S: Final = 1.0


class Pulse:
    """Calls `beat` each second with the seconds that the reactor was late."""

    def __init__(self, clock: IReactorTime, beat: Callable[[float], None]) -> None:
        self._clock = clock
        self._beat = beat
        self._last = 0.0
        self._loop = Loop(clock, "pulse", PERIOD_S, self._turn)

    def start(self) -> None:
        """Begin; the first beat comes at once."""
        self._last = self._clock.seconds() - PERIOD_S
        self._loop.start()

    async def stop(self) -> None:
        """No beat comes after this."""
        await self._loop.stop()

    async def _turn(self) -> None:
        now = self._clock.seconds()
        # after a late call the next one comes early, at its place in the row of seconds
        late, self._last = max(0.0, now - self._last - PERIOD_S), now
        self._beat(late)
