"""Ended executions: keeps the log and the engine's last record, removes folder and login.

The daemon that drives the execution does this. A daemon that finds the end during a request does it
too, because the other daemon may not know of the end. It is safe to repeat. svcd gives up some time
after the end.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final

from twisted.logger import Logger

from svcd.model.cluster import ClusterStatus
from svcd.model.ids import ExecutionId
from svcd.model.job import Execution
from svcd.ports.engine import EngineError
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.kept_logs import KeptLogs
from svcd.workflow.act.tasks import ExecutionTasks, Means
from svcd.workflow.decide import lifecycle, planner

log = Logger()

SETTLE_S: Final = 3.0
"""After a kill the engine completes its record within this time; svcd reads it once more then."""
_TRY_S: Final = 20.0
"""Deadline of one try to tidy up."""
_AGAIN_S: Final = 30.0
"""Time between two tries."""
_LATE_S: Final = 60.0
"""A write of an interrupted start may take effect until then, and make the folder again."""


class Endings(ExecutionTasks):
    """One task for each execution that has ended.

    starting: executions whose start still writes into their folders; it wakes them when it ends.
    idle: called when the log of an execution of a transient cluster is complete.
    """

    name = "execution end"

    def __init__(
        self,
        means: Means,
        credentials: JobCredentials,
        starting: Container[ExecutionId],
        logs: KeptLogs,
        idle: Callable[[], None],
    ) -> None:
        super().__init__(means)
        self._logs = logs
        self._idle = idle
        self._credentials = credentials
        self._starting = starting
        self._strangers: set[ExecutionId] = set()  # of other daemons, whose end was seen here
        self._repeated: set[ExecutionId] = set()

    def wake(self, id_: ExecutionId, delay_s: float = SETTLE_S) -> None:
        """Tidy up after the execution soon, if it has ended."""
        super().wake(id_, delay_s)

    def seen(self, row: Execution) -> Execution:
        """Tidy up after `row`, whose end a request has found here, whichever daemon drives it."""
        if lifecycle.is_over(row) and not self._rows.is_ours(row):
            self._strangers.add(row.id)
            self.wake(row.id)
        return row

    def repeated(self, id_: ExecutionId) -> None:
        """Remove the folder twice: the start was interrupted, and an old write may be under way."""
        self._repeated.add(id_)

    async def _lease_key(self, id_: ExecutionId) -> str | None:
        """The lease key. None: a request has found the end here, and needs no lease."""
        key = await super()._lease_key(id_)
        if key is not None and id_ in self._strangers and not self._leases.holds(key):
            return None
        return key

    async def _run(self, id_: ExecutionId) -> float | None:
        """Keep the log and the engine's last record, and remove the folder. Safe to repeat."""
        row = await self._rows.find(id_)
        stranger = id_ in self._strangers
        self._strangers.discard(id_)
        if row is None:
            self._repeated.discard(id_)
            return None
        if not planner.is_to_tidy(row) or id_ in self._starting:
            return None
        is_kept = row.delete_requested or await self._logs.complete(row)
        again = await self._tidy_place(row, stranger)
        if again is None and not is_kept:
            again = self._later(row, stranger)
        await self._credentials.give_back(id_)
        if again is None and id_ in self._repeated:
            self._repeated.discard(id_)
            return _LATE_S
        if again is None:
            await self._rows.change(id_, planner.tidied)
        return again

    async def _tidy_place(self, row: Execution, stranger: bool) -> float | None:
        """The same in the cluster; return the seconds until the next try."""
        place = await self._rows.place(row)
        if place is not None and place.cluster.status is not ClusterStatus.DELETING:
            if place.cluster.is_transient:
                self._idle()
            tidy = self._performer.tidy(row, place)
            try:
                await with_deadline(self._clock, _TRY_S, "cleanup", tidy)
            except (DeadlineExceeded, EngineError) as error:
                if not planner.leaves_folder(row, self._clock.seconds()):
                    return self._later(row, stranger)
                log.warn("Folder of execution {id} was not removed: {why}", id=row.id, why=error)
        return None

    def _later(self, row: Execution, stranger: bool) -> float:
        """Seconds until the next try, by this daemon too when a request has found the end here."""
        if stranger:
            self._strangers.add(row.id)
        return _AGAIN_S

    def _parked(self, id_: ExecutionId) -> None:
        self._strangers.discard(id_)
        self._repeated.discard(id_)
