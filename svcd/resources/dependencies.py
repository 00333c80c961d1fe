"""The dependencies of the resources: the ports, and the commands of other rooms as Protocols."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from attrs import Factory, field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.cloud import Caller
from svcd.model.cluster import Cluster
from svcd.model.cluster_token import ClusterTokens
from svcd.model.execution_log import LogPart
from svcd.model.ids import ClusterId, ExecutionId, JobId
from svcd.model.job import DataSource, Execution, Job, JobBinary
from svcd.model.requests import (
    ExecuteRequest,
    NewCluster,
    NewClusterTemplate,
    NewDataSource,
    NewJob,
    NewJobBinary,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.wire_jobs import JobConfig
from svcd.model.wire_plans import ClusterPlan, ExecutionPlan
from svcd.ports.cloud import Cloud, Identity, ObjectStore
from svcd.ports.store import Also, Store
from svcd.provisioning.distributions.registry import Distributions
from svcd.resources._feeds import Feeds
from svcd.resources._lists import Lists
from svcd.resources._waits import Waits
from svcd.runtime.audit import Audit
from svcd.runtime.metrics import Metrics
from svcd.settings import Settings


class ClusterCommands(Protocol):
    """The commands of `svcd.provisioning.commands.Clusters`."""

    async def create(
        self, caller: Caller, new: NewCluster, also: Also[Cluster] | None = None
    ) -> Cluster: ...
    async def scale(
        self, caller: Caller, cluster_id: ClusterId, change: ScaleRequest
    ) -> Cluster: ...
    async def plan(
        self, caller: Caller, new: NewCluster, *, image_user: str = ""
    ) -> ClusterPlan: ...
    async def plan_scale(
        self, caller: Caller, cluster_id: ClusterId, change: ScaleRequest
    ) -> ClusterPlan: ...
    async def delete(self, caller: Caller, cluster_id: ClusterId, force: bool) -> None: ...


class TemplateCommands(Protocol):
    """The commands of `svcd.provisioning.commands.Templates`."""

    async def create_node_group_template(
        self,
        caller: Caller,
        new: NewNodeGroupTemplate,
        also: Also[NodeGroupTemplate] | None = None,
        dry: bool = False,
    ) -> NodeGroupTemplate: ...
    async def create_cluster_template(
        self,
        caller: Caller,
        new: NewClusterTemplate,
        also: Also[ClusterTemplate] | None = None,
        dry: bool = False,
    ) -> ClusterTemplate: ...


class JobCommands(Protocol):
    """The commands of `svcd.workflow.commands.Jobs`."""

    async def create_data_source(
        self,
        caller: Caller,
        new: NewDataSource,
        also: Also[DataSource] | None = None,
        dry: bool = False,
    ) -> DataSource: ...
    async def create_job_binary(
        self,
        caller: Caller,
        new: NewJobBinary,
        also: Also[JobBinary] | None = None,
        dry: bool = False,
    ) -> JobBinary: ...
    async def create_job(
        self, caller: Caller, new: NewJob, also: Also[Job] | None = None, dry: bool = False
    ) -> Job: ...
    async def execute(
        self,
        caller: Caller,
        job_id: JobId,
        request: ExecuteRequest,
        also: Also[Execution] | None = None,
    ) -> Execution: ...
    async def plan(
        self, caller: Caller, job_id: JobId, request: ExecuteRequest
    ) -> ExecutionPlan: ...
    async def refresh(self, caller: Caller, execution_id: ExecutionId) -> Execution: ...
    async def cancel(self, caller: Caller, execution_id: ExecutionId) -> Execution: ...
    async def delete_execution(self, caller: Caller, execution_id: ExecutionId) -> None: ...
    async def log(self, caller: Caller, execution_id: ExecutionId) -> bytes: ...
    async def log_part(self, caller: Caller, execution_id: ExecutionId, offset: int) -> LogPart: ...
    async def kept_log(self, caller: Caller, execution_id: ExecutionId, offset: int) -> LogPart: ...
    def hints(self, type_name: str) -> JobConfig:
        """The hints for a job type. Raises NotFound."""
        ...


async def _always_ready() -> Mapping[str, str]:
    return {}


@frozen(kw_only=True)
class ApiServices:
    """All dependencies of the API.

    identity: None with `auth.mode=none`. readiness: part -> "" when it is ready, else the reason.
    new_id: makes the ids of the records that the resources create. installation: see
    svcd.model.ownership_tags. audit: None when it is off. tokens: shows the tokens of clusters.
    """

    store: Store
    identity: Identity | None
    cloud: Cloud
    object_store: ObjectStore
    clusters: ClusterCommands
    templates: TemplateCommands
    jobs: JobCommands
    distributions: Distributions
    clock: IReactorTime
    settings: Settings
    tokens: ClusterTokens
    metrics: Metrics = field(factory=Metrics)
    readiness: Callable[[], Awaitable[Mapping[str, str]]] = _always_ready
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    installation: str = ""
    audit: Audit | None = None
    feeds: Feeds = field(
        default=Factory(
            lambda self: Feeds(self.store, self.clock, self.tokens, self.settings.limits.watchers),
            takes_self=True,
        )
    )
    lists: Lists = field(
        default=Factory(lambda self: Lists(self.store, self.clock), takes_self=True)
    )
    waits: Waits = field(
        default=Factory(lambda self: Waits(self.store, self.clock), takes_self=True)
    )
