"""The store itself, as a test of provisioning uses it.

Rows can be read and put by hand, writes are counted, and another writer can come between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, MutableMapping, Sequence
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId, TenantId
from svcd.model.trust import LooseTrust
from svcd.ports.store import Page
from svcd.store.database import Database
from svcd.store.sealer import MemorySealer
from svcd.store.store import SqlStore
from tests.support.api import now

T = TypeVar("T")

TENANT = TenantId("t1")

SEALER = MemorySealer()
"""The sealer of every store and cluster of these tests."""


class StoredStore:
    """`tx` and `read` are the store's; `clusters` and `loose_trusts` are for the test."""

    def __init__(self, database: Database) -> None:
        self.store = SqlStore(database, SEALER)
        now(Deferred.fromCoroutine(self.store.open("then")))
        self.clusters = StoredClusters(self.store)
        self.loose_trusts = StoredLooseTrusts(self.store)
        self.down: Exception | None = None

    async def tx(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await self._with(self.store.tx, work)

    async def read(self, work: Callable[[Any], Awaitable[T]]) -> T:
        return await self._with(self.store.read, work)

    async def _with(self, how: Any, work: Callable[[Any], Awaitable[T]]) -> T:
        if self.down is not None:
            raise self.down
        found: T = await how(lambda tx: work(_Tx(tx, self.clusters)))
        return found


class _Tx:
    def __init__(self, tx: Any, test: StoredClusters) -> None:
        self._tx = tx
        self._test = test

    @property
    def clusters(self) -> _Clusters:
        return _Clusters(self._tx.clusters, self._test)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class _Clusters:
    """The family, with another writer before it when the test wants one."""

    def __init__(self, family: Any, test: StoredClusters) -> None:
        self._family = family
        self._test = test

    async def save(self, record: Cluster) -> bool:
        row = await self._family.find(record.id) if self._test.conflict_next else None
        if row is not None:
            await self._family.save(self._test.conflict_next.pop(0)(row))
        saved: bool = await self._family.save(record)
        self._test.saves += saved
        return saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._family, name)


class StoredClusters:
    """rows: by id. events: of a cluster by its id."""

    def __init__(self, store: SqlStore) -> None:
        self.rows = _Rows(store)
        self.events = _Events(store)
        self.saves = 0
        self.conflict_next: list[Callable[[Cluster], Cluster]] = []


class _Rows(MutableMapping[ClusterId, Cluster]):
    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def __getitem__(self, id_: ClusterId) -> Cluster:
        found = self._now(lambda tx: tx.clusters.find(id_))
        if found is None:
            raise KeyError(id_)
        return found  # type: ignore[no-any-return]

    def __setitem__(self, id_: ClusterId, record: Cluster) -> None:
        async def put(tx: Any) -> None:
            if await tx.clusters.save(evolve(record, version=record.version - 1)):
                return
            events: Sequence[ClusterEvent] = []
            if await tx.clusters.find(id_) is not None:
                events = await tx.clusters.events(record.tenant_id, id_)
            await tx.clusters.drop(id_)
            await tx.clusters.add(record)
            await tx.clusters.add_events(id_, events)

        self._now(put)

    def __delitem__(self, id_: ClusterId) -> None:
        self._now(lambda tx: tx.clusters.drop(id_))

    def __iter__(self) -> Iterator[ClusterId]:
        return iter([row.id for row in self._now(lambda tx: tx.clusters.page(TENANT, Page()))])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _now(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return now(Deferred.fromCoroutine(self._store.tx(work)))


class StoredLooseTrusts:
    """The trusts that no cluster's row names, by the id of their row."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store

    @property
    def rows(self) -> dict[str, LooseTrust]:
        found = now(Deferred.fromCoroutine(self._store.tx(lambda tx: tx.loose_trusts.first(1000))))
        return {each.id: each for each in found}

    def add(self, trust: LooseTrust) -> None:
        now(Deferred.fromCoroutine(self._store.tx(lambda tx: tx.loose_trusts.add(trust))))

    def doom(self, id_: str) -> None:
        now(Deferred.fromCoroutine(self._store.tx(lambda tx: tx.loose_trusts.doom(id_))))


class _Events:
    def __init__(self, store: SqlStore) -> None:
        self._store = store

    def get(self, id_: ClusterId, default: Any = None) -> Any:
        async def look(tx: Any) -> Any:
            if await tx.clusters.find(id_) is None:
                return default
            return await tx.clusters.events(TENANT, id_)

        return now(Deferred.fromCoroutine(self._store.tx(look)))

    def __getitem__(self, id_: ClusterId) -> Any:
        return self.get(id_)
