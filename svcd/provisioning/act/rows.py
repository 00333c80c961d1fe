"""Every write of a cluster's row: one compare-and-set, in one transaction with its events.

It decides nothing: who loses the race reads the row again and decides anew (`ports.until_saved`).
"""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId
from svcd.ports.store import Store, Tx
from svcd.provisioning.decide import lifecycle

log = Logger()


async def save(tx: Tx, after: Cluster, events: Sequence[ClusterEvent]) -> bool:
    """Part of a transaction. False: another writer was faster, and nothing is written."""
    if not await tx.clusters.save(after):
        return False
    if events:
        await tx.clusters.add_events(after.id, events)
    return True


async def write(
    store: Store, before: Cluster, after: Cluster, events: Sequence[ClusterEvent]
) -> bool:
    """A transaction of its own. False: another writer was faster, and nothing is written."""
    events = tuple(events)
    saved = await store.tx(lambda tx: save(tx, after, events))
    if saved and after.status is not before.status:
        log.info(
            "Cluster {name} {id} became {status}", name=after.name, id=after.id, status=after.status
        )
    return saved


async def record(store: Store, cluster_id: ClusterId, events: Sequence[ClusterEvent]) -> None:
    """Events alone; of a cluster that has gone none are kept."""
    events = tuple(events)
    if events:
        await store.tx(lambda tx: tx.clusters.add_events(cluster_id, events))


class Journal:
    """Events of a cluster that become known during a pass; they are written with its row.

    clock: gives their times.
    """

    def __init__(self, store: Store, clock: IReactorTime, cluster: Cluster) -> None:
        self._store = store
        self._clock = clock
        self._cluster = cluster
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
    ) -> None:
        """Implements runner.Report."""
        now = self._clock.seconds()
        self.gathered.append(
            lifecycle.event(self._cluster, step, outcome, now, text, machine, code, attempt, until)
        )

    async def flush(self) -> None:
        """Write now, where the row is to be written much later."""
        events, self.gathered = self.gathered, []
        await record(self._store, self._cluster.id, events)
