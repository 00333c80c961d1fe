"""The answers of dry runs: what svcd would make, in the order in which it would do it.

They are additive (v1.1). Names of machines stand for addresses that only the cloud can give.
"""

from __future__ import annotations

from svcd.model.wire import View


class RecordPlan(View, frozen=True, kw_only=True):
    """A template, data source, job binary or job that svcd would only write down."""

    name: str


class PlannedMachine(View, frozen=True, kw_only=True):
    """A server that svcd would create or delete. change: `create` or `delete`."""

    name: str
    change: str
    node_group: str
    flavor_id: str
    node_processes: list[str]


class PlannedVolume(View, frozen=True, kw_only=True):
    """A volume that svcd would create or delete. change: `create` or `delete`."""

    machine: str
    change: str
    size_gib: int
    mount_point: str


class PlannedAddress(View, frozen=True, kw_only=True):
    """A floating IP that svcd would allocate or release. change: `create` or `delete`."""

    machine: str
    change: str
    floating_ip_pool: str


class PlannedQuota(View, frozen=True, kw_only=True):
    """A quota of the project. needed: negative when more is released than used.

    left, left_after: null when the quota is unlimited, or the request needs nothing of it.
    """

    resource: str
    needed: int
    left: int | None
    left_after: int | None


class PlannedFile(View, frozen=True, kw_only=True):
    """A file that svcd would write on the machines of a node group.

    content: on the first of them, with secrets masked; null when the plan would be too long.
    """

    path: str
    mode: str
    node_group: str
    machines: list[str]
    content: str | None


class PlannedWork(View, frozen=True, kw_only=True):
    """A command that svcd would run, or an answer that it would await."""

    what: str
    node_group: str
    machines: list[str]


class PlannedStage(View, frozen=True, kw_only=True):
    """A stage of the distribution. phase: `decommission`, `configure` or `start`.

    deadline_s: the time after which the stage fails.
    """

    phase: str
    name: str
    deadline_s: float
    files: list[PlannedFile]
    commands: list[PlannedWork]
    awaited: list[PlannedWork]


class ClusterPlan(View, frozen=True, kw_only=True):
    """What svcd would do for a new cluster, or for a new size of one."""

    name: str
    machines: list[PlannedMachine]
    volumes: list[PlannedVolume]
    addresses: list[PlannedAddress]
    quota: list[PlannedQuota]
    stages: list[PlannedStage]


class PlannedBinary(View, frozen=True, kw_only=True):
    """A binary that svcd would copy into the cluster. role: `main` or `lib`."""

    name: str
    role: str
    url: str


class PlannedData(View, frozen=True, kw_only=True):
    """The data source of an input or output."""

    id: str
    name: str
    type: str
    url: str


class ExecutionPlan(View, frozen=True, kw_only=True):
    """What svcd would do for an execution.

    cluster_id: null with a new transient cluster; cluster: its plan, else null. workflow: the
    definition for the workflow engine, with secrets masked. job_credentials: number of application
    credentials that svcd would make for the job.
    """

    job_id: str
    job_type: str
    cluster_id: str | None
    cluster: ClusterPlan | None
    staged: list[PlannedBinary]
    input: PlannedData | None
    output: PlannedData | None
    workflow: str
    job_credentials: int
