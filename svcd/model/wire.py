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

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Self, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from svcd.model import cloud, cluster, fields, template
from svcd.model.fields import means
from svcd.model.ids import iso_seconds, timestamp
from svcd.model.lifetime import end_of
from svcd.model.step_kind import StepKind, kind_of
from svcd.model.usage import Usage

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

    @classmethod
    def filled(cls, record: object, **own: Any) -> Self:
        """The answer with the values `own`, and for each other field with that of the record.

        A field that may be absent is left out where the record has None.
        """
        for name, may_be_absent in _fields(cls):
            if name not in own:
                value = getattr(record, name)
                if value is not None or not may_be_absent:
                    own[name] = value
        return cls(**own)


@cache
def _fields(cls: type[View]) -> Sequence[tuple[str, bool]]:
    """The fields of an answer, and whether each may be absent."""
    return [(field.name, not field.required) for field in msgspec.structs.fields(cls)]


class Plugin(View, frozen=True, kw_only=True):
    """A distribution."""

    name: Annotated[str, means("name of the plugin, for `plugin_name`")]
    title: Annotated[str, means("name for people")]
    description: fields.Prose
    versions: Annotated[list[str], means("versions that can be installed")]


class ConfigEntry(View, frozen=True, kw_only=True):
    """An option of a distribution."""

    name: Annotated[str, means("name of the option")]
    description: fields.Prose
    default_value: Annotated[str | bool, means("value of an option that is not given")]
    config_type: Annotated[str, means("type of the value")]
    applicable_target: Annotated[
        str, means("target of the option in `cluster_configs` and `node_configs`")
    ]
    scope: Annotated[str, means("whether the option is of a node group or of the whole cluster")]
    is_optional: Annotated[bool, means("whether the option can be left out")]
    priority: Annotated[int, means("1 for the important options")]


class PluginVersion(Plugin, frozen=True, kw_only=True):
    """A distribution with the processes, tags and options of one version."""

    node_processes: Annotated[dict[str, list[str]], means("processes of each service")]
    required_image_tags: Annotated[list[str], means("tags that the image of a cluster must have")]
    configs: Annotated[list[ConfigEntry], means("options of the version")]


class Image(View, frozen=True, kw_only=True):
    """A registered image."""

    id: fields.ImageId
    name: fields.ImageName
    description: fields.Prose
    status: Annotated[str, means("status of the image in the cloud, in capitals")]
    username: Annotated[str, means("login user of the image")]
    tags: Annotated[list[str], means("tags of the image")]
    minDisk: Annotated[int, means("least disk of a machine in GiB")]
    minRam: Annotated[int, means("least memory of a machine in MiB")]
    progress: Annotated[int, means("100 when the image is usable")]
    metadata: Annotated[dict[str, str], means("properties of the image that the registry keeps")]

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

    id: fields.Id
    name: fields.ClusterName
    description: fields.Text
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    node_processes: fields.NodeProcesses
    flavor_id: fields.FlavorId
    node_configs: fields.NodeConfigs
    volumes_per_node: fields.VolumesPerNode
    volumes_size: fields.VolumesSize
    volume_mount_prefix: fields.VolumeMountPrefix
    floating_ip_pool: fields.FloatingIpPool | Absent = UNSET
    init_scripts: fields.InitScripts | Absent = UNSET

    @classmethod
    def of(cls, record: template.NodeGroupTemplate) -> Self:
        """The answer for `record`."""
        scripts = record.init_scripts or UNSET
        return cls.filled(record, description=record.description or "", init_scripts=scripts)


class TemplateGroup(View, frozen=True, kw_only=True):
    """A node group of a cluster template."""

    name: fields.GroupName
    count: fields.Count
    node_processes: fields.NodeProcesses
    flavor_id: fields.FlavorId
    node_configs: fields.NodeConfigs
    volumes_per_node: fields.VolumesPerNode
    volumes_size: fields.VolumesSize
    volume_mount_prefix: fields.VolumeMountPrefix
    floating_ip_pool: fields.FloatingIpPool | Absent = UNSET
    init_scripts: fields.InitScripts | Absent = UNSET
    node_group_template_id: fields.NodeGroupTemplateRef | Absent = UNSET

    @classmethod
    def of(cls, record: template.TemplateNodeGroup | cluster.NodeGroup, **more: Any) -> Self:
        """The answer for `record`; `more`: the fields that a subclass adds."""
        return cls.filled(record, init_scripts=record.init_scripts or UNSET, **more)


class ClusterTemplate(View, frozen=True, kw_only=True):
    """A cluster template."""

    id: fields.Id
    name: fields.ClusterName
    description: fields.Text
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    cluster_configs: fields.ClusterConfigs
    anti_affinity: fields.AntiAffinity
    node_groups: Annotated[list[TemplateGroup], fields.GROUPS]
    neutron_management_network: fields.Network | Absent = UNSET
    default_image_id: fields.DefaultImageId | Absent = UNSET
    idle_delete_s: fields.IdleDeleteS | Absent = UNSET
    max_age_s: fields.MaxAgeS | Absent = UNSET

    @classmethod
    def of(cls, record: template.ClusterTemplate) -> Self:
        """The answer for `record`."""
        return cls.filled(
            record,
            description=record.description or "",
            node_groups=[TemplateGroup.of(group) for group in record.node_groups],
        )


class Instance(View, frozen=True, kw_only=True):
    """A machine of a cluster."""

    instance_name: fields.MachineName
    instance_id: Annotated[str, means("id of the machine in svcd")]
    volumes: Annotated[list[str], means("ids of the volumes in the cloud")]
    internal_ip: fields.InternalIp | Absent = UNSET
    management_ip: Annotated[str | Absent, means("address at which svcd reaches the machine")] = (
        UNSET
    )
    server_id: Annotated[str | Absent, means("id of the server in the cloud")] = UNSET
    status: Annotated[
        str | Absent, means("status of the server in the cloud, when svcd has read one")
    ] = UNSET

    @classmethod
    def of(cls, record: cluster.Instance) -> Self:
        """The answer for `record`: without `filled`, for a cluster may have a thousand."""
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

    created: Annotated[str, means("time of the creation, UTC, as `YYYY-MM-DDTHH:MM:SS`")]
    updated: Annotated[str, means("time of the last change, in the form of `created`")]
    instances: Annotated[list[Instance], means("machines of the group")]


class Cluster(View, frozen=True, kw_only=True):
    """A cluster with its groups and instances. Never a key, a trust or a sealed text."""

    id: fields.Id
    name: fields.ClusterName
    description: fields.Text
    status: Annotated[cluster.ClusterStatus, means("status of the cluster")]
    status_description: Annotated[
        str, means("reason of the status, and what is wrong with an Active cluster")
    ]
    info: Annotated[
        Mapping[str, Mapping[str, str]],
        means("addresses of the services by target, empty until they are known"),
    ]
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    default_image_id: fields.DefaultImageId
    cluster_configs: fields.ClusterConfigs
    anti_affinity: fields.AntiAffinity
    is_transient: fields.IsTransient
    node_groups: Annotated[list[ClusterGroup], fields.GROUPS]
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | None
    cluster_template_id: fields.ClusterTemplateRef | Absent = UNSET
    user_keypair_id: fields.UserKeypairId | Absent = UNSET
    neutron_management_network: fields.Network | Absent = UNSET
    idle_delete_s: fields.IdleDeleteS | Absent = UNSET
    max_age_s: fields.MaxAgeS | Absent = UNSET
    keep_until: fields.KeepUntil | Absent = UNSET
    idle_since: Annotated[
        str | Absent,
        means("since when the cluster is not in use, while svcd watches its use (v1.1)"),
    ] = UNSET
    delete_at: Annotated[
        str | Absent, means("when svcd deletes the cluster, if nothing changes (v1.1)")
    ] = UNSET
    usage: Annotated[Usage | Absent, means("hours of its machines, in GET alone (v1.1)")] = UNSET

    @classmethod
    def of(cls, record: cluster.Cluster) -> Self:
        """The answer for `record`."""
        end = end_of(record)
        return cls.filled(
            record,
            idle_delete_s=record.idle_delete_s or UNSET,
            max_age_s=record.max_age_s or UNSET,
            delete_at=UNSET if end is None else timestamp(end.at),
            usage=UNSET,
            description=record.description or "",
            status_description=record.explained(),
            node_groups=[
                ClusterGroup.of(
                    group,
                    created=iso_seconds(group.created_at),
                    updated=iso_seconds(group.updated_at or group.created_at),
                    instances=[Instance.of(instance) for instance in group.instances],
                )
                for group in record.node_groups
            ],
        )


def as_of_1_0(text: bytes) -> bytes:
    """The JSON of an answer with clusters or templates, without the fields that v1.1 adds."""
    if not _MAY_BE_NEW.search(text):
        return text
    answer = msgspec.json.decode(text)
    for key, value in answer.items():
        is_list = isinstance(value, list)
        answer[key] = list(map(_without_new, value)) if is_list else _without_new(value)
    return msgspec.json.encode(answer)


_MAY_BE_NEW = re.compile(f'"({"|".join(sorted(fields.SINCE_1_1))})":'.encode())


def _without_new(record: Any) -> Any:
    """The record, or its group, without those fields; a value that is no record stays."""
    if not isinstance(record, dict):
        return record
    kept = {name: value for name, value in record.items() if name not in fields.SINCE_1_1}
    if groups := kept.get("node_groups"):
        kept["node_groups"] = [_without_new(group) for group in groups]
    return kept


class Machine(View, frozen=True, kw_only=True):
    """The SSH login of a machine of a cluster (additive)."""

    instance_name: fields.MachineName
    address: Annotated[str, means("address for SSH")]
    internal_ip: fields.InternalIp
    port: Annotated[int, means("port for SSH")]
    username: Annotated[str, means("login user")]
    host_key: Annotated[str | Absent, means("public key of the machine that svcd has pinned")] = (
        UNSET
    )

    @classmethod
    def of(cls, record: cluster.Cluster, instance: cluster.Instance) -> Self:
        """The answer for one instance of `record`."""
        internal = instance.internal_ip or ""
        return cls.filled(
            instance,
            address=instance.management_ip or internal,
            internal_ip=internal,
            port=record.ssh_port,
            username=record.username,
        )


class StepName(View, frozen=True, kw_only=True):
    """A step of a provision, on one machine or on none in particular (additive)."""

    step: fields.Step
    machine: fields.MachineOrNone


class Event(View, frozen=True, kw_only=True):
    """One event of a cluster (additive)."""

    number: Annotated[int, means("number of the event; a later one is larger")]
    at: Annotated[str, means("time of the event, UTC")]
    generation: Annotated[int, means("number of the request that caused the work")]
    step: fields.Step
    kind: Annotated[StepKind, means("kind of the step: what sort of work it is")]
    machine: fields.MachineOrNone
    outcome: Annotated[str, means("result of the step")]
    code: fields.Code
    text: fields.Words
    attempt: Annotated[int, means("number of the attempt, from 1")]
    until: fields.Until | None
    began: Annotated[str | None, means("begin of the step, UTC; null when it is not known")]
    ended: Annotated[str | None, means("end of the step, UTC; null when it is not known")]
    waited_for: Annotated[
        StepName | None, means("step whose end let this one begin; null when there was none")
    ]

    @classmethod
    def of(cls, record: cluster.ClusterEvent) -> Self:
        """The answer for `record`."""
        waited_for = record.waited_for
        return cls.filled(
            record,
            kind=kind_of(record.step),
            waited_for=waited_for and StepName.filled(waited_for),
        )


def _given(value: str | None) -> str | Absent:
    return UNSET if value is None else value
