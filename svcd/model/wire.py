"""The answers of the interface as classes: their fields, and how a record fills them. Pure.

msgspec encodes an answer as one JSON object, and describes its class in `/openapi.json`.
`wire_jobs` holds the answers that v1.1 adds.

Note: absent values. A text of the interface is always a text: a missing description is "". A field
that the interface calls optional, or shows only "when" or "once" something holds, is left out until
then (`Absent`). `updated_at` and the fields of a job execution are null until they are known.

Note: why `Struct` and not attrs. A list answers a thousand objects; a Struct is built and encoded
in a quarter of the time of an attrs class.

Additive fields, beyond the interface: of a cluster `status_description`, `is_transient`,
`neutron_management_network`, `created_at`, `updated_at`; of an instance `server_id`, `status`; of
an image `description`; of a cluster template `default_image_id` when given.

Source: interface, "Resources and their fields"; behaviour, Part I 10-14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType, convert

from svcd.model import cloud, cluster, template
from svcd.model.ids import iso_seconds
from svcd.model.template import Configs

Absent: TypeAlias = UnsetType

IMAGE_USERNAME: Final = "_svc_username"
IMAGE_DESCRIPTION: Final = "_svc_description"
IMAGE_TAG: Final = "_svc_tag_"
IMAGE_TAG_VALUE: Final = "True"


def image_tags(image: cloud.Image) -> list[str]:
    """The tags of a platform image, sorted."""
    return sorted(p.removeprefix(IMAGE_TAG) for p in image.properties if p.startswith(IMAGE_TAG))


def is_registered(image: cloud.Image) -> bool:
    """Whether the registry knows the image."""
    return bool(image.properties.get(IMAGE_USERNAME))


class View(Struct, frozen=True, kw_only=True):
    """The JSON object of an answer. Its repr shows no field, for some hold credentials."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def encoded(self) -> bytes:
        """The JSON text."""
        return msgspec.json.encode(self)


class Version(View, frozen=True, kw_only=True):
    """A version of the interface."""

    id: str
    status: str


class Health(View, frozen=True, kw_only=True):
    """The process answers."""

    status: str


class Readiness(View, frozen=True, kw_only=True):
    """Everything that requests need is there."""

    status: str
    parts: dict[str, str]


class ConsoleSetup(View, frozen=True, kw_only=True):
    """What the console must know before its first request.

    auth: `none` or `keystone`. project: the first one that the page shows; "" after a login.
    max_binary_bytes: largest file that svcd stores.
    """

    auth: str
    project: str
    password_login: bool
    max_binary_bytes: int


class ConsoleProject(View, frozen=True, kw_only=True):
    """A project that the user may choose."""

    id: str
    name: str


class ConsoleLogin(View, frozen=True, kw_only=True):
    """The token of a user of the console."""

    token: str
    expires_at: str
    user_id: str
    user_name: str
    project: ConsoleProject | None
    projects: list[ConsoleProject]


class Plugin(View, frozen=True, kw_only=True):
    """A distribution."""

    name: str
    title: str
    description: str
    versions: list[str]


class ConfigEntry(View, frozen=True, kw_only=True):
    """An option of a distribution."""

    name: str
    description: str
    default_value: str | bool
    config_type: str
    applicable_target: str
    scope: str
    is_optional: bool
    priority: int


class PluginVersion(Plugin, frozen=True, kw_only=True):
    """A distribution with the processes, tags and options of one version."""

    node_processes: dict[str, list[str]]
    required_image_tags: list[str]
    configs: list[ConfigEntry]


class Image(View, frozen=True, kw_only=True):
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

    @classmethod
    def of(cls, record: cloud.Image) -> Self:
        """`metadata` holds the properties of the registry and no others."""
        kept = {
            key: value
            for key, value in record.properties.items()
            if key in (IMAGE_USERNAME, IMAGE_DESCRIPTION) or key.startswith(IMAGE_TAG)
        }
        status = record.status.upper()
        return cls(
            id=record.id,
            name=record.name,
            description=kept.get(IMAGE_DESCRIPTION, ""),
            status=status,
            username=kept.get(IMAGE_USERNAME, ""),
            tags=image_tags(record),
            minDisk=record.min_disk_gib,
            minRam=record.min_ram_mib,
            progress=100 if status == "ACTIVE" else 0,
            metadata=kept,
        )


class NodeGroupTemplate(View, frozen=True, kw_only=True):
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

    @classmethod
    def of(cls, record: template.NodeGroupTemplate) -> Self:
        """The answer for `record`."""
        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            plugin_name=record.plugin_name,
            engine_version=record.engine_version,
            node_processes=list(record.node_processes),
            flavor_id=record.flavor_id,
            node_configs=record.node_configs,
            volumes_per_node=record.volumes_per_node,
            volumes_size=record.volumes_size,
            volume_mount_prefix=record.volume_mount_prefix,
            floating_ip_pool=_given(record.floating_ip_pool),
        )


class TemplateGroup(View, frozen=True, kw_only=True):
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

    @classmethod
    def of(cls, record: template.TemplateNodeGroup | cluster.NodeGroup, **more: object) -> Self:
        """The answer for `record`; `more`: the fields that a subclass adds."""
        return cls(
            name=record.name,
            count=record.count,
            node_processes=list(record.node_processes),
            flavor_id=record.flavor_id,
            node_configs=record.node_configs,
            volumes_per_node=record.volumes_per_node,
            volumes_size=record.volumes_size,
            volume_mount_prefix=record.volume_mount_prefix,
            floating_ip_pool=_given(record.floating_ip_pool),
            node_group_template_id=_given(record.node_group_template_id),
            **more,
        )


class ClusterTemplate(View, frozen=True, kw_only=True):
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

    @classmethod
    def of(cls, record: template.ClusterTemplate) -> Self:
        """The answer for `record`."""
        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            plugin_name=record.plugin_name,
            engine_version=record.engine_version,
            cluster_configs=record.cluster_configs,
            anti_affinity=list(record.anti_affinity),
            node_groups=[TemplateGroup.of(group) for group in record.node_groups],
            neutron_management_network=_given(record.neutron_management_network),
            default_image_id=_given(record.default_image_id),
        )


class Instance(View, frozen=True, kw_only=True):
    """A machine of a cluster."""

    instance_name: str
    instance_id: str
    volumes: list[str]
    internal_ip: str | Absent = UNSET
    management_ip: str | Absent = UNSET
    server_id: str | Absent = UNSET
    status: str | Absent = UNSET

    @classmethod
    def of(cls, record: cluster.Instance) -> Self:
        """The answer for `record`."""
        return cls(
            instance_name=record.instance_name,
            instance_id=record.instance_id,
            volumes=[volume.volume_id for volume in record.volumes],
            internal_ip=_given(record.internal_ip),
            management_ip=_given(record.management_ip),
            server_id=_given(record.server_id),
            status=_given(record.status),
        )


class ClusterGroup(TemplateGroup, frozen=True, kw_only=True):
    """A node group of a cluster."""

    created: str
    updated: str
    instances: list[Instance]


class Cluster(View, frozen=True, kw_only=True):
    """A cluster with its groups and instances. Never a key, a trust or a sealed text."""

    id: str
    name: str
    description: str
    status: cluster.ClusterStatus
    status_description: str
    info: Mapping[str, Mapping[str, str]]
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

    @classmethod
    def of(cls, record: cluster.Cluster) -> Self:
        """The answer for `record`."""
        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            status=record.status,
            status_description=record.explained(),
            info=record.info,
            plugin_name=record.plugin_name,
            engine_version=record.engine_version,
            default_image_id=record.default_image_id,
            cluster_configs=record.cluster_configs,
            anti_affinity=list(record.anti_affinity),
            is_transient=record.is_transient,
            node_groups=[
                ClusterGroup.of(
                    group,
                    created=iso_seconds(group.created_at),
                    updated=iso_seconds(group.updated_at or group.created_at),
                    instances=[Instance.of(each) for each in group.instances],
                )
                for group in record.node_groups
            ],
            created_at=record.created_at,
            updated_at=record.updated_at,
            cluster_template_id=_given(record.cluster_template_id),
            user_keypair_id=_given(record.user_keypair_id),
            neutron_management_network=_given(record.neutron_management_network),
        )


class Machine(View, frozen=True, kw_only=True):
    """The SSH login of a machine of a cluster (additive)."""

    instance_name: str
    address: str
    internal_ip: str
    port: int
    username: str
    host_key: str | Absent = UNSET

    @classmethod
    def of(cls, record: cluster.Cluster, instance: cluster.Instance) -> Self:
        """The answer for one instance of `record`."""
        internal = instance.internal_ip or ""
        return cls(
            instance_name=instance.instance_name,
            address=instance.management_ip or internal,
            internal_ip=internal,
            port=record.ssh_port,
            username=record.username,
            host_key=_given(instance.host_key),
        )


class StepName(View, frozen=True, kw_only=True):
    """A step of a provision, on one machine or on none in particular (additive)."""

    step: str
    machine: str


class Event(View, frozen=True, kw_only=True):
    """One event of a cluster (additive)."""

    number: int
    at: str
    generation: int
    step: str
    machine: str
    outcome: str
    code: str
    text: str
    attempt: int
    until: str | None
    began: str | None
    ended: str | None
    waited_for: StepName | None

    @classmethod
    def of(cls, record: cluster.ClusterEvent) -> Self:
        """The answer for `record`, which has the same fields."""
        return convert(record, cls, from_attributes=True)


class OwnershipTags(View, frozen=True, kw_only=True):
    """The ids that this daemon's objects in the tenant's cloud can carry (additive)."""

    installation: str
    clusters: list[str]
    trusts: list[str]
    job_credentials: list[str]


def _given(value: str | None) -> str | Absent:
    return UNSET if value is None else value
