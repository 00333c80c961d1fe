"""Removes dead uploads, old changes and old answers each hour."""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.model.idempotency import KEEP_S
from svcd.model.ids import timestamp
from svcd.ports.lease import Lease
from svcd.runtime.tasks import Loop, sleep
from svcd.store.store import SqlStore

_EVERY_S: Final = 3600.0


class Sweeps:
    """Sweeps of `store`. wake: sweep now, because this daemon has got the lease."""

    def __init__(self, store: SqlStore, clock: IReactorTime, lease: Lease) -> None:
        self._store = store
        self._clock = clock
        self._loop = Loop(clock, "sweeps of the store", _EVERY_S, self._turn, lease)
        self.wake = self._loop.wake

    def start(self) -> None:
        """Begin; the first sweep is in an hour."""
        self._loop.start(now=False)

    async def stop(self) -> None:
        """End the sweep that runs now; the next start continues it."""
        await self._loop.stop()

    async def _turn(self) -> None:
        now = self._clock.seconds()
        await self._store.sweep(now)
        while await self._store.prune_feed(now):
            await sleep(self._clock, 0.0)
        while await self._store.prune_answers(timestamp(now - KEEP_S)):
            await sleep(self._clock, 0.0)
