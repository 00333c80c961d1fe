"""The shapes of the answers, for the description of the interface only: nothing is made of them.

`svcd.model.wire` renders; a test holds what it renders against these. What may be absent has a
default here. Source: interface, "Resources and their fields".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from attrs import frozen
from msgspec import UNSET, UnsetType

from svcd.resources._route import Route

Value: TypeAlias = str | bool | int | float
Configs: TypeAlias = dict[str, dict[str, Value]]
Absent: TypeAlias = UnsetType


@frozen(kw_only=True)
class Version:
    """A version of the interface."""

    id: str
    status: str


@frozen(kw_only=True)
class Health:
    """The process answers."""

    status: str


@frozen(kw_only=True)
class Readiness:
    """What requests need is there."""

    status: str
    parts: dict[str, str]


@frozen(kw_only=True)
class Plugin:
    """A distribution."""

    name: str
    title: str
    description: str
    versions: list[str]


@frozen(kw_only=True)
class ConfigEntry:
    """An option of a distribution."""

    name: str
    description: str
    default_value: str | bool
    config_type: str
    applicable_target: str
    scope: str
    is_optional: bool
    priority: int


@frozen(kw_only=True)
class PluginVersion:
    """A distribution with what one version has."""

    name: str
    title: str
    description: str
    versions: list[str]
    node_processes: dict[str, list[str]]
    required_image_tags: list[str]
    configs: list[ConfigEntry]


@frozen(kw_only=True)
class Image:
    """A registered image."""

    id: str
    name: str
    description: str
    status: str
    username: str
    tags: list[str]
    minDisk: int
    minRam: int
    progress: int
    metadata: dict[str, str]


@frozen(kw_only=True)
class NodeGroupTemplate:
    """A node group template."""

    id: str
    name: str
    description: str
    plugin_name: str
    engine_version: str
    node_processes: list[str]
    flavor_id: str
    node_configs: Configs
    volumes_per_node: int
    volumes_size: int
    volume_mount_prefix: str
    floating_ip_pool: str | Absent = UNSET


@frozen(kw_only=True)
class TemplateGroup:
    """A node group of a cluster template."""

    name: str
    count: int
    node_processes: list[str]
    flavor_id: str
    node_configs: Configs
    volumes_per_node: int
    volumes_size: int
    volume_mount_prefix: str
    floating_ip_pool: str | Absent = UNSET
    node_group_template_id: str | Absent = UNSET


@frozen(kw_only=True)
class ClusterTemplate:
    """A cluster template."""

    id: str
    name: str
    description: str
    plugin_name: str
    engine_version: str
    cluster_configs: Configs
    anti_affinity: list[str]
    node_groups: list[TemplateGroup]
    neutron_management_network: str | Absent = UNSET
    default_image_id: str | Absent = UNSET


@frozen(kw_only=True)
class Instance:
    """A machine of a cluster."""

    instance_name: str
    instance_id: str
    volumes: list[str]
    internal_ip: str | Absent = UNSET
    management_ip: str | Absent = UNSET
    server_id: str | Absent = UNSET
    status: str | Absent = UNSET


@frozen(kw_only=True)
class ClusterGroup:
    """A node group of a cluster."""

    name: str
    count: int
    node_processes: list[str]
    flavor_id: str
    node_configs: Configs
    volumes_per_node: int
    volumes_size: int
    volume_mount_prefix: str
    created: str
    updated: str
    instances: list[Instance]
    floating_ip_pool: str | Absent = UNSET
    node_group_template_id: str | Absent = UNSET


@frozen(kw_only=True)
class Cluster:
    """A cluster."""

    id: str
    name: str
    description: str
    status: str
    status_description: str
    info: dict[str, dict[str, str]]
    plugin_name: str
    engine_version: str
    default_image_id: str
    cluster_configs: Configs
    anti_affinity: list[str]
    is_transient: bool
    node_groups: list[ClusterGroup]
    created_at: str
    updated_at: str | None
    cluster_template_id: str | Absent = UNSET
    user_keypair_id: str | Absent = UNSET
    neutron_management_network: str | Absent = UNSET


@frozen(kw_only=True)
class Event:
    """A line of a cluster's story."""

    at: str
    generation: int
    step: str
    machine: str
    outcome: str
    code: str
    text: str
    attempt: int
    until: str | None


@frozen(kw_only=True)
class Account:
    """User and password of the object store; {} when none were given."""

    user: str | Absent = UNSET
    password: str | Absent = UNSET


@frozen(kw_only=True)
class DataSource:
    """A location of input or output."""

    id: str
    name: str
    description: str
    type: str
    url: str
    credentials: Account
    tenant_id: str
    created_at: str
    updated_at: str | Absent | None = UNSET


@frozen(kw_only=True)
class JobBinaryInternal:
    """A binary kept by svcd."""

    id: str
    name: str
    tenant_id: str
    datasize: int
    created_at: str
    updated_at: str | None


@frozen(kw_only=True)
class JobBinary:
    """A link to a binary."""

    id: str
    name: str
    description: str
    url: str
    extra: Account
    tenant_id: str
    created_at: str
    updated_at: str | Absent | None = UNSET


@frozen(kw_only=True)
class Job:
    """A job with its binaries."""

    id: str
    name: str
    description: str
    type: str
    mains: list[JobBinary]
    libs: list[JobBinary]
    tenant_id: str
    created_at: str
    updated_at: str | None


@frozen(kw_only=True)
class ExecutionFailure:
    """Why an execution did not succeed."""

    code: str
    step: str
    text: str


@frozen(kw_only=True)
class ExecutionWait:
    """What an execution waits for that ought to be there."""

    code: str
    step: str
    text: str
    since: str
    until: str | None


@frozen(kw_only=True)
class ExecutionInfo:
    """The engine's record, with our word for the status."""

    status: str
    failure: ExecutionFailure | Absent = UNSET
    waiting: ExecutionWait | Absent = UNSET


@frozen(kw_only=True)
class ExecutionConfigs:
    """What the caller set for an execution; {} when nothing."""

    configs: dict[str, Value] | Absent = UNSET
    args: dict[str, Value] | list[str] | Absent = UNSET
    params: dict[str, Value] | Absent = UNSET


@frozen(kw_only=True)
class JobExecution:
    """A job run on a cluster."""

    id: str
    job_id: str
    cluster_id: str | None
    input_id: str | None
    output_id: str | None
    job_configs: ExecutionConfigs
    info: ExecutionInfo
    workflow_job_id: str | None
    return_code: int | None
    progress: float | None
    tenant_id: str
    start_time: str | None
    end_time: str | None
    created_at: str
    updated_at: str | None


@frozen(kw_only=True)
class ConfigHint:
    """An option that a job may take."""

    name: str
    value: str
    description: str


@frozen(kw_only=True)
class JobConfig:
    """Hints of a job type."""

    configs: list[ConfigHint]
    args: dict[str, Value] | list[Value]
    params: dict[str, Value] | list[Value] | Absent = UNSET


@frozen(kw_only=True)
class Marks:
    """What of this daemon's can be in the tenant's cloud."""

    installation: str
    clusters: list[str]
    trusts: list[str]


OPEN: Final = frozenset({"ExecutionInfo"})
"""Those that may hold more than is described."""

LISTS: Final = frozenset(
    {
        *("versions", "plugins", "images", "node_group_templates", "cluster_templates"),
        *("clusters", "events", "data_sources", "binaries", "jobs", "job_executions"),
    }
)
"""Keys that wrap a list."""

_BY_KEY: Final[Mapping[str, type]] = {
    "versions": Version,
    "plugins": Plugin,
    "plugin": Plugin,
    "images": Image,
    "image": Image,
    "node_group_templates": NodeGroupTemplate,
    "node_group_template": NodeGroupTemplate,
    "cluster_templates": ClusterTemplate,
    "cluster_template": ClusterTemplate,
    "clusters": Cluster,
    "cluster": Cluster,
    "events": Event,
    "data_sources": DataSource,
    "data_source": DataSource,
    "job_binary_internal": JobBinaryInternal,
    "job_binary": JobBinary,
    "jobs": Job,
    "job": Job,
    "job_executions": JobExecution,
    "job_execution": JobExecution,
    "job_config": JobConfig,
    "marks": Marks,
}
_BY_PATH: Final[Mapping[str, type]] = {
    "/healthz": Health,
    "/readyz": Readiness,
    "/plugins/<plugin_name>/<version>": PluginVersion,
    "/job-binary-internals": JobBinaryInternal,
    "/job-binaries": JobBinary,
    "/job-executions/<execution_id>": JobExecution,
    "/job-executions/<execution_id>/refresh-status": JobExecution,
    "/job-executions/<execution_id>/cancel": JobExecution,
}


def answer_of(made: Route) -> Any:
    """The class of what a route answers (inside its wrapper); None when that is no JSON."""
    if made.plain or made.success == 204:
        return None
    return _BY_PATH.get(made.path) or _BY_KEY[made.returns or ""]
