"""Plans the next steps of a cluster from its row and the cloud's lists. Pure, level-triggered.

`plan` does not use the history. It compares the wanted state with the present one. So it works the
same after a restart, after an interrupted call and after a person's change in the cloud.

Note: visibility. Lists of a cloud lag behind its calls. svcd writes `requested_at` before a create
call, with the latest end of the call, and again when the call has ended. For VISIBLE_S after this
time the planner waits for an object that the lists do not show: it neither creates the object again
nor takes it for lost. When the answer of a create call is lost, svcd adopts the object by its
metadata. If such an object appears late, there may be two; svcd deletes the surplus one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from svcd.model import ownership_tags
from svcd.model.cloud import Firewall, Opening
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
    ChangeRules,
    Distribute,
    EnsureSecurityGroup,
    EnsureServerGroup,
    Fail,
    Memory,
    Prepare,
    Reach,
    RunScript,
)
from svcd.settings import Provisioning


@frozen(kw_only=True)
class Plan:
    """The next steps. cluster: the row to write before they begin (intents, addresses, status).

    steps: to perform, in parallel. waiting: reasons why the cluster waits. fail: the work cannot
    succeed. left: the objects that a removal has still to remove. code: the failure code of a
    missed deadline. settled: no work is left. All empty: plan again at once.
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
    """The input of a plan beside the row.

    observed: None when the cloud could not be read (the memory has the reason under "observe").
    web_ports: of the distribution. installation: see svcd.model.ownership_tags.
    """

    observed: Observed | None = field(factory=Observed)
    memory: Memory = field(factory=Memory)
    settings: Provisioning = field(factory=Provisioning)
    firewall: Firewall = field(factory=Firewall)
    web_ports: tuple[int, ...] = ()
    installation: str = ""
    now: float

    def openings(self, cluster: Cluster) -> tuple[Opening, ...]:
        """The openings that the cluster's security group must have."""
        return self.firewall.openings(cluster.ssh_port, self.web_ports)


def needs_sight(cluster: Cluster) -> bool:
    """Whether a plan needs the cloud's lists.

    It does not need them before the intent of the first create call, and when no work is left.
    After each request for a size, also for the same size, it needs them.
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
        planned = Plan(cluster=cluster, waiting=(trouble.reason,), code=trouble.code)
    elif cluster.desired is Desired.DELETED or cluster.status is ClusterStatus.ERROR:
        planned = _remove(cluster, observed, world)
    else:
        planned = _build(cluster, observed, world)
    return _within_deadline(planned, world)


def _within_deadline(planned: Plan, world: World) -> Plan:
    """`planned`, or the failure of a phase whose time is over."""
    cluster = planned.cluster
    if planned.settled or planned.fail is not None:
        return planned
    if lifecycle.remaining_s(planned.cluster, world.settings, world.now) > 0:
        return planned
    if cluster.desired is Desired.DELETED and cluster.force_delete:
        return planned
    return Plan(cluster=planned.cluster, fail=_too_late(planned, world))


def _too_late(planned: Plan, world: World) -> Fail:
    """The failure of a missed deadline, with the reasons for waiting and the faults of steps."""
    troubles = [t for t in world.memory.tried.values() if t.reason and not t.done]
    code = planned.code
    # A step that svcd will repeat later is not among `steps`; its reason is among `waiting`.
    held_up = [t for t in troubles if any(t.reason in text for text in planned.waiting)]
    if code is not Code.LEFTOVERS and (held_up or (planned.steps and troubles)):
        code = (held_up or troubles)[-1].code
    parts = list(planned.left or planned.waiting)[:10]
    parts += sorted({t.reason for t in troubles} - set(parts))[:5]
    status = planned.cluster.status
    limit = lifecycle.limit_s(planned.cluster, world.settings) or 0.0
    reason = "; ".join(parts) or "no step made progress"
    return Fail(code=code, reason=f"{status} took longer than {limit:.0f} s: {reason}")


def _build(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """The plan of a create or a scaling. Its phases have the order of the statuses."""
    leaving = tuple(i for i in cluster.instances() if i.leaving)
    if leaving:
        return _decommission(cluster, leaving, observed, world)
    access = _access(cluster, world)
    if access is not None:
        return Plan(cluster=cluster, steps=(access,))
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
    elif scripts := tuple(_scripts(cluster)):
        return Plan(cluster=lifecycle.move(cluster, Input.CONFIGURE, world.now), steps=scripts)
    on = tuple(i.instance_id for i in cluster.instances() if not has_reached(i, reached))
    step = Distribute(verb=verb, on=on, reached=reached)
    return Plan(cluster=lifecycle.move(cluster, what, world.now), steps=(step,))


def _scripts(cluster: Cluster) -> Iterator[RunScript]:
    """The next first-boot script of each configured machine that has not started yet."""
    for group in cluster.node_groups:
        for instance in group.instances:
            number = instance.scripts_done
            if number < len(group.scripts) and not has_reached(instance, lifecycle.RETURNING):
                yield RunScript(
                    machine=instance.instance_name,
                    instance=instance.instance_id,
                    number=number,
                    script=group.scripts[number],
                )


def _access(cluster: Cluster, world: World) -> EnsureSecurityGroup | None:
    """The step after a change of the settings, once for each request."""
    openings = world.openings(cluster)
    if cluster.security_group_id is None or world.memory.of(ChangeRules.identity).done:
        return None
    if cluster.openings == tuple(map(str, openings)):
        return None
    name = ownership_tags.group_name(cluster.id)
    return ChangeRules(name=name, openings=openings, others=world.web_ports)


# ---- removing -----------------------------------------------------------------------------------


def _remove(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """The plan of a deletion, or of the clean-up after a failed create, which blanks instances."""
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
        openings=(),
        settled_generation=cluster.generation,
        updated_at=timestamp(world.now),
    )
    return Plan(cluster=clean, settled=True)


def _torn(cluster: Cluster, torn: Torn) -> Plan:
    """The plan of a removal.

    svcd writes to the row beforehand that only the trust is left: without the trust it cannot read
    the cloud.
    """
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
    """Decommission leaving machines that serve, remove their objects, then drop their rows."""
    cluster = lifecycle.move(cluster, Input.DECOMMISSION, world.now)
    serving = tuple(i for i in leaving if lifecycle.serves(i))
    if serving:
        shown = {s.id for s in observed.servers if s.status != "DELETED"}
        absent = tuple(i.instance_id for i in cluster.instances() if i.server_id not in shown)
        on = tuple(i.instance_id for i in serving if i.instance_id not in absent)
        if not on:  # no machine is left to decommission
            gone = {i.instance_id: {"step": lifecycle.DECOMMISSIONED} for i in serving}
            return Plan(cluster=with_instances(cluster, gone))
        step = Distribute(
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
    """Find instances past Spawning whose server is gone: svcd makes it again, or the work fails.

    It fails if the instance served, and the row shows those as gone. The status of the others is
    the one in the list. A server that lists have shown once is gone as soon as a list lacks it.
    """
    shown = {s.id: s.status for s in observed.servers if s.status != "DELETED"}
    changes: dict[InstanceId, Mapping[str, Any]] = {}
    gone: dict[InstanceId, Mapping[str, Any]] = {}
    reasons: list[str] = []
    named = ""
    for instance in cluster.instances():
        if instance.server_id is None:
            continue
        if instance.server_id in shown:
            if lifecycle.serves(instance) and instance.status != shown[instance.server_id]:
                changes[instance.instance_id] = {"status": shown[instance.server_id]}
            continue
        listed = has_reached(instance, lifecycle.SPAWNED)
        if not listed and is_fresh(instance, seen_at(observed, world.now)):
            continue
        if lifecycle.serves(instance) or instance.attempts >= MOST_REPLACED:
            gone[instance.instance_id] = {"status": lifecycle.GONE}
            reasons.append(f"server {instance.server_id} of {instance.instance_name} is gone")
            named = named or instance.instance_name
        else:
            changes[instance.instance_id] = {**lifecycle.BLANK, "attempts": instance.attempts + 1}
    if gone:
        reason = "; ".join(reasons[:10])
        return Fail(code=Code.SERVER_VANISHED, reason=reason, machine=named, instances=gone)
    return with_instances(cluster, changes)


def _spawn(cluster: Cluster, observed: Observed, world: World) -> Plan:
    """The plan that makes the groups first, then servers, addresses and volumes."""
    ensure: list[AnyStep] = []
    name = ownership_tags.group_name(cluster.id)
    if cluster.security_group_id is None:
        ensure.append(EnsureSecurityGroup(name=name, openings=world.openings(cluster)))
    if cluster.anti_affinity and cluster.server_group_id is None:
        ensure.append(EnsureServerGroup(name=name))
    if ensure:
        return Plan(cluster=cluster, steps=tuple(ensure), code=Code.BOOT_TIMEOUT)
    spawn = Spawning(cluster, observed, world.memory, world.now, world.installation)
    for group in cluster.node_groups:
        for instance in group.instances:
            spawn.instance(group, instance)
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
    """Log in on all new machines; prepare the machines that serve already; then the new ones.

    The new machines come last, because their step shows that this phase is done. The reasons for
    waiting name a server that a user has stopped meanwhile; the user may start it again.
    """
    new = [i for i in cluster.instances() if not has_reached(i, lifecycle.PREPARED)]
    unknown = [i for i in new if i.facts is None]
    if unknown:
        steps: tuple[AnyStep, ...] = tuple(
            Reach(machine=i.instance_name, instance=i.instance_id, server_id=i.server_id)
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
    checksum = zlib.crc32(text.encode())
    every = [
        Prepare(
            machine=i.instance_name,
            instance=i.instance_id,
            server_id=i.server_id,
            checksum=checksum,
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
