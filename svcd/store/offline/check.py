"""`svcd db check`: checks that the database is consistent, at one point in time; changes nothing.

It reads every row and checks that: its record decodes and agrees with its columns; sealed texts
open with the key; the pieces of a binary give its size and digest; all referenced rows exist. The
daemon's own rules ensure all of this, so a fault means a damaged disk, a wrong key, or rows changed
by hand.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from attrs import frozen

from svcd.model.cluster import ClusterEvent
from svcd.model.job import INTERNAL_URL, Credentials
from svcd.ports.store import Sealer
from svcd.store import migrations
from svcd.store.job_credentials import Sealed
from svcd.store.offline.session import OfflineError, OfflineSession, current
from svcd.store.offline.shape import TRANSIENT, TableShape, shape
from svcd.store.sealer import SealerError
from svcd.store.store import FAMILIES

_BY_HAND = "the row was changed by hand or the disk is damaged: restore a backup"
_LOST_CREDENTIALS = (
    "restore the seal.key that belongs to this database, or enter the credentials again"
)
_LOST_LOGIN = (
    "restore the seal.key that belongs to this database, or delete the row: svcd cannot delete the"
    " application credential, which ends at the row's expires_at"
)
_LOST_ANSWER = (
    "restore the seal.key that belongs to this database, or delete the row: a retry of its request"
    " would then be carried out again"
)
_SEALED: Mapping[str, tuple[Any, str]] = {
    "job_credentials": (Sealed, _LOST_LOGIN),
    "kept_answers": (dict[str, Any], _LOST_ANSWER),
    "seals": (None, "restore the seal.key that belongs to this database"),
}
"""Of tables without a record: the content of sealed texts, and the remedy when no key opens one."""
_SAME = "o.id = r.{column} and o.tenant_id = r.tenant_id"
_GONE = """
select r.id, r.tenant_id, r.{column} from {table} r
 where r.{column} is not null and not exists (select 1 from {other} o where {same}){more}
 order by r.id
"""
_WANTED = " and r.hidden = 0"
"""The condition for checked rows. The daemon drops deleted rows when no object of them is left."""
_REFERENCES = (
    ("executions", "job_id", "jobs", "delete it (svcd job rm ID)"),
    ("executions", "input_id", "data_sources",
     "delete it (svcd job rm ID)"),
    ("executions", "output_id", "data_sources",
     "delete it (svcd job rm ID)"),
    ("clusters", "cluster_template_id", "cluster_templates",
     "none needed: the cluster works; only its template is unknown"),
)  # fmt: skip
_UNOWNED = """
select p.upload_id, count(*) from pieces p
 where not exists (select 1 from internals i where i.upload_id = p.upload_id)
   and not exists (select 1 from uploads u where u.id = p.upload_id)
 group by p.upload_id order by p.upload_id
"""
_PIECES = "select number, content from pieces where upload_id = :upload_id order by number"
_EVENTS_GONE = """
select distinct e.cluster_id from cluster_events e
 where not exists (select 1 from clusters c where c.id = e.cluster_id) order by e.cluster_id
"""
_THERE = "select 1 from {other} where id = :id and tenant_id = :tenant_id"


@frozen(kw_only=True)
class Fault:
    """One fault. where: a table or a row; what: the fault; remedy: what to do."""

    where: str
    what: str
    remedy: str


@frozen(kw_only=True)
class SealedText:
    """A sealed text of a row.

    kind: of the JSON in it; None: it is no JSON. remedy: what to do when no key opens it.
    """

    text: str
    kind: Any
    remedy: str


class _Key(msgspec.Struct):
    """The part of a cluster's record that is sealed."""

    management_private_key: str = ""


@frozen(kw_only=True)
class Counted:
    """A completely checked table, and its number of rows."""

    table: str
    rows: int


def check(session: OfflineSession, sealer: Sealer | None) -> Iterator[Fault | Counted]:
    """Yields each fault when it is found, and each table after its last row.

    sealer: None leaves sealed texts unchecked. Raises OfflineError for another release's schema.
    """
    session.snapshot()
    number = current(session)
    if number != migrations.newest():
        raise OfflineError(
            f"{session.where} has schema {number}, the check knows {migrations.newest()}:"
            " run svcd db upgrade first"
        )
    for fault in session.faults():
        yield Fault(where="storage", what=fault, remedy="restore a backup (svcd restore)")
    for table in shape(number).every:
        if table.name in TRANSIENT and table.name != "seals":
            continue
        rows = 0
        if table.name == "pieces":  # the check of a binary reads its pieces
            rows = int((session.one("select count(*) from pieces") or (0,))[0])
        else:
            for row in session.rows(table.select):
                rows += 1
                yield from _row(session, table, dict(zip(table.columns, row, strict=True)), sealer)
        if table.name not in TRANSIENT:
            yield Counted(table=table.name, rows=rows)
    yield from _references(session)


def _row(
    session: OfflineSession, table: TableShape, row: Mapping[str, Any], sealer: Sealer | None
) -> Iterator[Fault]:
    where = place_of(table, row)
    if sealer is not None:
        for sealed in sealed_texts(table.name, row):
            yield from _sealed(where, sealed, sealer)
    family = FAMILIES.get(table.name)
    kind = ClusterEvent if family is None else family.table.record
    if "record" not in row:
        return
    try:
        record: Any = msgspec.json.decode(row["record"], type=kind)
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        yield Fault(where=where, what=f"its record cannot be read: {error}", remedy=_BY_HAND)
        return
    if family is None:
        return
    columns: dict[str, Any] = {
        "id": lambda r: r.id,
        "tenant_id": lambda r: r.tenant_id,
        "created_at": lambda r: r.created_at,
        **family.table.columns,
    }
    for column, value in columns.items():
        # The id of a binary's upload may differ from the id of its record.
        if row[column] != value(record) and column != "upload_id":
            yield Fault(where=where, what=f"{column} is not what its record says", remedy=_BY_HAND)
    if "wire" in row:
        yield from _wire(where, row)
    if table.name == "internals":
        yield from _binary(session, where, row["upload_id"], record)
    yield from _mentioned(session, table.name, where, record)


def _wire(where: str, row: Mapping[str, Any]) -> Iterator[Fault]:
    try:
        shown = msgspec.json.decode(row["wire"], type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, TypeError) as error:
        yield Fault(where=where, what=f"its wire form cannot be read: {error}", remedy=_BY_HAND)
        return
    if shown.get("id") != row["id"]:
        yield Fault(where=where, what="its wire form has another id", remedy=_BY_HAND)


def place_of(table: TableShape, row: Mapping[str, Any]) -> str:
    """A row as messages name it: the table and the key."""
    return f"{table.name} " + " ".join(str(row[column]) for column in table.key)


def sealed_texts(table: str, row: Mapping[str, Any]) -> Iterator[SealedText]:
    """The sealed texts of a row, also of one whose record is not sound. row: by column."""
    if row.get("sealed") is not None:
        kind, remedy = _SEALED.get(table, (Credentials, _LOST_CREDENTIALS))
        yield SealedText(text=row["sealed"], kind=kind, remedy=remedy)
    if table == "clusters":
        # a record that does not decode has no sealed text
        with contextlib.suppress(msgspec.MsgspecError, ValueError, TypeError):
            key = msgspec.json.decode(row["record"], type=_Key).management_private_key
            if key:
                yield SealedText(text=key, kind=None, remedy=_LOST_CREDENTIALS)


def _sealed(where: str, sealed: SealedText, sealer: Sealer) -> Iterator[Fault]:
    remedy = sealed.remedy
    try:
        opened = sealer.open(sealed.text).reveal()
        if sealed.kind is not None:
            msgspec.json.decode(opened, type=sealed.kind)
    except SealerError as error:
        yield Fault(where=where, what=str(error).split(":")[0], remedy=remedy)
    except (msgspec.MsgspecError, ValueError):
        yield Fault(where=where, what="its sealed text has the wrong content", remedy=remedy)


def _binary(session: OfflineSession, where: str, upload_id: str, record: Any) -> Iterator[Fault]:
    remedy = "upload it again under another name, and delete this one; or restore a backup"
    digest, size, wanted = hashlib.sha256(), 0, 0
    for number, content in session.rows(_PIECES, {"upload_id": upload_id}):
        if number != wanted:
            yield Fault(where=where, what=f"piece {wanted} is missing", remedy=remedy)
            wanted = number
        wanted += 1
        digest.update(content)
        size += len(content)
    if size != record.datasize:
        what = f"its pieces have {size} bytes, not {record.datasize}"
        yield Fault(where=where, what=what, remedy=remedy)
    elif digest.hexdigest() != record.digest:
        yield Fault(where=where, what="its bytes are not those that were uploaded", remedy=remedy)


def _mentioned(session: OfflineSession, table: str, where: str, record: Any) -> Iterator[Fault]:
    """Faults of the rows that the JSON of `record` names."""
    wanted: list[tuple[str, str, str]] = []
    if table == "jobs":
        remedy = "delete the job and make it again"
        wanted = [("job_binaries", main, remedy) for main in (*record.mains, *record.libs)]
    elif table == "job_binaries" and record.url.startswith(INTERNAL_URL):
        remedy = "upload it again and make the job binary again"
        wanted = [("internals", record.url.removeprefix(INTERNAL_URL), remedy)]
    elif table in ("clusters", "cluster_templates"):
        remedy = "none needed: the values were copied; only their template is unknown"
        wanted = [
            ("node_group_templates", group.node_group_template_id, remedy)
            for group in record.node_groups
            if group.node_group_template_id
        ]
    if table == "clusters":
        remedy = "none for the machines that it has; add further ones in a new group"
        scripts = (script for group in record.node_groups for script in group.scripts)
        wanted += [("internals", script.internal_id, remedy) for script in scripts]
    for other, id_, remedy in wanted:
        values = {"id": id_, "tenant_id": record.tenant_id}
        if session.one(_THERE.format(other=other), values) is None:
            yield Fault(where=where, what=f"{id_} of {other} is gone", remedy=remedy)


def _references(session: OfflineSession) -> Iterator[Fault]:
    for table, column, other, remedy in _REFERENCES:
        text = _GONE.format(
            table=table,
            column=column,
            other=other,
            same=_SAME.format(column=column),
            more=_WANTED if table == "executions" else "",
        )
        for id_, tenant, gone in session.rows(text):
            yield Fault(
                where=f"{table} {id_}",
                what=f"its {column} {gone} is gone",
                remedy=remedy.format(tenant=tenant, id=id_),
            )
    for (cluster_id,) in session.rows(_EVENTS_GONE):
        yield Fault(
            where=f"cluster_events {cluster_id}", what="their cluster is gone", remedy=_BY_HAND
        )
    for upload_id, count in session.rows(_UNOWNED):
        yield Fault(
            where=f"pieces {upload_id}",
            what=f"{count} pieces belong to no binary",
            remedy="restart the daemon: it removes them at its start",
        )
