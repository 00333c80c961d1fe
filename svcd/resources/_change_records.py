"""The JSON of changes, as the interface shows the records: for the watchers of the change feed.

One query reads up to 64 records of a kind. A record that is not there any more has no JSON: its
deletion is a change of its own. The resource of the jobs uses `expanded` too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from attrs import evolve

from svcd.model import wire, wire_jobs
from svcd.model.changes import CLUSTER_EVENTS, KINDS, Change, Changes, Cursor
from svcd.model.ids import ClusterId, JobBinaryId, TenantId
from svcd.model.job import Job, JobBinary
from svcd.ports.store import Tx
from svcd.resources._answers import encode

_SLICE: Final = 64
"""Records that are rendered by one query."""

Rendered: TypeAlias = Mapping[tuple[str, str], bytes]
"""JSON by kind and id."""


async def rendered(
    tx: Tx,
    tenant_id: TenantId,
    start: Cursor,
    part: Changes,
    texts: Mapping[bool, dict[tuple[str, str], bytes]],
    most_bytes: int,
) -> tuple[Changes, int]:
    """Adds the JSON of the changes to `texts`, by class. Returns the part and the JSON's bytes.

    The part is shorter when its JSON is longer than `most_bytes`.
    """
    size = 0
    for first in range(0, len(part.changes), _SLICE):
        if size >= most_bytes:
            read = part.changes[:first]
            cut = evolve(part, changes=read, cursor=start.at(read[-1], part.until), whole=False)
            return cut, size
        batch = part.changes[first : first + _SLICE]
        for hides, known in texts.items():
            new = [change for change in batch if (change.kind, change.id) not in known]
            for change, text in await _texts(tx, tenant_id, new, hides):
                known[change.kind, change.id] = text
            size += sum(len(known.get((change.kind, change.id), b"")) for change in batch)
    return part, size


async def _texts(
    tx: Tx, tenant_id: TenantId, changes: Sequence[Change], hides: bool
) -> Sequence[tuple[Change, bytes]]:
    """The JSON of each change that can be shown."""
    texts = [(change, _deleted(change)) for change in changes if change.word == "deleted"]
    for kind in KINDS:
        by_id = {
            change.id: change
            for change in changes
            if change.kind == kind and change.word != "deleted"
        }
        if by_id:
            records = await _records(tx, tenant_id, kind, list(by_id), hides)
            texts += [(by_id[id_], _text(by_id[id_], text)) for id_, text in records.items()]
    return texts


def _deleted(change: Change) -> bytes:
    return encode({"id": change.id, "change": "deleted", "version": change.version})


def _text(change: Change, record: bytes) -> bytes:
    """The JSON of the record with the fields of the change before its own."""
    if change.kind == CLUSTER_EVENTS:
        head: dict[str, Any] = {"cluster_id": change.id.rpartition("/")[0]}
    else:
        head = {"change": change.word, "version": change.version}
    return encode(head)[:-1] + b"," + record[1:]


async def _records(
    tx: Tx, tenant_id: TenantId, kind: str, ids: Sequence[str], hides: bool
) -> Mapping[str, bytes]:
    """The JSON objects of the interface by id, without those of missing records."""
    match kind:
        case "clusters":
            return await _stored(tx.clusters, tenant_id, ids)
        case "job_executions":
            return await _stored(tx.executions, tenant_id, ids)
        case "cluster_templates":
            return await _stored(tx.cluster_templates, tenant_id, ids)
        case "node_group_templates":
            return await _stored(tx.node_group_templates, tenant_id, ids)
        case "data_sources":
            sources = await tx.data_sources.several(tenant_id, _typed(ids))
            return {r.id: encode(wire_jobs.DataSource.of(r, hides)) for r in sources}
        case "job_binaries":
            binaries = await tx.job_binaries.several(tenant_id, _typed(ids))
            return {r.id: encode(wire_jobs.JobBinary.of(r, hides)) for r in binaries}
        case "job_binary_internals":
            internals = await tx.internals.several(tenant_id, _typed(ids))
            return {r.id: encode(wire_jobs.JobBinaryInternal.of(r)) for r in internals}
        case "jobs":
            jobs = await tx.jobs.several(tenant_id, _typed(ids))
            return {job.id: encode(job) for job in await expanded(tx, tenant_id, jobs, hides)}
        case _:
            keys = [(ClusterId(c), int(n)) for c, _, n in (i.rpartition("/") for i in ids)]
            events = await tx.clusters.events_at(keys)
            return {f"{c}/{n}": encode(wire.Event.of(event)) for (c, n), event in events.items()}


def _typed(ids: Sequence[str]) -> Any:
    """`ids` with the type of the family's ids."""
    return ids


async def _stored(rows: Any, tenant_id: TenantId, ids: Sequence[str]) -> Mapping[str, bytes]:
    found = await rows.rendered_many([(tenant_id, id_) for id_ in ids])
    return {id_: text.partition(b"\n")[0] for (_, id_), text in found.items()}


async def expanded(
    tx: Tx, tenant_id: TenantId, jobs: Sequence[Job], hides: bool
) -> Sequence[wire_jobs.Job]:
    """The answers for `jobs`, with their binaries. hides: their credentials are masked."""
    ids = list(dict.fromkeys(id_ for job in jobs for id_ in (*job.mains, *job.libs)))
    binaries: dict[JobBinaryId, JobBinary] = {}
    for first in range(0, len(ids), _SLICE):
        several = await tx.job_binaries.several(tenant_id, ids[first : first + _SLICE])
        binaries |= {binary.id: binary for binary in several}
    return [wire_jobs.Job.of(job, binaries, hides) for job in jobs]
