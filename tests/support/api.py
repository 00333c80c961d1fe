"""The API over a real store in memory, with small stand-ins for what lies below the door.

The stand-ins take every reference for good: rules and references have tests of their own.
"""

from __future__ import annotations

import json as json_
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.client import readBody
from twisted.web.http_headers import Headers

from svcd.embedded.memory_agent import MemoryAgent
from svcd.errors import (
    InvalidReference,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
)
from svcd.model.cloud import Caller, Image
from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus, Instance, NodeGroup
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    ExecutionId,
    InstanceId,
    JobBinaryId,
    JobId,
    NodeGroupTemplateId,
    TenantId,
    Timestamp,
    timestamp,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    ExecutionStatus,
    Job,
    JobBinary,
    JobType,
)
from svcd.model.requests import (
    ExecuteRequest,
    NewCluster,
    NewClusterTemplate,
    NewDataSource,
    NewJob,
    NewJobBinary,
    NewNodeGroup,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.secret import Secret
from svcd.model.template import ClusterTemplate, NodeGroupTemplate, TemplateNodeGroup
from svcd.ports.cloud import Access, CloudError
from svcd.ports.faults import Fault
from svcd.ports.store import Store
from svcd.provisioning.distributions.registry import Distributions
from svcd.resources.api import ApiServices, ApiSite, Rest, build
from svcd.runtime.audit import Audit
from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import sleep
from svcd.settings import Settings
from svcd.store.sealer import MemorySealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore
from svcd.workflow.decide.hints import job_config
from svcd.workflow.engines import Advice

TENANT = "demo"
IMAGE_ID = "00000000-0000-4000-8000-000000000001"


class Ids:
    """Ids that tests can foretell."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-9000-{self._count:012d}"


class StandInCloud:
    """Images in a dict. fault: what every call raises."""

    def __init__(self) -> None:
        self.kept = {
            i: Image(id=i, name=n, status="active", min_disk_gib=5, min_ram_mib=512)
            for i, n in ((IMAGE_ID, "vanilla-3.5.0"), ("img-2", "plain"))
        }
        self.fault: CloudError | None = None
        self.accesses: list[Access] = []

    def session(self, access: Access) -> Any:
        self.accesses.append(access)
        return self

    def _check(self) -> None:
        if self.fault is not None:
            raise self.fault

    async def images(self) -> Sequence[Image]:
        self._check()
        return list(self.kept.values())

    async def image(self, image_id: str) -> Image:
        self._check()
        if image_id not in self.kept:
            raise CloudError("image", Fault.NOT_FOUND, f"no image {image_id}")
        return self.kept[image_id]

    async def set_image_properties(
        self, image_id: str, set_: Mapping[str, str], remove: Sequence[str]
    ) -> Image:
        image = await self.image(image_id)
        kept = {k: v for k, v in image.properties.items() if k not in remove}
        self.kept[image_id] = evolve(image, properties={**kept, **set_})
        return self.kept[image_id]


class StandInObjectStore:
    """Objects in a dict keyed (container, name)."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.fault: CloudError | None = None

    async def read(
        self, tenant_id: TenantId, credentials: Credentials, container: str, name: str
    ) -> tuple[int, AsyncIterator[bytes]]:
        if self.fault is not None:
            raise self.fault
        data = self.objects.get((container, name))
        if data is None:
            raise CloudError("object-store", Fault.NOT_FOUND, f"no object {container}/{name}")
        return len(data), _one(data)


async def _one(data: bytes) -> AsyncIterator[bytes]:
    yield data


class StandInIdentity:
    """Knows tokens `token-<tenant>`; `down` makes it fail. answer: each login waits for it.

    roles: of every caller.
    """

    down = False
    roles: tuple[str, ...] = ("member", "reader")
    answer: Deferred[None] | None = None

    async def authenticate(self, token: Secret) -> Caller:
        if self.down:
            raise ServiceUnavailable("identity does not answer")
        if self.answer is not None:
            await self.answer
        name = token.reveal()
        if not name.startswith("token-"):
            raise Unauthorized("the token was refused")
        tenant = TenantId(name.removeprefix("token-"))
        return Caller(tenant_id=tenant, user_id="u", roles=self.roles, token=token)

    def challenge(self) -> str:
        return 'Keystone uri="http://identity.test/v3"'


class _StandIn:
    def __init__(self, store: Store, clock: IReactorTime, new_id: Ids) -> None:
        self._store = store
        self._clock = clock
        self._new_id = new_id
        self.wait_s = 0.0
        self.raises: BaseException | None = None

    async def _begin(self) -> Timestamp:
        if self.wait_s:
            await sleep(self._clock, self.wait_s)
        if self.raises is not None:
            raise self.raises
        return timestamp(self._clock.seconds())


class StandInTemplates(_StandIn):
    """Writes templates as asked for."""

    async def create_node_group_template(
        self, caller: Caller, new: NewNodeGroupTemplate
    ) -> NodeGroupTemplate:
        record = NodeGroupTemplate(
            id=NodeGroupTemplateId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            plugin_name=new.plugin_name,
            engine_version=new.engine_version,
            node_processes=new.node_processes,
            flavor_id=new.flavor_id,
            node_configs=new.node_configs,
            volumes_per_node=new.volumes_per_node,
            volumes_size=new.volumes_size,
            volume_mount_prefix=new.volume_mount_prefix,
            floating_ip_pool=new.floating_ip_pool,
            created_at=await self._begin(),
        )
        await self._store.tx(lambda tx: tx.node_group_templates.add(record))
        return record

    async def _group(self, caller: Caller, new: NewNodeGroup) -> TemplateNodeGroup:
        given: dict[str, Any] = {
            n: getattr(new, n)
            for n in (
                "flavor_id",
                "node_processes",
                "node_configs",
                "volumes_per_node",
                "volumes_size",
                "volume_mount_prefix",
                "floating_ip_pool",
            )
            if getattr(new, n) is not None
        }
        if new.node_group_template_id is not None:
            id_ = NodeGroupTemplateId(new.node_group_template_id)
            try:
                base = await self._store.read(
                    lambda tx: tx.node_group_templates.get(caller.tenant_id, id_)
                )
            except NotFound as error:
                raise InvalidReference(error.message) from None
            given = {
                "flavor_id": base.flavor_id,
                "node_processes": base.node_processes,
                "node_configs": base.node_configs,
                "volumes_per_node": base.volumes_per_node,
                "volumes_size": base.volumes_size,
                "volume_mount_prefix": base.volume_mount_prefix,
                "floating_ip_pool": base.floating_ip_pool,
                "node_group_template_id": id_,
                **given,
            }
        return TemplateNodeGroup(name=new.name, count=new.count, **given)

    async def create_cluster_template(
        self, caller: Caller, new: NewClusterTemplate
    ) -> ClusterTemplate:
        created_at = await self._begin()
        record = ClusterTemplate(
            id=ClusterTemplateId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            plugin_name=new.plugin_name,
            engine_version=new.engine_version,
            cluster_configs=new.cluster_configs,
            anti_affinity=new.anti_affinity,
            neutron_management_network=new.neutron_management_network,
            node_groups=tuple([await self._group(caller, g) for g in new.node_groups]),
            created_at=created_at,
        )
        await self._store.tx(lambda tx: tx.cluster_templates.add(record))
        return record


class StandInClusters(_StandIn):
    """Writes clusters as asked for, with instances, and never builds them."""

    templates: StandInTemplates

    async def create(self, caller: Caller, new: NewCluster) -> Cluster:
        now = await self._begin()
        if new.cluster_template_id is not None:
            id_ = ClusterTemplateId(new.cluster_template_id)
            template = await self._store.read(
                lambda tx: tx.cluster_templates.get(caller.tenant_id, id_)
            )
            groups: Sequence[TemplateNodeGroup] = template.node_groups
        else:
            groups = [await self.templates._group(caller, g) for g in new.node_groups or ()]
        record = Cluster(
            id=ClusterId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            plugin_name=new.plugin_name,
            engine_version=new.engine_version,
            cluster_template_id=ClusterTemplateId(new.cluster_template_id)
            if new.cluster_template_id
            else None,
            default_image_id=new.default_image_id or "",
            user_keypair_id=new.user_keypair_id,
            cluster_configs=new.cluster_configs,
            anti_affinity=new.anti_affinity or (),
            node_groups=tuple(self._running(new.name, g, now) for g in groups),
            is_transient=new.is_transient,
            status_since=now,
            created_at=now,
        )
        await self._store.tx(lambda tx: tx.clusters.add(record))
        return record

    def _running(self, cluster: str, group: TemplateNodeGroup, now: Timestamp) -> NodeGroup:
        return NodeGroup(
            name=group.name,
            count=group.count,
            node_group_template_id=group.node_group_template_id,
            flavor_id=group.flavor_id,
            node_processes=group.node_processes,
            node_configs=group.node_configs,
            volumes_per_node=group.volumes_per_node,
            volumes_size=group.volumes_size,
            volume_mount_prefix=group.volume_mount_prefix,
            floating_ip_pool=group.floating_ip_pool,
            instances=tuple(
                Instance(
                    instance_id=InstanceId(self._new_id()),
                    instance_name=f"{cluster}-{group.name}-{n:03d}".lower(),
                    index=n,
                    created_at=now,
                )
                for n in range(1, group.count + 1)
            ),
            created_at=now,
        )

    async def scale(self, caller: Caller, cluster_id: ClusterId, change: ScaleRequest) -> Cluster:
        now = await self._begin()
        found = await self._store.read(lambda tx: tx.clusters.get(caller.tenant_id, cluster_id))
        sizes = {each.name: each.count for each in change.resize_node_groups}
        groups = tuple(
            evolve(g, count=sizes.get(g.name, g.count), updated_at=now) for g in found.node_groups
        )
        later = evolve(found, node_groups=groups, status=ClusterStatus.VALIDATING, updated_at=now)
        await self._store.tx(lambda tx: tx.clusters.save(later))
        return later

    async def delete(self, caller: Caller, cluster_id: ClusterId, force: bool) -> None:
        await self._begin()
        await self._store.read(lambda tx: tx.clusters.get(caller.tenant_id, cluster_id))
        await self._store.tx(lambda tx: tx.clusters.drop(cluster_id))

    async def say(self, cluster_id: str, event: ClusterEvent) -> None:
        """Add an event."""
        await self._store.tx(lambda tx: tx.clusters.add_events(ClusterId(cluster_id), [event]))


class StandInJobs(_StandIn):
    """Writes what is asked for; cancel kills at once."""

    async def create_data_source(self, caller: Caller, new: NewDataSource) -> DataSource:
        record = DataSource(
            id=DataSourceId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            type=new.type,
            url=new.url,
            credentials=new.credentials.whole(),
            created_at=await self._begin(),
        )
        await self._store.tx(lambda tx: tx.data_sources.add(record))
        return record

    async def create_job_binary(self, caller: Caller, new: NewJobBinary) -> JobBinary:
        record = JobBinary(
            id=JobBinaryId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            url=new.url,
            extra=new.extra.whole(),
            created_at=await self._begin(),
        )
        await self._store.tx(lambda tx: tx.job_binaries.add(record))
        return record

    async def create_job(self, caller: Caller, new: NewJob) -> Job:
        record = Job(
            id=JobId(self._new_id()),
            tenant_id=caller.tenant_id,
            name=new.name,
            description=new.description,
            type=new.type,
            mains=tuple(JobBinaryId(i) for i in new.mains),
            libs=tuple(JobBinaryId(i) for i in new.libs),
            created_at=await self._begin(),
        )
        await self._store.tx(lambda tx: tx.jobs.add(record))
        return record

    async def execute(self, caller: Caller, job_id: JobId, request: ExecuteRequest) -> Execution:
        record = Execution(
            id=ExecutionId(self._new_id()),
            tenant_id=caller.tenant_id,
            job_id=job_id,
            cluster_id=ClusterId(request.cluster_id or ""),
            input_id=DataSourceId(request.input_id or ""),
            output_id=DataSourceId(request.output_id or ""),
            job_configs=request.job_configs,
            created_at=await self._begin(),
        )
        await self._store.tx(lambda tx: tx.executions.add(record))
        return record

    async def _get(self, caller: Caller, execution_id: ExecutionId) -> Execution:
        await self._begin()
        return await self._store.read(lambda tx: tx.executions.get(caller.tenant_id, execution_id))

    async def refresh(self, caller: Caller, execution_id: ExecutionId) -> Execution:
        return await self._get(caller, execution_id)

    async def cancel(self, caller: Caller, execution_id: ExecutionId) -> Execution:
        found = await self._get(caller, execution_id)
        later = evolve(found, status=ExecutionStatus.KILLED, end_time=found.created_at)
        await self._store.tx(lambda tx: tx.executions.save(later))
        return later

    async def delete_execution(self, caller: Caller, execution_id: ExecutionId) -> None:
        await self._get(caller, execution_id)
        await self._store.tx(lambda tx: tx.executions.drop(execution_id))

    async def log(self, caller: Caller, execution_id: ExecutionId) -> bytes:
        await self._get(caller, execution_id)
        return b"line 1\nline 2\n"

    def hints(self, type_name: str) -> dict[str, object]:
        return job_config(type_name, _NoAdvice())


class _NoAdvice:
    """Engines that add nothing to the hints."""

    def hints(self, job_type: JobType) -> Sequence[Advice]:
        return []


@frozen
class Answered:
    """An answer as tests look at it. headers: lower-case names, the last value."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json_.loads(self.body)


def now(deferred: Deferred[Any]) -> Any:
    """The result of what has fired already; raises its failure."""
    results: list[Any] = []
    failures: list[Any] = []
    deferred.addCallbacks(results.append, failures.append)
    if failures:
        failures[0].raiseException()
    if not results:
        raise AssertionError("it has not fired yet")
    return results[0]


class StandInService:
    """The API in memory. Same names as `svcd.testing.FakeService` where both have them.

    audited: the records of the audit log.
    """

    def __init__(
        self,
        clock: IReactorTime | None = None,
        identity: StandInIdentity | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.audited: list[Any] = []
        self.clock = VirtualClock() if clock is None else clock
        self.settings = settings or Settings()
        self.store = SqlStore(SqliteDatabase(None), MemorySealer())
        now(Deferred.fromCoroutine(self.store.open(timestamp(self.clock.seconds()))))
        self.new_id = Ids()
        self.cloud = StandInCloud()
        self.object_store = StandInObjectStore()
        self.templates = StandInTemplates(self.store, self.clock, self.new_id)
        self.clusters = StandInClusters(self.store, self.clock, self.new_id)
        self.clusters.templates = self.templates
        self.jobs = StandInJobs(self.store, self.clock, self.new_id)
        self.problems: dict[str, str] = {}
        self.rest: Rest
        self.site: ApiSite
        self.rest, self.site = build(
            ApiServices(
                store=self.store,
                identity=identity,
                cloud=self.cloud,
                object_store=self.object_store,
                clusters=self.clusters,
                templates=self.templates,
                jobs=self.jobs,
                distributions=Distributions(["vanilla", "fake"], found=()),
                clock=self.clock,
                settings=self.settings,
                readiness=self._readiness,
                new_id=self.new_id,
                audit=Audit(self.clock, lambda line: self.audited.append(json_.loads(line))),
            )
        )
        self.agent = MemoryAgent(self.clock)
        self.agent.serve("http://api.memory", self.rest)
        self.tenant = TENANT
        self.image_id = IMAGE_ID
        self.flavor_id = "2"
        self.keypair = "demo"

    async def _readiness(self) -> Mapping[str, str]:
        return self.problems

    def start(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Deferred[Answered]:
        """Send a request; fires with the answer."""
        sent = {k.lower(): v for k, v in (headers or {}).items()}
        body = data
        if json is not None:
            body = json_.dumps(json).encode()
            sent.setdefault("content-type", "application/json")
        return Deferred.fromCoroutine(self._exchange(method, path, body, sent))

    async def _exchange(
        self, method: str, path: str, body: bytes | None, sent: Mapping[str, str]
    ) -> Answered:
        response = await self.agent.request(
            method.encode(),
            b"http://api.memory" + path.encode(),
            Headers({k: [v] for k, v in sent.items()}),
            None if body is None else _Bytes(body),
        )
        content = await readBody(response)
        found = {k.decode().lower(): v[-1].decode() for k, v in response.headers.getAllRawHeaders()}
        return Answered(response.code, found, content)

    def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """The answer of a request that is answered at once."""
        return now(self.start(method, path, json, data, headers))

    def close(self) -> None:
        """Forget everything."""
        now(Deferred.fromCoroutine(self.store.close()))


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.length = len(content)

    def startProducing(self, consumer: Any) -> Deferred[None]:
        consumer.write(self._content)
        done: Deferred[None] = Deferred()
        done.callback(None)
        return done

    def stopProducing(self) -> None:
        pass

    def pauseProducing(self) -> None:
        pass

    def resumeProducing(self) -> None:
        pass


__all__ = ["Answered", "StandInIdentity", "StandInService", "now"]
