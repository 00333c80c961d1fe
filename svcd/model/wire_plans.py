"""The answers of dry runs: what svcd would make, in the order in which it would do it.

They are additive (v1.1). Names of machines stand for addresses that only the cloud can give.
"""

from __future__ import annotations

from typing import Annotated

from svcd.model import fields
from svcd.model.fields import means
from svcd.model.wire import View


class RecordPlan(View, frozen=True, kw_only=True):
    """A template, data source, job binary or job that svcd would only write down."""

    name: Annotated[str, means("name of the record")]


class PlannedMachine(View, frozen=True, kw_only=True):
    """A server that svcd would create or delete."""

    name: fields.MachineName
    change: fields.Change
    node_group: fields.NodeGroupName
    flavor_id: fields.FlavorId
    node_processes: fields.NodeProcesses


class PlannedVolume(View, frozen=True, kw_only=True):
    """A volume that svcd would create or delete."""

    machine: fields.MachineOrNone
    change: fields.Change
    size_gib: Annotated[int, means("size in GiB")]
    mount_point: Annotated[str, means("folder of the volume on the machine")]


class PlannedAddress(View, frozen=True, kw_only=True):
    """A floating IP that svcd would allocate or release."""

    machine: fields.MachineOrNone
    change: fields.Change
    floating_ip_pool: fields.FloatingIpPool


class PlannedQuota(View, frozen=True, kw_only=True):
    """A quota of the project."""

    resource: fields.QuotaResource
    needed: Annotated[int, means("amount that the request needs; negative when it gives more back")]
    left: Annotated[
        int | None,
        means("unused amount before the request; null when it is unlimited or was not read"),
    ]
    left_after: Annotated[
        int | None, means("unused amount after the request, as far as svcd knows; null like `left`")
    ]


class PlannedFile(View, frozen=True, kw_only=True):
    """A file that svcd would write on the machines of a node group."""

    path: Annotated[str, means("absolute path on the machines")]
    mode: Annotated[str, means("permissions in octal digits")]
    node_group: fields.NodeGroupName
    machines: fields.MachineNames
    content: Annotated[
        str | None,
        means("content on the first machine, with masked secrets; null when the plan is too long"),
    ]


class PlannedWork(View, frozen=True, kw_only=True):
    """A command that svcd would run, or an answer that it would await."""

    what: Annotated[str, means("what the command or the request is for")]
    node_group: fields.NodeGroupName
    machines: fields.MachineNames


class PlannedStage(View, frozen=True, kw_only=True):
    """A stage of the distribution."""

    phase: Annotated[
        str, means("phase of the work on the cluster: `decommission`, `configure` or `start`")
    ]
    name: Annotated[str, means("name of the stage")]
    deadline_s: Annotated[float, means("seconds after which the stage fails")]
    files: Annotated[list[PlannedFile], means("files that svcd would write")]
    commands: Annotated[list[PlannedWork], means("commands that svcd would run")]
    awaited: Annotated[list[PlannedWork], means("answers of daemons for which svcd would wait")]


class ClusterPlan(View, frozen=True, kw_only=True):
    """What svcd would do for a new cluster, or for a new size of one."""

    name: Annotated[str, means("name of the cluster")]
    machines: Annotated[list[PlannedMachine], means("servers that svcd would create or delete")]
    volumes: Annotated[list[PlannedVolume], means("volumes that svcd would create or delete")]
    addresses: Annotated[
        list[PlannedAddress], means("floating IPs that svcd would allocate or release")
    ]
    quota: Annotated[list[PlannedQuota], means("what the request needs of the project's quota")]
    stages: Annotated[list[PlannedStage], means("stages of the plugin's work, one after the other")]


class PlannedBinary(View, frozen=True, kw_only=True):
    """A binary that svcd would copy into the cluster."""

    name: Annotated[str, means("name of the binary")]
    role: Annotated[str, means("`main` for a main program, `lib` for a library")]
    url: fields.BareUrl


class PlannedData(View, frozen=True, kw_only=True):
    """The data source of an input or output."""

    id: Annotated[str, means("id of the data source")]
    name: Annotated[str, means("name of the data source")]
    type: Annotated[str, fields.DATA_TYPE]
    url: fields.BareUrl


class ExecutionPlan(View, frozen=True, kw_only=True):
    """What svcd would do for an execution."""

    job_id: fields.JobRef
    job_type: Annotated[str, fields.JOB_TYPE]
    cluster_id: Annotated[
        str | None, means("cluster on which the job would run; null for a new one")
    ]
    cluster: Annotated[
        ClusterPlan | None, means("plan of the new transient cluster; null without one")
    ]
    staged: Annotated[list[PlannedBinary], means("binaries that svcd would copy into the cluster")]
    input: Annotated[PlannedData | None, means("data source of the input; null without one")]
    output: Annotated[PlannedData | None, means("data source of the output; null without one")]
    workflow: Annotated[str, means("definition for the workflow engine, with masked secrets")]
    job_credentials: Annotated[int, means("number of application credentials for the job")]
