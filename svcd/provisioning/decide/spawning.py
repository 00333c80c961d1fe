"""Plans the servers, addresses and volumes of a cluster's instances. Pure.

It plans each instance alone; see the planner's note on visibility.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from svcd.model import ownership_tags
from svcd.model.cloud import FloatingIp, NewServer, Server, VolumeState
from svcd.model.cluster import Cluster, Instance, NodeGroup, Volume
from svcd.model.ids import InstanceId, timestamp
from svcd.provisioning.decide import lifecycle, shell
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.lifecycle import has_reached
from svcd.provisioning.decide.observed import CALL_S, Observed, is_fresh, seen_at
from svcd.provisioning.decide.steps import (
    AnyStep,
    AssociateFloatingIp,
    AttachVolumes,
    CreateFloatingIp,
    CreateServer,
    CreateVolumes,
    DeleteFloatingIp,
    DeleteServer,
    DeleteVolume,
    Fail,
    Memory,
)

MOST_REPLACED: Final = 2
"""Servers of one instance that svcd gives up and replaces before the work fails."""


class Spawning:
    """Collects the steps for all instances, in one pass over the cloud's lists."""

    def __init__(
        self,
        cluster: Cluster,
        observed: Observed,
        memory: Memory,
        now: float,
        installation: str = "",
    ) -> None:
        self.cluster = cluster
        self.installation = installation
        self.memory = memory
        self.now = now
        self._seen_at = seen_at(observed, now)
        self.changes: dict[InstanceId, dict[str, Any]] = {}
        self.steps: list[AnyStep] = []
        self.waiting: list[str] = []
        self.fail: Fail | None = None
        self._servers: dict[str, list[Server]] = {}
        self._volumes: dict[str, list[VolumeState]] = {}
        self._addresses: dict[str, list[FloatingIp]] = {}
        for server in observed.servers:
            if server.status != "DELETED":
                self._of(self._servers, server.metadata.get(ownership_tags.INSTANCE, ""), server)
        for volume in observed.volumes:
            self._of(self._volumes, volume.metadata.get(ownership_tags.INSTANCE, ""), volume)
        for address in observed.floating_ips:
            self._of(self._addresses, address.description.rpartition(":")[2], address)
        self._data = shell.user_data(cluster.username, cluster.management_public_key)

    @staticmethod
    def _of(index: dict[str, list[Any]], key: str, value: object) -> None:
        index.setdefault(key, []).append(value)

    def instance(self, group: NodeGroup, each: Instance) -> None:
        if has_reached(each, lifecycle.SPAWNED):
            return
        server = self._server(group, each)
        if server is None:
            return
        change: dict[str, Any] = {"server_id": server.id, "status": server.status}
        self.changes[each.instance_id] = change
        if server.status != "ACTIVE":
            self.waiting.append(f"server {each.instance_name} is {server.status}")
            return
        fixed = [a for a, kind in server.addresses if kind == "fixed"]
        if not fixed:
            self.waiting.append(f"server {each.instance_name} has no address")
            return
        change["internal_ip"] = fixed[0]
        other = [a for a, kind in server.addresses if kind != "fixed"]
        change["management_ip"] = other[0] if other else fixed[0]
        addressed = group.floating_ip_pool is None or self._floating(group, each, server, change)
        stored = group.volumes_per_node == 0 or self._storage(group, each, server, change)
        if addressed and stored and self.fail is None:
            change["step"] = lifecycle.SPAWNED

    def _server(self, group: NodeGroup, each: Instance) -> Server | None:
        """The usable server of an instance; without one, plans the steps to get one."""
        mine = self._servers.get(each.instance_id, [])
        usable = [s for s in mine if s.status != "ERROR" and s.task_state != "deleting"]
        usable.sort(key=lambda s: (s.id != each.server_id, s.status != "ACTIVE", s.id))
        doomed = [s for s in mine if s not in usable] + usable[1:]
        for server in doomed:
            self._delete(server)
        if usable:
            return usable[0]
        if doomed:
            broken = next((s for s in doomed if s.status == "ERROR"), None)
            if broken is not None and _is_present(each, broken):
                self._give_up(group, each, broken)
            else:
                self.waiting.append(f"old server of {each.instance_name} is being deleted")
            return None
        if each.server_id is None and each.requested_at is None:
            self._create(group, each)
        elif is_fresh(each, self._seen_at):
            self.waiting.append(f"server {each.instance_name} is not listed yet")
        elif each.server_id is None:  # the create call never arrived
            self._create(group, each)
        return None

    def _give_up(self, group: NodeGroup, each: Instance, broken: Server) -> None:
        fault = broken.fault or "the cloud gives no reason"
        if self._apart(group) and "no valid host" in fault.lower():
            fault += " (anti_affinity keeps it off the hosts of the cluster's other servers)"
        reason = f"server {broken.id} of {each.instance_name} is in ERROR: {fault}"
        if "quota" in fault.lower():
            self.fail = Fail(code=Code.QUOTA, reason=reason, machine=each.instance_name)
        elif each.attempts >= MOST_REPLACED:
            self.fail = Fail(
                code=Code.SERVER_ERROR, reason=f"{reason}; gave up", machine=each.instance_name
            )
        else:
            self.changes[each.instance_id] = {**lifecycle.BLANK, "attempts": each.attempts + 1}
            self.waiting.append(reason)

    def _apart(self, group: NodeGroup) -> bool:
        """Whether the group's servers may not share a host with others."""
        return not set(group.node_processes).isdisjoint(self.cluster.anti_affinity)

    def _create(self, group: NodeGroup, each: Instance) -> None:
        tried = self.memory.of(create_key(each))
        if tried.not_before > self.now:  # no intent for a call that is not made now
            self.waiting.append(f"server {each.instance_name}: {tried.reason}")
            return
        cluster = self.cluster
        new = NewServer(
            name=each.instance_name,
            image_id=cluster.default_image_id,
            flavor_id=group.flavor_id,
            keypair=cluster.user_keypair_id,
            network_id=cluster.neutron_management_network,
            security_groups=(cluster.security_group_id,) if cluster.security_group_id else (),
            server_group_id=cluster.server_group_id if self._apart(group) else None,
            user_data=self._data,
            metadata=ownership_tags.metadata(cluster.id, each.instance_id, self.installation),
        )
        self.changes[each.instance_id] = {"requested_at": timestamp(self.now + CALL_S)}
        self.steps.append(
            CreateServer(machine=each.instance_name, instance=each.instance_id, new=new)
        )

    def _delete(self, server: Server) -> None:
        self.steps.append(DeleteServer(machine=server.name, server_id=server.id))

    def _floating(
        self, group: NodeGroup, each: Instance, server: Server, change: dict[str, Any]
    ) -> bool:
        mine = sorted(
            self._addresses.get(each.instance_id, []), key=lambda f: (f.port_id is None, f.id)
        )
        if not mine:
            create = CreateFloatingIp(
                machine=each.instance_name,
                pool=group.floating_ip_pool or "",
                description=ownership_tags.address_text(
                    self.cluster.id, each.instance_id, self.installation
                ),
                instance=each.instance_id,
            )
            self._ask_for(each, create, change)
            return False
        for surplus in mine[1:]:  # svcd made two, because an answer was lost
            if surplus.port_id is None:
                self.steps.append(
                    DeleteFloatingIp(machine=each.instance_name, floating_ip_id=surplus.id)
                )
        address = mine[0]
        change["floating_ip_id"] = address.id
        if address.port_id is None:
            self.steps.append(
                AssociateFloatingIp(
                    machine=each.instance_name,
                    floating_ip_id=address.id,
                    server_id=server.id,
                )
            )
            return False
        change["management_ip"] = address.address
        return True

    def _storage(
        self, group: NodeGroup, each: Instance, server: Server, change: dict[str, Any]
    ) -> bool:
        by_index: dict[int, VolumeState] = {}
        for volume in sorted(
            self._volumes.get(each.instance_id, []), key=lambda v: (v.attached_to is None, v.id)
        ):
            index = _index(volume)
            if volume.status.startswith("error") or index in by_index:
                self._drop(each, volume)
            elif volume.status != "deleting":
                by_index[index] = volume
        if self.fail is not None:
            return False
        numbers = range(1, group.volumes_per_node + 1)
        missing = [n for n in numbers if n not in by_index]
        if missing:
            self._ask_for(each, self._new_volumes(group, each, missing), change)
            return False
        known = {v.volume_id: v for v in each.volumes}
        ready = [by_index[n] for n in numbers]
        change["volumes"] = tuple(
            Volume(
                volume_id=v.id, device=v.device or (known[v.id].device if v.id in known else None)
            )
            for v in ready
        )
        free = tuple(v.id for v in ready if v.status == "available")
        if free:
            self.steps.append(
                AttachVolumes(
                    machine=each.instance_name,
                    instance=each.instance_id,
                    server_id=server.id,
                    volumes=free,
                )
            )
            return False
        busy = [v for v in ready if v.status != "in-use"]
        if busy:
            self.waiting.append(f"volume {busy[0].id} of {each.instance_name} is {busy[0].status}")
            return False
        return True

    def _ask_for(
        self, each: Instance, create: CreateVolumes | CreateFloatingIp, change: dict[str, Any]
    ) -> None:
        """Plan a create call with its intent, unless an earlier call may have made the object.

        The daemon that created the server knows its other calls. A new daemon waits until lists
        show the objects of the former one.
        """
        tried = self.memory.of(create.key)
        alien = create_key(each) not in self.memory.tried and create.key not in self.memory.tried
        if alien and is_fresh(each, self._seen_at):
            text = f"{create.what} of {each.instance_name}: may have been asked for, not listed yet"
            self.waiting.append(text)
            return
        if tried.not_before > self._seen_at:
            reason = tried.reason or f"{create.what} of {each.instance_name}: not listed yet"
            self.waiting.append(reason)
            return
        change["requested_at"] = timestamp(self.now + CALL_S)
        self.steps.append(create)

    def _new_volumes(
        self, group: NodeGroup, each: Instance, missing: Sequence[int]
    ) -> CreateVolumes:
        """The step that creates volumes."""
        attempt = self.changes.get(each.instance_id, {}).get("attempts", each.attempts)
        return CreateVolumes(
            machine=each.instance_name,
            instance=each.instance_id,
            attempt=attempt,
            size_gib=group.volumes_size,
            volumes=tuple(
                (
                    f"volume_{each.instance_name}_{n}",
                    {
                        **ownership_tags.metadata(
                            self.cluster.id, each.instance_id, self.installation
                        ),
                        "svcd_volume_index": str(n),
                    },
                )
                for n in missing
            ),
        )

    def _drop(self, each: Instance | None, volume: VolumeState) -> None:
        step = DeleteVolume(machine=volume.name, volume_id=volume.id)
        if each is not None and volume.status == "error":
            if each.attempts >= MOST_REPLACED:
                self.fail = Fail(
                    code=Code.VOLUME_ERROR,
                    reason=f"volume {volume.id} of {each.instance_name} is in error; gave up",
                    machine=each.instance_name,
                )
                return
            if step.key not in self.memory.tried:
                self.changes.setdefault(each.instance_id, {})["attempts"] = each.attempts + 1
        self.steps.append(step)

    def orphans(self) -> None:
        """Servers and volumes of instances that this cluster no longer has."""
        known = {i.instance_id for i in self.cluster.instances()}
        for instance_id, servers in self._servers.items():
            if instance_id not in known:
                for server in servers:
                    self._delete(server)
        for instance_id, volumes in self._volumes.items():
            if instance_id not in known:
                for volume in volumes:
                    if volume.attached_to is None:
                        self._drop(None, volume)


def create_key(each: Instance) -> str:
    """The key of the step that creates the instance's server."""
    return f"create-server:{each.instance_id}"


def _index(volume: VolumeState) -> int:
    text = volume.metadata.get("svcd_volume_index", "")
    return int(text) if text.isdecimal() else 0


def _is_present(each: Instance, server: Server) -> bool:
    """Whether `server` is the instance's present server, not one that svcd gave up before."""
    if each.server_id is not None:
        return server.id == each.server_id
    return each.requested_at is not None
