"""Keeps the log of each execution: fills it while callers read it, and completes it after the end.

A log that cannot be read never changes the result of its execution, and is given up some time after
the end: then the kept text says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, ValidationError
from svcd.model.cluster import ClusterStatus
from svcd.model.execution_log import ExecutionLog, LogPart
from svcd.model.ids import ClusterId, ExecutionId, timestamp
from svcd.model.job import Execution
from svcd.ports.store import Store
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.workflow.act.logs import Logs
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.decide import log_growth, planner

logger = Logger()

_READ_S: Final = 20.0
"""Time for reading all files of one execution."""
_EVERY_S: Final = 2.0
"""Least time between two reads of the files of one execution by this daemon."""
_MOST_REMEMBERED: Final = 1000
"""Executions whose last read this daemon remembers."""
_TRIES: Final = 3
"""Tries to write when another daemon appends to the same text."""


class KeptLogs:
    """The kept logs of all executions."""

    def __init__(self, store: Store, rows: Rows, logs: Logs, clock: IReactorTime) -> None:
        self._store = store
        self._rows = rows
        self._logs = logs
        self._clock = clock
        self._read_at: dict[ExecutionId, float] = {}

    # ---- for callers ----

    async def text(self, id_: ExecutionId) -> bytes | None:
        """The whole kept text if it is complete, else None."""
        found = await self._store.read(lambda tx: tx.execution_logs.read(id_, 0))
        return found.text if found is not None and found.complete else None

    async def part(self, row: Execution, offset: int) -> LogPart:
        """The text from `offset` on, after a look at the files. Raises ValidationError."""
        id_ = row.id
        known = await self._find(id_)
        if known is None or not known.complete:
            await self._fill(row)
        found = await self._store.read(lambda tx: tx.execution_logs.read(id_, offset))
        if found is None:
            found = LogPart(start=0, end=0, complete=False, text=b"")
        if offset > found.end:
            raise ValidationError(
                f"?offset: the log of job execution {id_} has only {found.end} bytes so far: send"
                " an offset that an answer had in X-Log-Offset"
            )
        return found

    async def _fill(self, row: Execution) -> None:
        """Append what is new, unless this daemon has just read the files."""
        now = self._clock.seconds()
        if now - self._read_at.get(row.id, float("-inf")) < _EVERY_S:
            return
        self._read_at.pop(row.id, None)
        while len(self._read_at) >= _MOST_REMEMBERED:
            del self._read_at[next(iter(self._read_at))]
        self._read_at[row.id] = now
        place = await self._place(row)
        over = planner.is_to_tidy(row)
        unread = place is None or row.workflow_job_id is None
        if over and (unread or planner.leaves_folder(row, now)):
            await self.complete(row)
        elif place is not None:
            await self._grow(row, place, whole=False)

    # ---- after an end ----

    async def complete(self, row: Execution) -> bool:
        """Read the files for the last time, and complete the log. False: try again later."""
        known = await self._find(row.id)
        if known is not None and known.complete:
            return True
        place = await self._place(row)
        if place is None:
            gone = "the cluster is gone, or its deletion has begun"
            missing = "" if row.workflow_job_id is None else gone
        else:
            missing = await self._grow(row, place, whole=True)
            if missing and not planner.leaves_folder(row, self._clock.seconds()):
                return False
        if missing:
            logger.warn("The log of execution {id} is not complete: {why}", id=row.id, why=missing)
        await self._append(row, (), whole=True, closing=log_growth.closing(row, missing))
        return True

    async def holds(self, cluster_id: ClusterId) -> bool:
        """Whether a log is still to be read before the transient cluster goes."""
        now = self._clock.seconds()
        for row in await self._rows.of_cluster(cluster_id):
            if planner.waits_for_log(row, now):
                known = await self._find(row.id)
                if known is None or not known.complete:
                    return True
        return False

    async def _find(self, id_: ExecutionId) -> ExecutionLog | None:
        return await self._store.read(lambda tx: tx.execution_logs.find(id_))

    async def _place(self, row: Execution) -> Place | None:
        """The place of `row`; None when its files can no longer be read."""
        place = await self._rows.place(row)
        return None if place is None or place.cluster.status is ClusterStatus.DELETING else place

    async def _grow(self, row: Execution, place: Place, whole: bool) -> str:
        """Append what the files have now. Return why some of it is missing, or ""."""
        try:
            secrets = await self._rows.secrets(row)
            work = self._logs.parts(row, place, secrets)
            parts, fault = await with_deadline(self._clock, _READ_S, "log", work)
        except DeadlineExceeded:
            return f"the cluster did not send it within {_READ_S:g} s"
        except NotFound as error:  # without its data sources its credentials cannot be masked
            return error.message
        await self._append(row, parts, whole=whole)
        return fault

    async def _append(
        self, row: Execution, parts: Sequence[tuple[str, str]], whole: bool, closing: str = ""
    ) -> None:
        for _ in range(_TRIES):
            before = await self._find(row.id) or ExecutionLog(execution_id=row.id)
            if before.complete:
                return
            after, text = log_growth.grown(before, parts, whole)
            if closing:
                after, text = evolve(after, complete=True), text + closing
            if after == before and not text:
                return
            if await self._save(after, text.encode("utf-8", "replace")):
                return

    async def _save(self, log: ExecutionLog, text: bytes) -> bool:
        at = timestamp(self._clock.seconds())
        return await self._store.tx(lambda tx: tx.execution_logs.append(log, text, at))
