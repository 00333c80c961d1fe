"""From a cluster's row and what the cloud shows: what to do next. Pure, level-triggered.

`plan` never asks how things came to be. It compares what is wanted with what is there, and so finds
its way after a restart, an interrupted call, or a person's change in the cloud.

Note: visibility. Lists of a cloud lag behind its calls. `requested_at` is written before a create
call, with the moment until which the call may be under way, and again when it has ended; what was
asked for less than VISIBLE_S ago and is not listed is waited for, neither made again nor taken as
lost. A create whose answer was lost is adopted by its metadata; if one comes to light
late there are two, and the surplus one is deleted.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from svcd.model import ownership_tags
from svcd.model.cluster import Cluster, ClusterStatus, Desired, Instance
from svcd.model.ids import InstanceId, timestamp
from svcd.provisioning.decide import lifecycle, shell
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.lifecycle import Input, has_reached, with_instances
from svcd.provisioning.decide.observed import Observed, is_fresh, seen_at
from svcd.provisioning.decide.removal import (
    Torn,
    access_being_given_up,
    access_given_up,
    forced_without_sight,
    groups_of,
    only_access_is_left,
    removal,
    tear_down,
)
from svcd.provisioning.decide.spawning import MOST_REPLACED, Spawning
from svcd.provisioning.decide.steps import (
    AnyStep,
    Distribute,
    EnsureSecurityGroup,
    EnsureServerGroup,
    Fail,
    Memory,
    Prepare,
    Reach,
)
from svcd.settings import Provisioning


@frozen(kw_only=True)
class Plan:
    """What to do. cluster: the row to write before acting (intents, addresses, status).

    steps: to perform, in parallel. waiting: what is not ready yet, as reasons. fail: the work
    cannot succeed. left: what a removal has still to remove. code: what a missed deadline is
    called. settled: there is nothing left to do. None of all: plan again at once.
    """

    cluster: Cluster
    steps: tuple[AnyStep, ...] = ()
    waiting: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    code: Code = Code.PHASE_TIMEOUT
    fail: Fail | None = None
    settled: bool = False


@frozen(kw_only=True)
class World:
    """Beside the row: what a plan depends on.

    observed: None when the cloud could not be read (memory says why under "observe").
    open_ports: of the distribution, SSH aside. installation: see svcd.model.ownership_tags.
    """

    observed: Observed | None = field(factory=Observed)
    memory: Memory = field(factory=Memory)
    settings: Provisioning = field(factory=Provisioning)
    open_ports: tuple[int, ...] = ()
    installation: str = ""
    now: float


def needs_sight(cluster: Cluster) -> bool:
    """Whether a plan depends on what the cloud shows.

    Not so before the first create call was even intended, and not when there is nothing left to do.
    Each request for another size, or for the same one, is a reason to look at what is there.
    """
    if access_given_up(cluster):
        return False
    if cluster.desired is Desired.DELETED and cluster.emptied and cluster.trust_id is not None:
        return False
    if cluster.desired is Desired.DELETED or cluster.status is ClusterStatus.ERROR:
        return True
    if cluster.status is ClusterStatus.VALIDATING:
        return True
    instances = cluster.instances()
    if any(i.leaving for i in instances):
        return True
    if all(has_reached(i, lifecycle.STARTED) for i in instances):
        return False
    return any(i.requested_at is not None or i.attempts > 0 for i in instances)


def plan(cluster: Cluster, world: World) -> Plan:
    """The next steps, or the failure of a phase that took too long."""
    observed = world.observed
    if observed is None:
        blind = forced_without_sight(cluster, world.memory, world.now)
        if blind is not None:
            return Plan(cluster=cluster, steps=blind.steps)
        last = access_being_given_up(cluster, world.memory)
        if last is not None:
            return _within_deadline(_torn(cluster, last), world)
        trouble = world.memory.of("observe")
        made = Plan(cluster=cluster, waiting=(trouble.reason,), code=trouble.code)
    elif cluster.desired is Desired.DELETED or cluster.status is ClusterStatus.ERROR:
        made = _remove(cluster, observed, world)
    else:
        made = _build(cluster, observed, world)
    return _within_deadline(made, world)


def _within_deadline(made: Plan, world: World) -> Plan:
    """`made`, or the failure of a phase whose time is over."""
    cluster = made.cluster
    if made.settled or made.fail is not None:
        return made
    if lifecycle.remaining_s(made.cluster, world.settings, world.now) > 0:
        return made
    if cluster.desired is Desired.DELETED and cluster.force_delete:
        return made
    return Plan(cluster=made.cluster, fail=_too_late(made, world))


def _too_late(made: Plan, world: World) -> Fail:
    """Why the deadline passed: what was waited for, and the troubles there were."""
    troubles = [t for t in world.memory.tried.values() if t.reason and not t.done]
    code = made.code
    # A step that is to be repeated later is not among the steps: its reason is what is waited for.
    held_up = [t for t in troubles if any(t.reason in text for text in made.waiting)]
    if code is not Code.LEFTOVERS and (held_up or (made.steps and troubles)):
        code = (held_up or troubles)[-1].code
    parts = list(made.left or made.waiting)[:10]
    parts += sorted({t.reason for t in troubles} - set(parts))[:5]
    status = made.cluster.status
    limit = lifecycle.deadline_s(status, world.settings) or 0.0
    reason = "; ".join(parts) or "nothing moved"
    return Fail(code=code, reason=f"{status} took longer than {limit:.0f} s: {reason}")


def _build(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """The order of phases is that of the statuses."""
    leaving = tuple(i for i in cluster.instances() if i.leaving)
    if leaving:
        return _decommission(cluster, leaving, observed, world)
    complete = all(has_reached(i, lifecycle.STARTED) for i in cluster.instances())
    if not complete or cluster.status is ClusterStatus.VALIDATING:
        lost = _lost(cluster, observed, world)
        if isinstance(lost, Fail):
            return Plan(cluster=cluster, fail=lost)
        cluster = lost
    if complete:
        return Plan(cluster=lifecycle.settle(cluster, world.now), settled=True)
    if not all(has_reached(i, lifecycle.SPAWNED) for i in cluster.instances()):
        return _spawn(lifecycle.move(cluster, Input.SPAWN, world.now), observed, world)
    if not all(has_reached(i, lifecycle.PREPARED) for i in cluster.instances()):
        return _prepare(lifecycle.move(cluster, Input.PREPARE, world.now), observed, world)
    verb, what, reached = "start", Input.START, lifecycle.STARTED
    if not all(has_reached(i, lifecycle.CONFIGURED) for i in cluster.instances()):
        verb, what, reached = "configure", Input.CONFIGURE, lifecycle.CONFIGURED
    on = tuple(i.instance_id for i in cluster.instances() if not has_reached(i, reached))
    step = Distribute(key=verb, what=verb, verb=verb, on=on, reached=reached)
    return Plan(cluster=lifecycle.move(cluster, what, world.now), steps=(step,))


# ---- removing -----------------------------------------------------------------------------------


def _remove(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """A deletion, or the clean-up of a create that failed; at its end the instances are blank."""
    torn = tear_down(cluster, observed, world.memory, world.now)
    if torn.steps or torn.waiting:
        return _torn(cluster, torn)
    blank = with_instances(
        cluster, {i.instance_id: {**lifecycle.BLANK, "attempts": 0} for i in cluster.instances()}
    )
    clean = evolve(
        blank,
        server_group_id=None,
        security_group_id=None,
        settled_generation=cluster.generation,
        updated_at=timestamp(world.now),
    )
    return Plan(cluster=clean, settled=True)


def _torn(cluster: Cluster, torn: Torn) -> Plan:
    """The row says beforehand that only the trust is left: without it the cloud cannot be read."""
    return Plan(
        cluster=evolve(cluster, emptied=True) if only_access_is_left(torn) else cluster,
        steps=torn.steps,
        waiting=torn.waiting,
        left=torn.left,
        code=Code.LEFTOVERS,
    )


def _decommission(
    cluster: Cluster, leaving: Sequence[Instance], observed: Observed, world: World
) -> Plan:
    """Take out of service what serves, then remove what is leaving, then forget it."""
    cluster = lifecycle.move(cluster, Input.DECOMMISSION, world.now)
    serving = tuple(i for i in leaving if lifecycle.serves(i))
    if serving:
        shown = {s.id for s in observed.servers if s.status != "DELETED"}
        absent = tuple(i.instance_id for i in cluster.instances() if i.server_id not in shown)
        on = tuple(i.instance_id for i in serving if i.instance_id not in absent)
        if not on:  # nothing is left to take out of service
            gone = {i.instance_id: {"step": lifecycle.DECOMMISSIONED} for i in serving}
            return Plan(cluster=with_instances(cluster, gone))
        step = Distribute(
            key="decommission",
            what="decommission",
            verb="decommission",
            on=on,
            reached=lifecycle.DECOMMISSIONED,
            absent=absent,
        )
        return Plan(cluster=cluster, steps=(step,))
    torn = removal(
        leaving, observed, world.memory, world.now, whole=False, wanted=groups_of(cluster)
    )
    if torn.steps or torn.waiting:
        return _torn(cluster, torn)
    gone_ids = frozenset(i.instance_id for i in leaving)
    return Plan(cluster=lifecycle.without_instances(cluster, gone_ids))


# ---- spawning -----------------------------------------------------------------------------------


def _lost(cluster: Cluster, observed: Observed, world: World) -> Cluster | Fail:
    """Instances past Spawning whose server is gone: made again, or a failure if they served.

    What serves is marked as gone with the failure; the status of the others is what is shown. One
    that was listed once is missed at once: no list is so late that it is not listed any more.
    """
    shown = {s.id: s.status for s in observed.servers if s.status != "DELETED"}
    changes: dict[InstanceId, Mapping[str, Any]] = {}
    gone: dict[InstanceId, Mapping[str, Any]] = {}
    reasons: list[str] = []
    named = ""
    for each in cluster.instances():
        if each.server_id is None:
            continue
        if each.server_id in shown:
            if lifecycle.serves(each) and each.status != shown[each.server_id]:
                changes[each.instance_id] = {"status": shown[each.server_id]}
            continue
        listed = has_reached(each, lifecycle.SPAWNED)
        if not listed and is_fresh(each, seen_at(observed, world.now)):
            continue
        if lifecycle.serves(each) or each.attempts >= MOST_REPLACED:
            gone[each.instance_id] = {"status": lifecycle.GONE}
            reasons.append(f"server {each.server_id} of {each.instance_name} is gone")
            named = named or each.instance_name
        else:
            changes[each.instance_id] = {**lifecycle.BLANK, "attempts": each.attempts + 1}
    if gone:
        reason = "; ".join(reasons[:10])
        return Fail(code=Code.SERVER_VANISHED, reason=reason, machine=named, instances=gone)
    return with_instances(cluster, changes)


def _spawn(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """Groups first, then each instance by itself."""
    ensure: list[AnyStep] = []
    name = ownership_tags.group_name(cluster.id)
    if cluster.security_group_id is None:
        ports = tuple(sorted({cluster.ssh_port, *world.open_ports}))
        ensure.append(
            EnsureSecurityGroup(
                key="security-group", what="create security group", name=name, ports=ports
            )
        )
    if cluster.anti_affinity and cluster.server_group_id is None:
        ensure.append(EnsureServerGroup(key="server-group", what="create server group", name=name))
    if ensure:
        return Plan(cluster=cluster, steps=tuple(ensure), code=Code.BOOT_TIMEOUT)
    spawn = Spawning(cluster, observed, world.memory, world.now, world.installation)
    for group in cluster.node_groups:
        for each in group.instances:
            spawn.instance(group, each)
            if spawn.fail is not None:
                return Plan(cluster=with_instances(cluster, spawn.changes), fail=spawn.fail)
    spawn.orphans()
    row = with_instances(cluster, spawn.changes)
    return Plan(
        cluster=row,
        steps=tuple(spawn.steps),
        waiting=tuple(spawn.waiting),
        code=Code.BOOT_TIMEOUT,
    )


# ---- preparing ----------------------------------------------------------------------------------


def _prepare(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """Log in everywhere; then machines that serve already learn the new hosts; then the new ones.

    The new ones come last, for their step is what says that this phase is done. A server that
    somebody has stopped meanwhile is named; it may be started again.
    """
    new = [i for i in cluster.instances() if not has_reached(i, lifecycle.PREPARED)]
    unknown = [i for i in new if i.facts is None]
    if unknown:
        steps: tuple[AnyStep, ...] = tuple(
            Reach(
                key=f"reach:{i.instance_id}:{i.server_id}",
                what="log in",
                machine=i.instance_name,
                instance=i.instance_id,
            )
            for i in unknown
        )
        state = {s.id: s.status for s in observed.servers}
        off = tuple(
            f"server {i.instance_name} is {state[i.server_id]}"
            for i in unknown
            if i.server_id in state and state[i.server_id] != "ACTIVE"
        )
        return Plan(cluster=cluster, steps=steps, waiting=off, code=Code.SSH_TIMEOUT)
    text = shell.hosts(cluster)
    mark = zlib.crc32(text.encode())
    every = [
        Prepare(
            key=f"prepare:{i.instance_id}:{i.server_id}:{mark:08x}",
            what="prepare machine",
            machine=i.instance_name,
            instance=i.instance_id,
            hosts=text,
            mount=not has_reached(i, lifecycle.PREPARED),
        )
        for i in cluster.instances()
    ]
    pending = [p for p in every if not p.mount and not world.memory.of(p.key).done]
    return Plan(
        cluster=cluster,
        steps=tuple(pending or [p for p in every if p.mount]),
        code=Code.PREPARE_FAILED,
    )
