"""Every write of a cluster's row: one compare-and-set, in one transaction with its events.

Decides nothing: a caller that loses the race reads the row again and decides anew
(`ports.until_saved`).
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import Cluster, ClusterEvent, StepName
from svcd.model.ids import ClusterId
from svcd.ports.store import Store, Tx
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.steps import Span
from svcd.runtime.work_metrics import WorkMetrics

log = Logger()


async def save(tx: Tx, after: Cluster, events: Sequence[ClusterEvent]) -> bool:
    """Write row and events in the transaction `tx`. False: another writer was faster."""
    if not await tx.clusters.save(after):
        return False
    if events:
        await tx.clusters.add_events(after.id, events)
    return True


class Rows:
    """Writes rows and events in transactions of their own, and counts them in the metrics."""

    def __init__(self, store: Store, metrics: WorkMetrics) -> None:
        self._store = store
        self._metrics = metrics

    async def write(self, before: Cluster, after: Cluster, events: Sequence[ClusterEvent]) -> bool:
        """Write row and events in a new transaction. False: another writer was faster."""
        events = tuple(events)
        saved = await self._store.tx(lambda tx: save(tx, after, events))
        if saved:
            self._metrics.cluster_written(before, after, events)
        if saved and after.status is not before.status:
            log.info(
                "Cluster {name} {id} became {status}",
                name=after.name,
                id=after.id,
                status=after.status,
            )
        return saved

    async def record(self, cluster_id: ClusterId, events: Sequence[ClusterEvent]) -> None:
        """Write events without the row. The store drops events of a cluster that is gone."""
        events = tuple(events)
        if events:
            await self._store.tx(lambda tx: tx.clusters.add_events(cluster_id, events))
            self._metrics.cluster_events(events)


class Journal:
    """Collects the events of a cluster during a pass; svcd writes them together with its row.

    clock: gives the times of the events. last: the step that ended last.
    """

    def __init__(
        self, rows: Rows, clock: IReactorTime, cluster: Cluster, last: StepName | None = None
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._cluster = cluster
        self.last = last
        self.gathered: list[ClusterEvent] = []

    def report(
        self,
        step: str,
        outcome: str,
        text: str = "",
        machine: str = "",
        code: str = "",
        attempt: int = 0,
        until: float | None = None,
        span: Span | None = None,
    ) -> None:
        """Add an event."""
        now = self._clock.seconds()
        self.gathered.append(
            lifecycle.event(
                self._cluster, step, outcome, now, text, machine, code, attempt, until, span
            )
        )

    async def flush(self) -> None:
        """Write the collected events now, when the row is written much later."""
        events, self.gathered = self.gathered, []
        await self._rows.record(self._cluster.id, events)
