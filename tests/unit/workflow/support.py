"""The workflow room on the real store and clients, a scripted engine and a virtual clock."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from svcd.clients.http import HttpClient
from svcd.clients.oozie import OozieClient, engine_error
from svcd.clients.probe import HttpProbe
from svcd.clients.webhdfs import WebHdfsClient
from svcd.embedded.faults import Faults
from svcd.embedded.memory_agent import MemoryAgent
from svcd.embedded.oozie import ScriptedEngine, ScriptedEngines
from svcd.embedded.scripted import ScriptedProbe
from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster, ClusterStatus, Instance, NodeGroup
from svcd.model.ids import (
    ClusterId,
    DataSourceId,
    ExecutionId,
    InstanceId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    TenantId,
    timestamp,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    Job,
    JobBinary,
    JobBinaryInternal,
    JobConfigs,
    JobType,
)
from svcd.model.job_credential import ApplicationCredential
from svcd.model.requests import ExecuteRequest, NewCluster
from svcd.model.secret import Secret
from svcd.model.wire_plans import ClusterPlan
from svcd.ports.cloud import CloudError
from svcd.ports.engine import Endpoints, Identity, LauncherLimits
from svcd.ports.faults import Fault
from svcd.ports.machines import Probe
from svcd.ports.store import Tx
from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import sleep
from svcd.settings import Workflow
from svcd.store.sealer import MemorySealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore
from svcd.workflow.act.controller import Controller
from svcd.workflow.commands import Jobs
from svcd.workflow.decide.object_store import ObjectStoreAccess

T = TypeVar("T")

TENANT = TenantId("demo")
CALLER = Caller(tenant_id=TENANT, user_id="u1")
CLUSTER = ClusterId("c1")
JAR = JobId("job-jar")
PIG = JobId("job-pig")
IN = DataSourceId("in")
OUT = DataSourceId("out")
SCRIPT = b"a = LOAD '$INPUT'; STORE a INTO '$OUTPUT';\n"
JAR_BYTES = b"PK\x03\x04 classes"


class FakeEngines:
    """Every cluster has an engine, unless its name says otherwise."""

    types: Sequence[JobType] = (JobType.JAR, JobType.PIG, JobType.JAVA, JobType.SHELL)
    identities: Sequence[Identity] = ()
    launcher_limits = LauncherLimits()

    def endpoints(self, cluster: Cluster) -> Endpoints | None:
        if cluster.name == "no-engine":
            return None
        base = f"http://cloud.memory/engine/{cluster.id}"
        return Endpoints(
            engine=f"{base}/oozie",
            webhdfs=base,
            name_node="hdfs://c1:8020",
            resource_manager="c1-master-001:8032",
            history="http://c1-master-001:19888",
            user="hadoop",
            identities=self.identities,
            launcher_limits=self.launcher_limits,
        )

    def has_engine(self, cluster: Cluster) -> bool:
        return cluster.name != "no-engine"

    def job_types(self, cluster: Cluster) -> Sequence[JobType]:
        return self.types


class FakeObjectStore:
    """Objects by (tenant, container, name), opened by one account. cuts: reads that break off."""

    def __init__(self, clock: VirtualClock) -> None:
        self.objects: dict[tuple[str, str, str], bytes] = {}
        self.error: Exception | None = None
        self.lag_s = 0.0
        self.cuts = 0
        self._clock = clock

    async def read(
        self, tenant_id: TenantId, credentials: Credentials, container: str, name: str
    ) -> tuple[int, AsyncIterator[bytes]]:
        await sleep(self._clock, self.lag_s)
        if self.error is not None:
            raise self.error
        content = self.objects.get((tenant_id, container, name))
        if content is None or credentials.password != "secret":
            raise CloudError("object-store", Fault.NOT_FOUND, f"{container}/{name} not found")

        async def pieces() -> AsyncIterator[bytes]:
            if self.cuts:
                self.cuts -= 1
                yield content[: len(content) // 2]
                raise CloudError("object-store", Fault.TIMEOUT, "no piece for 30 s")
            for start in range(0, len(content), 5):
                yield content[start : start + 5]

        return len(content), pieces()


class FakeCredentials:
    """Application credentials by name. errors: of the next calls, None for a call without one.

    lose: the answer of the next creation is lost. lag_s: of each creation, after it took effect.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.living: dict[str, ApplicationCredential] = {}
        self.errors: list[CloudError | None] = []
        self.lose = False
        self.lag_s = 0.0
        self.made = 0
        self._clock = clock

    async def create_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, expires_at: float
    ) -> ApplicationCredential:
        self._fail()
        self.made += 1
        new = ApplicationCredential(id=f"ac-{self.made}", secret=Secret(f"ac-secret-{self.made}"))
        self.living[name] = new
        if self.lag_s:
            await sleep(self._clock, self.lag_s)
        if self.lose:
            self.lose = False
            raise CloudError("identity", Fault.TIMEOUT, "no answer")
        return new

    async def delete_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, id_: str
    ) -> bool:
        self._fail()
        there = self.living.get(name)
        if there is not None and id_ in ("", there.id):
            del self.living[name]
        return bool(id_) or there is not None

    def _fail(self) -> None:
        error = self.errors.pop(0) if self.errors else None
        if error is not None:
            raise error


class WorkflowCase(SynchronousTestCase):
    """The world. `run` drives the clock until something is done."""

    workflow = Workflow()

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.faults = Faults()
        self.engines = ScriptedEngines(self.clock, self.faults)
        root = Resource()
        root.putChild(b"engine", self.engines.resource())
        self.agent = MemoryAgent(self.clock)
        self.agent.serve("http://cloud.memory", root)
        self.sealer = MemorySealer()
        self.sealed_key = self.sealer.seal(Secret("the key of all clusters"))
        self.store = SqlStore(SqliteDatabase(None), self.sealer)
        self.run_to_end(self.store.open(timestamp(self.clock.seconds())))
        self.objects = FakeObjectStore(self.clock)
        self.credentials = FakeCredentials(self.clock)
        self.probe = ScriptedProbe(self.clock, self.faults)
        self.asks: Probe = self.probe
        self.fake_engines = FakeEngines()
        self.made_clusters: list[NewCluster] = []
        self._ids = 0
        self.controller = self.make_controller()
        self.jobs = self.make_jobs(self.controller)
        self.run_to_end(self._rows())
        self.addCleanup(self._close)

    def make_controller(self) -> Controller:
        http = HttpClient(self.agent, self.clock, engine_error)
        self.oozie = OozieClient(http)
        return Controller(
            store=self.store,
            engine=self.oozie,
            files=WebHdfsClient(http),
            object_store=self.objects,
            credentials=self.credentials,
            engines=self.fake_engines,
            probe=self.asks,
            sealer=self.sealer,
            clock=self.clock,
            settings=self.workflow,
            access=ObjectStoreAccess(auth_url="http://cloud.memory/identity/v3"),
            noticed=lambda cluster_id: None,
            rng=random.Random(1),
        )

    def make_jobs(self, controller: Controller) -> Jobs:
        return Jobs(
            store=self.store,
            engines=self.fake_engines,
            controller=controller,
            create_cluster=self._create_cluster,
            plan_cluster=self._plan_cluster,
            clock=self.clock,
            new_id=self._new_id,
            settings=self.workflow,
            access=ObjectStoreAccess(auth_url="http://cloud.memory/identity/v3"),
        )

    def restart(self) -> None:
        """The daemon ends, and another one goes on with the rows."""
        self.run_to_end(self.controller.stop())
        self.controller = self.make_controller()
        self.jobs = self.make_jobs(self.controller)
        self.controller.start()

    # ---- driving ----

    def run_to_end(self, work: Coroutine[Any, Any, T], most_s: float = 60.0) -> T:
        """The result of `work`; the clock is moved as far as it needs."""
        running = Deferred.fromCoroutine(work)
        waited = 0.0
        while not running.called and waited < most_s:
            self.clock.advance(0.05)
            waited += 0.05
        return self.successResultOf(running)

    def fail_to_end(self, work: Coroutine[Any, Any, object], kind: type[Exception]) -> Any:
        """The exception of `work`."""
        running = Deferred.fromCoroutine(work)
        waited = 0.0
        while not running.called and waited < 60.0:
            self.clock.advance(0.05)
            waited += 0.05
        return self.failureResultOf(running, kind).value

    def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return self.run_to_end(self.store.tx(work))

    def execution(self, id_: ExecutionId) -> Execution:
        row = self.tx(lambda tx: tx.executions.find(id_))
        assert row is not None
        return row

    def info(self, id_: ExecutionId) -> Mapping[str, Any]:
        tree = json.loads(self.tx(lambda tx: tx.executions.rendered(TENANT, id_)))
        info: Mapping[str, Any] = tree["info"]
        return info

    def execute(
        self, job: JobId = PIG, configs: Mapping[str, Any] | None = None, **fields: Any
    ) -> Execution:
        request = ExecuteRequest(
            **{
                "cluster_id": CLUSTER,
                "input_id": IN,
                "output_id": OUT,
                "job_configs": JobConfigs(configs=configs or {}),
                **fields,
            }
        )
        return self.run_to_end(self.jobs.execute(CALLER, job, request))

    def set_cluster(self, **changes: Any) -> None:
        async def change(tx: Tx) -> None:
            cluster = await tx.clusters.find(CLUSTER)
            assert cluster is not None
            now = timestamp(self.clock.seconds())
            assert await tx.clusters.save(evolve(cluster, **{"status_since": now, **changes}))

        self.tx(change)

    @property
    def scripted(self) -> ScriptedEngine:
        return self.engines.engine(CLUSTER)

    # ---- inside ----

    def _close(self) -> None:
        self.run_to_end(self.controller.stop())
        self.run_to_end(self.store.close())

    def _new_id(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012d}"

    async def _plan_cluster(self, *_: object) -> ClusterPlan:
        raise NotImplementedError

    async def _create_cluster(
        self, caller: Caller, new: NewCluster, also: Callable[[Tx, Cluster], Awaitable[None]]
    ) -> Cluster:
        self.made_clusters.append(new)
        made = self.cluster(ClusterId("c2"), new.name, is_transient=new.is_transient)
        made = evolve(made, status=ClusterStatus.WAITING)

        async def work(tx: Tx) -> None:
            await tx.clusters.add(made)
            await also(tx, made)

        await self.store.tx(work)
        return made

    def cluster(self, id_: ClusterId, name: str, **fields: Any) -> Cluster:
        now = timestamp(self.clock.seconds())
        return Cluster(
            id=id_,
            tenant_id=TENANT,
            name=name,
            plugin_name="fake",
            engine_version="1.0",
            default_image_id="image",
            management_private_key=self.sealed_key,
            openings=("22 0.0.0.0/0",),
            status=ClusterStatus.ACTIVE,
            status_since=now,
            created_at=now,
            node_groups=(
                NodeGroup(
                    name="master",
                    count=1,
                    flavor_id="2",
                    node_processes=("oozie",),
                    created_at=now,
                    instances=(
                        Instance(
                            instance_id=InstanceId(f"{id_}-i1"),
                            instance_name=f"{name}-master-001",
                            index=1,
                            internal_ip="127.1.0.2",
                            management_ip="10.0.0.2",
                            created_at=now,
                        ),
                    ),
                ),
            ),
            **fields,
        )

    async def _rows(self) -> None:
        now = timestamp(self.clock.seconds())

        named: Any = {"tenant_id": TENANT, "created_at": now}
        account = Credentials(user="ann", password="secret")
        binaries = (
            ("b1", "count.pig", "internaldb://i1", None),
            ("b2", "wc", "internaldb://i2", None),
            ("b3", "udf.jar", "objstore-internal://box/udf.jar", account),
        )
        main, lib, udf = (JobBinaryId(id_) for id_, *_ in binaries)

        async def write(tx: Tx) -> None:
            await tx.clusters.add(self.cluster(CLUSTER, "c1"))
            for id_, name, content in (("i1", "count.pig", SCRIPT), ("i2", "wc", JAR_BYTES)):
                await tx.internals.begin(id_, TENANT, 0)
                for index in range(0, len(content), 10):
                    await tx.internals.append(id_, index // 10, content[index : index + 10])
                row = JobBinaryInternal(
                    id=JobBinaryInternalId(id_),
                    name=name,
                    datasize=len(content),
                    digest="",
                    **named,
                )
                await tx.internals.finish(id_, row)
            for id_, name, url, extra in binaries:
                made = JobBinary(id=JobBinaryId(id_), name=name, url=url, extra=extra, **named)
                await tx.job_binaries.add(made)
            for source, type_, url, login in (
                (IN, "objstore", "objstore://box.svc/in", account),
                (OUT, "hdfs", "/out", None),
            ):
                data = DataSource(
                    id=source, name=source, type=type_, url=url, credentials=login, **named
                )
                await tx.data_sources.add(data)
            pig = Job(id=PIG, name="pig", type=JobType.PIG, mains=(main,), libs=(udf,), **named)
            await tx.jobs.add(pig)
            await tx.jobs.add(Job(id=JAR, name="jar", type=JobType.JAR, libs=(lib,), **named))

        await self.store.tx(write)
        self.objects.objects[(TENANT, "box", "udf.jar")] = b"PK\x03\x04 udf"


class RunningCase(WorkflowCase):
    """The world with a daemon that works."""

    def setUp(self) -> None:
        super().setUp()
        self.controller.start()


class YarnCase(WorkflowCase):
    """The world with a daemon that works, and asks the scripted resource manager over HTTP."""

    def setUp(self) -> None:
        super().setUp()
        self.asks = HttpProbe(self.agent, self.clock)
        self.restart()
