"""Clusters and their events. Every update is a compare-and-set on `version`.

Note: names without regard to case. The unique index on `name_key` decides which of two inserts gets
the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec
from attrs import fields

from svcd.errors import ClusterNameTaken
from svcd.model import usage, wire
from svcd.model.changes import CLUSTER_EVENTS
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId, Timestamp
from svcd.model.lifetime import may_end
from svcd.ports.store import StatusFigures
from svcd.store.family import Family, Table, references

EVENTS_KEPT = 2000
"""Most events stored for one cluster; the oldest are deleted first."""

_UNSETTLED = """
select id, generation from clusters
 where generation > settled_generation order by created_at, id
"""
_ACTIVE = """
select id from clusters
 where status = 'Active' and settled_generation >= generation
 order by tenant_id, created_at, id
"""
_IDLE_TRANSIENT = """
select c.id from clusters c
 where c.is_transient = 1 and c.used = 1
   and (c.status = 'Active' or (c.status = 'Error' and c.settled_generation >= c.generation))
   and not exists (select 1 from executions e where e.cluster_id = c.id and e.ended = 0)
 order by c.created_at, c.id
"""
_ENDINGS = "select id, version from clusters where ends = 1"
_USES_IMAGE = """
select name from clusters where tenant_id = :tenant_id and default_image_id = :image_id
 order by created_at, id limit 1
"""
_BY_STATUS = "select status, count(*) from clusters group by status"
_OLDEST = "select min(accepted_at) from clusters where generation > settled_generation"
_INSTANCES_OF_OTHERS = """
select coalesce(sum(instances), 0) from clusters where tenant_id = :tenant_id and id <> :id
"""
_USAGE = "select usage, tenant_id from clusters where id = :id"
_SET_USAGE = "update clusters set usage = :usage where id = :id"
_ADD_MACHINES = """
insert into usage (tenant_id, at_s, seconds, machines) values (:tenant_id, :now, 0, :more)
on conflict (tenant_id) do update
   set seconds = usage.seconds + case when excluded.at_s > usage.at_s
         then usage.machines * (excluded.at_s - usage.at_s) else 0 end,
       machines = usage.machines + excluded.machines,
       at_s = case when excluded.at_s > usage.at_s then excluded.at_s else usage.at_s end
"""
_SECONDS = "select tenant_id, seconds, machines, at_s from usage order by tenant_id"
_LAST_EVENT = """
select coalesce(max(number), 0) from cluster_events where cluster_id = :cluster_id
"""
_ADD_EVENT = """
insert into cluster_events (cluster_id, number, record) values (:cluster_id, :number, :record)
"""
_TRIM_EVENTS = """
delete from cluster_events where cluster_id = :cluster_id and number <= :number
"""
_EVENTS = """
select number, record from cluster_events
 where cluster_id = :cluster_id and number > :since order by number
"""

_decoded_event = msgspec.json.Decoder(ClusterEvent).decode
_EVENT_DEFAULTS = {a.name: a.default for a in fields(ClusterEvent)}
"""Attribute -> the default, which svcd does not store; NOTHING: it stores every value."""


def _references(cluster: Cluster) -> Iterator[str | None]:
    """Ids of the node group templates and first-boot scripts of a cluster."""
    for group in cluster.node_groups:
        yield group.node_group_template_id
        yield from (script.internal_id for script in group.scripts)


class Clusters(Family[Cluster]):
    table = Table(
        name="clusters",
        kind="clusters",
        what="cluster",
        record=Cluster,
        columns={
            "name": lambda r: r.name,
            "name_key": lambda r: r.name.lower(),
            "plugin_name": lambda r: r.plugin_name,
            "engine_version": lambda r: r.engine_version,
            "cluster_template_id": lambda r: r.cluster_template_id,
            "default_image_id": lambda r: r.default_image_id,
            "status": lambda r: r.status.value,
            "is_transient": lambda r: int(r.is_transient),
            "generation": lambda r: r.generation,
            "settled_generation": lambda r: r.settled_generation,
            "version": lambda r: r.version,
            "instances": lambda r: r.size,
            "ends": lambda r: int(may_end(r)),
            "accepted_at": lambda r: r.accepted_at or r.created_at,
            "refs": lambda r: references(_references(r)),
        },
        filters=frozenset(
            {"name", "plugin_name", "engine_version", "status", "cluster_template_id",
             "default_image_id"}
        ),
        fixed=frozenset(
            {"name", "name_key", "plugin_name", "engine_version", "cluster_template_id",
             "default_image_id", "is_transient"}
        ),
        taken=ClusterNameTaken,
        any_case=True,
        wire=wire.Cluster.of,
    )  # fmt: skip
    limit = "clusters"
    answer = "wire || '\n' || usage"

    async def save(self, record: Cluster, before: Cluster | None = None) -> bool:
        saved = await super().save(record, before)
        if saved:
            await self._count(record.id, usage.machines(record))
        return saved

    async def drop(self, id_: str) -> None:
        await self._count(id_, {})
        await super().drop(id_)

    async def _count(self, id_: str, machines: Mapping[str, int]) -> None:
        """The cluster has these machines from now on, by flavor. Its tenant keeps their seconds."""
        now, row = self._seconds(), await self._sql.one(_USAGE, {"id": id_})
        text, more = usage.counted(row[0], machines, now) if row is not None else ("", 0)
        if row is not None and text != row[0]:
            await self._sql.run(_SET_USAGE, {"id": id_, "usage": text})
            values = {"tenant_id": row[1], "now": now, "more": more}
            await self._sql.at_commit(_ADD_MACHINES, values)

    async def unsettled(self) -> Mapping[ClusterId, int]:
        return {ClusterId(row[0]): row[1] for row in await self._sql.all(_UNSETTLED)}

    async def active(self) -> Sequence[ClusterId]:
        return [ClusterId(row[0]) for row in await self._sql.all(_ACTIVE)]

    async def idle_transient(self) -> Sequence[ClusterId]:
        return [ClusterId(row[0]) for row in await self._sql.all(_IDLE_TRANSIENT)]

    async def endings(self) -> Mapping[ClusterId, int]:
        return {ClusterId(row[0]): row[1] for row in await self._sql.all(_ENDINGS)}

    async def figures(self) -> StatusFigures:
        counts = {str(row[0]): int(row[1]) for row in await self._sql.all(_BY_STATUS)}
        oldest = await self._sql.one(_OLDEST)
        return StatusFigures(counts, Timestamp(oldest[0]) if oldest and oldest[0] else None)

    async def seconds_by_tenant(self) -> Mapping[str, float]:
        now, rows = self._seconds(), await self._sql.all(_SECONDS)
        return {tenant: past + count * max(0.0, now - at_s) for tenant, past, count, at_s in rows}

    async def instances_of_others(self, cluster: Cluster) -> int:
        values = {"tenant_id": cluster.tenant_id, "id": cluster.id}
        row = await self._sql.one(_INSTANCES_OF_OTHERS, values)
        return int(row[0]) if row else 0

    async def uses_image(self, tenant_id: str, image_id: str) -> str | None:
        row = await self._sql.one(_USES_IMAGE, {"tenant_id": tenant_id, "image_id": image_id})
        return None if row is None else str(row[0])

    async def add_events(self, id_: ClusterId, events: Sequence[ClusterEvent]) -> None:
        row = await self._sql.one(_LAST_EVENT, {"cluster_id": id_})
        last = int(row[0]) if row else 0
        owner = await self._sql.one("select tenant_id from clusters where id = :id", {"id": id_})
        if owner is None:
            return
        note = partial(self._journal.note, owner[0], CLUSTER_EVENTS, expires=True)
        for number, event in enumerate(events, last + 1):
            record = msgspec.json.encode(_stored(event)).decode()
            values = {"cluster_id": id_, "number": number, "record": record}
            await self._sql.run(_ADD_EVENT, values)
            await note(f"{id_}/{number}", number, "created")
        newest = last + len(events)
        if newest > EVENTS_KEPT:
            await self._sql.run(_TRIM_EVENTS, {"cluster_id": id_, "number": newest - EVENTS_KEPT})

    async def events(
        self, tenant_id: str, id_: ClusterId, since: int = 0
    ) -> Sequence[ClusterEvent]:
        return list((await self.with_events(tenant_id, id_, since))[1])

    async def with_events(
        self, tenant_id: str, id_: ClusterId, since: int = 0
    ) -> tuple[Cluster, Iterator[ClusterEvent]]:
        cluster = await self.get(tenant_id, id_)
        rows = await self._sql.all(_EVENTS, {"cluster_id": id_, "since": since})
        return cluster, (_event(number, record) for number, record in rows)

    async def events_at(
        self, keys: Sequence[tuple[ClusterId, int]]
    ) -> Mapping[tuple[ClusterId, int], ClusterEvent]:
        values: dict[str, object] = {}
        for index, (id_, number) in enumerate(keys):
            values |= {f"c{index}": id_, f"n{index}": number}
        wanted = ", ".join(f"(:c{index}, :n{index})" for index in range(len(keys)))
        rows = await self._sql.all(
            "select cluster_id, number, record from cluster_events"
            f" where (cluster_id, number) in (values {wanted})",
            values,
        )
        return {
            (ClusterId(id_), int(number)): _event(number, record) for id_, number, record in rows
        }


def _event(number: int, record: str) -> ClusterEvent:
    """The event of a row. The record is JSON without the number; svcd adds it to the text: fast."""
    return _decoded_event(f'{{"number":{number},{record[1:]}')


def _stored(event: ClusterEvent) -> dict[str, object]:
    """The attributes of an event that differ from the defaults: a third of the whole text."""
    values = {name: getattr(event, name) for name in _EVENT_DEFAULTS}
    return {name: value for name, value in values.items() if value != _EVENT_DEFAULTS[name]}
