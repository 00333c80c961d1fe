"""The cluster's life as a table, and the pure changes that move a row along it.

Every change of `Cluster.status` goes through `move`; a pair that the table does not hold is a bug
(`IllegalMove`), except for requests, which ask `allows` first. Nothing here acts.

Note: generations. Each accepted request raises `generation`. The controller sets
`settled_generation` only to the generation of the row it has read, so that a request that arrives
meanwhile never counts as done. The row does not store whether svcd makes or scales the cluster:
svcd scales it when some instance has been STARTED before (`is_new`).
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from svcd.model.cluster import GONE as GONE
from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus, Desired, Instance, NodeGroup
from svcd.model.ids import InstanceId, Timestamp, seconds_of, timestamp
from svcd.provisioning.decide.failures import MOST_TEXT, Code, describe
from svcd.provisioning.decide.steps import NO_SPAN, Span
from svcd.settings import Provisioning

S = ClusterStatus


class Input(enum.StrEnum):
    """The events that can move a cluster to another status."""

    SPAWN = "spawn"  # an instance lacks its server, addresses or volumes
    PREPARE = (
        "prepare"  # all instances have servers, addresses and volumes; a machine is not prepared
    )
    CONFIGURE = "configure"
    START = "start"
    DECOMMISSION = "decommission"  # an instance is leaving
    SETTLE = "settle"  # no work is left
    FAIL = "fail"
    SCALE = "scale"  # requests
    RETRY = "retry"
    DELETE = "delete"


class IllegalMove(Exception):
    """The planner requested a move that the table does not hold: a bug."""


_WORK: Final = {
    Input.SPAWN: S.SPAWNING,
    Input.PREPARE: S.PREPARING,
    Input.CONFIGURE: S.CONFIGURING,
    Input.START: S.STARTING,
    Input.DECOMMISSION: S.DECOMMISSIONING,
    Input.SETTLE: S.ACTIVE,
    Input.FAIL: S.ERROR,
    Input.DELETE: S.DELETING,
}

MOVES: Final[Mapping[ClusterStatus, Mapping[Input, ClusterStatus]]] = {
    S.WAITING: {i: _WORK[i] for i in (Input.SPAWN, Input.FAIL, Input.DELETE)},
    S.VALIDATING: _WORK,
    S.SPAWNING: _WORK,
    S.PREPARING: _WORK,
    S.CONFIGURING: _WORK,
    S.STARTING: _WORK,
    S.DECOMMISSIONING: _WORK,
    S.ACTIVE: {Input.SCALE: S.VALIDATING, Input.DELETE: S.DELETING},
    S.ERROR: {Input.RETRY: S.VALIDATING, Input.DELETE: S.DELETING, Input.FAIL: S.ERROR},
    S.DELETING: {Input.DELETE: S.DELETING, Input.FAIL: S.ERROR},
}
"""status -> input -> status. A level-triggered planner may move between all working statuses: a
server that vanishes while Starting sends the cluster back to Spawning."""

# Progress of one machine (`Instance.step`), in order. RETURNING: it serves, its decommission
# failed, and svcd starts it again. DECOMMISSIONED: only leaving machines.
NOTHING: Final = ""
SPAWNED: Final = "spawned"
PREPARED: Final = "prepared"
CONFIGURED: Final = "configured"
RETURNING: Final = "returning"
STARTED: Final = "started"
DECOMMISSIONED: Final = "decommissioned"
_ORDER: Final[Mapping[str, int]] = {
    s: n
    for n, s in enumerate(
        (NOTHING, SPAWNED, PREPARED, CONFIGURED, RETURNING, STARTED, DECOMMISSIONED)
    )
}


def allows(status: ClusterStatus, what: Input) -> bool:
    """Whether the table holds the pair."""
    return what in MOVES[status]


def move(cluster: Cluster, what: Input, now: float) -> Cluster:
    """`cluster` in the next status. `status_since` changes only together with the status.

    A change of status removes the findings of health checks, and ends a time without use.
    """
    try:
        status = MOVES[cluster.status][what]
    except KeyError:
        raise IllegalMove(f"{cluster.status} has no {what}") from None
    if status is cluster.status:
        return cluster
    return evolve(cluster, status=status, status_since=timestamp(now), unwell=None, idle_since=None)


def has_reached(instance: Instance, step: str) -> bool:
    """Whether `step` is done on the machine."""
    return _ORDER[instance.step] >= _ORDER[step]


def serves(instance: Instance) -> bool:
    """Whether the machine may hold data and work: it is never removed without decommissioning."""
    return instance.step in (RETURNING, STARTED)


def is_new(cluster: Cluster) -> bool:
    """Whether the cluster has never been Active: no machine has been started."""
    return not any(has_reached(i, RETURNING) for i in cluster.instances())


def deadline_s(status: ClusterStatus, settings: Provisioning) -> float | None:
    """Seconds a cluster may stay in `status`; None for the two resting ones."""
    match status:
        case S.WAITING | S.VALIDATING | S.SPAWNING:
            return settings.spawn_deadline_s
        case S.PREPARING:
            return settings.prepare_deadline_s
        case S.CONFIGURING:
            return settings.configure_deadline_s
        case S.STARTING:
            return settings.start_deadline_s
        case S.DECOMMISSIONING:
            return settings.decommission_deadline_s
        case S.DELETING | S.ERROR:
            return settings.delete_deadline_s
        case S.ACTIVE:
            return None


def limit_s(cluster: Cluster, settings: Provisioning) -> float | None:
    """Seconds `cluster` may stay in its status, with those of its first-boot scripts."""
    most = deadline_s(cluster.status, settings)
    if most is None or cluster.status is not S.CONFIGURING:
        return most
    new = [
        len(group.scripts)
        for group in cluster.node_groups
        for instance in group.instances
        if group.scripts and not has_reached(instance, RETURNING)
    ]
    rounds = math.ceil(len(new) / settings.machines_at_once)
    return most + rounds * max(new, default=0) * settings.script_deadline_s


def remaining_s(cluster: Cluster, settings: Provisioning, now: float) -> float:
    """Seconds until the deadline of the present status, 0.0 when it is over."""
    most = limit_s(cluster, settings)
    if most is None:
        return float("inf")
    return max(0.0, seconds_of(cluster.status_since) + most - now)


def is_settled(cluster: Cluster) -> bool:
    """Whether the controller has no work on the cluster."""
    return cluster.settled_generation >= cluster.generation


def may_be_checked(cluster: Cluster) -> bool:
    """Whether health checks apply: the machines should serve, and no work is under way."""
    active = cluster.status is S.ACTIVE and cluster.desired is Desired.ACTIVE
    return active and is_settled(cluster)


# ---- changes of instances -----------------------------------------------------------------------


def with_instances(cluster: Cluster, changes: Mapping[InstanceId, Mapping[str, Any]]) -> Cluster:
    """`cluster` with fields of some instances replaced; unknown ids are ignored.

    Groups without a change stay the same objects.
    """
    if not changes:
        return cluster
    groups = []
    for group in cluster.node_groups:
        if any(i.instance_id in changes for i in group.instances):
            instances = tuple(
                evolve(i, **changes[i.instance_id]) if i.instance_id in changes else i
                for i in group.instances
            )
            group = evolve(group, instances=instances)
        groups.append(group)
    return evolve(cluster, node_groups=tuple(groups))


def without_instances(cluster: Cluster, gone: frozenset[InstanceId]) -> Cluster:
    """`cluster` without some instances; a group that becomes empty and wants none goes too."""
    groups: list[NodeGroup] = []
    for group in cluster.node_groups:
        left = tuple(i for i in group.instances if i.instance_id not in gone)
        if len(left) != len(group.instances):
            group = evolve(group, instances=left)
        if left or group.count > 0:
            groups.append(group)
    return evolve(cluster, node_groups=tuple(groups))


BLANK: Final[Mapping[str, Any]] = {
    "server_id": None,
    "status": None,
    "internal_ip": None,
    "management_ip": None,
    "floating_ip_id": None,
    "volumes": (),
    "host_key": None,
    "facts": None,
    "step": NOTHING,
    "scripts_done": 0,
    "requested_at": None,
    "retry_at": None,
}
"""The fields of an instance as after its request was accepted, except for `attempts`."""


# ---- ends ---------------------------------------------------------------------------------------


def settle(cluster: Cluster, now: float) -> Cluster:
    """Active: the requested state is reached. The reason of a rollback stays in the row."""
    moved = move(cluster, Input.SETTLE, now)
    return evolve(moved, settled_generation=cluster.generation, updated_at=timestamp(now))


def fail(cluster: Cluster, code: Code, reason: str, on_failure: str, now: float) -> Cluster:
    """The row of a cluster after its work failed (behaviour 20, 21, 22).

    - deleting: Error, settled, the reason names what is left;
    - a new one before Configuring: Error, not settled, so that the planner cleans up first
      (`on_failure` = "remove"), else settled with everything kept;
    - a new one later: Error, settled, everything kept;
    - scaling: the added instances become leaving, those that could not leave start again, and the
      cluster returns to Active; when the removal itself failed: Error.
    """
    text = describe(code, reason)
    if cluster.desired is Desired.DELETED:
        return _error(cluster, text, settled=True, now=now)
    if cluster.status is S.ERROR:  # the clean-up itself failed
        return _error(
            cluster, f"{cluster.status_description}\n{text}".strip(), settled=True, now=now
        )
    if is_new(cluster):
        early = cluster.status in {S.WAITING, S.VALIDATING, S.SPAWNING, S.PREPARING}
        return _error(cluster, text, settled=not early or on_failure == "keep", now=now)
    if cluster.status_description:  # an earlier failure of the same request
        text = f"{cluster.status_description}\n{text}"[:MOST_TEXT]
    added = [i for i in cluster.instances() if not has_reached(i, RETURNING) and not i.leaving]
    undone = [i for i in cluster.instances() if i.leaving and serves(i)]
    if not added and not undone:
        if any(i.leaving for i in cluster.instances()):  # the removal itself fails
            return _error(cluster, text, settled=True, now=now)
        return settle(evolve(cluster, status_description=text), now)
    changes: dict[InstanceId, Mapping[str, Any]] = {i.instance_id: {"leaving": True} for i in added}
    changes |= {i.instance_id: {"leaving": False, "step": RETURNING} for i in undone}
    back = with_instances(cluster, changes)
    counts = [sum(not i.leaving for i in g.instances) for g in back.node_groups]
    back = evolve(
        back,
        status_description=text,
        node_groups=tuple(
            evolve(g, count=c) for g, c in zip(back.node_groups, counts, strict=True)
        ),
    )
    if any(i.leaving for i in back.instances()):
        # This decommission has a new deadline, also when a decommission has failed before.
        return evolve(move(back, Input.DECOMMISSION, now), status_since=timestamp(now))
    return move(back, Input.START, now)


def broken(cluster: Cluster, code: Code, reason: str, now: float) -> Cluster:
    """Error, settled, everything kept: a fault of svcd itself stops the work on this cluster."""
    return _error(cluster, describe(code, reason), settled=True, now=now)


def _error(cluster: Cluster, text: str, *, settled: bool, now: float) -> Cluster:
    failed = evolve(
        move(cluster, Input.FAIL, now), status_description=text, updated_at=timestamp(now)
    )
    return evolve(failed, settled_generation=failed.generation) if settled else failed


# ---- requests -----------------------------------------------------------------------------------


def delete(cluster: Cluster, force: bool, now: float, reason: str = "") -> Cluster:
    """Deletion becomes the desired state. A repeated request while Deleting only adds `force`.

    reason: why svcd deletes it by itself; "" for the request of a person.
    """
    if cluster.desired is Desired.DELETED and not is_settled(cluster):
        return evolve(cluster, force_delete=True) if force else cluster
    moved = move(cluster, Input.DELETE, now)
    return evolve(
        moved,
        desired=Desired.DELETED,
        force_delete=force,
        generation=cluster.generation + 1,
        accepted_at=timestamp(now),
        status_description=reason,
        updated_at=timestamp(now),
    )


def retry(cluster: Cluster, now: float) -> Cluster:
    """Resume the work on an Error cluster where it stopped, with fresh attempts.

    A cluster whose deletion failed resumes the deletion.
    """
    if cluster.desired is Desired.DELETED:
        return delete(cluster, cluster.force_delete, now)
    fresh = with_instances(
        cluster, {i.instance_id: {"attempts": 0, "retry_at": None} for i in cluster.instances()}
    )
    return evolve(
        move(fresh, Input.RETRY, now),
        generation=cluster.generation + 1,
        accepted_at=timestamp(now),
        status_description="",
        updated_at=timestamp(now),
    )


def event(
    cluster: Cluster,
    step: str,
    outcome: str,
    now: float,
    text: str = "",
    machine: str = "",
    code: str = "",
    attempt: int = 0,
    until: float | None = None,
    span: Span | None = None,
) -> ClusterEvent:
    """An event of the cluster. until: epoch seconds."""
    of_step = span or NO_SPAN
    return ClusterEvent(
        at=timestamp(now),
        generation=cluster.generation,
        step=step,
        machine=machine,
        outcome=outcome,
        code=code,
        text=text[:2000],
        attempt=attempt,
        until=_moment(until),
        began=_moment(of_step.began),
        ended=_moment(of_step.ended),
        waited_for=of_step.waited_for,
    )


def _moment(seconds: float | None) -> Timestamp | None:
    return None if seconds is None else timestamp(seconds)
