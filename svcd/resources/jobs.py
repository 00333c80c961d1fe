"""The resource of the jobs: jobs, hints for their configuration, and their execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import (
    RULES,
    BadJobBinary,
    ClusterNameTaken,
    DeletionFailed,
    InvalidData,
    InvalidReference,
    JobNameTaken,
)
from svcd.model import wire_jobs
from svcd.model.ids import JobId
from svcd.model.job import Job
from svcd.model.requests import ExecuteRequest, NewJob
from svcd.model.wire_plans import ExecutionPlan, RecordPlan
from svcd.ports.store import Tx
from svcd.resources._call import Call
from svcd.resources._change_records import expanded
from svcd.resources._lists import ROWS, items
from svcd.resources._query import paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices

_LIST = paged("name", "type")


class Jobs:
    """Jobs: main binaries and libraries of a type, and their execution."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.jobs
        self._distributions = services.distributions

    @route(app, "GET", "/jobs", returns="jobs", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.Job]]:
        """List the jobs of the tenant with their binaries, in the order of their creation."""
        with self._lists.begin(call.gone) as reading:
            parts = reading.records(call.page, lambda tx, part: tx.jobs.page(call.tenant_id, part))
            async for part in parts:
                for jobs in _batches(part):
                    if reading.found:
                        await reading.next_turn()
                    reading.keep(items(await self._shown(call, jobs)))
            return reading.found

    async def _shown(self, call: Call, jobs: Sequence[Job]) -> Sequence[wire_jobs.Job]:
        """The answers for `jobs`, with their binaries."""
        hide = call.hides_credentials
        return await self._store.read(lambda tx: expanded(tx, call.tenant_id, jobs, hide))

    @route(app, "GET", "/jobs/<job_id>", returns="job", since="1.1")
    async def get(self, call: Call, job_id: str) -> wire_jobs.Job:
        """Return one job with its binaries."""

        async def load(tx: Tx) -> wire_jobs.Job:
            job = await tx.jobs.get(call.tenant_id, JobId(job_id))
            return (await expanded(tx, call.tenant_id, [job], call.hides_credentials))[0]

        return await self._store.read(load)

    @route(
        app,
        "POST",
        "/jobs",
        body=NewJob,
        returns="job",
        since="1.1",
        creates=True,
        plan="_plan_new",
        raises=(InvalidData, InvalidReference, JobNameTaken),
    )
    async def create(self, call: Call, body: NewJob) -> wire_jobs.Job:
        """Create a job."""
        job = await self._commands.create_job(call.caller, body, call.key)
        return (await self._shown(call, [job]))[0]

    async def _plan_new(self, call: Call, body: NewJob) -> RecordPlan:
        made = await self._commands.create_job(call.caller, body, dry=True)
        return RecordPlan(name=made.name)

    @route(app, "DELETE", "/jobs/<job_id>", since="1.1", raises=(DeletionFailed,))
    async def delete(self, call: Call, job_id: str) -> None:
        """Delete a job. It is refused while an execution refers to the job."""
        await self._store.tx(lambda tx: tx.jobs.remove(call.tenant_id, JobId(job_id)))

    @route(
        app,
        "GET",
        "/jobs/config-hints/<job_type>",
        returns="job_config",
        since="1.1",
        operation="getJobConfigHints",
    )
    async def hints(self, call: Call, job_type: str) -> wire_jobs.JobConfig:
        """Return the configuration hints for a job type."""
        return self._commands.hints(job_type)

    async def _exists(self, call: Call, job_id: str) -> None:
        await self._store.read(lambda tx: tx.jobs.get(call.tenant_id, JobId(job_id)))

    @route(
        app,
        "POST",
        "/jobs/<job_id>/execute",
        body=ExecuteRequest,
        returns="job_execution",
        exists="_exists",
        since="1.1",
        creates=True,
        plan="_plan",
        raises=(*RULES, ClusterNameTaken, BadJobBinary),
    )
    async def execute(
        self, call: Call, job_id: str, body: ExecuteRequest
    ) -> wire_jobs.JobExecution:
        """Accept an execution on a cluster, or on a new transient cluster (additive)."""
        return wire_jobs.JobExecution.of(
            await self._commands.execute(call.caller, JobId(job_id), body, call.key)
        )

    async def _plan(self, call: Call, job_id: str, body: ExecuteRequest) -> ExecutionPlan:
        return await self._commands.plan(call.caller, JobId(job_id), body)


def _batches(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """`jobs` in order, in batches that name at most `ROWS` binaries, or are a single job."""
    batch: list[Job] = []
    count = 0
    for job in jobs:
        more = len(job.mains) + len(job.libs)
        if batch and count + more > ROWS:
            yield batch
            batch, count = [], 0
        batch.append(job)
        count += more
    if batch:
        yield batch
