"""Steps that the planner can plan, and their outcomes. Values only.

Every step is safe to repeat and reads before it creates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

from attrs import field, frozen

from svcd.model.cloud import NewServer, Opening
from svcd.model.cluster import Cluster, InitScript, StepName
from svcd.model.ids import InstanceId
from svcd.model.step_kind import RUN_SCRIPT
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.distributions.spi import IDistribution, Machine, Plan

# ---- steps --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Step:
    """A step. machine: instance name or "". identity, words: templates of `key` and `what`."""

    identity: ClassVar[str]
    words: ClassVar[str]
    machine: str = ""

    @property
    def key(self) -> str:
        """Names the step across passes: the controller counts failures and times by it."""
        return self.identity.format(self)

    @property
    def what(self) -> str:
        """A few words for events."""
        return self.words.format(self)


@frozen(kw_only=True)
class EnsureSecurityGroup(Step):
    """Create the security group, or give an existing one these openings.

    others: further ports that no other rule may open.
    """

    identity = "security-group"
    words = "create security group"
    name: str
    openings: tuple[Opening, ...]
    others: tuple[int, ...] = ()


@frozen(kw_only=True)
class ChangeRules(EnsureSecurityGroup):
    """Give an existing security group other openings."""

    identity = "security-group:rules"
    words = "change the rules of the security group"


@frozen(kw_only=True)
class EnsureServerGroup(Step):
    identity = "server-group"
    words = "create server group"
    name: str


@frozen(kw_only=True)
class CreateServer(Step):
    """Create a server; svcd has written `requested_at` to the row before."""

    identity = "create-server:{0.instance}"
    words = "create server"
    instance: InstanceId
    new: NewServer


@frozen(kw_only=True)
class DeleteServer(Step):
    identity = "delete-server:{0.server_id}"
    words = "delete server"
    server_id: str


@frozen(kw_only=True)
class CreateFloatingIp(Step):
    """Create a floating address.

    description: the ownership tag, by which svcd adopts an address after an interrupted call (see
    svcd.model.ownership_tags).
    """

    identity = "create-floating-ip:{0.instance}"
    words = "allocate floating IP"
    pool: str
    description: str
    instance: InstanceId


@frozen(kw_only=True)
class AssociateFloatingIp(Step):
    identity = "associate-floating-ip:{0.floating_ip_id}:{0.server_id}"
    words = "associate floating IP"
    floating_ip_id: str
    server_id: str


@frozen(kw_only=True)
class DeleteFloatingIp(Step):
    identity = "delete-floating-ip:{0.floating_ip_id}"
    words = "release floating IP"
    floating_ip_id: str


@frozen(kw_only=True)
class CreateVolumes(Step):
    """Create volumes one after the other. volumes: (name, metadata) of each.

    attempt: each attempt is a step of its own, so that replacements do not wait.
    """

    identity = "create-volumes:{0.instance}:{0.attempt}"
    words = "create volumes"
    instance: InstanceId
    attempt: int
    size_gib: int
    volumes: tuple[tuple[str, Mapping[str, str]], ...]


@frozen(kw_only=True)
class AttachVolumes(Step):
    """Attach volumes one after the other, so that devices follow the order of indexes."""

    identity = "attach-volumes:{0.instance}"
    words = "attach volumes"
    instance: InstanceId
    server_id: str
    volumes: tuple[str, ...]


@frozen(kw_only=True)
class DeleteVolume(Step):
    identity = "delete-volume:{0.volume_id}"
    words = "delete volume"
    volume_id: str


@frozen(kw_only=True)
class Reach(Step):
    """Log in for the first time: pin the host key, ask for the machine's facts."""

    identity = "reach:{0.instance}:{0.server_id}"
    words = "log in"
    instance: InstanceId
    server_id: str | None


@frozen(kw_only=True)
class Prepare(Step):
    """Write the hosts file; with `mount`, also make and mount file systems.

    checksum: of `hosts`.
    """

    identity = "prepare:{0.instance}:{0.server_id}:{0.checksum:08x}"
    words = "prepare machine"
    instance: InstanceId
    server_id: str | None
    checksum: int
    hosts: str = field(repr=False)
    mount: bool


@frozen(kw_only=True)
class Distribute(Step):
    """Run the distribution's plan `verb` (configure, start, decommission) on some machines."""

    identity = "{0.verb}"
    words = "{0.verb}"
    verb: str
    on: tuple[InstanceId, ...]
    reached: str
    absent: tuple[InstanceId, ...] = ()

    def plan(
        self, distribution: IDistribution, cluster: Cluster, machines: Sequence[Machine]
    ) -> Plan:
        """The plan of the distribution. machines: all of the cluster without `absent`."""
        match self.verb:
            case "configure":
                return distribution.configure(cluster, machines, self.on)
            case "start":
                return distribution.start(cluster, machines, self.on)
            case _:
                return distribution.decommission(cluster, machines, self.on)


@frozen(kw_only=True)
class RunScript(Step):
    """Run a first-boot script once on a machine. number: its place in the group, from 0."""

    identity = "run-script:{0.instance}:{0.number}"
    words = f"{RUN_SCRIPT} {{0.script.name}}"
    instance: InstanceId
    number: int
    script: InitScript


@frozen(kw_only=True)
class KillExecutions(Step):
    identity = "kill-executions"
    words = "kill running executions"


@frozen(kw_only=True)
class DeleteGroups(Step):
    """Remove the security group and the server group, found by name."""

    identity = "delete-groups"
    words = "delete security and server group"
    name: str


@frozen(kw_only=True)
class DeleteTrust(Step):
    identity = "delete-trust"
    words = "delete trust"
    trust_id: str = field(repr=False)


@frozen(kw_only=True)
class DropRow(Step):
    """Remove the row. leftovers: the objects that a forced delete leaves in the cloud."""

    identity = "drop-row"
    words = "drop the record"
    leftovers: tuple[str, ...] = ()


AnyStep: TypeAlias = (
    EnsureSecurityGroup
    | EnsureServerGroup
    | CreateServer
    | DeleteServer
    | CreateFloatingIp
    | AssociateFloatingIp
    | DeleteFloatingIp
    | CreateVolumes
    | AttachVolumes
    | DeleteVolume
    | Reach
    | Prepare
    | Distribute
    | RunScript
    | KillExecutions
    | DeleteGroups
    | DeleteTrust
    | DropRow
)


# ---- outcomes -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Done:
    """The step is done. cluster, instances: new values of fields of the row.

    text: of its event.
    quiet: without an event. repeat_s: lists show the result late; do not repeat the step before.
    """

    cluster: Mapping[str, Any] = field(factory=dict)
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)
    text: str = ""
    quiet: bool = False
    repeat_s: float = 0.0


@frozen(kw_only=True)
class Wait:
    """The step has to wait, without a fault; repeat it after about `seconds`."""

    seconds: float
    reason: str
    code: Code = Code.PHASE_TIMEOUT


@frozen(kw_only=True)
class Retry:
    """The step failed with a fault that can pass. instances: fields to reset (an intent).

    limit: failures of this step after which the work fails; None: until the status's deadline.
    """

    code: Code
    reason: str
    after_s: float | None = None
    limit: int | None = None
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)


@frozen(kw_only=True)
class Fail:
    """The step cannot succeed by repeating. instances: fields to reset (an intent).

    machine: name of the instance that it failed on, "" when no single machine is at fault.
    """

    code: Code
    reason: str
    machine: str = ""
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)


@frozen(kw_only=True)
class Interrupted:
    """A newer request interrupted the step; the row must be read again."""


Outcome: TypeAlias = Done | Wait | Retry | Fail | Interrupted


# ---- the memory of a cluster between two passes -------------------------------------------------


@frozen(kw_only=True)
class Span:
    """The time of one attempt of a step, in epoch seconds. waited_for: see ClusterEvent."""

    began: float | None = None
    ended: float | None = None
    waited_for: StepName | None = None


NO_SPAN = Span()


@frozen(kw_only=True)
class Tried:
    """One step's history. not_before: epoch seconds. reason, code: of its last fault.

    span: of its last attempt. A step that waits (`Wait`) and is tried again is one attempt.
    """

    failures: int = 0
    not_before: float = 0.0
    reason: str = ""
    code: Code = Code.PHASE_TIMEOUT
    done: bool = False
    span: Span = NO_SPAN


@frozen(kw_only=True)
class Memory:
    """The memory of one cluster, since the controller began with its present generation.

    A restart may lose it: the controller repeats steps, and counts begin again. since: epoch
    seconds of the beginning. taken_at: epoch seconds at which this process took the cluster over
    from another one, whose last calls may still take effect; None: it has driven it alone. idle:
    passes in a row that only waited. last: the step that ended last; the next steps have waited
    for it.
    """

    generation: int = 0
    since: float = 0.0
    taken_at: float | None = None
    tried: Mapping[str, Tried] = field(factory=dict)
    idle: int = 0
    last: StepName | None = None

    def of(self, key: str) -> Tried:
        """The history of the step `key`."""
        return self.tried.get(key, _NEVER)


_NEVER = Tried()
