"""The requests on data processing: they check references and rules, and write rows.

An answer reports all faults of one kind. A refused request changes nothing. Only refresh, cancel
and log send requests to the engine, for a bounded time. The controller does all other work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from attrs import asdict, evolve
from twisted.internet.interfaces import IReactorTime

from svcd.errors import (
    BadJobBinary,
    InvalidCredentials,
    InvalidData,
    InvalidReference,
    NotFound,
    PlatformError,
    PlatformTimeout,
    ServiceUnavailable,
    SvcdError,
)
from svcd.model import wire_jobs
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.execution_log import LogPart
from svcd.model.failures import Code
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import (
    ClusterId,
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobId,
    TenantId,
    Timestamp,
    timestamp,
)
from svcd.model.job import (
    DataSource,
    Execution,
    ExecutionStatus,
    Job,
    JobBinary,
    JobConfigs,
    JobType,
)
from svcd.model.requests import (
    ExecuteRequest,
    NewCluster,
    NewDataSource,
    NewJob,
    NewJobBinary,
)
from svcd.model.wire_jobs import JobConfig
from svcd.model.wire_plans import ClusterPlan, ExecutionPlan
from svcd.ports.engine import Engine, EngineError, Engines
from svcd.ports.faults import Fault
from svcd.ports.store import Also, I_contra, R, Rows, Store, Tx, added
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.settings import Workflow
from svcd.workflow.act.controller import Controller
from svcd.workflow.binaries import Internal, Object, location
from svcd.workflow.decide import (
    arguments,
    data_urls,
    document,
    job_configs,
    lifecycle,
    rules,
    spark_job,
)
from svcd.workflow.decide.hints import job_config
from svcd.workflow.decide.job_configs import shown, xml_fault
from svcd.workflow.decide.job_types import TYPES, traits_of
from svcd.workflow.decide.material import Material, work_of
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.preview import Checked, execution_plan

CreateCluster = Callable[[Caller, NewCluster, Also[Cluster]], Awaitable[Cluster]]
PlanCluster = Callable[[Caller, NewCluster, Also[Cluster]], Awaitable[ClusterPlan]]

_UNUSABLE: Final = frozenset({ClusterStatus.DELETING, ClusterStatus.ERROR})
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
        engine: Engine,
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
        self._engine = engine
        self._engines = engines
        self._controller = controller
        self._create_cluster = create_cluster
        self._plan_cluster = plan_cluster
        self._clock = clock
        self._new_id = new_id
        self._settings = settings
        self._access = access
        self._rows = controller.rows
        self._logs = controller.logs
        self._kept_logs = controller.kept_logs

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
        account = {} if credentials is None else asdict(credentials)
        places = {"url": new.url, **{f"credentials.{k}": v for k, v in account.items()}}
        faults = [
            f"$.{place}: {wrong}" for place, text in places.items() if (wrong := xml_fault(text))
        ]
        if faults:
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
                what = "job binary internal"
                faults = await _fault_of(tx.internals, caller.tenant_id, place.id, "$.url", what)
                if faults:
                    raise InvalidReference("\n".join(faults))

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
            mains=tuple(JobBinaryId(each) for each in new.mains),
            libs=tuple(JobBinaryId(each) for each in new.libs),
            created_at=self._now(),
        )

        binaries: dict[JobBinaryId, JobBinary] = {}

        async def check(tx: Tx) -> None:
            await tx.jobs.refuse_if_full(caller.tenant_id)
            faults: list[str] = []
            for name, ids in (("mains", record.mains), ("libs", record.libs)):
                for index, id_ in enumerate(ids):
                    where = f"$.{name}[{index}]"
                    fault = await _fault_of(
                        tx.job_binaries, caller.tenant_id, id_, where, "job binary"
                    )
                    faults += fault
            if faults:
                raise InvalidReference("\n".join(faults))
            broken = list(rules.job_faults(record.type, record.mains, record.libs))
            get = tx.job_binaries.get
            mains = [await get(caller.tenant_id, each) for each in record.mains]
            libs = [await get(caller.tenant_id, each) for each in record.libs]
            binaries.update({binary.id: binary for binary in (*mains, *libs)})
            broken += arguments.file_faults(record.type, mains, libs)
            if record.type is JobType.SPARK:
                broken += spark_job.main_faults([each.file for each in mains])
            if broken:
                raise InvalidData("\n".join(broken))

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
            return await self._accept(row, key)
        await self._store.read(lambda tx: self._check(tx, row))

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
            checked = await self._check(tx, row, cluster)
            await tx.executions.check_new(row)

        on: ClusterPlan | None = None
        if new.cluster is None:
            await self._store.read(check)
        else:
            await self._store.read(lambda tx: self._check(tx, row))
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

    async def _accept(self, row: Execution, key: KeyedRequest | None) -> Execution:
        """Check and write the execution in one transaction."""
        await self._store.tx(lambda tx: self._write(tx, row, key))
        self._controller.wake(row.id)
        return row

    async def _write(self, tx: Tx, row: Execution, key: KeyedRequest | None) -> None:
        await tx.executions.refuse_if_full(row.tenant_id)
        await self._check(tx, row)
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
        try:
            work = self._controller.refresh(row)
            return await with_deadline(self._clock, _ENGINE_S, "status of the job", work)
        except DeadlineExceeded:
            raise PlatformTimeout(
                f"the workflow engine did not send the status of job execution {id_} within"
                f" {_ENGINE_S:g} s; try again"
            ) from None
        except EngineError as error:
            raise _answer(error, "the status was not refreshed") from None

    async def cancel(self, caller: Caller, id_: ExecutionId) -> Execution:
        """Cancel, and return the execution in its end state. svcd first records the cancel.

        A finished execution stays as it is. Raises NotFound, and PlatformTimeout, PlatformError or
        ServiceUnavailable when the engine does not answer within `workflow.cancel_s`.
        """
        await self._get(caller, id_)
        row = await self._wish(id_, delete=False)
        if row is None:
            raise NotFound.of("job execution", id_)
        if lifecycle.is_over(row):
            return row
        if row.workflow_job_id is None:  # svcd is submitting it at this moment
            self._controller.wake(id_)
        recorded = "svcd has recorded the cancel and completes it later"
        try:
            after = await with_deadline(
                self._clock, self._settings.cancel_s, "cancel", self._kill(row)
            )
        except DeadlineExceeded:
            self._controller.wake()
            raise PlatformTimeout(
                f"the workflow engine did not stop job execution {id_} within"
                f" {self._settings.cancel_s:g} s; {recorded}"
            ) from None
        except EngineError as error:
            self._controller.wake()
            raise _answer(error, recorded) from None
        if not lifecycle.is_over(after):
            self._controller.wake()
            raise PlatformTimeout(f"job execution {id_} has not stopped yet; {recorded}")
        return after

    async def delete_execution(self, caller: Caller, id_: ExecutionId) -> None:
        """Delete the execution, at once for the caller. The controller kills its job if it runs.

        Raises NotFound.
        """
        await self._get(caller, id_)
        row = await self._wish(id_, delete=True)
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
        try:
            work = self._logs.of(row, place, await self._rows.secrets(row))
            return await with_deadline(self._clock, _ENGINE_S, "log", work)
        except DeadlineExceeded:
            raise PlatformTimeout(
                f"the logs of job execution {id_} were not read within {_ENGINE_S:g} s; try again"
            ) from None

    async def log_part(self, caller: Caller, id_: ExecutionId, offset: int) -> LogPart:
        """The log from `offset` on, after a look at its files. Raises NotFound, ValidationError."""
        return await self._kept_logs.part(await self._get(caller, id_), offset)

    async def kept_log(self, caller: Caller, id_: ExecutionId, offset: int) -> LogPart:
        """The kept text of the log from `offset` on. Raises NotFound and ValidationError."""
        return await self._kept_logs.kept(await self._get(caller, id_), offset)

    async def _get(self, caller: Caller, id_: ExecutionId) -> Execution:
        tenant = caller.tenant_id
        return await self._store.read(lambda tx: tx.executions.get(tenant, id_))

    async def _wish(self, id_: ExecutionId, *, delete: bool) -> Execution | None:
        """Record a cancel or a delete. An execution that was never submitted ends at once."""
        now = self._now()

        def change(row: Execution) -> Execution:
            if delete:
                row = evolve(row, delete_requested=True)
            if lifecycle.is_over(row):
                return row
            row = evolve(row, cancel_requested=True)
            if row.workflow_job_id is None and not row.submitting:
                return lifecycle.advance(row, ExecutionStatus.KILLED, now)
            return row

        return await self._rows.change(id_, change)

    async def _kill(self, row: Execution) -> Execution:
        """Kill the job and wait for its end; the caller limits the time."""
        while row.workflow_job_id is None and not lifecycle.is_over(row):
            await self._controller.settled(row.id)
            again = await self._rows.change(row.id, lambda current: current)
            if again is None:
                raise NotFound.of("job execution", row.id)
            row = again
        return row if lifecycle.is_over(row) else await self._controller.kill(row)

    async def _check(self, tx: Tx, row: Execution, cluster: Cluster | None = None) -> Checked:
        """Check references and rules of an execution, and its cluster if that exists already.

        cluster: a new one, which is not stored yet.
        """
        tenant = row.tenant_id
        job = await tx.jobs.get(tenant, row.job_id)
        faults: list[str] = []
        if row.cluster_id is not None:
            cluster, unusable = await _usable(tx, tenant, row.cluster_id)
            faults += unusable
        sources: dict[str, DataSource | None] = {"input_id": None, "output_id": None}
        for name, id_ in (("input_id", row.input_id), ("output_id", row.output_id)):
            if id_ is None:
                continue
            sources[name], missing = await _source(tx, tenant, id_, f"$.{name}")
            faults += missing
        types = [] if cluster is None else self._runs(cluster)
        if cluster is not None and job.type not in types:
            can = ", ".join(each.value for each in types) or "no jobs"
            faults.append(
                f"$.cluster_id: cluster {cluster.name} ({cluster.plugin_name}) cannot run "
                f"{job.type.value} jobs; it runs {can}"
            )
        elif cluster is not None and job.type is JobType.SPARK and spark_job.image_fault(cluster):
            lacks = spark_job.image_fault(cluster)
            faults.append(f"$.cluster_id: cluster {cluster.name} cannot run Spark jobs: {lacks}")
        elif cluster is not None and not self._engines.has_engine(cluster):
            faults.append(
                f"$.cluster_id: cluster {cluster.name} has no workflow engine and runs no jobs; "
                f"{Code.NO_ENGINE.advice}"
            )
        if faults:
            raise InvalidReference("\n".join(faults))
        broken = [
            f"$.{name}: missing; a {job.type.value} job needs this data source"
            for name, source in sources.items()
            if source is None and traits_of(job.type).needs_data
        ]
        if rules.same_place(sources["input_id"], sources["output_id"]):
            broken.append(
                "$.output_id: input and output are the same folder, and a job must not write to "
                "its input; use another data source"
            )
        configs = row.job_configs or JobConfigs()
        broken += data_urls.faults_of(job.type, sources, configs.configs)
        broken += job_configs.unusable(job.type, configs)
        if cluster is not None and cluster.status is ClusterStatus.ACTIVE:
            endpoints = self._engines.endpoints(cluster)
            if endpoints is not None:
                broken += job_configs.launcher_faults(
                    job.type, configs.configs, endpoints.launcher_limits
                )
        if broken:
            raise InvalidData("\n".join(broken[: job_configs.MOST_FAULTS]))
        return await self._check_document(tx, row, job, sources, cluster)

    def _runs(self, cluster: Cluster) -> Sequence[JobType]:
        """Job types that the distribution runs and for which svcd can write a definition."""
        types = self._engines.job_types(cluster)
        return [each for each in types if each in TYPES]

    async def _check_document(
        self,
        tx: Tx,
        row: Execution,
        job: Job,
        sources: dict[str, DataSource | None],
        cluster: Cluster | None,
    ) -> Checked:
        material = Material(
            job=job,
            mains=tuple([await tx.job_binaries.get(row.tenant_id, id_) for id_ in job.mains]),
            libs=tuple([await tx.job_binaries.get(row.tenant_id, id_) for id_ in job.libs]),
            input=sources["input_id"],
            output=sources["output_id"],
        )
        faults = await _script_faults(tx, material, row.job_configs or JobConfigs())
        if faults:
            raise InvalidData("\n".join(faults))
        logins = self._controller.credentials.samples(material)
        try:
            text = document.workflow(work_of(row, material, self._access, cluster, logins))
        except document.DocumentError as error:
            raise InvalidData(str(error)) from None
        return Checked(material=material, workflow=text, logins=logins)

    def _now(self) -> Timestamp:
        return timestamp(self._clock.seconds())


async def _script_faults(tx: Tx, material: Material, configs: JobConfigs) -> Sequence[str]:
    """Faults of the job's scripts that svcd keeps; staging finds those of the object store."""
    faults = []
    for key, binaries in (("mains", material.mains), ("libs", material.libs)):
        for index, binary in enumerate(binaries):
            place = location(binary.url)
            started = job_configs.starts(material.job.type, configs.configs, binary.file)
            if started and isinstance(place, Internal):
                head = await tx.internals.piece(place.id, 0) or b""
                wrong = arguments.script_fault(material.job.type, head, key == "mains")
                if wrong:
                    faults.append(f"$.{key}[{index}] of the job, {shown(binary.file)}: {wrong}")
    return faults


async def _usable(tx: Tx, tenant: TenantId, id_: ClusterId) -> tuple[Cluster | None, Sequence[str]]:
    try:
        cluster = await tx.clusters.get(tenant, id_)
    except NotFound:
        return None, [f"$.cluster_id: cluster {id_!r} not found"]
    if cluster.status in _UNUSABLE:
        status = cluster.status.value
        return None, [
            f"$.cluster_id: cluster {cluster.name} is {status} and runs no jobs; use another one"
        ]
    return cluster, []


async def _fault_of(
    rows: Rows[R, I_contra], tenant: TenantId, id_: I_contra, where: str, what: str
) -> Sequence[str]:
    try:
        await rows.get(tenant, id_)
    except NotFound:
        return [_missing(where, what, id_)]
    return []


async def _source(
    tx: Tx, tenant: TenantId, id_: DataSourceId, where: str
) -> tuple[DataSource | None, Sequence[str]]:
    try:
        return await tx.data_sources.get(tenant, id_), []
    except NotFound:
        return None, [_missing(where, "data source", id_)]


def _missing(where: str, what: str, id_: object) -> str:
    return f"{where}: {what} {str(id_)!r} not found"


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
