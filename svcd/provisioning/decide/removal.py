"""Plans the removal of instances or of a whole cluster, in order. Pure.

The order: executions; servers; floating addresses and volumes once their server is gone; groups
once no server is in them, even if volumes are left; the trust, which all steps before need; the
row.

Note: addresses wait. The network service unties the address of a port that it deletes; when svcd
releases the address meanwhile, it answers 404, and the compute service takes the port for gone: the
port stays for ever. svcd does not wait for a server in ERROR, or it would never release its
address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from svcd.model import ownership_tags
from svcd.model.cloud import FloatingIp, Server, VolumeState
from svcd.model.cluster import Cluster, Desired, Instance, NodeGroup
from svcd.model.ids import InstanceId, seconds_of
from svcd.provisioning.decide.lifecycle import SPAWNED, has_reached
from svcd.provisioning.decide.observed import CALL_S, VISIBLE_S, Observed, is_fresh, seen_at
from svcd.provisioning.decide.steps import (
    AnyStep,
    DeleteFloatingIp,
    DeleteGroups,
    DeleteServer,
    DeleteTrust,
    DeleteVolume,
    DropRow,
    KillExecutions,
    Memory,
)

FORCE_S: Final = 30.0
"""A forced delete tries to remove things for this long before it drops the row.

The time counts from the daemon's first try. svcd also waits until it has sent a delete call for
each object that lists show, and until lists show each object that may still appear, which takes at
most CALL_S and VISIBLE_S: without the row svcd would not know that object.
"""

KILL_TRIES: Final = 3
"""Tries to kill the executions of a cluster; then its deletion continues without."""


@frozen(kw_only=True)
class Torn:
    """The state of a removal. steps: to do now. waiting: reasons. left: names of objects left.

    inhabited: servers exist, or may still appear. unseen: svcd asked for an object so recently
    that it may exist though no list shows it.
    """

    steps: tuple[AnyStep, ...] = ()
    waiting: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    inhabited: bool = False
    unseen: bool = False


def removal(
    instances: Sequence[Instance],
    observed: Observed,
    memory: Memory,
    now: float,
    *,
    whole: bool,
    wanted: Mapping[InstanceId, NodeGroup] | None = None,
) -> Torn:
    """Remove the servers, addresses and volumes of `instances`; with `whole`, all in the lists.

    wanted: the groups of the instances; they show whether svcd may have asked for addresses and
    volumes.
    """
    then = seen_at(observed, now)
    ids = {i.instance_id for i in instances}
    servers = [
        s
        for s in observed.servers
        if s.status != "DELETED" and (whole or s.metadata.get("svcd_instance_id") in ids)
    ]
    steps: list[AnyStep] = [DeleteServer(machine=s.name, server_id=s.id) for s in servers]
    left = [f"server {s.name} ({s.id}, {s.status})" for s in servers]
    waiting = [f"server {s.name} is being deleted" for s in servers]
    shown = {s.id for s in observed.servers}
    answered = {s.metadata.get("svcd_instance_id") for s in servers}
    known = len(left)
    for instance in instances:
        if instance.server_id is not None and instance.server_id not in shown:
            # Not listed: gone, or not visible yet. One delete call makes it certain.
            step = DeleteServer(machine=instance.instance_name, server_id=instance.server_id)
            if is_fresh(instance, then) and not memory.of(step.key).done:
                steps.append(step)
                left.append(f"server {instance.instance_name} ({instance.server_id})")
        elif (
            instance.server_id is None
            and instance.instance_id not in answered
            and is_fresh(instance, then)
        ):
            waiting.append(f"a server for {instance.instance_name} may still appear")
            left.append(f"server {instance.instance_name} (asked for, not seen)")
    inhabited = bool(left)
    for instance in instances:
        _unlisted(instance, wanted or {}, observed, memory, then, steps, waiting, left)
    unseen = len(left) > known
    going = {s.metadata.get("svcd_instance_id") for s in servers if s.status != "ERROR"}
    for address in observed.floating_ips:
        owner = _owner(address)
        if whole or owner in ids:
            left.append(f"floating IP {address.address} ({address.id})")
            if owner in going:
                waiting.append(f"floating IP {address.address} is of a server being deleted")
                continue
            steps.append(DeleteFloatingIp(machine=address.address, floating_ip_id=address.id))
    holders = {s.id: s for s in servers}
    for volume in observed.volumes:
        if whole or volume.metadata.get("svcd_instance_id") in ids:
            left.append(f"volume {volume.name} ({volume.id}, {volume.status})")
            _volume(volume, holders, steps, waiting)
    return Torn(
        steps=tuple(steps),
        waiting=tuple(waiting),
        left=tuple(left),
        inhabited=inhabited,
        unseen=unseen,
    )


def _unlisted(
    instance: Instance,
    wanted: Mapping[InstanceId, NodeGroup],
    observed: Observed,
    memory: Memory,
    now: float,
    steps: list[AnyStep],
    waiting: list[str],
    left: list[str],
) -> None:
    """Add the address and the volumes that svcd asked for recently and that no list shows yet."""
    group = wanted.get(instance.instance_id)
    if group is None or not is_fresh(instance, now) or instance.status != "ACTIVE":
        return
    if has_reached(instance, SPAWNED):
        return
    name = instance.instance_name
    if group.floating_ip_pool is not None and instance.floating_ip_id is None:
        if not any(_owner(f) == instance.instance_id for f in observed.floating_ips):
            waiting.append(f"a floating IP of {name} may still appear")
            left.append(f"floating IP of {name} (asked for, not seen)")
    elif instance.floating_ip_id is not None:
        known = instance.floating_ip_id
        step = DeleteFloatingIp(machine=known, floating_ip_id=known)
        if known not in {f.id for f in observed.floating_ips} and not memory.of(step.key).done:
            steps.append(step)
            left.append(f"floating IP {known}")
    if group.volumes_per_node and not instance.volumes:
        waiting.append(f"volumes of {name} may still appear")
        left.append(f"volumes of {name} (asked for, not seen)")


def _owner(address: FloatingIp) -> str:
    """The id of the instance for which svcd made an address."""
    return address.description.rpartition(":")[2]


def _volume(
    volume: VolumeState, holders: dict[str, Server], steps: list[AnyStep], waiting: list[str]
) -> None:
    if volume.status == "deleting" or volume.attached_to in holders:
        waiting.append(f"volume {volume.name} is {volume.status}")
        return
    steps.append(DeleteVolume(machine=volume.name, volume_id=volume.id))


def tear_down(cluster: Cluster, observed: Observed, memory: Memory, now: float) -> Torn:
    """Remove all objects of the cluster; at the end of a deletion also trust and row.

    Without steps and reasons to wait nothing is left (the clean-up of an Error cluster is done).
    """
    if access_given_up(cluster):
        return Torn(steps=(DropRow(),), left=("the record",))
    deleting = cluster.desired is Desired.DELETED
    over = _has_tried(cluster, memory, now)
    forced = deleting and cluster.force_delete
    if deleting and cluster.emptied and cluster.trust_id is not None:
        return _last(cluster.trust_id, forced and over)
    kill = KillExecutions()
    tried = memory.of(kill.key)
    if deleting and not tried.done and tried.failures < KILL_TRIES:
        return Torn(steps=(kill,), left=("running executions",))
    wanted = groups_of(cluster)
    torn = removal(cluster.instances(), observed, memory, now, whole=True, wanted=wanted)
    groups = DeleteGroups(name=ownership_tags.group_name(cluster.id))
    late = _group_may_appear(cluster, memory, now)
    if late:
        text = f"a group named {groups.name} may still appear"
        torn = evolve(torn, waiting=(*torn.waiting, text), unseen=True)
    grouped = not memory.of(groups.key).done
    left = (*torn.left, *((f"groups named {groups.name}",) if grouped else ()))
    empty = (groups,) if grouped and not torn.inhabited and not late else ()
    steps = (*torn.steps, *empty)
    new = [s for s in steps if not memory.of(s.key).done and not memory.of(s.key).failures]
    if forced and over and (torn.left or grouped) and not new and not torn.unseen:
        return Torn(steps=(DropRow(leftovers=left),))
    if torn.steps or torn.waiting:
        return Torn(steps=steps, waiting=torn.waiting, left=left)
    if grouped:
        return Torn(steps=(groups,), left=left)
    if not deleting:
        return Torn()
    if cluster.trust_id is not None and not memory.of(DeleteTrust.identity).done:
        return _last(cluster.trust_id, forced and over)
    return Torn(steps=(DropRow(),), left=("the record",))


def _group_may_appear(cluster: Cluster, memory: Memory, now: float) -> bool:
    """Whether a former process may have asked for a group that the row does not have.

    No row says that a group was asked for, as `requested_at` says it of a server. svcd asks for
    servers when the row has all groups, so that a group of such a row is removed, not late.
    """
    if memory.taken_at is None or not 0 <= now - memory.taken_at < CALL_S + VISIBLE_S:
        return False
    if any(instance.requested_at is not None for instance in cluster.instances()):
        return False
    lacks_server_group = bool(cluster.anti_affinity) and cluster.server_group_id is None
    return cluster.security_group_id is None or lacks_server_group


def _last(trust_id: str, by_force: bool) -> Torn:
    """Remove the trust, the last object. A forced delete may leave it."""
    if by_force:
        drop = DropRow(leftovers=("the trust",))
        return Torn(steps=(drop,))
    return _trust(trust_id)


def _trust(trust_id: str) -> Torn:
    step = DeleteTrust(trust_id=trust_id)
    return Torn(steps=(step,), left=("the trust",))


def access_being_given_up(cluster: Cluster, memory: Memory) -> Torn | None:
    """Repeat the deletion of the trust once it has begun: the first call may have succeeded.

    All other objects are gone then, and svcd may not read the cloud any more. Another delete call
    makes it certain.
    """
    begun = cluster.emptied or memory.of(DeleteTrust.identity).failures
    if cluster.desired is not Desired.DELETED or cluster.trust_id is None or not begun:
        return None
    return _trust(cluster.trust_id)


def groups_of(cluster: Cluster) -> Mapping[InstanceId, NodeGroup]:
    """Id of an instance -> its group."""
    return {i.instance_id: group for group in cluster.node_groups for i in group.instances}


def access_given_up(cluster: Cluster) -> bool:
    """Whether the trust of a cluster in deletion is gone; only the row is left then.

    Without the trust svcd may not read the cloud, so the row must show that nothing is left there.
    """
    deleting = cluster.desired is Desired.DELETED
    return deleting and cluster.trust_id is None and cluster.trustor_id is not None


def only_access_is_left(torn: Torn) -> bool:
    """Whether the trust is the only object left."""
    return any(isinstance(step, DeleteTrust) for step in torn.steps)


def _has_tried(cluster: Cluster, memory: Memory, now: float) -> bool:
    """Whether a forced delete has tried for `FORCE_S`."""
    return now - max(seconds_of(cluster.status_since), memory.since) >= FORCE_S


def forced_without_sight(cluster: Cluster, memory: Memory, now: float) -> Torn | None:
    """Drop the row in a forced delete whose cloud cannot be read, after `FORCE_S`."""
    if cluster.desired is not Desired.DELETED or not cluster.force_delete:
        return None
    if not _has_tried(cluster, memory, now):
        return None
    left = tuple(
        f"server {i.instance_name} ({i.server_id})" for i in cluster.instances() if i.server_id
    )
    drop = DropRow(leftovers=(*left, "unknown others"))
    return Torn(steps=(drop,))
