"""Node groups and the two kinds of templates. A new cluster gets copies of a template's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import field, fields, frozen

from svcd.model.ids import ClusterTemplateId, NodeGroupTemplateId, TenantId, Timestamp

ConfigValue: TypeAlias = str | int | bool
Configs: TypeAlias = Mapping[str, Mapping[str, ConfigValue]]
"""Target (a service name or `general`) -> option name -> value."""

DEFAULT_VOLUMES_PER_NODE = 0
DEFAULT_VOLUMES_SIZE_GIB = 10
DEFAULT_VOLUME_MOUNT_PREFIX = "/volumes/disk"


def merged(first: Configs, then: Configs) -> dict[str, Mapping[str, ConfigValue]]:
    """The options of both, merged by name; `then` wins."""
    result: dict[str, Mapping[str, ConfigValue]] = dict(first)
    for target, values in then.items():
        result[target] = {**result.get(target, {}), **values}
    return result


@frozen(kw_only=True)
class NodeShape:
    """The values of a group's nodes. volumes_size: GiB of each volume.

    init_scripts: names of internal job binaries.
    """

    flavor_id: str
    node_processes: tuple[str, ...]
    node_configs: Configs = field(factory=dict, repr=False)
    volumes_per_node: int = DEFAULT_VOLUMES_PER_NODE
    volumes_size: int = DEFAULT_VOLUMES_SIZE_GIB
    volume_mount_prefix: str = DEFAULT_VOLUME_MOUNT_PREFIX
    floating_ip_pool: str | None = None
    init_scripts: tuple[str, ...] = ()

    def mount_point(self, number: int) -> str:
        """The folder of a machine's volume, from 1."""
        return f"{self.volume_mount_prefix}{number}"


def shape_of(given: object) -> dict[str, Any]:
    """The values that `given` has for the fields of NodeShape; None is no value."""
    values = {
        shape_field.name: getattr(given, shape_field.name) for shape_field in fields(NodeShape)
    }
    return {name: value for name, value in values.items() if value is not None}


@frozen(kw_only=True)
class NodeGroupTemplate(NodeShape):
    """A reusable definition of a group of nodes."""

    id: NodeGroupTemplateId
    tenant_id: TenantId
    name: str
    description: str | None = None
    plugin_name: str
    engine_version: str
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class TemplateNodeGroup(NodeShape):
    """One group of a cluster template, with the values of its node group template filled in."""

    name: str
    count: int
    node_group_template_id: NodeGroupTemplateId | None = None


@frozen(kw_only=True)
class ClusterTemplate:
    """A reusable definition of a cluster. idle_delete_s, max_age_s: None when not given."""

    id: ClusterTemplateId
    tenant_id: TenantId
    name: str
    description: str | None = None
    plugin_name: str
    engine_version: str
    cluster_configs: Configs = field(factory=dict, repr=False)
    anti_affinity: tuple[str, ...] = ()
    neutron_management_network: str | None = None
    default_image_id: str | None = None
    idle_delete_s: int | None = None
    max_age_s: int | None = None
    node_groups: tuple[TemplateNodeGroup, ...] = ()
    created_at: Timestamp
    updated_at: Timestamp | None = None
