"""The fields that several requests and answers have: type, bounds and meaning, each once.

A request is checked by the bounds (`svcd.model.shapes`), and `/openapi.json` shows the meanings. A
field of one class alone has its meaning in that class, as `Annotated[type, means(text)]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from svcd.model import names
from svcd.model.job import GivenText
from svcd.model.template import ConfigValue

_MOST_TARGETS: Final = 100
"""Most targets in one object of options: a distribution has about ten services."""
MOST_LIFE_S: Final = 315_360_000
"""Longest `idle_delete_s` and `max_age_s` in a request: ten years."""
MOST_INIT_SCRIPTS: Final = 20
"""Most scripts of one node group."""
MOST_SCRIPT_BYTES: Final = 1_048_576
"""Most bytes of one script."""
SINCE_1_1: Final = frozenset(
    {"idle_delete_s", "max_age_s", "keep_until", "idle_since", "delete_at", "init_scripts", "usage"}
)
"""Fields of clusters, groups and their templates that only v1.1 takes and shows."""
MOST_COUNT: Final = 1_000_000
"""Largest count of one group in a request."""


def means(text: str) -> Meta:
    """The meaning of a field."""
    return Meta(description=text)


def _name(pattern: str, most: int = names.MAX_NAME) -> Any:
    return Meta(min_length=1, max_length=most, pattern=pattern)


# ---- texts --------------------------------------------------------------------------------------

Prose: TypeAlias = Annotated[str, means("text for people")]
Text: TypeAlias = Annotated[Prose, Meta(max_length=4096, extra={"lines": True})]
"""`lines`: it may contain tab and line feed, see svcd.model.shapes."""
Reference: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
"""An opaque id or name of another resource."""
HostName: TypeAlias = Annotated[str, _name(names.HOST_NAME)]
_unique = means("name; unique among the records of its kind in the tenant")
ClusterName: TypeAlias = Annotated[HostName, _unique]
"""Of clusters and both kinds of templates."""
GroupName: TypeAlias = Annotated[
    HostName, means("name of the node group, unique in the cluster or template")
]
DataName: TypeAlias = Annotated[str, _name(names.DATA_NAME), _unique]
"""Of data sources, binaries and jobs."""

# ---- records ------------------------------------------------------------------------------------

Id: TypeAlias = Annotated[str, means("id, which svcd assigns")]
Tenant: TypeAlias = Annotated[str, means("tenant that owns the record")]
CreatedAt: TypeAlias = Annotated[
    str, means("time of the creation, UTC, as `YYYY-MM-DD HH:MM:SS.ffffff`")
]
UpdatedAt: TypeAlias = Annotated[
    str, means("time of the last change, in the form of `created_at`; null before the first one")
]

# ---- clusters and templates ---------------------------------------------------------------------

PluginName: TypeAlias = Annotated[Reference, means("name of the plugin")]
EngineVersion: TypeAlias = Annotated[
    Reference, means("version of the plugin, one of its `versions`")
]
_Configs: TypeAlias = Annotated[
    Mapping[str, Mapping[str, ConfigValue]], Meta(max_length=_MOST_TARGETS)
]
ClusterConfigs: TypeAlias = Annotated[
    _Configs, means("options of the whole cluster: target, name, value")
]
AntiAffinity: TypeAlias = Annotated[
    tuple[Reference, ...],
    Meta(max_length=100, description="processes whose machines run on different hosts"),
]
Network: TypeAlias = Annotated[
    Reference, means("network of the machines; left out: the only one of the tenant")
]
DefaultImageId: TypeAlias = Annotated[Reference, means("registered image of the machines")]
ClusterTemplateRef: TypeAlias = Annotated[
    Reference, means("cluster template that gives the values that are left out")
]
UserKeypairId: TypeAlias = Annotated[
    Reference, means("key pair that opens the machines to the user")
]
IsTransient: TypeAlias = Annotated[
    bool, means("whether svcd deletes the cluster after its last job")
]

_LIFE = Meta(ge=0, le=MOST_LIFE_S)
IdleDeleteS: TypeAlias = Annotated[
    int,
    _LIFE,
    means("seconds without use after which svcd deletes the cluster; 0: never (v1.1)"),
]
MaxAgeS: TypeAlias = Annotated[
    int,
    _LIFE,
    means("seconds from the creation after which svcd deletes the cluster; 0: never (v1.1)"),
]
KeepUntil: TypeAlias = Annotated[
    str,
    Meta(pattern=names.MOMENT, description="svcd does not delete the cluster before, UTC (v1.1)"),
]

# ---- node groups --------------------------------------------------------------------------------

GROUPS: Final = means("groups of equal machines")
Count: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_COUNT, description="number of machines")]
NodeGroupTemplateRef: TypeAlias = Annotated[
    Reference, means("node group template that gives the values that are left out")
]
FlavorId: TypeAlias = Annotated[Reference, means("flavor of the machines")]
NodeProcesses: TypeAlias = Annotated[
    tuple[Reference, ...],
    Meta(min_length=1, max_length=100, description="processes on each machine of the group"),
]
NodeConfigs: TypeAlias = Annotated[_Configs, means("options of the group: target, name, value")]
VolumesPerNode: TypeAlias = Annotated[
    int, Meta(ge=0, le=25, description="number of volumes of each machine")
]
VolumesSize: TypeAlias = Annotated[
    int, Meta(ge=1, le=1_000_000, description="size of each volume in GiB")
]
VolumeMountPrefix: TypeAlias = Annotated[
    str,
    Meta(
        min_length=2,
        max_length=200,
        pattern=names.MOUNT_PREFIX,
        description="path before the number of a mounted volume",
    ),
]
FloatingIpPool: TypeAlias = Annotated[
    Reference, means("pool from which each machine gets a floating IP")
]
InitScripts: TypeAlias = Annotated[
    tuple[Reference, ...],
    Meta(
        max_length=MOST_INIT_SCRIPTS,
        description="names of internal job binaries that run once on each new machine (v1.1)",
    ),
]

# ---- machines and steps -------------------------------------------------------------------------

MachineName: TypeAlias = Annotated[str, means("name of the machine")]
MachineNames: TypeAlias = Annotated[list[str], means("names of the machines")]
MachineOrNone: TypeAlias = Annotated[str, means("name of the machine; empty: none in particular")]
NodeGroupName: TypeAlias = Annotated[str, means("node group of the machines")]
InternalIp: TypeAlias = Annotated[str, means("address of the machine in its network")]
Username: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=names.USERNAME,
        description="login user of the image",
    ),
]
ImageId: TypeAlias = Annotated[str, means("id of the image in the cloud")]
ImageName: TypeAlias = Annotated[str, means("name of the image in the cloud")]
Step: TypeAlias = Annotated[str, means("step of the work")]
Code: TypeAlias = Annotated[
    str, means("code of the failure, one of the table in `docs/failures.md`")
]
Words: TypeAlias = Annotated[str, means("words of svcd, or of the service or program that failed")]
Until: TypeAlias = Annotated[str, means("deadline of the wait; null without one")]
Change: TypeAlias = Annotated[str, means("what svcd would do with it: `create` or `delete`")]
QuotaResource: TypeAlias = Annotated[str, means("kind of the quota")]

# ---- data processing ----------------------------------------------------------------------------

DATA_TYPE: Final = means("kind of the location: object store or HDFS")
ACCOUNT: Final = means("account in the object store; masked for readers")
JOB_TYPE: Final = means("type of the job")
AccountUser: TypeAlias = Annotated[
    str, Meta(max_length=4096, description="user of the account in the object store")
]
AccountPassword: TypeAlias = Annotated[
    str, Meta(max_length=4096, description="password of the account")
]
_Url: TypeAlias = Annotated[str, Meta(min_length=1, max_length=2048)]
DataUrl: TypeAlias = Annotated[_Url, means("location: `objstore://…` or an HDFS path")]
BinaryUrl: TypeAlias = Annotated[
    _Url, means("location: `internaldb://ID` or `objstore-internal://CONTAINER/OBJECT`")
]
BareUrl: TypeAlias = Annotated[str, means("location without credentials")]
FileName: TypeAlias = Annotated[
    GivenText,
    Meta(
        min_length=1,
        max_length=255,
        description="name of the file for the program; absent: the name of the record",
    ),
]
JobRef: TypeAlias = Annotated[str, means("the job")]
InputId: TypeAlias = Annotated[Reference, means("data source of the input")]
OutputId: TypeAlias = Annotated[Reference, means("data source of the output")]
JOB_CONFIGS: Final = means("options, arguments and parameters of the job")
UserName: TypeAlias = Annotated[Reference, means("name of the user at the identity service")]
