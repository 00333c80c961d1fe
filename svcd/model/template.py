"""Node groups and the two kinds of templates. A new cluster gets copies of a template's values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from attrs import field, frozen

from svcd.model.ids import ClusterTemplateId, NodeGroupTemplateId, TenantId, Timestamp

ConfigValue: TypeAlias = str | int | bool
Configs: TypeAlias = Mapping[str, Mapping[str, ConfigValue]]
"""Target (a service name or `general`) -> option name -> value."""

DEFAULT_VOLUMES_PER_NODE = 0
DEFAULT_VOLUMES_SIZE_GIB = 10
DEFAULT_VOLUME_MOUNT_PREFIX = "/volumes/disk"


@frozen(kw_only=True)
class NodeGroupTemplate:
    """A reusable definition of a group of nodes.

    volumes_size: GiB of each volume.
    """

    id: NodeGroupTemplateId
    tenant_id: TenantId
    name: str
    description: str | None = None
    plugin_name: str
    engine_version: str
    node_processes: tuple[str, ...]
    flavor_id: str
    node_configs: Configs = field(factory=dict, repr=False)
    volumes_per_node: int = DEFAULT_VOLUMES_PER_NODE
    volumes_size: int = DEFAULT_VOLUMES_SIZE_GIB
    volume_mount_prefix: str = DEFAULT_VOLUME_MOUNT_PREFIX
    floating_ip_pool: str | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class TemplateNodeGroup:
    """One group of a cluster template, with the values of its node group template filled in."""

    name: str
    count: int
    node_group_template_id: NodeGroupTemplateId | None = None
    flavor_id: str
    node_processes: tuple[str, ...]
    node_configs: Configs = field(factory=dict, repr=False)
    volumes_per_node: int = DEFAULT_VOLUMES_PER_NODE
    volumes_size: int = DEFAULT_VOLUMES_SIZE_GIB
    volume_mount_prefix: str = DEFAULT_VOLUME_MOUNT_PREFIX
    floating_ip_pool: str | None = None


@frozen(kw_only=True)
class ClusterTemplate:
    """A reusable definition of a cluster."""

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
    node_groups: tuple[TemplateNodeGroup, ...] = ()
    created_at: Timestamp
    updated_at: Timestamp | None = None
