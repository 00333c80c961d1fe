"""What the planner can ask for (steps) and what comes of it (outcomes). Values only.

Every step is safe to repeat and looks before it creates. `key` names a step across passes: the
controller counts failures and times by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

from svcd.model.cloud import NewServer
from svcd.model.ids import InstanceId
from svcd.provisioning.decide.failures import Code

# ---- steps --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Step:
    """key: see above. what: a few words for events. machine: instance name or ""."""

    key: str
    what: str
    machine: str = ""


@frozen(kw_only=True)
class EnsureSecurityGroup(Step):
    name: str
    ports: tuple[int, ...]


@frozen(kw_only=True)
class EnsureServerGroup(Step):
    name: str


@frozen(kw_only=True)
class CreateServer(Step):
    """requested_at was written to the row before."""

    instance: InstanceId
    new: NewServer


@frozen(kw_only=True)
class DeleteServer(Step):
    server_id: str


@frozen(kw_only=True)
class CreateFloatingIp(Step):
    """description: a mark, by which an interrupted one is adopted (svcd.model.ownership_tags)."""

    pool: str
    description: str
    instance: InstanceId


@frozen(kw_only=True)
class AssociateFloatingIp(Step):
    floating_ip_id: str
    server_id: str


@frozen(kw_only=True)
class DeleteFloatingIp(Step):
    floating_ip_id: str


@frozen(kw_only=True)
class CreateVolumes(Step):
    """volumes: (name, metadata) of each, made one after the other."""

    instance: InstanceId
    size_gib: int
    volumes: tuple[tuple[str, Mapping[str, str]], ...]


@frozen(kw_only=True)
class AttachVolumes(Step):
    """One after the other, so that devices follow the order of indexes."""

    instance: InstanceId
    server_id: str
    volumes: tuple[str, ...]


@frozen(kw_only=True)
class DeleteVolume(Step):
    volume_id: str


@frozen(kw_only=True)
class Reach(Step):
    """Log in for the first time: pin the host key, ask for the machine's facts."""

    instance: InstanceId


@frozen(kw_only=True)
class Prepare(Step):
    """Write the hosts file; with `mount`, also make and mount file systems."""

    instance: InstanceId
    hosts: str = field(repr=False)
    mount: bool


@frozen(kw_only=True)
class Distribute(Step):
    """Run the distribution's plan `verb` (configure, start, decommission) on some machines."""

    verb: str
    on: tuple[InstanceId, ...]
    reached: str
    absent: tuple[InstanceId, ...] = ()


@frozen(kw_only=True)
class KillExecutions(Step):
    pass


@frozen(kw_only=True)
class DeleteGroups(Step):
    """Remove the security group and the server group, found by name."""

    name: str


@frozen(kw_only=True)
class DeleteTrust(Step):
    trust_id: str = field(repr=False)


@frozen(kw_only=True)
class DropRow(Step):
    """leftovers: what a forced delete leaves in the cloud."""

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
    | KillExecutions
    | DeleteGroups
    | DeleteTrust
    | DropRow
)


# ---- outcomes -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Done:
    """It is done. cluster, instances: fields of the row that it makes known.

    quiet: no event. repeat_s: what was asked for is not visible at once; do not ask again before.
    """

    cluster: Mapping[str, Any] = field(factory=dict)
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)
    quiet: bool = False
    repeat_s: float = 0.0


@frozen(kw_only=True)
class Wait:
    """Nothing is wrong, it is not ready yet; look again after about `seconds`."""

    seconds: float
    reason: str
    code: Code = Code.PHASE_TIMEOUT


@frozen(kw_only=True)
class Retry:
    """It failed in a way that can pass. instances: fields to take back (an intent).

    limit: failures of this step after which the work fails; None: until the status's deadline.
    """

    code: Code
    reason: str
    after_s: float | None = None
    limit: int | None = None
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)


@frozen(kw_only=True)
class Fail:
    """It cannot succeed by repeating. instances: fields to take back (an intent).

    machine: name of the instance that it failed on, "" when it is not one's own fault.
    """

    code: Code
    reason: str
    machine: str = ""
    instances: Mapping[InstanceId, Mapping[str, Any]] = field(factory=dict)


@frozen(kw_only=True)
class Interrupted:
    """A newer request came; the row must be read again."""


Outcome: TypeAlias = Done | Wait | Retry | Fail | Interrupted


# ---- what is remembered between passes, in memory only ------------------------------------------


@frozen(kw_only=True)
class Tried:
    """One step's history. not_before: epoch seconds. reason, code: of its last trouble."""

    failures: int = 0
    not_before: float = 0.0
    reason: str = ""
    code: Code = Code.PHASE_TIMEOUT
    done: bool = False


@frozen(kw_only=True)
class Memory:
    """Of one cluster, since the controller began with its present generation.

    A restart loses it without harm: steps are repeated, and counts begin again.
    since: epoch seconds of that beginning. idle: passes in a row that had nothing to do but wait.
    """

    generation: int = 0
    since: float = 0.0
    tried: Mapping[str, Tried] = field(factory=dict)
    idle: int = 0

    def of(self, key: str) -> Tried:
        """The history of the step `key`."""
        return self.tried.get(key, _NEVER)


_NEVER = Tried()
