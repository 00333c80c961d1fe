"""Data sources, internal binaries with their pieces, job binaries and jobs."""

from __future__ import annotations

from svcd.errors import (
    DataSourceNameTaken,
    JobBinaryInternalNameTaken,
    JobBinaryNameTaken,
    JobNameTaken,
    QuotaExceeded,
    ServiceUnavailable,
)
from svcd.model.ids import JobBinaryInternalId
from svcd.model.job import INTERNAL_URL, DataSource, Job, JobBinary, JobBinaryInternal
from svcd.store.database import Conflict
from svcd.store.family import Family, Scope, Table, references

_SOURCE_USERS = """
select 'job execution', id from executions
 where (input_id = :id or output_id = :id) and (hidden = 0 or ended = 0)
 order by created_at, id limit 5
"""
_INTERNAL_USERS = f"""
select 'job binary', name from job_binaries
 where tenant_id = :tenant_id and url = '{INTERNAL_URL}' || :id
 union all
select 'cluster', name from clusters where tenant_id = :tenant_id and refs like :pattern limit 5
"""
_BINARY_USERS = """
select 'job', name from jobs where tenant_id = :tenant_id and refs like :pattern limit 5
"""
_JOB_USERS = """
select 'job execution', id from executions where job_id = :id and (hidden = 0 or ended = 0)
 order by created_at, id limit 5
"""

_BEGIN = """
insert into uploads (id, holder, tenant_id, size) values (:id, :holder, :tenant_id, :size)
"""
_USED = """
select coalesce(sum(size), 0)
     + (select coalesce(sum(size), 0) from uploads where tenant_id = :tenant_id)
  from internals where tenant_id = :tenant_id
"""
_PIECE = """
insert into pieces (upload_id, number, content)
select id, :number, :content from uploads where id = :upload_id
"""
_FINISH = "delete from uploads where id = :id"
_READ_PIECE = """
select p.content from pieces p join internals i on i.upload_id = p.upload_id
 where i.id = :id and p.number = :number
"""
_UPLOAD_ID = "select upload_id from internals where id = :id"


def _given_up() -> ServiceUnavailable:
    """The error of an upload whose pieces another daemon has deleted.

    That daemon found this one dead, for example because it was suspended.
    """
    return ServiceUnavailable("the upload was interrupted; nothing was stored, send it again")


class DataSources(Family[DataSource]):
    table = Table(
        name="data_sources",
        kind="data_sources",
        what="data source",
        record=DataSource,
        columns={
            "name": lambda r: r.name,
            "type": lambda r: r.type,
            "url": lambda r: r.url,
        },
        filters=frozenset({"name", "type", "url"}),
        taken=DataSourceNameTaken,
        users=_SOURCE_USERS,
        sealed="credentials",
    )


class Internals(Family[JobBinaryInternal]):
    """Internal binaries. Their bytes are rows of `pieces`, written before the record exists.

    Pieces without an owner are deleted apart: `SqlStore.drop_pieces`.
    """

    table = Table(
        name="internals",
        kind="job_binary_internals",
        what="job binary internal",
        record=JobBinaryInternal,
        columns={
            "name": lambda r: r.name,
            "upload_id": lambda r: r.id,
            "size": lambda r: r.datasize,
        },
        filters=frozenset({"name"}),
        taken=JobBinaryInternalNameTaken,
        users=_INTERNAL_USERS,
    )

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._most_bytes = scope.limits.binary_bytes
        self._holder = scope.holder

    async def begin(self, upload_id: str, tenant_id: str, size: int) -> None:
        await self._refuse_if_too_large(tenant_id, size)
        values = {"id": upload_id, "holder": self._holder, "tenant_id": tenant_id, "size": size}
        await self._sql.run(_BEGIN, values)

    async def _refuse_if_too_large(self, tenant_id: str, size: int) -> None:
        """Raise QuotaExceeded when the tenant may not store `size` more bytes."""
        if not self._most_bytes:
            return
        row = await self._sql.one(_USED, {"tenant_id": tenant_id})
        used = 0 if row is None else int(row[0])
        if size > self._most_bytes:
            raise QuotaExceeded(
                f"the upload needs {size} bytes, and all {self.table.what}s of a tenant may have"
                f" {self._most_bytes} (limits.binary_bytes): store a smaller one, and send its"
                " Content-Length; without it an upload needs the bytes of server.max_binary_bytes"
            )
        if used + size > self._most_bytes:
            raise QuotaExceeded(
                f"the upload needs {size} bytes; the tenant's {self.table.what}s and its uploads"
                f" under way have {used} of {self._most_bytes} (limits.binary_bytes): delete"
                f" {self.table.what}s that you do not need. An upload without Content-Length needs"
                " the bytes of server.max_binary_bytes"
            )

    async def append(self, upload_id: str, index: int, piece: bytes) -> None:
        values = {"upload_id": upload_id, "number": index, "content": piece}
        if not await self._sql.run(_PIECE, values):
            raise _given_up()

    async def finish(self, upload_id: str, record: JobBinaryInternal) -> None:
        await self.refuse_if_full(record.tenant_id)
        values = {**self._values(record), "upload_id": upload_id}
        try:
            await self._sql.run(self.table.insert, values)
        except Conflict as conflict:
            raise self._refused(record, conflict) from None
        await self._note(record, "created")
        if not await self._sql.run(_FINISH, {"id": upload_id}):
            raise _given_up()

    async def abandon(self, upload_id: str) -> None:
        """End an unfinished upload: its pieces have no owner then.

        A finished upload stays: only the answer of `finish` may have been lost.
        """
        await self._sql.run(_FINISH, {"id": upload_id})

    async def piece(self, id_: JobBinaryInternalId, index: int) -> bytes | None:
        row = await self._sql.one(_READ_PIECE, {"id": id_, "number": index})
        return None if row is None else bytes(row[0])

    async def upload_id(self, id_: str) -> str:
        row = await self._sql.one(_UPLOAD_ID, {"id": id_})
        return "" if row is None else str(row[0])


class JobBinaries(Family[JobBinary]):
    table = Table(
        name="job_binaries",
        kind="job_binaries",
        what="job binary",
        record=JobBinary,
        columns={"name": lambda r: r.name, "url": lambda r: r.url},
        filters=frozenset({"name", "url"}),
        taken=JobBinaryNameTaken,
        users=_BINARY_USERS,
        sealed="extra",
    )


class Jobs(Family[Job]):
    table = Table(
        name="jobs",
        kind="jobs",
        what="job",
        record=Job,
        columns={
            "name": lambda r: r.name,
            "type": lambda r: r.type.value,
            "refs": lambda r: references([*r.mains, *r.libs]),
        },
        filters=frozenset({"name", "type"}),
        taken=JobNameTaken,
        users=_JOB_USERS,
    )
