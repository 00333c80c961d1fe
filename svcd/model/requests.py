"""The shapes of request bodies, named as in the interface. `svcd.model.shapes` decodes into them.

A field that was not sent is None (or its default); null counts as not sent where None is allowed.
The shapes check the body alone; the commands check references.

Source: interface, "Endpoints"; behaviour, Part I 7, 8, 17, 20, 23 and Part II 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from attrs import field, frozen
from msgspec import UNSET, Meta, UnsetType

from svcd.model import fields, names
from svcd.model.fields import means
from svcd.model.job import MAX_JOB_VALUES, Credentials, JobConfigs, JobType
from svcd.model.redaction import url_repr
from svcd.model.template import (
    DEFAULT_VOLUME_MOUNT_PREFIX,
    DEFAULT_VOLUMES_PER_NODE,
    DEFAULT_VOLUMES_SIZE_GIB,
)

Binaries: TypeAlias = Annotated[tuple[fields.Reference, ...], Meta(max_length=1000)]
Tag: TypeAlias = Annotated[str, Meta(min_length=1, max_length=names.MAX_TAG, pattern=names.TAG)]
Password: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
ResizeCount: TypeAlias = Annotated[int, Meta(ge=0, le=fields.MOST_COUNT)]


@frozen(kw_only=True)
class Limits:
    """Bounds of a request. groups, nodes: of one cluster or template, from the operator.

    since_1_1: whether the fields that v1.1 adds may be given.
    """

    groups: int = 100
    nodes: int = 1000
    since_1_1: bool = True


Tree: TypeAlias = Mapping[str, Any]
"""A JSON object decoded without types: any of its values may have the wrong type."""


@frozen(kw_only=True)
class NewNodeGroupTemplate:
    """A new node group template."""

    name: fields.ClusterName
    description: fields.Text | None = None
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    node_processes: fields.NodeProcesses
    flavor_id: fields.FlavorId
    node_configs: fields.NodeConfigs = field(factory=dict, repr=False)
    volumes_per_node: fields.VolumesPerNode = DEFAULT_VOLUMES_PER_NODE
    volumes_size: fields.VolumesSize = DEFAULT_VOLUMES_SIZE_GIB
    volume_mount_prefix: fields.VolumeMountPrefix = DEFAULT_VOLUME_MOUNT_PREFIX
    floating_ip_pool: fields.FloatingIpPool | None = None
    init_scripts: fields.InitScripts = ()


@frozen(kw_only=True)
class NewNodeGroup:
    """A node group in a cluster, a cluster template or a scale request.

    Either from a template, whose values the other given fields override, or inline.
    """

    name: fields.GroupName
    count: fields.Count
    node_group_template_id: fields.NodeGroupTemplateRef | None = None
    flavor_id: fields.FlavorId | None = None
    node_processes: fields.NodeProcesses | None = None
    node_configs: fields.NodeConfigs | None = field(default=None, repr=False)
    volumes_per_node: fields.VolumesPerNode | None = None
    volumes_size: fields.VolumesSize | None = None
    volume_mount_prefix: fields.VolumeMountPrefix | None = None
    floating_ip_pool: fields.FloatingIpPool | None = None
    init_scripts: fields.InitScripts | None = None

    @staticmethod
    def cross_faults(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
        """Faults of a group with neither a template nor its own flavor and processes."""
        if tree.get("node_group_template_id") is not None:
            return
        missing = [n for n in ("flavor_id", "node_processes") if tree.get(n) is None]
        if missing:
            yield (
                f"{path}: missing {' and '.join(missing)}; give node_group_template_id, "
                "or flavor_id and node_processes"
            )


AddGroup: TypeAlias = NewNodeGroup
NodeGroups: TypeAlias = Annotated[tuple[NewNodeGroup, ...], Meta(min_length=1)]


def _total_faults(groups: Any, path: str, limits: Limits) -> Iterator[str]:
    if not isinstance(groups, list):
        return
    if len(groups) > limits.groups:
        yield f"{path}: expected at most {limits.groups} groups, got {len(groups)}"
    counts = [g.get("count") for g in groups if isinstance(g, dict)]
    total = sum(min(c, fields.MOST_COUNT) for c in counts if type(c) is int and c > 0)
    if total > limits.nodes:
        yield f"{path}: expected at most {limits.nodes} instances in total, got {total}"


@frozen(kw_only=True)
class NewClusterTemplate:
    """A new cluster template. With `default_image_id` its clusters need not name an image."""

    name: fields.ClusterName
    description: fields.Text | None = None
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    node_groups: Annotated[NodeGroups, fields.GROUPS]
    cluster_configs: fields.ClusterConfigs = field(factory=dict, repr=False)
    anti_affinity: fields.AntiAffinity = ()
    neutron_management_network: fields.Network | None = None
    default_image_id: fields.DefaultImageId | None = None
    idle_delete_s: fields.IdleDeleteS | None = None
    max_age_s: fields.MaxAgeS | None = None

    @staticmethod
    def cross_faults(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
        """Faults of the numbers of groups and instances."""
        yield from _total_faults(tree.get("node_groups"), f"{path}.node_groups", limits)


@frozen(kw_only=True)
class NewCluster:
    """A new cluster.

    The cluster template gives the values of fields that are left out. Node groups in a request
    replace the template's; cluster_configs are merged name by name.
    """

    name: fields.ClusterName
    description: fields.Text | None = None
    plugin_name: fields.PluginName
    engine_version: fields.EngineVersion
    cluster_template_id: fields.ClusterTemplateRef | None = None
    default_image_id: fields.DefaultImageId | None = None
    user_keypair_id: fields.UserKeypairId | None = None
    node_groups: Annotated[NodeGroups | None, fields.GROUPS] = None
    cluster_configs: fields.ClusterConfigs = field(factory=dict, repr=False)
    anti_affinity: fields.AntiAffinity | None = None
    neutron_management_network: fields.Network | None = None
    is_transient: fields.IsTransient = False
    idle_delete_s: fields.IdleDeleteS | None = None
    max_age_s: fields.MaxAgeS | None = None

    @staticmethod
    def cross_faults(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
        """Faults of missing groups or image without a template, and of the numbers of groups."""
        if tree.get("cluster_template_id") is None:
            if tree.get("node_groups") is None:
                yield f"{path}: missing node_groups; give cluster_template_id or node_groups"
            if tree.get("default_image_id") is None:
                yield f"{path}.default_image_id: missing, expected string"
        yield from _total_faults(tree.get("node_groups"), f"{path}.node_groups", limits)


@frozen(kw_only=True)
class ResizeGroup:
    """One existing group and its new count; 0 removes it."""

    name: Annotated[fields.Reference, means("name of a node group of the cluster")]
    count: Annotated[ResizeCount, means("new number of machines; 0 removes the group")]


@frozen(kw_only=True)
class ScaleRequest:
    """New sizes of a cluster, and when svcd deletes it. An empty one repeats the failed work."""

    resize_node_groups: Annotated[
        tuple[ResizeGroup, ...], means("groups with their new sizes")
    ] = ()
    add_node_groups: Annotated[tuple[AddGroup, ...], means("new groups")] = ()
    idle_delete_s: fields.IdleDeleteS | UnsetType = UNSET
    max_age_s: fields.MaxAgeS | UnsetType = UNSET
    keep_until: fields.KeepUntil | UnsetType = UNSET

    @property
    def life(self) -> Mapping[str, Any]:
        """The given values of the fields that say when svcd deletes the cluster."""
        given = {name: getattr(self, name) for name in ("idle_delete_s", "max_age_s", "keep_until")}
        return {name: value for name, value in given.items() if value is not UNSET}

    @property
    def is_only_life(self) -> bool:
        """Whether the request leaves the machines as they are."""
        return bool(self.life) and not self.resize_node_groups and not self.add_node_groups

    @staticmethod
    def cross_faults(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
        """Faults of each list's numbers. The command checks the numbers of the whole cluster."""
        for name in ("resize_node_groups", "add_node_groups"):
            yield from _total_faults(tree.get(name), f"{path}.{name}", limits)


@frozen(kw_only=True)
class GivenCredentials:
    """User and password of the object store; both or none."""

    secret: ClassVar[bool] = True

    user: fields.AccountUser | None = field(default=None, repr=False)
    password: fields.AccountPassword | None = field(default=None, repr=False)

    def whole(self) -> Credentials | None:
        """The record when both parts are given and not empty, else None."""
        if not self.user or not self.password:
            return None
        return Credentials(user=self.user, password=self.password)

    def fault(self, path: str) -> str:
        """The fault when only one part was given, else ""."""
        if bool(self.user) == bool(self.password):
            return ""
        given, lacking = ("user", "password") if self.user else ("password", "user")
        return f"{path}.{lacking}: missing, {given} was given; give both or none"


@frozen(kw_only=True)
class NewDataSource:
    """A new data source. svcd does not check its location."""

    name: fields.DataName
    description: fields.Text | None = None
    type: Annotated[Literal["objstore", "hdfs"], fields.DATA_TYPE]
    url: fields.DataUrl = field(repr=url_repr)
    credentials: Annotated[GivenCredentials, fields.ACCOUNT] = field(factory=GivenCredentials)


@frozen(kw_only=True)
class NewJobBinary:
    """A new job binary. file_name: the name that its file has for a program."""

    name: fields.DataName
    description: fields.Text | None = None
    file_name: fields.FileName | None = None
    url: fields.BinaryUrl = field(repr=url_repr)
    extra: Annotated[GivenCredentials, fields.ACCOUNT] = field(factory=GivenCredentials)


@frozen(kw_only=True)
class NewJob:
    """A new job."""

    name: fields.DataName
    description: fields.Text | None = None
    type: Annotated[JobType, fields.JOB_TYPE]
    mains: Annotated[
        Binaries, means("ids of the job binaries with the main program or script")
    ] = ()
    libs: Annotated[Binaries, means("ids of the job binaries with libraries")] = ()


@frozen(kw_only=True)
class PasswordLogin:
    """The login of a user of the console. project: id or name; without one the token has none."""

    secret: ClassVar[bool] = True

    user: fields.UserName = field(repr=False)
    domain: Annotated[
        fields.Reference, means("name of the user's domain, or the id in `cloud.user_domain`")
    ]
    password: Annotated[Password, means("password of the user")] = field(repr=False)
    project: Annotated[
        fields.Reference | None, means("id or name of a project, for a token that is good there")
    ] = None


@frozen(kw_only=True)
class ExecuteRequest:
    """An execution of a job, on a cluster or on a new transient one."""

    cluster_id: Annotated[
        fields.Reference | None, means("Active cluster on which the job is to run")
    ] = None
    cluster: Annotated[
        NewCluster | None,
        means("transient cluster that svcd makes for the job, in place of `cluster_id`"),
    ] = None
    input_id: fields.InputId | None = None
    output_id: fields.OutputId | None = None
    job_configs: Annotated[JobConfigs, fields.JOB_CONFIGS] = field(factory=JobConfigs)

    @staticmethod
    def cross_faults(tree: Tree, path: str, limits: Limits) -> Iterator[str]:
        """Faults when not exactly one of cluster_id and cluster is given, or of too many values."""
        configs = tree.get("job_configs")
        for name in ("configs", "args", "params"):
            values = configs.get(name) if isinstance(configs, dict) else None
            if isinstance(values, (dict, list)) and len(values) > MAX_JOB_VALUES:
                yield (
                    f"{path}.job_configs.{name}: expected at most {MAX_JOB_VALUES} items, "
                    f"got {len(values)}"
                )
        given = [n for n in ("cluster_id", "cluster") if tree.get(n) is not None]
        if not given:
            yield f"{path}.cluster_id: missing, expected string (or cluster, a cluster body)"
        elif len(given) == 2:
            yield f"{path}: give cluster_id or cluster, not both"


@frozen(kw_only=True)
class RegisterImage:
    """The registration of an image."""

    username: fields.Username
    description: fields.Text | None = None


@frozen(kw_only=True)
class Tags:
    """Tags to add to an image, or to remove from it."""

    tags: Annotated[
        Annotated[tuple[Tag, ...], Meta(max_length=100)], means("tags to add or to remove")
    ]
