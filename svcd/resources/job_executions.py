"""The resource of the job executions. One execution is not wrapped (interface), the list is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import ValidationError
from svcd.model import wire_jobs
from svcd.model.cluster import Cluster
from svcd.model.execution_log import LogPart
from svcd.model.ids import ExecutionId
from svcd.model.job import Execution
from svcd.model.wire_job_story import ExecutionStory
from svcd.ports.store import Tx
from svcd.resources._answers import Answer
from svcd.resources._call import Call
from svcd.resources._policy import Needs
from svcd.resources._query import WAIT, Query, paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices
from svcd.workflow.decide.story import story_of

_OFFSET = Query("offset", "only the text from this byte on", most=2**53)
_PROGRAMS = Query("programs", "only the lines that programs of the job have written", flag=True)
_LOOK_S = 1.0
"""Time between two looks at a log that a request waits for: the cluster announces nothing."""
_TEXT = b"text/plain; charset=utf-8"
_LIST = paged("job_id", "cluster_id", "input_id", "output_id", "status")


class JobExecutions:
    """Job executions: runs of a job on a cluster."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._waits = services.waits
        self._commands = services.jobs

    @route(app, "GET", "/job-executions", returns="job_executions", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.JobExecution]]:
        """List the job executions of the tenant, in the order of their creation."""
        return await self._lists.rendered(call, "executions")

    @route(app, "GET", "/job-executions/<execution_id>", since="1.1")
    async def get(self, call: Call, execution_id: str) -> Annotated[bytes, wire_jobs.JobExecution]:
        """Return one job execution with the status that svcd last read from the engine."""
        id_ = ExecutionId(execution_id)
        return await self._store.rendered("executions", call.tenant_id, id_)

    @route(
        app,
        "GET",
        "/job-executions/<execution_id>/story",
        returns="story",
        since="1.1",
        operation="getJobExecutionStory",
    )
    async def story(self, call: Call, execution_id: str) -> ExecutionStory:
        """Tell what happens with a job execution, what is wrong, and its steps (additive)."""

        async def read(tx: Tx) -> tuple[Execution, Cluster | None]:
            execution = await tx.executions.get(call.tenant_id, ExecutionId(execution_id))
            id_ = execution.cluster_id
            return execution, None if id_ is None else await tx.clusters.find(id_)

        return story_of(*await self._store.read(read))

    @route(
        app,
        "GET",
        "/job-executions/<execution_id>/refresh-status",
        needs=Needs.WRITE,
        audited=False,
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
        audited=False,
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
        query=(_OFFSET, _PROGRAMS, WAIT),
        headers={
            "X-Log-Start": "with `offset`: offset of the first byte that is kept",
            "X-Log-Offset": "with `offset`: the next offset",
            "X-Log-Complete": "with `offset`: true when nothing will be appended, else false",
            "X-Log-Gap": "with `offset`: true when lines of svcd in the text name missing parts",
            "X-Log-Left-Out": "with `programs`: number of lines that this answer leaves out",
        },
    )
    async def log(self, call: Call, execution_id: str) -> Answer:
        """Return the log of a job execution: its programs' output, and the engine's log (additive).

        With `offset` it is the rest of one text to which svcd only appends; a line of svcd stands
        in place of bytes that are not kept. With `wait` the answer comes when there is more of it.
        With `programs` the lines of Oozie, its launcher, Hadoop, Pig and Spark are left out of the
        answer; the offsets and the other headers stay those of the whole text.
        HEAD answers from the kept text at once, and reads nothing for it.
        """
        id_ = ExecutionId(execution_id)
        offset, programs = call.query["offset"], call.query["programs"]
        for name, is_given in (("wait", call.query["wait"] is not None), ("programs", programs)):
            if offset is None and is_given:
                raise ValidationError(f"?{name}: needs ?offset, the value of X-Log-Offset or 0")
        if offset is None and call.head:
            return Answer(
                200, (await self._commands.log_part(call.caller, id_, 0, look=False)).text, _TEXT
            )
        if offset is None:
            return Answer(200, await self._commands.log(call.caller, id_), _TEXT)

        async def read() -> tuple[bool, LogPart]:
            part = await self._commands.log_part(call.caller, id_, offset, programs)
            return part.end > offset or part.complete, part

        if call.head:
            part = await self._commands.log_part(call.caller, id_, offset, programs, look=False)
        else:
            part = await self._waits.newer(call, read, _LOOK_S)
        call.headers["X-Log-Start"] = str(part.start)
        call.headers["X-Log-Offset"] = str(part.end)
        call.headers["X-Log-Complete"] = "true" if part.complete else "false"
        call.headers["X-Log-Gap"] = "true" if part.gap else "false"
        if programs:
            call.headers["X-Log-Left-Out"] = str(part.left_out)
        return Answer(200, part.text, _TEXT)

    @route(app, "DELETE", "/job-executions/<execution_id>", since="1.1")
    async def delete(self, call: Call, execution_id: str) -> None:
        """Delete a job execution. svcd first kills it when it is running."""
        await self._commands.delete_execution(call.caller, ExecutionId(execution_id))
