"""The store: all families on one database. Implements ports.Store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Final, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from svcd.errors import NotFound, ServiceUnavailable
from svcd.model.ids import Timestamp
from svcd.model.secret import Secret
from svcd.ports.store import DatabaseFigures, Sealer, Tx
from svcd.runtime import fencing
from svcd.runtime.coalesce import Batches
from svcd.runtime.fencing import Term
from svcd.runtime.tasks import incident_id
from svcd.settings import Limits
from svcd.store import changes
from svcd.store.changes import Journal, Signals
from svcd.store.clusters import Clusters
from svcd.store.data import DataSources, Internals, JobBinaries, Jobs
from svcd.store.database import Database, Distant, Row, Sql
from svcd.store.execution_logs import ExecutionLogs
from svcd.store.executions import Executions
from svcd.store.family import Family, Scope
from svcd.store.job_credentials import JobCredentials
from svcd.store.kept_answers import KeptAnswers
from svcd.store.loose_trusts import LooseTrusts
from svcd.store.migrations import migrate
from svcd.store.templates import ClusterTemplates, NodeGroupTemplates

log = Logger()

T = TypeVar("T")

NO_LIMITS = Limits(
    rows=0,
    binary_bytes=0,
    executions=0,
    clusters=0,
    instances=0,
    idempotency_keys=0,
    log_bytes=0,
)

_OWN_UPLOADS = "delete from uploads where holder = :holder"
_DEAD_UPLOADS = """
delete from uploads where not exists (select 1 from daemons d where d.id = uploads.holder)
"""
_UNOWNED = """
select p.upload_id from (select distinct upload_id from pieces) p
 where not exists (select 1 from internals i where i.upload_id = p.upload_id)
   and not exists (select 1 from uploads u where u.id = p.upload_id)
"""
_DROP_PIECES = """
delete from pieces where upload_id = :upload_id and number in
 (select number from pieces where upload_id = :upload_id order by number limit :limit)
   and not exists (select 1 from internals i where i.upload_id = :upload_id)
   and not exists (select 1 from uploads u where u.id = :upload_id)
"""
_DROPPED = 16
"""Pieces (4 MiB) that one transaction deletes. SQLite keeps them in memory until its commit."""
_PRUNED = 100
"""Answers that one transaction deletes."""
_SEAL = "select sealed from seals where id = 1"
_SET_SEAL = "insert into seals (id, sealed) values (1, :sealed)"
FAMILIES: Final[Mapping[str, type[Family[Any]]]] = {
    family.table.name: family
    for family in (
        NodeGroupTemplates,
        ClusterTemplates,
        Clusters,
        DataSources,
        Internals,
        JobBinaries,
        Jobs,
        Executions,
    )
}
"""The families of records by table, which is also their name in `Tx`."""
_SEALED = (
    "select sealed from data_sources where sealed is not null limit 1",
    "select sealed from job_binaries where sealed is not null limit 1",
)
_CLUSTER = "select record from clusters limit 1"


class _Tx:
    """The families of one transaction, each created at its use."""

    __slots__ = ("_scope",)

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    async def notify(self, text: str) -> None:
        await self._scope.sql.notify(text)

    @property
    def changes(self) -> Journal:
        return self._scope.journal

    @property
    def node_group_templates(self) -> NodeGroupTemplates:
        return NodeGroupTemplates(self._scope)

    @property
    def cluster_templates(self) -> ClusterTemplates:
        return ClusterTemplates(self._scope)

    @property
    def clusters(self) -> Clusters:
        return Clusters(self._scope)

    @property
    def data_sources(self) -> DataSources:
        return DataSources(self._scope)

    @property
    def internals(self) -> Internals:
        return Internals(self._scope)

    @property
    def job_binaries(self) -> JobBinaries:
        return JobBinaries(self._scope)

    @property
    def jobs(self) -> Jobs:
        return Jobs(self._scope)

    @property
    def executions(self) -> Executions:
        return Executions(self._scope)

    @property
    def loose_trusts(self) -> LooseTrusts:
        return LooseTrusts(self._scope)

    @property
    def job_credentials(self) -> JobCredentials:
        return JobCredentials(self._scope)

    @property
    def execution_logs(self) -> ExecutionLogs:
        return ExecutionLogs(self._scope)

    @property
    def kept_answers(self) -> KeptAnswers:
        return KeptAnswers(self._scope)


class SqlStore:
    """All rows of a daemon.

    holder: the daemon's name among those that share the database, "" without sharing.
    fence: first statement of each transaction under a term (`svcd.runtime.fencing`); it raises
    LeaseLost. limits: of a tenant's rows. feed_kept: deletions and events of a tenant in the feed.
    seconds: the daemon's time, for the usage of clusters.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        holder: str = "",
        fence: Callable[[Sql, Term], Awaitable[None]] | None = None,
        limits: Limits = NO_LIMITS,
        feed_kept: int = changes.KEPT,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._limits = limits
        self._now = seconds
        self._feed_kept = feed_kept
        self._expiring: Counter[str] = Counter()
        self._crowded: Counter[str] = Counter()
        self._bounding: Deferred[None] | None = None
        self._database = database
        self._sealer = sealer
        self._distant = isinstance(database, Distant)
        self._batches: dict[str, Batches[tuple[str, str], bytes]] = {}
        self._holder = holder
        self._fence = fence
        self._signals = Signals()

    async def open(self, at: str) -> int:
        """Migrate, delete the pieces of interrupted uploads, and return the schema's number.

        Raises SchemaError, and SealerError when the secrets were sealed with another key.
        """
        number = await migrate(self._database, at)
        for sealed in await self._database.read(_samples):
            self._sealer.open(sealed)
        self._sealer.open(await self._database.tx(self._seal))
        await self._database.tx(partial(self._begin, at=at))
        await self._sweep_uploads()
        return number

    async def sweep(self, now_s: float) -> None:
        """Delete the uploads of dead daemons with their pieces, and note the feed's number."""
        if self._holder:  # alone, a daemon would take its own uploads for those of a dead one
            await self._sweep_uploads()
        else:
            await self._drop_unowned()
        await self._database.tx(partial(changes.mark, now_s=now_s))

    async def _sweep_uploads(self) -> None:
        await self._database.tx(_end_dead_uploads)
        await self._drop_unowned()

    async def _drop_unowned(self) -> None:
        """Delete all pieces without an owner. The search reads an index with every piece."""
        for row in await self._database.read(_unowned):
            await self.drop_pieces(row[0])

    async def drop_pieces(self, upload_id: str) -> None:
        """Delete the pieces of an upload that no binary and no upload owns, a few at a time."""
        values = {"upload_id": upload_id, "limit": _DROPPED}
        while await self._database.tx(partial(_drop_pieces, values)) == _DROPPED:
            pass  # other transactions run between two of these

    async def prune_feed(self, now_s: float) -> bool:
        """Delete some changes that the feed need not keep any more. False: no more are left."""
        number = await self._database.read(partial(changes.expired, now_s=now_s))
        if number is not None:
            await self._database.tx(partial(changes.prune, number=number))
        return number is not None

    async def prune_answers(self, before: Timestamp) -> bool:
        """Delete some answers of Idempotency-Keys until `before`. False: no more are left."""
        return await self.tx(lambda tx: tx.kept_answers.prune(before, _PRUNED)) == _PRUNED

    async def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        term, fence = fencing.current(), self._fence
        journal: Journal | None = None

        async def run(sql: Sql) -> T:
            nonlocal journal
            tx = self._tx_of(sql)
            journal = tx.changes
            if term is not None and fence is not None:
                await fence(sql, term)
            return await work(tx)

        if term is not None and fence is not None:
            term.check()
        result = await self._database.tx(run)
        if journal is not None and journal.tenants:
            self._signals.fire(journal.tenants)
            if self._distant:
                cast("Distant", self._database).announce(journal.tenants)
            self._bound_feed(journal.expiring)
        return result

    def _bound_feed(self, added: Mapping[str, int]) -> None:
        """Begin to take the oldest deletions and events of tenants with too many out of the feed.

        One part for each `share` that has been added, so the feed cannot grow faster. The
        caller does not wait: its change is committed, and a failure here must not look like one of
        the change.
        added: by tenant, now.
        """
        share = min(changes.PART // 2, self._feed_kept)
        for tenant_id, count in added.items():
            self._expiring[tenant_id] += count
            if self._expiring[tenant_id] >= share:
                del self._expiring[tenant_id]
                self._crowded[tenant_id] += 1
        if self._crowded and self._bounding is None:
            self._bounding = Context().run(Deferred.fromCoroutine, self._take_excess())
            self._bounding.addBoth(self._bounded)

    async def _take_excess(self) -> None:
        while self._crowded:
            tenant_id = next(iter(self._crowded))
            self._crowded[tenant_id] -= 1
            if not self._crowded[tenant_id]:
                del self._crowded[tenant_id]
            number = await self._database.read(
                partial(changes.excess, tenant_id=tenant_id, most=self._feed_kept)
            )
            if number is not None:
                await self._database.tx(partial(changes.cut, tenant_id=tenant_id, number=number))

    def _bounded(self, result: object) -> None:
        """Log a failed run. The next change does its work."""
        self._bounding = None
        expected = (ServiceUnavailable, CancelledError)
        if isinstance(result, Failure) and not isinstance(result.value, expected):
            log.failure(
                "The change feed was not bounded, incident {i}", failure=result, i=incident_id()
            )

    def on_change(self, tenant_id: str, call: Callable[[], None]) -> Callable[[], None]:
        return self._signals.on(tenant_id, call)

    def heard(self, sender: str, tenants: Sequence[str]) -> None:
        """The daemon `sender` has announced changes of `tenants`."""
        if sender != self._holder:
            self._signals.fire(tenants)

    def _tx_of(self, sql: Sql) -> _Tx:
        return _Tx(Scope(sql, self._sealer, Journal(sql), self._limits, self._holder, self._now))

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._database.read(lambda sql: work(self._tx_of(sql)))

    async def rendered(self, family: str, tenant_id: str, id_: str) -> bytes:
        if not self._distant:
            return await self.read(lambda tx: getattr(tx, family).rendered(tenant_id, id_))
        batches = self._batches.get(family)
        if batches is None:
            batches = self._batches[family] = Batches(
                lambda keys: self.read(lambda tx: getattr(tx, family).rendered_many(keys)),
                cast("Distant", self._database).soon,
            )
        text = await batches.get((tenant_id, id_))
        if text is None:
            raise NotFound.of(FAMILIES[family].table.what, id_)
        return text

    def figures(self) -> DatabaseFigures | None:
        """The figures of the database's connections; None for a database without connections."""
        return cast("Distant", self._database).figures() if self._distant else None

    async def ready(self) -> str:
        try:
            await self._database.read(_ping)
        except ServiceUnavailable as error:
            return error.message
        return ""

    async def close(self) -> None:
        self._crowded.clear()
        if self._bounding is not None:
            await self._bounding
        await self._database.close()

    async def _seal(self, sql: Sql) -> str:
        """The sealed text of the first daemon of the database, which stores it now.

        A daemon with another key cannot open it, and so stops before it seals anything.
        """
        row = await sql.one(_SEAL)
        if row is not None:
            return str(row[0])
        sealed = self._sealer.seal(Secret("svcd"))
        await sql.run(_SET_SEAL, {"sealed": sealed})
        return sealed

    async def _begin(self, sql: Sql, at: str) -> None:
        """Delete all uploads of this daemon (no upload outlives its process); begin the feed."""
        await sql.run(_OWN_UPLOADS, {"holder": self._holder})
        await changes.begin(sql, at)


async def _samples(sql: Sql) -> list[str]:
    """One sealed text of each kind; all must have been sealed with the same key."""
    samples = [str(row[0]) for text in _SEALED if (row := await sql.one(text)) is not None]
    row = await sql.one(_CLUSTER)
    key = json.loads(row[0]).get("management_private_key") if row is not None else None
    return [*samples, key] if key else samples


async def _ping(sql: Sql) -> None:
    await sql.one("select 1")


async def _end_dead_uploads(sql: Sql) -> None:
    await sql.run(_DEAD_UPLOADS)


async def _unowned(sql: Sql) -> Sequence[Row]:
    return await sql.all(_UNOWNED)


async def _drop_pieces(values: Mapping[str, object], sql: Sql) -> int:
    return await sql.run(_DROP_PIECES, values)
