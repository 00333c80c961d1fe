"""Rows of executions: reads, and the one way to write one, with its events.

Every write is read, decide, compare-and-set, and repeats after a lost race. A caller that has just
read or written the row gives the state that it knows. The first attempt decides by this state. When
the compare-and-set refuses it, the row has changed since, and the next attempt reads the row. The
transaction that writes a row also notifies the daemon that does the work. The events of the cluster
record the begin (`retry`) and the end (`done`) of a wait. When many executions wait for the same
reason, the events show only one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId, ExecutionId, iso_seconds, seconds_of, timestamp
from svcd.model.job import Execution
from svcd.model.secret import Secret
from svcd.model.step_kind import JOB
from svcd.ports.engine import Endpoints, Engines
from svcd.ports.lease import Lease
from svcd.ports.machines import Location, Ways, reachable
from svcd.ports.store import Sealer, Store, Tx, until_saved
from svcd.runtime.work_metrics import WorkMetrics
from svcd.workflow.decide import document, job_credentials, lifecycle
from svcd.workflow.decide.addresses import ways_to

_MOST_SHOWN: Final = 1000
"""Waits whose end this daemon still has to record in events. Of more it forgets the oldest."""
_ROWS: Final = 20
"""Rows that one transaction changes; each may hold a megabyte."""


@frozen
class Place:
    """The cluster on which an execution runs. ways: to all hosts that serve its jobs."""

    cluster: Cluster
    endpoints: Endpoints
    ways: Ways = field(repr=False)

    @cached_property
    def engine(self) -> Location:
        """The workflow engine."""
        return self.at(self.endpoints.engine) or Location(self.endpoints.engine)

    @cached_property
    def webhdfs(self) -> Location:
        """The name node's HTTP."""
        return self.at(self.endpoints.webhdfs) or Location(self.endpoints.webhdfs)

    def at(self, url: str) -> Location | None:
        """The location of `url`; None when its host does not serve this cluster."""
        return reachable(url, self.ways)


class Rows:
    """Reads and writes executions.

    notice: called with a cluster when an execution begins to wait for it, and when a transient
    cluster may have no work left.
    """

    def __init__(
        self,
        store: Store,
        engines: Engines,
        clock: IReactorTime,
        lease: Lease,
        sealer: Sealer,
        notice: Callable[[ClusterId], None] = lambda _: None,
        metrics: WorkMetrics | None = None,
    ) -> None:
        self._store = store
        self._engines = engines
        self._clock = clock
        self._lease = lease
        self._sealer = sealer
        self._notice = notice
        self._metrics = metrics or WorkMetrics()
        self._shown: dict[tuple[ClusterId, str], ExecutionId] = {}
        self._unfinished: Sequence[Execution] = ()
        self._places: dict[ClusterId, Place] = {}

    # ---- reading ----

    async def find(self, id_: ExecutionId) -> Execution | None:
        return await self._store.read(lambda tx: tx.executions.find(id_))

    async def with_cluster(self, id_: ExecutionId) -> tuple[Execution | None, Cluster | None]:
        """An execution and its cluster."""

        async def both(tx: Tx) -> tuple[Execution | None, Cluster | None]:
            row = await tx.executions.find(id_)
            if row is None or row.cluster_id is None:
                return row, None
            return row, await tx.clusters.find(row.cluster_id, self._known(row.cluster_id))

        return await self._store.read(both)

    async def cluster(self, id_: ClusterId) -> Cluster | None:
        return await self._store.read(lambda tx: tx.clusters.find(id_, self._known(id_)))

    def _known(self, id_: ClusterId) -> Cluster | None:
        place = self._places.get(id_)
        return None if place is None else place.cluster

    async def of_cluster(self, id_: ClusterId) -> Sequence[Execution]:
        return await self._store.read(lambda tx: tx.executions.of_cluster(id_))

    async def unfinished(self) -> Sequence[Execution]:
        """The unfinished executions."""
        known = self._unfinished
        self._unfinished = await self._store.read(lambda tx: tx.executions.unfinished(known))
        return self._unfinished

    async def place(self, row: Execution) -> Place | None:
        """The place of `row`; None when its cluster is gone or has no engine."""
        cluster = None if row.cluster_id is None else await self.cluster(row.cluster_id)
        return None if cluster is None else self.place_on(cluster)

    def place_on(self, cluster: Cluster) -> Place | None:
        """The place of a cluster's executions; None when the cluster has no engine.

        It depends on the row of the cluster alone, and each write of a row changes its version.
        """
        known = self._places.get(cluster.id)
        if known is not None and known.cluster.version == cluster.version:
            return known
        endpoints = self._engines.endpoints(cluster)
        if endpoints is None:
            return None
        key = self._sealer.open(cluster.management_private_key)
        place = Place(cluster, endpoints, ways_to(cluster, endpoints, key))
        if self._lease.held:  # only then a tick drops the places of clusters that are gone
            self._places[cluster.id] = place
        return place

    def retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Drop the places on all other clusters."""
        for cluster_id in [id_ for id_ in self._places if not wanted(id_)]:
            del self._places[cluster_id]

    async def secrets(self, row: Execution) -> Sequence[Secret]:
        """The secrets of its data sources, logins and configurations.

        Raises NotFound when a data source is gone.
        """

        async def read_secrets(tx: Tx) -> Sequence[Secret]:
            ids = [id_ for id_ in (row.input_id, row.output_id) if id_ is not None]
            sources = [await tx.data_sources.get(row.tenant_id, id_) for id_ in ids]
            made = job_credentials.secrets_of(await tx.job_credentials.of_execution(row.id))
            return [*document.secrets_of(sources, row.job_configs), *made]

        return await self._store.read(read_secrets)

    # ---- the daemon that does the work ----

    async def notify(self, tx: Tx, row: Execution) -> None:
        """In the transaction that writes `row`: notify the daemon that does the work."""
        if not self._lease.held:
            await tx.notify(f"execution {row.id}")

    # ---- writing ----

    async def change(
        self,
        id_: ExecutionId,
        change: Callable[[Execution], Execution],
        known: Execution | None = None,
    ) -> Execution | None:
        """The row after `change` (pure, may be called again), None when the row is gone.

        svcd drops a row with a requested delete when no work on it is left, and returns its last
        state. known: the row as it was last read or written here; see the module.
        Raises ServiceUnavailable after many lost races.
        """

        async def attempt() -> tuple[bool, tuple[Execution, Execution] | None]:
            return await self._store.tx(lambda tx: self._write(tx, id_, change, known))

        changed = await until_saved(f"job execution {id_}", attempt)
        return None if changed is None else await self._written(*changed)

    async def change_each(
        self, changes: Sequence[tuple[Execution, Callable[[Execution], Execution]]]
    ) -> None:
        """`change` for each row that is known, with some rows in one transaction.

        For changes of very many rows: the end of a transaction costs more than a row.
        """
        # two transactions with the same rows take them in the same order
        ordered = sorted(changes, key=lambda change: change[0].id)
        for at in range(0, len(ordered), _ROWS):
            await self._change_part(ordered[at : at + _ROWS])

    async def _change_part(
        self, part: Sequence[tuple[Execution, Callable[[Execution], Execution]]]
    ) -> None:
        async def write(tx: Tx) -> Sequence[tuple[bool, tuple[Execution, Execution] | None]]:
            return [await self._write(tx, row.id, change, row) for row, change in part]

        outcomes = await self._store.tx(write)
        for (row, change), (saved, changed) in zip(part, outcomes, strict=True):
            if not saved:
                await self.change(row.id, change)
            elif changed is not None:
                await self._written(*changed)

    async def _write(
        self,
        tx: Tx,
        id_: ExecutionId,
        change: Callable[[Execution], Execution],
        known: Execution | None,
    ) -> tuple[bool, tuple[Execution, Execution] | None]:
        """False: another writer was faster. The states before and after; None: the row is gone."""
        if known is not None:
            after = change(known)
            if after != known and not _is_to_drop(after) and await self._save(tx, known, after):
                return True, (known, evolve(after, version=after.version + 1))
        row = await tx.executions.find(id_)
        if row is None:
            return True, None
        after = change(row)
        if _is_to_drop(after):
            await tx.executions.drop(id_)
            return True, (row, after)
        if after == row:
            return True, (row, row)
        saved = await self._save(tx, row, after)
        return saved, (row, evolve(after, version=after.version + 1))

    async def _save(self, tx: Tx, before: Execution, after: Execution) -> bool:
        """Whether the row still had the version of `before`, and was written."""
        saved = await tx.executions.save(after, before)
        if saved:
            await self.notify(tx, after)
        return saved

    async def _written(self, before: Execution, after: Execution) -> Execution:
        """Count and record what has been committed; return `after`."""
        self._metrics.execution_written(before, after, self._clock.seconds())
        stages = [(lifecycle.is_over(row), lifecycle.is_tidy(row)) for row in (before, after)]
        cluster = None if after.cluster_id is None else self._known(after.cluster_id)
        if stages[0] != stages[1] and cluster is not None and cluster.is_transient:
            self._notice(cluster.id)
        await self._record_wait(before, after)
        return after

    # ---- events ----

    def notice(self, cluster_id: ClusterId) -> None:
        """Let the health of the cluster be checked soon."""
        self._notice(cluster_id)

    async def _record_wait(self, before: Execution, after: Execution) -> None:
        """Record the wait that began or ended between two states of an execution."""
        cluster_id = before.cluster_id
        if cluster_id is None:
            return
        old, new = before.waiting, after.waiting
        if old is not None and new is not None and old.code == new.code:
            return
        if old is not None and self._shown.get((cluster_id, old.code)) == before.id:
            del self._shown[cluster_id, old.code]
            lasted = self._clock.seconds() - seconds_of(old.since)
            text = f"job execution {before.id} waits no longer, after {lasted:.0f} s"
            await self.record(cluster_id, "done", "", text)
        if new is not None:
            self._notice(cluster_id)
        if new is not None and not await self._is_shown(cluster_id, new.code, before.id):
            while len(self._shown) >= _MOST_SHOWN:
                del self._shown[next(iter(self._shown))]
            self._shown[cluster_id, new.code] = before.id
            limit = "" if new.until is None else f" (until {iso_seconds(new.until)})"
            text = f"job execution {before.id} waits{limit}: {new.text}"
            await self.record(cluster_id, "retry", new.code, text)

    async def _is_shown(self, cluster_id: ClusterId, code: str, id_: ExecutionId) -> bool:
        """Whether the events show the wait of another execution than `id_`, which still waits.

        Another daemon may have written its row; then this daemon has not recorded its end.
        """
        shown = self._shown.get((cluster_id, code))
        if shown is None or shown == id_:
            return False
        row = await self.find(shown)
        waits = row is not None and row.waiting is not None and row.waiting.code == code
        return waits or self._shown.get((cluster_id, code)) != shown

    async def record(self, cluster_id: ClusterId, outcome: str, code: str, text: str) -> None:
        """Write an event of the cluster, if that exists."""
        now = timestamp(self._clock.seconds())

        async def write(tx: Tx) -> None:
            cluster = await tx.clusters.find(cluster_id)
            if cluster is None:
                return
            event = ClusterEvent(
                at=now,
                generation=cluster.generation,
                step=JOB,
                outcome=outcome,
                code=code,
                text=text,
            )
            await tx.clusters.add_events(cluster_id, [event])

        await self._store.tx(write)


def _is_to_drop(row: Execution) -> bool:
    """Whether a caller has deleted the execution, and no work on it is left."""
    return row.delete_requested and lifecycle.is_tidy(row)
