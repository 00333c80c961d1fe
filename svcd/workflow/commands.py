"""The requests on data processing: they check references and rules, and write rows.

An answer reports all faults of one kind. A refused request changes nothing. Only refresh, cancel
and log send requests to the engine, for a bounded time. The controller does all other work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.errors import (
    BadJobBinary,
    InvalidCredentials,
    InvalidData,
    NotFound,
    PlatformError,
    PlatformTimeout,
    ServiceUnavailable,
    SvcdError,
)
from svcd.model import wire_jobs
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster
from svcd.model.execution_log import LogPart
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import (
    ClusterId,
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobId,
    Timestamp,
    timestamp,
)
from svcd.model.job import DataSource, Execution, Job, JobBinary
from svcd.model.requests import ExecuteRequest, NewCluster, NewDataSource, NewJob, NewJobBinary
from svcd.model.wire_jobs import JobConfig
from svcd.model.wire_plans import ClusterPlan, ExecutionPlan
from svcd.ports.engine import EngineError, Engines
from svcd.ports.faults import Fault
from svcd.ports.store import Also, Store, Tx, added
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.settings import Workflow
from svcd.workflow.act.controller import Controller
from svcd.workflow.binaries import Internal, Object, location
from svcd.workflow.checks import Checks, References, check_job
from svcd.workflow.decide import arguments, lifecycle, rules
from svcd.workflow.decide.hints import job_config
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.preview import Checked, execution_plan

T = TypeVar("T")
CreateCluster = Callable[[Caller, NewCluster, Also[Cluster]], Awaitable[Cluster]]
PlanCluster = Callable[[Caller, NewCluster, Also[Cluster]], Awaitable[ClusterPlan]]

_ENGINE_S: Final = 20.0
"""Time for the engine's answers in one request."""


class Jobs:
    """The requests on data sources, binaries, jobs and executions.

    create_cluster: makes the transient cluster of an execute request with a cluster body, with the
    further writes in the same transaction. plan_cluster: its dry run. access: see Controller.
    """

    def __init__(
        self,
        *,
        store: Store,
        engines: Engines,
        controller: Controller,
        create_cluster: CreateCluster,
        plan_cluster: PlanCluster,
        clock: IReactorTime,
        new_id: Callable[[], str],
        settings: Workflow,
        access: ObjectStoreAccess | None = None,
    ) -> None:
        self._store = store
        self._engines = engines
        self._controller = controller
        self._create_cluster = create_cluster
        self._plan_cluster = plan_cluster
        self._clock = clock
        self._new_id = new_id
        self._cancel_s = settings.cancel_s
        self._rows = controller.rows
        self._logs = controller.logs
        self._kept_logs = controller.kept_logs
        self._checks = Checks(engines, controller.credentials, access)

    def hints(self, type_name: str) -> JobConfig:
        """The `job_config` of a job type. Raises NotFound."""
        return job_config(type_name, self._engines)

    # ---- data sources, binaries, jobs ----

    async def create_data_source(
        self,
        caller: Caller,
        new: NewDataSource,
        key: KeyedRequest | None = None,
        dry: bool = False,
    ) -> DataSource:
        """Create a data source; dry: only check that it could be created.

        Raises InvalidCredentials (half an account, or none for the object store), InvalidData (a
        text that XML does not allow) and DataSourceNameTaken.
        """
        if fault := new.credentials.fault("$.credentials"):
            raise InvalidCredentials(fault)
        credentials = new.credentials.whole()
        if new.type == "objstore" and credentials is None:
            raise InvalidCredentials(
                "$.credentials: a data source in the object store needs user and password"
            )
        if faults := rules.data_source_faults(new.url, credentials):
            raise InvalidData("\n".join(faults))
        record = DataSource(
            id=DataSourceId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            type=new.type,
            url=new.url,
            credentials=credentials,
            created_at=self._now(),
        )
        answer = partial(wire_jobs.DataSource.of, hide=_hides(key), created=True)
        return await added(self._store, lambda tx: tx.data_sources, record, answer, key, dry=dry)

    async def create_job_binary(
        self,
        caller: Caller,
        new: NewJobBinary,
        key: KeyedRequest | None = None,
        dry: bool = False,
    ) -> JobBinary:
        """Create a job binary; dry: only check that it could be created.

        Raises InvalidCredentials (half an account), BadJobBinary, InvalidData (no file may have
        the name), InvalidReference (unknown internal binary), JobBinaryNameTaken.
        """
        if fault := new.extra.fault("$.extra"):
            raise InvalidCredentials(fault)
        place = location(new.url)
        extra = new.extra.whole()
        if place is None:
            raise BadJobBinary(
                "$.url: expected internaldb://<job binary internal id> or "
                "objstore-internal://<container>/<object>, without the segments . and .."
            )
        if new.file_name is not None and (wrong := arguments.file_name_fault(new.file_name)):
            raise InvalidData(f"$.file_name: {wrong}")
        if isinstance(place, Object) and extra is None:
            raise BadJobBinary("$.extra: a binary in the object store needs user and password")
        record = JobBinary(
            id=JobBinaryId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            file_name=new.file_name,
            url=new.url,
            extra=extra,
            created_at=self._now(),
        )

        async def check(tx: Tx) -> None:
            await tx.job_binaries.refuse_if_full(caller.tenant_id)
            if isinstance(place, Internal):
                references = References(caller.tenant_id)
                await references.find(tx.internals, place.id, "$.url", "job binary internal")
                references.require()

        answer = partial(wire_jobs.JobBinary.of, hide=_hides(key), created=True)
        return await added(self._store, lambda tx: tx.job_binaries, record, answer, key, check, dry)

    async def create_job(
        self, caller: Caller, new: NewJob, key: KeyedRequest | None = None, dry: bool = False
    ) -> Job:
        """Create a job; dry: only check that it could be created.

        Raises InvalidData (rules of the type), InvalidReference, JobNameTaken.
        """
        record = Job(
            id=JobId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            type=new.type,
            mains=tuple(JobBinaryId(main) for main in new.mains),
            libs=tuple(JobBinaryId(lib) for lib in new.libs),
            created_at=self._now(),
        )

        binaries: dict[JobBinaryId, JobBinary] = {}

        async def check(tx: Tx) -> None:
            await tx.jobs.refuse_if_full(caller.tenant_id)
            binaries.update({binary.id: binary for binary in await check_job(tx, record)})

        answer = partial(wire_jobs.Job.of, binaries=binaries, hide=_hides(key))
        return await added(self._store, lambda tx: tx.jobs, record, answer, key, check, dry)

    # ---- executions ----

    async def execute(
        self,
        caller: Caller,
        job_id: JobId,
        new: ExecuteRequest,
        key: KeyedRequest | None = None,
    ) -> Execution:
        """Create an execution, `Pending`. It starts when its cluster is Active.

        Raises NotFound (the job), InvalidReference, InvalidData, and the errors of creating a
        cluster. A refused request leaves no cluster behind.
        """
        row = self._new_execution(caller, job_id, new)
        if new.cluster is None:
            await self._store.tx(lambda tx: self._write(tx, row, key))
            self._controller.wake(row.id)
            return row
        await self._store.read(lambda tx: self._checks.check(tx, row))

        async def write(tx: Tx, cluster: Cluster) -> None:
            """Write the execution too: svcd would never delete a cluster without one."""
            await self._write(tx, evolve(row, cluster_id=cluster.id), key)

        wanted = evolve(new.cluster, is_transient=True)
        cluster = await self._create_cluster(caller, wanted, write)
        self._controller.wake(row.id)
        return evolve(row, cluster_id=cluster.id)

    async def plan(self, caller: Caller, job_id: JobId, new: ExecuteRequest) -> ExecutionPlan:
        """The dry run of `execute`: the same checks, and nothing is written or made."""
        row = self._new_execution(caller, job_id, new)
        checked: Checked | None = None

        async def check(tx: Tx, cluster: Cluster | None = None) -> None:
            nonlocal checked
            checked = await self._checks.check(tx, row, cluster)
            await tx.executions.check_new(row)

        on: ClusterPlan | None = None
        if new.cluster is None:
            await self._store.read(check)
        else:
            await self._store.read(lambda tx: self._checks.check(tx, row))
            on = await self._plan_cluster(caller, evolve(new.cluster, is_transient=True), check)
        assert checked is not None
        return execution_plan(row, checked, on)

    def _new_execution(self, caller: Caller, job_id: JobId, new: ExecuteRequest) -> Execution:
        return Execution(
            id=ExecutionId(self._new_id()),
            tenant_id=caller.tenant_id,
            job_id=job_id,
            cluster_id=ClusterId(new.cluster_id) if new.cluster_id is not None else None,
            input_id=DataSourceId(new.input_id) if new.input_id is not None else None,
            output_id=DataSourceId(new.output_id) if new.output_id is not None else None,
            job_configs=new.job_configs,
            created_at=self._now(),
        )

    async def _write(self, tx: Tx, row: Execution, key: KeyedRequest | None) -> None:
        """Check and write the execution."""
        await tx.executions.refuse_if_full(row.tenant_id)
        await self._checks.check(tx, row)
        await tx.executions.add(row)
        await self._rows.notify(tx, row)
        if key is not None:
            await tx.kept_answers.add(key, wire_jobs.JobExecution.of(row).encoded())

    async def refresh(self, caller: Caller, id_: ExecutionId) -> Execution:
        """The execution with its status at the engine now; unchanged when it is not at the engine.

        Raises NotFound, ServiceUnavailable, PlatformTimeout, PlatformError.
        """
        row = await self._get(caller, id_)
        if lifecycle.is_over(row) or row.workflow_job_id is None:
            return row
        late = (
            f"the workflow engine did not send the status of job execution {id_} within"
            f" {_ENGINE_S:g} s; try again"
        )
        work = self._controller.refresh(row)
        return await self._within(_ENGINE_S, work, late, "the status was not refreshed")

    async def cancel(self, caller: Caller, id_: ExecutionId) -> Execution:
        """Cancel, and return the execution in its end state. svcd first records the cancel.

        A finished execution stays as it is. Raises NotFound, and PlatformTimeout, PlatformError or
        ServiceUnavailable when the engine does not answer within `workflow.cancel_s`.
        """
        row = await self._wish(caller, id_, delete=False)
        if row is None:
            raise NotFound.of("job execution", id_)
        if lifecycle.is_over(row):
            return row
        recorded, seconds = "svcd has recorded the cancel and completes it later", self._cancel_s
        late = (
            f"the workflow engine did not stop job execution {id_} within {seconds:g} s; {recorded}"
        )
        try:
            after = await self._within(seconds, self._controller.kill(row), late, recorded)
            if not lifecycle.is_over(after):
                raise PlatformTimeout(f"job execution {id_} has not stopped yet; {recorded}")
            return after
        except SvcdError:
            self._controller.wake()
            raise

    async def delete_execution(self, caller: Caller, id_: ExecutionId) -> None:
        """Delete the execution, at once for the caller. The controller kills its job if it runs.

        Raises NotFound.
        """
        row = await self._wish(caller, id_, delete=True)
        if row is None:
            return
        self._controller.wake(id_)
        if not lifecycle.is_over(row):
            self._controller.wake()

    async def log(self, caller: Caller, id_: ExecutionId) -> bytes:
        """The newest part of the programs' output and of the engine's log, as UTF-8 text.

        After the end it is the kept text. Raises NotFound. The text names the parts that cannot be
        read.
        """
        row = await self._get(caller, id_)
        if lifecycle.is_over(row) and (kept := await self._kept_logs.text(id_)) is not None:
            return kept
        place = await self._rows.place(row)
        if place is None:
            return self._logs.without_cluster(row)
        late = f"the logs of job execution {id_} were not read within {_ENGINE_S:g} s; try again"
        work = self._logs.of(row, place, await self._rows.secrets(row))
        return await self._within(_ENGINE_S, work, late, "the log was not read")

    async def log_part(
        self,
        caller: Caller,
        id_: ExecutionId,
        offset: int,
        programs: bool = False,
        look: bool = True,
    ) -> LogPart:
        """The log from `offset` on. Raises NotFound and ValidationError.

        programs: only the lines of the programs. look: read its files before.
        """
        row = await self._get(caller, id_)
        return await self._kept_logs.part(row, offset, programs, look)

    async def _get(self, caller: Caller, id_: ExecutionId) -> Execution:
        tenant = caller.tenant_id
        return await self._store.read(lambda tx: tx.executions.get(tenant, id_))

    async def _wish(self, caller: Caller, id_: ExecutionId, *, delete: bool) -> Execution | None:
        """Write the wish for a cancel, or for a delete, to the row. Raises NotFound."""
        await self._get(caller, id_)
        wished = partial(lifecycle.wished, delete=delete, now=self._now())
        return await self._rows.change(id_, wished)

    async def _within(self, seconds: float, work: Coroutine[Any, Any, T], late: str, but: str) -> T:
        """The result of `work` at the engine. late: the text when time is up; but: see _answer."""
        try:
            return await with_deadline(self._clock, seconds, "answer", work)
        except DeadlineExceeded:
            raise PlatformTimeout(late) from None
        except EngineError as error:
            raise _answer(error, but) from None

    def _now(self) -> Timestamp:
        return timestamp(self._clock.seconds())


def _answer(error: EngineError, but: str) -> SvcdError:
    """The error for the caller after a fault of the engine. but: the consequence."""
    if error.kind is Fault.TIMEOUT:
        return PlatformTimeout(f"the workflow engine did not answer; {but}")
    if error.kind in (Fault.UNREACHABLE, Fault.BUSY):
        return ServiceUnavailable(f"the workflow engine cannot be reached; {but}")
    return PlatformError(f"the workflow engine answered with an error ({error.text}); {but}")


def _hides(key: KeyedRequest | None) -> bool:
    """Whether the answer that is kept under the key masks credentials."""
    return key is not None and key.hides
