"""After an execution's end: the engine's last word on it is kept, and its folder removed.

Done by whoever drives it; also by whoever saw the end for a request, since the other one may not
have heard of it. It is safe to repeat, and given up some time after the end.
"""

from __future__ import annotations

import random
from collections.abc import Container, Mapping, Sequence
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import ClusterStatus
from svcd.model.ids import ExecutionId, seconds_of
from svcd.model.job import Execution
from svcd.ports import Engine, EngineError, FileSystem, Leases, Store, lease_key
from svcd.tasks import DeadlineExceeded, KeyedTasks, with_deadline
from svcd.workflow import lifecycle
from svcd.workflow.changes import Changes
from svcd.workflow.engines import Endpoints
from svcd.workflow.masking import masked
from svcd.workflow.whereabouts import Whereabouts

log = Logger()

SETTLE_S: Final = 3.0
"""After a kill the engine completes its record within this time; it is read once more then."""
_AT_ONCE: Final = 20
_TRY_S: Final = 20.0
_AGAIN_S: Final = 30.0
_DEADLINE_S: Final = 900.0
"""After the end; then a folder is left where it is."""


class Endings:
    """One task for each execution that has ended. changes: of executions.

    starting: those whose start still writes into their folder; it wakes them when it ends.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        whereabouts: Whereabouts,
        changes: Changes,
        clock: IReactorTime,
        rng: random.Random,
        leases: Leases,
        starting: Container[ExecutionId] = (),
    ) -> None:
        self._store = store
        self._engine = engine
        self._files = files
        self._whereabouts = whereabouts
        self._changes = changes
        self._clock = clock
        self._leases = leases
        self._starting = starting
        self._seen: set[ExecutionId] = set()
        self._tasks: KeyedTasks[ExecutionId] = KeyedTasks(
            clock, "execution end", self._settle, limit=_AT_ONCE, rng=rng
        )

    def wake(self, id_: ExecutionId, delay_s: float = SETTLE_S) -> None:
        """It has ended, or may have."""
        self._tasks.wake(id_, delay_s)

    def seen(self, id_: ExecutionId) -> None:
        """The end of one that another daemon drives was seen here."""
        self._seen.add(id_)
        self.wake(id_)

    def active(self) -> Sequence[ExecutionId]:
        return self._tasks.active()

    async def stop(self) -> None:
        """The rows say what is left."""
        await self._tasks.stop()

    async def _settle(self, id_: ExecutionId) -> float | None:
        row = await self._store.read(lambda tx: tx.executions.find(id_))
        seen = id_ in self._seen
        self._seen.discard(id_)
        if row is None or row.submitting or not lifecycle.is_over(row) or id_ in self._starting:
            return None
        if self._leases.holds(lease_key(row)):
            return await self._leases.drive(lease_key(row), self._clean(row))
        if not seen:
            return None
        again = await self._clean(row)
        if again is not None:
            self._seen.add(id_)
        return again

    async def _clean(self, row: Execution) -> float | None:
        id_ = row.id
        place = await self._whereabouts.of(row)
        if place is not None and place[0].status is not ClusterStatus.DELETING:
            try:
                await with_deadline(self._clock, _TRY_S, "cleanup", self._tidy(place[1], row))
            except (DeadlineExceeded, EngineError) as error:
                ended = self._clock.seconds() if row.end_time is None else seconds_of(row.end_time)
                if abs(self._clock.seconds() - ended) < _DEADLINE_S:
                    return _AGAIN_S
                log.warn("Folder of execution {id} was not removed: {why}", id=id_, why=error)
        await self._changes.apply(id_, lambda current: evolve(current, workflow_dir=None))
        return None

    async def _tidy(self, endpoints: Endpoints, row: Execution) -> None:
        wanted = not row.delete_requested and _unsettled(row.record)
        if row.workflow_job_id is not None and wanted:
            raw = await self._engine.record(endpoints.engine, row.workflow_job_id)
            record = masked(raw, await self._whereabouts.secrets(row))
            if raw.get("status") == row.record.get("status"):
                await self._changes.apply(row.id, lambda current: evolve(current, record=record))
        if row.workflow_dir is not None:
            await self._files.delete(endpoints.webhdfs, row.workflow_dir, endpoints.user)


def _unsettled(record: Mapping[str, object]) -> bool:
    """Whether an action of an ended workflow still looks as if it ran."""
    actions = record.get("actions")
    return isinstance(actions, list | tuple) and any(
        isinstance(action, dict) and action.get("endTime") is None for action in actions
    )
