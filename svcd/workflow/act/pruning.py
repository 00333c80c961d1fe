"""Deletes executions that ended more than `workflow.keep_days` days ago.

`decide.planner` says which. svcd keeps an execution whose folder or application credential it still
has to delete.

Note: a wrong clock. A host often starts with a wrong clock and corrects it soon. With a clock that
is ahead, svcd would delete executions that it has to keep. So svcd deletes nothing in the first
hour after its start, and in the first hour after a jump of the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.ids import Timestamp, timestamp
from svcd.model.job import Execution
from svcd.ports.lease import Lease
from svcd.ports.store import Store, Tx
from svcd.runtime.tasks import Loop, sleep
from svcd.workflow.decide import planner

log = Logger()

LOOK_S: Final = 60.0
"""Time between two turns."""
SURE_S: Final = 3600.0
"""Seconds. svcd trusts a clock that has not jumped for this long."""
_JUMP_S: Final = 600.0
"""A longer time between two turns counts as a jump of the clock."""
_ROWS: Final = 20
"""Rows that one transaction reads; each may hold a megabyte."""
_PARTS: Final = 25
"""Most transactions of a turn. The next turn continues with the following rows."""


class Pruning:
    """The loop that prunes. keep_days: 0 keeps all executions, and the loop does not run."""

    def __init__(self, store: Store, clock: IReactorTime, lease: Lease, keep_days: int) -> None:
        self._store = store
        self._clock = clock
        self._keep_days = keep_days
        self._after: Execution | None = None
        self._steady_since = self._seen = float("-inf")
        self._loop = Loop(clock, "old executions", LOOK_S, self._turn, lease)

    def start(self) -> None:
        if self._keep_days:
            self._loop.start(now=False)

    async def stop(self) -> None:
        await self._loop.stop()

    async def _turn(self) -> None:
        if not self._clock_is_sure():
            return
        before = timestamp(planner.kept_since(self._clock.seconds(), self._keep_days))
        pruned = 0
        for _ in range(_PARTS):
            rows = await self._ended(before)
            pruned += await self._pruned([r for r in rows if planner.is_to_prune(r, before)])
            self._after = rows[-1] if len(rows) == _ROWS else None
            if self._after is None:
                break
            await sleep(self._clock, 0.0)
        if pruned:
            log.info(
                "Deleted {n} job executions that ended before {before} (workflow.keep_days)",
                n=pruned,
                before=before,
            )

    def _clock_is_sure(self) -> bool:
        now = self._clock.seconds()
        if not 0.0 <= now - self._seen <= _JUMP_S:
            self._steady_since, self._after = now, None
        self._seen = now
        return now - self._steady_since >= SURE_S

    async def _ended(self, before: Timestamp) -> Sequence[Execution]:
        """The next part of the rows."""
        after = self._after
        return await self._store.read(lambda tx: tx.executions.ended(before, after, _ROWS))

    async def _pruned(self, rows: Sequence[Execution]) -> int:
        """Delete the `rows` that have not changed; return the number of deleted rows."""

        async def work(tx: Tx) -> int:
            return sum([await tx.executions.prune(row) for row in rows])

        return await self._store.tx(work) if rows else 0
