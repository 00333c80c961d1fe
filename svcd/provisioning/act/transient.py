"""Deletes a transient cluster when its last execution has ended (behaviour 23).

It also deletes one that ended in Error, unless on_failure is `keep`; the executions keep the
reason. A transient cluster that has had no execution yet stays, whatever its age: the store's
`idle_transient` lists only clusters that had one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import ClusterId
from svcd.ports.lease import Lease
from svcd.ports.store import Store, Tx
from svcd.provisioning.act import rows
from svcd.provisioning.act.controller import Controller
from svcd.provisioning.decide import events, lifecycle
from svcd.runtime.tasks import Loop
from svcd.settings import Provisioning

log = Logger()


class Transient:
    """Deletes idle transient clusters every `endings_poll_s`. `wake`: an execution has ended.

    lease: it works only while it is held. held: whether a cluster
    still has something that svcd reads before its deletion.
    """

    def __init__(
        self,
        store: Store,
        controller: Controller,
        clock: IReactorTime,
        settings: Provisioning,
        lease: Lease | None = None,
        held: Callable[[ClusterId], Awaitable[bool]] | None = None,
    ) -> None:
        self._held = held
        self._store = store
        self._controller = controller
        self._clock = clock
        self._settings = settings
        self._loop = Loop(clock, "transient clusters", settings.endings_poll_s, self._turn, lease)

    def start(self) -> None:
        self._loop.start(now=False)

    def wake(self) -> None:
        """Begin a turn now."""
        self._loop.wake()

    async def stop(self) -> None:
        await self._loop.stop()

    async def _turn(self) -> None:
        for cluster_id in await self._store.read(lambda tx: tx.clusters.idle_transient()):
            await self._end(cluster_id)

    def _may_end(self, row: Cluster) -> bool:
        """Whether svcd may delete the cluster; on_failure may keep one in Error for a person."""
        if row.status is ClusterStatus.ERROR:  # perhaps because its deletion has failed
            return row.desired is not Desired.DELETED and self._settings.on_failure != "keep"
        return row.status is ClusterStatus.ACTIVE

    async def _end(self, cluster_id: ClusterId) -> None:
        """Delete the cluster, unless a new execution of it was accepted meanwhile."""
        if self._held is not None and await self._held(cluster_id):
            return  # until the next turn

        async def work(tx: Tx) -> Cluster | None:
            row = await tx.clusters.find(cluster_id)
            if row is None or not self._may_end(row):
                return None
            if cluster_id not in await tx.clusters.idle_transient():
                return None
            now = self._clock.seconds()
            wanted = lifecycle.delete(row, False, now)
            event = events.changed(row, wanted, self._settings, now)
            return row if await rows.save(tx, wanted, [event]) else None  # at the next turn

        row = await self._store.tx(work)
        if row is not None:
            log.info("Transient cluster {name} {id} has no more to do", name=row.name, id=row.id)
            self._controller.wake(cluster_id)
