"""Plans the servers, addresses and volumes of a cluster's instances. Pure.

It plans for each instance on its own; see the planner's note on visibility.
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

    def instance(self, group: NodeGroup, instance: Instance) -> None:
        if has_reached(instance, lifecycle.SPAWNED):
            return
        server = self._server(group, instance)
        if server is None:
            return
        change: dict[str, Any] = {"server_id": server.id, "status": server.status}
        self.changes[instance.instance_id] = change
        if server.status != "ACTIVE":
            self.waiting.append(f"server {instance.instance_name} is {server.status}")
            return
        fixed = [a for a, kind in server.addresses if kind == "fixed"]
        if not fixed:
            self.waiting.append(f"server {instance.instance_name} has no address")
            return
        change["internal_ip"] = fixed[0]
        other = [a for a, kind in server.addresses if kind != "fixed"]
        change["management_ip"] = other[0] if other else fixed[0]
        addressed = group.floating_ip_pool is None or self._floating(
            group, instance, server, change
        )
        stored = group.volumes_per_node == 0 or self._storage(group, instance, server, change)
        if addressed and stored and self.fail is None:
            change["step"] = lifecycle.SPAWNED

    def _server(self, group: NodeGroup, instance: Instance) -> Server | None:
        """The usable server of an instance; without one, plans the steps to get one."""
        mine = self._servers.get(instance.instance_id, [])
        usable = [s for s in mine if s.status != "ERROR" and s.task_state != "deleting"]
        usable.sort(key=lambda s: (s.id != instance.server_id, s.status != "ACTIVE", s.id))
        doomed = [s for s in mine if s not in usable] + usable[1:]
        for server in doomed:
            self._delete(server)
        if usable:
            return usable[0]
        if doomed:
            broken = next((s for s in doomed if s.status == "ERROR"), None)
            if broken is not None and _is_present(instance, broken):
                self._give_up(group, instance, broken)
            else:
                self.waiting.append(f"old server of {instance.instance_name} is being deleted")
            return None
        if instance.server_id is None and instance.requested_at is None:
            self._create(group, instance)
        elif is_fresh(instance, self._seen_at):
            self.waiting.append(f"server {instance.instance_name} is not listed yet")
        elif instance.server_id is None:  # the create call never arrived
            self._create(group, instance)
        return None

    def _give_up(self, group: NodeGroup, instance: Instance, broken: Server) -> None:
        fault = broken.fault or "the cloud gives no reason"
        if self._apart(group) and "no valid host" in fault.lower():
            fault += " (anti_affinity keeps it off the hosts of the cluster's other servers)"
        reason = f"server {broken.id} of {instance.instance_name} is in ERROR: {fault}"
        if "quota" in fault.lower():
            self.fail = Fail(code=Code.QUOTA, reason=reason, machine=instance.instance_name)
        elif instance.attempts >= MOST_REPLACED:
            self.fail = Fail(
                code=Code.SERVER_ERROR, reason=f"{reason}; gave up", machine=instance.instance_name
            )
        else:
            self.changes[instance.instance_id] = {
                **lifecycle.BLANK,
                "attempts": instance.attempts + 1,
            }
            self.waiting.append(reason)

    def _apart(self, group: NodeGroup) -> bool:
        """Whether the group's servers may not share a host with others."""
        return not set(group.node_processes).isdisjoint(self.cluster.anti_affinity)

    def _create(self, group: NodeGroup, instance: Instance) -> None:
        tried = self.memory.of(create_key(instance))
        if tried.not_before > self.now:  # a call that svcd does not make now needs no intent
            self.waiting.append(f"server {instance.instance_name}: {tried.reason}")
            return
        cluster = self.cluster
        new = NewServer(
            name=instance.instance_name,
            image_id=cluster.default_image_id,
            flavor_id=group.flavor_id,
            keypair=cluster.user_keypair_id,
            network_id=cluster.neutron_management_network,
            security_groups=(cluster.security_group_id,) if cluster.security_group_id else (),
            server_group_id=cluster.server_group_id if self._apart(group) else None,
            user_data=self._data,
            metadata=ownership_tags.metadata(cluster.id, instance.instance_id, self.installation),
        )
        self.changes[instance.instance_id] = {"requested_at": timestamp(self.now + CALL_S)}
        self.steps.append(
            CreateServer(machine=instance.instance_name, instance=instance.instance_id, new=new)
        )

    def _delete(self, server: Server) -> None:
        self.steps.append(DeleteServer(machine=server.name, server_id=server.id))

    def _floating(
        self, group: NodeGroup, instance: Instance, server: Server, change: dict[str, Any]
    ) -> bool:
        mine = sorted(
            self._addresses.get(instance.instance_id, []), key=lambda f: (f.port_id is None, f.id)
        )
        if not mine:
            create = CreateFloatingIp(
                machine=instance.instance_name,
                pool=group.floating_ip_pool or "",
                description=ownership_tags.address_text(
                    self.cluster.id, instance.instance_id, self.installation
                ),
                instance=instance.instance_id,
            )
            self._ask_for(instance, create, change)
            return False
        for surplus in mine[1:]:  # after a lost answer svcd created a second address
            if surplus.port_id is None:
                self.steps.append(
                    DeleteFloatingIp(machine=instance.instance_name, floating_ip_id=surplus.id)
                )
        address = mine[0]
        change["floating_ip_id"] = address.id
        if address.port_id is None:
            self.steps.append(
                AssociateFloatingIp(
                    machine=instance.instance_name,
                    floating_ip_id=address.id,
                    server_id=server.id,
                )
            )
            return False
        change["management_ip"] = address.address
        return True

    def _storage(
        self, group: NodeGroup, instance: Instance, server: Server, change: dict[str, Any]
    ) -> bool:
        by_index: dict[int, VolumeState] = {}
        for volume in sorted(
            self._volumes.get(instance.instance_id, []), key=lambda v: (v.attached_to is None, v.id)
        ):
            index = _index(volume)
            if volume.status.startswith("error") or index in by_index:
                self._drop(instance, volume)
            elif volume.status != "deleting":
                by_index[index] = volume
        if self.fail is not None:
            return False
        numbers = range(1, group.volumes_per_node + 1)
        missing = [n for n in numbers if n not in by_index]
        if missing:
            self._ask_for(instance, self._new_volumes(group, instance, missing), change)
            return False
        known = {v.volume_id: v for v in instance.volumes}
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
                    machine=instance.instance_name,
                    instance=instance.instance_id,
                    server_id=server.id,
                    volumes=free,
                )
            )
            return False
        busy = [v for v in ready if v.status != "in-use"]
        if busy:
            self.waiting.append(
                f"volume {busy[0].id} of {instance.instance_name} is {busy[0].status}"
            )
            return False
        return True

    def _ask_for(
        self, instance: Instance, create: CreateVolumes | CreateFloatingIp, change: dict[str, Any]
    ) -> None:
        """Plan a create call with its intent, unless an earlier call may have made the object.

        The daemon that created the server knows its other calls. A new daemon waits until lists
        show the objects of the former one.
        """
        tried = self.memory.of(create.key)
        alien = (
            create_key(instance) not in self.memory.tried and create.key not in self.memory.tried
        )
        if alien and is_fresh(instance, self._seen_at):
            what = f"{create.what} of {instance.instance_name}"
            self.waiting.append(f"{what}: may have been asked for, not listed yet")
            return
        if tried.not_before > self._seen_at:
            reason = tried.reason or f"{create.what} of {instance.instance_name}: not listed yet"
            self.waiting.append(reason)
            return
        change["requested_at"] = timestamp(self.now + CALL_S)
        self.steps.append(create)

    def _new_volumes(
        self, group: NodeGroup, instance: Instance, missing: Sequence[int]
    ) -> CreateVolumes:
        """The step that creates volumes."""
        attempt = self.changes.get(instance.instance_id, {}).get("attempts", instance.attempts)
        return CreateVolumes(
            machine=instance.instance_name,
            instance=instance.instance_id,
            attempt=attempt,
            size_gib=group.volumes_size,
            volumes=tuple(
                (
                    f"volume_{instance.instance_name}_{n}",
                    {
                        **ownership_tags.metadata(
                            self.cluster.id, instance.instance_id, self.installation
                        ),
                        "svcd_volume_index": str(n),
                    },
                )
                for n in missing
            ),
        )

    def _drop(self, instance: Instance | None, volume: VolumeState) -> None:
        step = DeleteVolume(machine=volume.name, volume_id=volume.id)
        if instance is not None and volume.status == "error":
            if instance.attempts >= MOST_REPLACED:
                self.fail = Fail(
                    code=Code.VOLUME_ERROR,
                    reason=f"volume {volume.id} of {instance.instance_name} is in error; gave up",
                    machine=instance.instance_name,
                )
                return
            if step.key not in self.memory.tried:
                self.changes.setdefault(instance.instance_id, {})["attempts"] = (
                    instance.attempts + 1
                )
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


def create_key(instance: Instance) -> str:
    """The key of the step that creates the instance's server."""
    return f"create-server:{instance.instance_id}"


def _index(volume: VolumeState) -> int:
    text = volume.metadata.get("svcd_volume_index", "")
    return int(text) if text.isdecimal() else 0


def _is_present(instance: Instance, server: Server) -> bool:
    """Whether `server` is the instance's present server, not one that svcd gave up before."""
    if instance.server_id is not None:
        return server.id == instance.server_id
    return instance.requested_at is not None
