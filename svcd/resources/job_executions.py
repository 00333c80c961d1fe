"""The resource of the job executions. One execution is not wrapped (interface), the list is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.model import wire_jobs
from svcd.model.ids import ExecutionId
from svcd.resources._answers import Answer
from svcd.resources._policy import Needs
from svcd.resources._query import paged
from svcd.resources._route import Call, route
from svcd.resources.dependencies import ApiServices

_LIST = paged("job_id", "cluster_id", "input_id", "output_id", "status")


class JobExecutions:
    """Job executions: runs of a job on a cluster."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.jobs

    @route(app, "GET", "/job-executions", returns="job_executions", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.JobExecution]]:
        """List the job executions of the tenant, in the order of their creation."""
        with self._lists.begin(call.gone) as reading:
            return await reading.rendered(
                call.page, lambda tx, *part: tx.executions.rendered_page(call.tenant_id, *part)
            )

    @route(app, "GET", "/job-executions/<execution_id>", since="1.1")
    async def get(self, call: Call, execution_id: str) -> Annotated[bytes, wire_jobs.JobExecution]:
        """Return one job execution with the status that svcd last read from the engine."""
        id_ = ExecutionId(execution_id)
        return await self._store.rendered("executions", call.tenant_id, id_)

    @route(
        app,
        "GET",
        "/job-executions/<execution_id>/refresh-status",
        needs=Needs.WRITE,
        since="1.1",
        operation="refreshJobExecutionByGet",
    )
    async def refresh(self, call: Call, execution_id: str) -> wire_jobs.JobExecution:
        """Read the status from the engine now, and return the job execution."""
        id_ = ExecutionId(execution_id)
        return wire_jobs.JobExecution.of(await self._commands.refresh(call.caller, id_))

    @route(
        app,
        "POST",
        "/job-executions/<execution_id>/refresh-status",
        success=200,
        since="1.1",
        operation="refreshJobExecution",
    )
    async def refresh_by_post(self, call: Call, execution_id: str) -> wire_jobs.JobExecution:
        """Read the status from the engine now, and return the job execution (additive)."""
        return await self.refresh(call, execution_id)

    @route(
        app,
        "GET",
        "/job-executions/<execution_id>/cancel",
        needs=Needs.WRITE,
        since="1.1",
        operation="cancelJobExecutionByGet",
    )
    async def cancel(self, call: Call, execution_id: str) -> wire_jobs.JobExecution:
        """Cancel a job execution. A finished one is returned unchanged."""
        id_ = ExecutionId(execution_id)
        return wire_jobs.JobExecution.of(await self._commands.cancel(call.caller, id_))

    @route(
        app,
        "POST",
        "/job-executions/<execution_id>/cancel",
        success=200,
        since="1.1",
        operation="cancelJobExecution",
    )
    async def cancel_by_post(self, call: Call, execution_id: str) -> wire_jobs.JobExecution:
        """Cancel a job execution. A finished one is returned unchanged (additive)."""
        return await self.cancel(call, execution_id)

    @route(
        app,
        "GET",
        "/job-executions/<execution_id>/log",
        plain=True,
        since="1.1",
        operation="getJobExecutionLog",
        media="text/plain",
    )
    async def log(self, call: Call, execution_id: str) -> Answer:
        """Return the engine's log of a job execution (additive)."""
        text = await self._commands.log(call.caller, ExecutionId(execution_id))
        return Answer(200, text, b"text/plain; charset=utf-8")

    @route(app, "DELETE", "/job-executions/<execution_id>", since="1.1")
    async def delete(self, call: Call, execution_id: str) -> None:
        """Delete a job execution. svcd first kills it when it is running."""
        await self._commands.delete_execution(call.caller, ExecutionId(execution_id))
