"""The resource of the job binaries: links to binaries in svcd or in the object store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import (
    BadJobBinary,
    DeletionFailed,
    InvalidCredentials,
    InvalidData,
    InvalidReference,
    JobBinaryNameTaken,
)
from svcd.model import wire_jobs
from svcd.model.ids import JobBinaryId
from svcd.model.job import JobBinary
from svcd.model.requests import NewJobBinary
from svcd.model.wire_plans import RecordPlan
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.resources._answers import Download
from svcd.resources._call import Call
from svcd.resources._query import paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices
from svcd.workflow.binaries import Binaries

_LIST = paged("name", "url")


class JobBinaries:
    """Job binaries: links to binaries in svcd or in the object store."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.jobs
        self._binaries = Binaries(services.store, services.object_store)

    @route(app, "GET", "/job-binaries", returns="binaries", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.JobBinary]]:
        """List the job binaries of the tenant, in the order of their creation."""
        hide = call.hides_credentials
        return await self._lists.encoded(
            call, "job_binaries", lambda record: wire_jobs.JobBinary.of(record, hide)
        )

    @route(app, "GET", "/job-binaries/<binary_id>", returns="job_binary", since="1.1")
    async def get(self, call: Call, binary_id: str) -> wire_jobs.JobBinary:
        """Return one job binary."""
        return wire_jobs.JobBinary.of(await self._record(call, binary_id), call.hides_credentials)

    async def _record(self, call: Call, binary_id: str) -> JobBinary:
        id_ = JobBinaryId(binary_id)
        return await self._store.read(lambda tx: tx.job_binaries.get(call.tenant_id, id_))

    @route(
        app,
        "POST",
        "/job-binaries",
        body=NewJobBinary,
        returns="job_binary",
        since="1.1",
        creates=True,
        plan="_plan_new",
        raises=(
            BadJobBinary,
            InvalidCredentials,
            InvalidReference,
            InvalidData,
            JobBinaryNameTaken,
        ),
    )
    async def create(self, call: Call, body: NewJobBinary) -> wire_jobs.JobBinary:
        """Create a job binary."""
        record = await self._commands.create_job_binary(call.caller, body, call.key)
        return wire_jobs.JobBinary.of(record, call.hides_credentials, created=True)

    async def _plan_new(self, call: Call, body: NewJobBinary) -> RecordPlan:
        made = await self._commands.create_job_binary(call.caller, body, dry=True)
        return RecordPlan(name=made.name)

    @route(app, "DELETE", "/job-binaries/<binary_id>", since="1.1", raises=(DeletionFailed,))
    async def delete(self, call: Call, binary_id: str) -> None:
        """Delete a job binary. It is refused while a job uses the binary."""
        id_ = JobBinaryId(binary_id)
        await self._store.tx(lambda tx: tx.job_binaries.remove(call.tenant_id, id_))

    @route(
        app,
        "GET",
        "/job-binaries/<binary_id>/data",
        plain=True,
        since="1.1",
        operation="downloadJobBinary",
        media="text/html",
        raises=(BadJobBinary, InvalidReference),
    )
    async def data(self, call: Call, binary_id: str) -> Download:
        """Return the raw data of a job binary, from svcd or from the object store."""
        record = await self._record(call, binary_id)
        try:
            size, pieces = await self._binaries.open(call.tenant_id, record)
        except CloudError as error:
            where = f"job binary {binary_id!r}: {error.text}"
            if error.kind is Fault.UNAUTHORIZED:
                raise BadJobBinary(
                    f"the object store refuses the user or password of {where}"
                ) from None
            if error.kind is Fault.FORBIDDEN:
                raise BadJobBinary(f"the object store does not let the user read {where}") from None
            if error.kind is Fault.NOT_FOUND:
                raise InvalidReference(f"there is no object at the url of {where}") from None
            raise
        return Download(size=size, pieces=pieces)
