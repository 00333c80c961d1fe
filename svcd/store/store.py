"""The store: the families over one database. Implements ports.Store."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from svcd.errors import NotFound, ServiceUnavailable
from svcd.ports import Sealer, Tx
from svcd.sharing import Gathering
from svcd.store.clusters import Clusters
from svcd.store.data import DataSources, Internals, JobBinaries, Jobs
from svcd.store.database import Database, DatabaseFigures, Distant, Sql
from svcd.store.executions import Executions
from svcd.store.family import Family
from svcd.store.migrations import migrate
from svcd.store.templates import ClusterTemplates, NodeGroupTemplates

T = TypeVar("T")

_UNOWNED = """
delete from pieces where not exists (select 1 from internals i where i.upload_id = pieces.upload_id)
"""
_NO_UPLOADS = "delete from uploads"
_FAMILIES: Mapping[str, type[Family[Any]]] = {
    "node_group_templates": NodeGroupTemplates,
    "cluster_templates": ClusterTemplates,
    "clusters": Clusters,
    "executions": Executions,
}
_SEALED = (
    "select sealed from data_sources where sealed is not null limit 1",
    "select sealed from job_binaries where sealed is not null limit 1",
)
_CLUSTER = "select record from clusters limit 1"


class _Tx:
    """The families of one transaction, made when first asked for."""

    __slots__ = ("_sealer", "_sql")

    def __init__(self, sql: Sql, sealer: Sealer) -> None:
        self._sql = sql
        self._sealer = sealer

    @property
    def node_group_templates(self) -> NodeGroupTemplates:
        return NodeGroupTemplates(self._sql, self._sealer)

    @property
    def cluster_templates(self) -> ClusterTemplates:
        return ClusterTemplates(self._sql, self._sealer)

    @property
    def clusters(self) -> Clusters:
        return Clusters(self._sql, self._sealer)

    @property
    def data_sources(self) -> DataSources:
        return DataSources(self._sql, self._sealer)

    @property
    def internals(self) -> Internals:
        return Internals(self._sql, self._sealer)

    @property
    def job_binaries(self) -> JobBinaries:
        return JobBinaries(self._sql, self._sealer)

    @property
    def jobs(self) -> Jobs:
        return Jobs(self._sql, self._sealer)

    @property
    def executions(self) -> Executions:
        return Executions(self._sql, self._sealer)


class SqlStore:
    """All rows of a daemon."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._distant = isinstance(database, Distant)
        self._gathering: dict[str, Gathering[tuple[str, str], bytes]] = {}

    async def open(self, at: str) -> int:
        """Migrate, drop what interrupted uploads left, and return the schema's number.

        Raises SchemaError, and what the sealer raises when the stored secrets are not its own.
        """
        number = await migrate(self._database, at)
        for sealed in await self._database.read(_samples):
            self._sealer.open(sealed)
        await self._database.tx(_sweep)
        return number

    async def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._database.tx(lambda sql: work(_Tx(sql, self._sealer)))

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return await self._database.read(lambda sql: work(_Tx(sql, self._sealer)))

    async def rendered(self, family: str, tenant_id: str, id_: str) -> bytes:
        if not self._distant:
            return await self.read(lambda tx: getattr(tx, family).rendered(tenant_id, id_))
        gathering = self._gathering.get(family)
        if gathering is None:
            gathering = self._gathering[family] = Gathering(
                lambda keys: self.read(lambda tx: getattr(tx, family).rendered_many(keys)),
                cast("Distant", self._database).soon,
            )
        found = await gathering.get((tenant_id, id_))
        if found is None:
            raise NotFound.of(_FAMILIES[family].table.what, id_)
        return found

    def figures(self) -> DatabaseFigures | None:
        """Of the database's connections; None where there are none."""
        return cast("Distant", self._database).figures() if self._distant else None

    async def ready(self) -> str:
        try:
            await self._database.read(_ping)
        except ServiceUnavailable as error:
            return error.message
        return ""

    async def close(self) -> None:
        await self._database.close()


async def _samples(sql: Sql) -> list[str]:
    """One sealed text of each kind: all were made with one key."""
    found = [str(row[0]) for text in _SEALED if (row := await sql.one(text)) is not None]
    row = await sql.one(_CLUSTER)
    key = json.loads(row[0]).get("management_private_key") if row is not None else None
    return [*found, key] if key else found


async def _ping(sql: Sql) -> None:
    await sql.one("select 1")


async def _sweep(sql: Sql) -> None:
    await sql.run(_UNOWNED)
    await sql.run(_NO_UPLOADS)
