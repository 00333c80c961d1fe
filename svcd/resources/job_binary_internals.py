"""The resource of the job binary internals: raw data that svcd keeps, in pieces of 256 KiB.

Note: why `except Exception` is here. The pieces of a failed upload must go, whatever has failed:
the caller, the database or svcd itself. `finally` would also run when the process ends and closes
this coroutine, which cannot wait for the database then. The next start removes the
pieces of an ended process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated

from klein import Klein

from svcd.errors import (
    BadJobBinary,
    DeletionFailed,
    JobBinaryInternalNameTaken,
    QuotaExceeded,
    ServiceUnavailable,
)
from svcd.model import names, wire_jobs
from svcd.model.ids import JobBinaryInternalId, timestamp
from svcd.model.job import JobBinaryInternal
from svcd.ports.store import Tx
from svcd.resources._answers import Download
from svcd.resources._bodies import Body
from svcd.resources._call import Call
from svcd.resources._query import paged
from svcd.resources._route import RAW, route
from svcd.resources.dependencies import ApiServices
from svcd.workflow.binaries import Binaries

_LIST = paged("name")


class JobBinaryInternals:
    """Job binary internals: binaries that svcd keeps."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._binaries = Binaries(services.store, services.object_store)
        self._clock = services.clock
        self._new_id = services.new_id
        self._metrics = services.metrics
        self._most_bytes = services.settings.server.max_binary_bytes
        self._left: set[str] = set()
        """Failed uploads that have not been abandoned, because the database did not answer.

        The next upload abandons them, and a sweep of the store deletes their pieces.
        """

    @route(app, "GET", "/job-binary-internals", returns="binaries", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.JobBinaryInternal]]:
        """List the job binary internals of the tenant, in the order of their creation."""
        return await self._lists.encoded(call, "internals", wire_jobs.JobBinaryInternal.of)

    @route(
        app, "GET", "/job-binary-internals/<binary_id>", returns="job_binary_internal", since="1.1"
    )
    async def get(self, call: Call, binary_id: str) -> wire_jobs.JobBinaryInternal:
        """Return one job binary internal, without its data."""
        return wire_jobs.JobBinaryInternal.of(await self._record(call, binary_id))

    async def _record(self, call: Call, binary_id: str) -> JobBinaryInternal:
        id_ = JobBinaryInternalId(binary_id)
        return await self._store.read(lambda tx: tx.internals.get(call.tenant_id, id_))

    @route(
        app,
        "PUT",
        "/job-binary-internals/<name>",
        body=RAW,
        streams=True,
        limit="binary",
        raises=(BadJobBinary, JobBinaryInternalNameTaken, QuotaExceeded),
        suffix=False,
        returns="job_binary_internal",
        since="1.1",
    )
    async def upload(self, call: Call, name: str, body: Body) -> wire_jobs.JobBinaryInternal:
        """Store the body under the name in the path. Its media type is ignored."""
        if not names.is_data_name(name):
            raise BadJobBinary(
                f"the name in the path must have 1 to {names.MAX_NAME} characters: "
                + names.DESCRIPTIONS[names.DATA_NAME]
            )
        for left in list(self._left):
            await self._abandon(left)
        upload_id = self._new_id()
        size = self._most_bytes if body.size is None else body.size
        try:
            await self._store.tx(lambda tx: tx.internals.begin(upload_id, call.tenant_id, size))
            record = await self._receive(call, name, body, upload_id)
        except Exception:  # see the note
            self._left.add(upload_id)
            with suppress(ServiceUnavailable):  # the caller gets the first fault
                await self._abandon(upload_id)
                await self._store.drop_pieces(upload_id)
            raise
        self._metrics.uploaded(record.datasize)
        return wire_jobs.JobBinaryInternal.of(record)

    async def _receive(
        self, call: Call, name: str, body: Body, upload_id: str
    ) -> JobBinaryInternal:
        digest, size, index = hashlib.sha256(), 0, 0
        async for piece in body:
            await self._append(upload_id, index, piece)
            digest.update(piece)
            size += len(piece)
            index += 1
        if not size:
            raise BadJobBinary("the body is empty: send the data of the binary")
        record = JobBinaryInternal(
            id=JobBinaryInternalId(self._new_id()),
            tenant_id=call.tenant_id,
            name=name,
            datasize=size,
            digest=digest.hexdigest(),
            created_at=timestamp(self._clock.seconds()),
        )
        await self._store.tx(lambda tx: tx.internals.finish(upload_id, record))
        return record

    async def _abandon(self, upload_id: str) -> None:
        await self._store.tx(lambda tx: tx.internals.abandon(upload_id))
        self._left.discard(upload_id)

    async def _append(self, upload_id: str, index: int, piece: bytes) -> None:
        await self._store.tx(lambda tx: tx.internals.append(upload_id, index, piece))

    @route(
        app,
        "GET",
        "/job-binary-internals/<binary_id>/data",
        plain=True,
        since="1.1",
        operation="downloadJobBinaryInternal",
        media="text/html",
    )
    async def data(self, call: Call, binary_id: str) -> Download:
        """Return the raw data."""
        record = await self._record(call, binary_id)
        return Download(size=record.datasize, pieces=self._binaries.pieces(record))

    @route(
        app, "DELETE", "/job-binary-internals/<binary_id>", since="1.1", raises=(DeletionFailed,)
    )
    async def delete(self, call: Call, binary_id: str) -> None:
        """Delete a job binary internal. It is refused while a job binary or cluster uses it."""
        id_ = JobBinaryInternalId(binary_id)

        async def remove(tx: Tx) -> str:
            upload_id = await tx.internals.upload_id(id_)
            await tx.internals.remove(call.tenant_id, id_)
            return upload_id

        upload_id = await self._store.tx(remove)
        with suppress(ServiceUnavailable):  # a sweep of the store deletes them then
            await self._store.drop_pieces(upload_id)
