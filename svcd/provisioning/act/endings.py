"""Deletes clusters that end by themselves. `decide.endings` decides when.

- A transient cluster, when its last execution has ended (behaviour 23). It also deletes one that
  ended in Error, unless on_failure is `keep`; the executions keep the reason. A transient cluster
  that has had no execution yet stays: `idle_transient` lists only clusters that had one.
- A cluster with `idle_delete_s` or `max_age_s`, at its time. A look at its use never runs beside an
  operation: when the row has changed meanwhile, the next look begins anew. A deletion for want of
  use fails when an execution was created since the look.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Awaitable, Callable, Set
from functools import partial
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import ClusterId, Timestamp
from svcd.model.lifetime import IDLE_DELETE_S, may_end
from svcd.ports.lease import Lease
from svcd.ports.store import Tx
from svcd.provisioning.act import rows
from svcd.provisioning.act.controller import Controller
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.act.questions import Questions
from svcd.provisioning.decide import clock_skew, endings, events, lifecycle
from svcd.provisioning.decide.endings import Decided, Look
from svcd.provisioning.decide.machines_view import machines
from svcd.provisioning.distributions.spi import IIdleProbes
from svcd.runtime.audit import Audit
from svcd.runtime.logs import about
from svcd.runtime.places import Places
from svcd.runtime.tasks import KeyedTasks, Loop, gather, with_deadline
from svcd.settings import Provisioning

log = Logger()

AT_ONCE: Final = 20
"""Clusters that svcd asks for their use in parallel, those of one tenant at most half of them."""
_LOOK_S: Final = 60.0
"""Deadline of the questions of one look."""
_AGAIN_S: Final = 5.0
"""Seconds to the next look after another writer was faster, or a log is still to be read."""


class Endings:
    """Deletes clusters that end by themselves. `wake`: an execution of one has ended.

    Every `endings_poll_s` it finds new and changed ones; each has its own time for the next look.
    lease: it works only while it is held. held: whether a cluster still has something that svcd
    reads before its deletion. audit: has each deletion, because the row and its events go.
    """

    def __init__(
        self,
        ports: Ports,
        controller: Controller,
        clock: IReactorTime,
        settings: Provisioning,
        rng: random.Random,
        lease: Lease | None = None,
        held: Callable[[ClusterId], Awaitable[bool]] | None = None,
        audit: Audit | None = None,
    ) -> None:
        self._audit = audit
        self._held = held
        self._ports = ports
        self._store = ports.store
        self._rows = rows.Rows(ports.store, ports.metrics)
        self._questions = Questions(ports)
        self._controller = controller
        self._clock = clock
        self._settings = settings
        self._versions: dict[ClusterId, int] = {}
        """The version of each row at its last look; a restart may lose it."""
        self._places = Places(AT_ONCE, partial(clock.callLater, 0.0))
        self._loop = Loop(clock, "clusters that end", settings.endings_poll_s, self._turn, lease)
        self._looks: KeyedTasks[ClusterId] = KeyedTasks(
            clock,
            "look at use",
            self._look,
            limit=sys.maxsize,
            rng=rng,
            lease=lease,
            parked=self._forget,
        )

    def start(self) -> None:
        self._loop.start(now=False)

    def wake(self) -> None:
        """Begin a turn now."""
        self._loop.wake()

    def forget(self) -> None:
        """Drop the memory of all clusters, because this daemon has lost the lease."""
        self._keep(frozenset())

    def _forget(self, cluster_id: ClusterId) -> None:
        self._versions.pop(cluster_id, None)

    async def stop(self) -> None:
        await self._loop.stop()
        await self._looks.stop()

    async def _turn(self) -> None:
        transient = await self._store.read(lambda tx: tx.clusters.idle_transient())
        ending = await self._store.read(lambda tx: tx.clusters.endings())
        self._keep(ending.keys())
        for cluster_id, version in ending.items():
            if self._versions.get(cluster_id) != version:
                self._looks.wake(cluster_id)
        for cluster_id in transient:
            await self._end_transient(cluster_id)

    def _keep(self, left: Set[ClusterId]) -> None:
        """Keep only the memory of the clusters `left`."""
        for cluster_id in {*self._versions, *self._looks.active()} - left:
            self._looks.rest(cluster_id)
            self._forget(cluster_id)

    # ---- transient clusters ----

    def _may_end(self, row: Cluster) -> bool:
        """Whether svcd may delete the cluster; on_failure may keep one in Error for a person."""
        if row.status is ClusterStatus.ERROR:  # perhaps because its deletion has failed
            return row.desired is not Desired.DELETED and self._settings.on_failure != "keep"
        return row.status is ClusterStatus.ACTIVE

    async def _end_transient(self, cluster_id: ClusterId) -> None:
        """Delete the cluster, unless a new execution of it was accepted meanwhile."""

        async def last(tx: Tx) -> Cluster | None:
            row = await tx.clusters.find(cluster_id)
            if row is None or not self._may_end(row):
                return None
            return row if cluster_id in await tx.clusters.idle_transient() else None

        await self._delete(cluster_id, endings.LAST_JOB, last)

    # ---- clusters with a limit of idle time or age ----

    async def _look(self, cluster_id: ClusterId) -> float | None:
        """Look at one cluster, after a wait for a place if svcd must ask it for its use.

        Returns the seconds until the next look.
        """
        row = await self._store.read(lambda tx: tx.clusters.find(cluster_id))
        if row is None or endings.unasked(row, self._clock.seconds()) is not None:
            return await self._look_now(cluster_id)
        async with self._places.place((row.tenant_id,), cluster_id):
            return await self._look_now(cluster_id)

    async def _look_now(self, cluster_id: ClusterId) -> float | None:
        began = self._clock.seconds()

        async def read(tx: Tx) -> tuple[Cluster | None, bool, Timestamp | None]:
            return await tx.clusters.find(cluster_id), *await tx.executions.use_of(cluster_id)

        row, runs, newest = await self._store.read(read)
        if row is None or not may_end(row):
            self._forget(cluster_id)
            return None
        self._versions[cluster_id] = row.version
        with about(tenant=row.tenant_id, cluster=cluster_id):
            if runs:
                look = Look(at=began, busy="a job execution has not ended", newest=newest)
            else:
                look = await self._use(row, began, newest)
            now = self._clock.seconds()
            sound = clock_skew.corrected(row, now, alien=False)
            found = endings.decided(sound, look, now)
            if found.ends_by:
                return await self._end(found, look)
            if found.cluster != row:
                if not await self._rows.write(row, found.cluster, found.events):
                    return _AGAIN_S
                self._versions[cluster_id] = row.version + 1
                for event in found.events:
                    log.info("Cluster {name} {id}: {e}", name=row.name, id=row.id, e=event.text)
        return found.wait_s

    async def _use(self, row: Cluster, began: float, newest: Timestamp | None) -> Look:
        """Ask the cluster whether it is in use. Its use is not known when that fails."""
        known = endings.unasked(row, began)
        if known is not None:
            return evolve(known, newest=newest)
        work = partial(self._asked, row, began, newest)
        (result,) = await gather([work], 1)  # a fault of a plugin must not keep an old cluster
        if isinstance(result, Look):
            return result
        log.warn("The use of cluster {id} is not known: {error!r}", id=row.id, error=result)
        return Look(at=began, busy="its use is not known", newest=newest)

    async def _asked(self, row: Cluster, began: float, newest: Timestamp | None) -> Look:
        """Raises NotFound, DeadlineExceeded, TypeError without probes, and what a plugin raises."""
        distribution = self._ports.distributions.get(row.plugin_name)
        asked = IIdleProbes(distribution).idle_probes(row, machines(row))
        work = self._questions.ask(row, asked)
        answers = await with_deadline(self._clock, _LOOK_S, "a look at use", work)
        return endings.look_of(asked, answers, began, newest)

    async def _end(self, found: Decided, look: Look) -> float | None:
        """Delete the cluster, if its row and its executions are those of the look."""
        row, by = found.cluster, found.ends_by

        async def same(tx: Tx) -> Cluster | None:
            latest = await tx.clusters.find(row.id)
            if latest is None or latest.version != row.version:
                return None
            if by == IDLE_DELETE_S and await tx.executions.use_of(row.id) != (False, look.newest):
                return None
            return row

        deleted = await self._delete(row.id, endings.reason(row, by), same)
        return None if deleted else _AGAIN_S

    # ---- both ----

    async def _delete(
        self, cluster_id: ClusterId, reason: str, look: Callable[[Tx], Awaitable[Cluster | None]]
    ) -> bool:
        """Delete the cluster in one transaction with `look`, which returns its row or refuses.

        False: it was refused, or a log of the cluster is still to be read; until the next turn.
        """
        if self._held is not None and await self._held(cluster_id):
            return False

        async def work(tx: Tx) -> Cluster | None:
            row = await look(tx)
            if row is None:
                return None
            now = self._clock.seconds()
            wanted = lifecycle.delete(row, False, now, reason)
            event = events.changed(row, wanted, self._settings, now)
            return row if await rows.save(tx, wanted, [event]) else None

        row = await self._store.tx(work)
        if row is None:
            return False
        if self._audit is not None:
            self._audit.change(endings.audit_record(row, reason))
        log.info("Cluster {name} {id} is {reason}", name=row.name, id=row.id, reason=reason)
        self._controller.wake(cluster_id)
        return True
