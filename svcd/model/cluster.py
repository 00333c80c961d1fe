"""A cluster: the desired state from requests, and the recorded state from provisioning.

The whole cluster, instances included, is one record and one row: every write is a compare-and-set
on `version`. `generation` counts accepted requests; `settled_generation` is the newest request that
has succeeded or failed. Deletion is a desired state, not a call.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    InstanceId,
    JobBinaryInternalId,
    TenantId,
    Timestamp,
)
from svcd.model.template import Configs, TemplateNodeGroup

DAEMON_USER: Final = "svcd"
"""The system user of the daemons and jobs of new clusters on servers. It has no sudo."""


class ClusterStatus(enum.StrEnum):
    """The status of a cluster, by its name on the wire."""

    WAITING = "Waiting"
    VALIDATING = "Validating"
    SPAWNING = "Spawning"
    PREPARING = "Preparing"
    CONFIGURING = "Configuring"
    STARTING = "Starting"
    DECOMMISSIONING = "Decommissioning"
    ACTIVE = "Active"
    DELETING = "Deleting"
    ERROR = "Error"


RESTING: Final = (ClusterStatus.ACTIVE, ClusterStatus.ERROR)
"""The statuses in which svcd does nothing with a cluster."""
GONE: Final = "DELETED"
"""`Instance.status` of a machine that served and whose server another user has deleted."""


class Desired(enum.StrEnum):
    """The state of the whole cluster that the last accepted request wants."""

    ACTIVE = "active"
    DELETED = "deleted"


@frozen(kw_only=True)
class Volume:
    """A volume of an instance. device: the cloud's name of it; mount_point: None until mounted."""

    volume_id: str
    device: str | None = None
    mount_point: str | None = None


@frozen(kw_only=True)
class MachineFacts:
    """Facts that svcd read from a machine at the first contact.

    home: home folder of the login user. root: prefix of "/" on machines that are folders, else "".
    prefix: folder of the distribution's software. software: names of the folders in it; empty where
    it has none. cores, memory_mib: size of the machine.
    """

    home: str
    root: str = ""
    prefix: str = ""
    software: tuple[str, ...] = ()
    cores: int = 1
    memory_mib: int = 1024


@frozen(kw_only=True)
class Instance:
    """One machine of a cluster. Ids and names are assigned when the request is accepted.

    index: number within the group, from 1 (the NNN of the name).
    requested_at: time of the create call, written before it: for a while after it, a list without
    the server does not mean that the server is lost.
    host_key: the pinned public SSH host key, one OpenSSH line.
    step: the last completed step on this machine (provisioning.decide.lifecycle).
    scripts_done: number of the group's first-boot scripts that have succeeded on it.
    leaving: chosen for removal by a scale-down or delete.
    """

    instance_id: InstanceId
    instance_name: str
    index: int
    server_id: str | None = None
    status: str | None = None
    internal_ip: str | None = None
    management_ip: str | None = None
    floating_ip_id: str | None = None
    volumes: tuple[Volume, ...] = ()
    host_key: str | None = None
    facts: MachineFacts | None = None
    step: str = ""
    leaving: bool = False
    scripts_done: int = 0
    requested_at: Timestamp | None = None
    attempts: int = 0
    retry_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class InitScript:
    """A first-boot script, fixed when its group was accepted. sha256: hexadecimal digest."""

    name: str
    internal_id: JobBinaryInternalId
    sha256: str


@frozen(kw_only=True)
class NodeGroup(TemplateNodeGroup):
    """One group of a cluster: its desired size and its existing instances.

    count: desired size. flavor_ram_mib: memory of the flavor, read when the request was checked.
    scripts: those that `init_scripts` names, in the order in which they run.
    """

    scripts: tuple[InitScript, ...] = ()

    flavor_ram_mib: int = 1024
    flavor_vcpus: int = 1
    instances: tuple[Instance, ...] = ()
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class Ailment:
    """A fault of one part of an Active cluster.

    code: failure code of the closed list. machine: instance name, "" for the whole cluster. what:
    the part (`server`, `cloud`, or the distribution's name of a daemon). text: one reason. advice:
    the distribution's advice, or "". since: when a health check first found the fault.
    """

    code: str
    machine: str
    what: str
    text: str
    advice: str = ""
    since: Timestamp

    @property
    def key(self) -> tuple[str, str]:
        """Machine and part: the identity of the faulty part."""
        return self.machine, self.what


@frozen(kw_only=True)
class Unwell:
    """The faults of an Active cluster. text: the whole description."""

    text: str
    ailments: tuple[Ailment, ...]


@frozen(kw_only=True)
class Cluster:
    """A cluster row.

    info: target -> name -> text (web UI links), filled by the distribution once known.
    username, ssh_port: login of the image, read when the request was checked.
    management_public_key: OpenSSH line; management_private_key: sealed text, never on the wire.
    trust_id: the trust for later calls to the cloud; None where tokens are not needed.
    openings: open ports of the security group, as `port network`. Empty: not made yet.
    daemon_user: system user of daemons and jobs on servers. Empty: the login user, see `own_user`.
    emptied: a deletion has found nothing left in the cloud except the trust, which it deletes last.
    status_since: when `status` was last changed (every status has a deadline).
    unwell: the faults that health checks have found; None without faults.
    accepted_at: when the newest request was accepted; None: the request of `created_at`.
    idle_delete_s, max_age_s: seconds without use, and of age, until svcd deletes it; 0: never.
    most_idle_s, most_age_s: the operator's largest values at its creation; 0: none.
    keep_until: svcd does not delete it before. idle_since: since when it is not in use, as far as
    svcd knows; None: it is in use, or its use is not known. idle_mark: what the looks at its use
    count; another mark shows use between two looks. warned_at: when an event warned of the coming
    deletion; None: not yet.
    """

    id: ClusterId
    tenant_id: TenantId
    name: str
    description: str | None = None
    plugin_name: str
    engine_version: str
    cluster_template_id: ClusterTemplateId | None = None
    default_image_id: str
    username: str = ""
    ssh_port: int = 22
    user_keypair_id: str | None = None
    cluster_configs: Configs = field(factory=dict, repr=False)
    anti_affinity: tuple[str, ...] = ()
    neutron_management_network: str | None = None
    node_groups: tuple[NodeGroup, ...] = ()
    is_transient: bool = False
    status: ClusterStatus = ClusterStatus.WAITING
    status_description: str = ""
    status_since: Timestamp
    unwell: Unwell | None = None
    info: Mapping[str, Mapping[str, str]] = field(factory=dict)
    desired: Desired = Desired.ACTIVE
    force_delete: bool = False
    generation: int = 1
    settled_generation: int = 0
    version: int = 1
    management_public_key: str = ""
    management_private_key: str = field(default="", repr=False)
    trust_id: str | None = field(default=None, repr=False)
    trustor_id: str | None = None
    emptied: bool = False
    server_group_id: str | None = None
    security_group_id: str | None = None
    openings: tuple[str, ...] = ()
    daemon_user: str = ""
    idle_delete_s: int = 0
    max_age_s: int = 0
    most_idle_s: int = 0
    most_age_s: int = 0
    keep_until: Timestamp | None = None
    idle_since: Timestamp | None = None
    idle_mark: str = ""
    warned_at: Timestamp | None = None
    accepted_at: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None

    def instances(self) -> tuple[Instance, ...]:
        """All instances, group by group."""
        return tuple(i for g in self.node_groups for i in g.instances)

    def options(self) -> tuple[Configs, ...]:
        """The options of the whole cluster, and those of each group."""
        return (self.cluster_configs, *(g.node_configs for g in self.node_groups))

    @property
    def size(self) -> int:
        """The sum of the desired sizes of the node groups."""
        return sum(group.count for group in self.node_groups)

    def own_user(self, instance: Instance) -> str:
        """The system user of the machine's daemons and jobs; "": the login user.

        The login user runs them on machines that are folders, and in clusters of distributions that
        may need root.
        """
        folder = instance.facts is not None and instance.facts.root
        return "" if folder else self.daemon_user

    def explained(self) -> str:
        """The reason of its status, followed by the faults found by health checks."""
        found = self.unwell.text if self.unwell is not None else ""
        return "\n".join(text for text in (self.status_description, found) if text)


@frozen(kw_only=True)
class StepName:
    """A step of a provision, on one machine or (machine "") on none in particular."""

    step: str
    machine: str = ""


@frozen(kw_only=True)
class ClusterEvent:
    """One event of a cluster (additive sub-resource `events`).

    step: provisioning step, status or `request`; machine: instance name or ""; outcome:
    `accepted` (a request), `started`, `waiting`, `retry`, `done`, `failed`; code: failure code of
    the closed list or ""; text: the event and the advice. attempt: number of unsuccessful attempts
    of the step, from 1; 0 without a count. until: when svcd gives the step up at the latest.
    began, ended: of this attempt of the step on this machine; both None for requests, changes of
    status and findings, `ended` None while the step goes on. waited_for: the step whose end let
    this one begin; None when svcd does not know it. number: within the cluster, from 1, written by
    the store. The store leaves out values that are defaults: a default never changes.
    """

    at: Timestamp
    generation: int
    step: str
    machine: str = ""
    outcome: str
    code: str = ""
    text: str = ""
    attempt: int = 0
    until: Timestamp | None = None
    began: Timestamp | None = None
    ended: Timestamp | None = None
    waited_for: StepName | None = None
    number: int = 0
