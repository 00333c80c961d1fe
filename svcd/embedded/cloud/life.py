"""Changes servers, volumes and addresses over time, in the records and on the machines.

Level-triggered: a record holds the wanted state and its time. The task of its id works towards this
state, and may be woken at any time, also after a crash in the middle.

Note: machines that cannot boot. The server is in ERROR, the fault says why, and its task tries
again until the machine boots; then the server is ACTIVE. Most often another program listens on an
address of the machine. A new server gets another address instead, because no answer has shown the
first address. A server that was ACTIVE keeps its address, because the cluster's files have it.
"""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import Final

from attrs import evolve
from twisted.logger import Logger

from svcd.embedded.cloud.core import PRIVATE_NETWORK_ID, Core
from svcd.embedded.cloud.guests import AddressTaken, GuestError, Guests, GuestSpec
from svcd.embedded.cloud.records import FloatingIp, Port, Rule, SecurityGroup, Server, Volume
from svcd.runtime.tasks import KeyedTasks, gather

log = Logger()

# one object for all, because each empty set takes memory
_NO_ADDRESSES: frozenset[str] = frozenset()
_GUESTS_AT_ONCE = 16
"""Tasks that work on machines in parallel, for servers and for volumes."""
_ADDRESSES_TRIED: Final = 10
"""Addresses that a new server tries in a row, when other programs take them at the same moment."""
_AGAIN_S: Final = 5.0
"""Seconds until the next try to boot a machine."""


class Life:
    """Owns the tasks. The services write the wanted state and wake the tasks."""

    def __init__(self, core: Core, guests: Guests) -> None:
        self._core = core
        self._guests = guests
        self._adopted: dict[str, frozenset[str]] = {}  # floating addresses of each machine
        self._servers = KeyedTasks(core.clock, "server", self._server_turn, _GUESTS_AT_ONCE)
        self._volumes = KeyedTasks(core.clock, "volume", self._volume_turn, _GUESTS_AT_ONCE)

    async def adopt(self) -> None:
        """Adopt the machines of the servers that a former process left ACTIVE.

        The caller serves requests afterwards: no answer says ACTIVE before the machine answers.
        """
        servers = list(self._core.state.servers.values())
        running = [server for server in servers if server.status == server.desired == "ACTIVE"]
        results = await gather([partial(self._boot, server) for server in running], _GUESTS_AT_ONCE)
        for server, result in zip(running, results, strict=True):
            if isinstance(result, BaseException):  # `start` tries again, and logs the failure
                self._settle(server.id, "ERROR", f"the machine cannot be adopted: {result!r}")

    def start(self) -> None:
        """Resume the work of a former process: unfinished changes, and machines that cannot boot.

        Its clock may have been ahead of ours. So `start` cuts the time of each change to the
        longest possible one.
        """
        core = self._core
        config, state = core.config, core.state
        latest = core.now() + max(config.boot_s, config.delete_s, config.volume_s)
        for server in list(state.servers.values()):
            if server.due_at > latest:
                state.servers.put(evolve(server, due_at=latest))
            self._servers.wake(server.id)
        for volume in list(state.volumes.values()):
            if volume.due_at > latest:
                state.volumes.put(evolve(volume, due_at=latest))
            self._volumes.wake(volume.id)

    async def stop(self) -> None:
        """Stop all tasks. The machines continue to run."""
        await self._servers.stop()
        await self._volumes.stop()
        await self._guests.shutdown()

    # ---- servers ----

    def wake_server(self, server_id: str) -> None:
        """Run the task of the server, because its record was changed."""
        self._servers.wake(server_id)

    def addresses(self, server: Server) -> tuple[list[Port], list[FloatingIp]]:
        """The ports of the server, and the floating IPs of these ports."""
        state = self._core.state
        ports = state.ports.having("device", server.id)
        return ports, [ip for port in ports for ip in state.floating_ips.having("port", port.id)]

    async def _server_turn(self, server_id: str) -> float | None:
        server = self._core.state.servers.get(server_id)
        if server is None:
            return None
        wait = server.due_at - self._core.now()
        if wait > 0:
            return wait
        if server.desired == "DELETED":
            await self._remove(server)
        elif server.desired == "SHUTOFF" and server.status != "SHUTOFF":
            await self._guests.halt(server_id)
            self._settle(server_id, "SHUTOFF")
        elif server.desired == "ACTIVE" and (server.status != "ERROR" or server.fault):
            return await self._boot(server)
        return None

    async def _boot(self, server: Server) -> float | None:
        """Boot the machine, once in each process and when its floating addresses have changed.

        A fault puts the server in ERROR. Returns the seconds until the next try, None for no other.
        """
        if server.host < 0:
            self._settle(server.id, "ERROR", server.fault or "No valid host was found. ")
            return None
        try:
            _, floating = self.addresses(server)
            wanted = frozenset(ip.address for ip in floating) or _NO_ADDRESSES
            if server.status != "ACTIVE" or self._adopted.get(server.id) != wanted:
                await self._boot_with_volumes(server)
                self._adopted[server.id] = wanted
                self._settle(server.id, "ACTIVE")
        except GuestError as error:
            fault = str(error)
            if fault != server.fault:
                log.warn("Server {id} could not boot: {error}", id=server.id, error=fault)
            self._settle(server.id, "ERROR", fault)
            return _AGAIN_S
        return None

    async def _boot_with_volumes(self, server: Server) -> None:
        """Boot the machine and attach its volumes. Raises GuestError."""
        await self._boot_at_free_address(server)
        for volume in self._core.state.volumes.having("server", server.id):
            if volume.status == "in-use":
                await self._guests.attach(server.id, volume.id, volume.device or "")

    async def _boot_at_free_address(self, server: Server) -> None:
        """Boot the machine; a new server gets another address when its own is taken."""
        for left in reversed(range(_ADDRESSES_TRIED)):
            try:
                await self._guests.boot(self._spec(server))
                return
            except AddressTaken as error:
                if not left or server.status != "BUILD" or not self._exchange(server, error):
                    raise

    def _exchange(self, server: Server, taken: AddressTaken) -> bool:
        """Replace the fixed address that is taken. False: it is a floating one, or none is free."""
        ports, _ = self.addresses(server)
        port = next((port for port in ports if port.address == taken.address), None)
        address = self.free_address(self._core.config.network) if port is not None else None
        if port is None or address is None:
            return False
        log.info(
            "Server {id} gets the address {address}: {why}",
            id=server.id,
            address=address,
            why=str(taken),
        )
        self._core.state.ports.put(evolve(port, address=address, mac=_mac(address)))
        return True

    def _settle(self, server_id: str, status: str, fault: str = "") -> None:
        """Write the status that was reached, unless the server is to be deleted by now."""
        server = self._core.state.servers.get(server_id)
        if server is None or server.desired == "DELETED":
            return
        if (server.status, server.fault) == (status, fault):
            return
        now = self._core.now()
        if status == "SHUTOFF":
            self._adopted.pop(server_id, None)
        self._core.state.servers.put(
            evolve(server, status=status, task_state=None, fault=fault, updated_at=now)
        )

    async def _remove(self, server: Server) -> None:
        core, state = self._core, self._core.state
        await self._guests.destroy(server.id)
        ports, floating = self.addresses(server)
        with state.transaction():
            for ip in floating:
                state.floating_ips.put(evolve(ip, port_id=None))
            for port in ports:
                state.ports.remove(port.id)
            for volume in state.volumes.having("server", server.id):
                state.volumes.put(evolve(volume, status="available", server_id=None, device=None))
            state.servers.remove(server.id)
        self._adopted.pop(server.id, None)
        core.gone(server)

    def _spec(self, server: Server) -> GuestSpec:
        image = self._core.image(server.image_id)
        properties = {} if image is None else image.properties
        ports, floating = self.addresses(server)
        try:
            user_data = base64.b64decode(server.user_data, validate=True)
        except binascii.Error:
            user_data = b""
        return GuestSpec(
            server_id=server.id,
            name=server.name,
            addresses=tuple(p.address for p in ports) + tuple(f.address for f in floating),
            user_name=properties.get("_svc_username") or "svcd",
            authorized_keys=(server.public_key,) if server.public_key else (),
            user_data=user_data,
        )

    # ---- addresses ----

    def free_address(self, network: str) -> str | None:
        """An address of `network` that neither this cloud nor another program uses, or None."""
        return self._core.free_address(network, self._guests.occupied())

    def new_port(self, server_id: str, project_id: str, groups: tuple[str, ...]) -> Port | None:
        """Create a port with a free fixed address; None when the network is full."""
        core = self._core
        address = self.free_address(core.config.network)
        if address is None:
            return None
        port = Port(
            id=core.new_id(),
            project_id=project_id,
            network_id=PRIVATE_NETWORK_ID,
            device_id=server_id,
            address=address,
            mac=_mac(address),
            security_groups=groups,
        )
        core.state.ports.put(port)
        return port

    def associate(self, ip: FloatingIp, port_id: str | None) -> FloatingIp:
        """Move a floating IP to a port, or to none, and wake the servers of both ports."""
        state = self._core.state
        before = state.ports.get(ip.port_id or "")
        ip = evolve(ip, port_id=port_id)
        state.floating_ips.put(ip)
        after = state.ports.get(port_id or "")
        for port in (before, after):
            if port is not None and port.device_id:
                self.wake_server(port.device_id)
        return ip

    def default_group(self, project_id: str) -> SecurityGroup:
        """The project's security group `default`, which is created at its first use."""
        core = self._core
        for group in core.state.security_groups.having("name", (project_id, "default")):
            if group.name == "default":
                return group
        return self.new_group(project_id, "default", "Default security group")

    def new_group(self, project_id: str, name: str, description: str) -> SecurityGroup:
        """Create a security group, with rules that allow all outgoing traffic."""
        core = self._core
        group = SecurityGroup(
            id=core.new_id(), name=name, description=description, project_id=project_id
        )
        core.state.security_groups.put(group)
        for ethertype in ("IPv4", "IPv6"):
            core.state.rules.put(
                Rule(
                    id=core.new_id(),
                    group_id=group.id,
                    project_id=project_id,
                    direction="egress",
                    ethertype=ethertype,
                )
            )
        return group

    # ---- volumes ----

    def change_volume(self, volume: Volume, status: str) -> Volume:
        """Begin a change of the volume. status: Cinder's word for the change."""
        core, now = self._core, self._core.now()
        due_at = now + core.config.volume_s
        volume = evolve(volume, status=status, updated_at=now, due_at=due_at)
        core.state.volumes.put(volume)
        self._volumes.wake(volume.id)
        return volume

    async def _volume_turn(self, volume_id: str) -> float | None:
        core, state = self._core, self._core.state
        volume = state.volumes.get(volume_id)
        if volume is None:
            return None
        wait = volume.due_at - core.now()
        if wait > 0:
            return wait
        server_id, device = volume.server_id or "", volume.device or ""
        try:
            if volume.status == "creating":
                self._volume_is(volume_id, "creating", "available")
            elif volume.status == "attaching":
                await self._guests.attach(server_id, volume_id, device)
                self._volume_is(volume_id, "attaching", "in-use")
            elif volume.status == "detaching":
                await self._guests.detach(server_id, volume_id)
                self._volume_is(volume_id, "detaching", "available")
            elif volume.status == "deleting":
                await self._guests.destroy_volume(volume_id)
                state.volumes.remove(volume_id)
                core.gone(volume)
        except GuestError as error:
            log.warn("Volume {id} failed: {error}", id=volume_id, error=str(error))
            self._volume_is(volume_id, volume.status, "error")
        return None

    def _volume_is(self, volume_id: str, before: str, status: str) -> None:
        """Write the status that was reached, unless the volume was changed meanwhile."""
        volume: Volume | None = self._core.state.volumes.get(volume_id)
        if volume is None or volume.status != before:
            return
        free = status in ("available", "error")
        self._core.state.volumes.put(
            evolve(
                volume,
                status=status,
                server_id=None if free else volume.server_id,
                device=None if free else volume.device,
                updated_at=self._core.now(),
            )
        )


def _mac(address: str) -> str:
    a, b, c, d = (int(part) for part in address.split("."))
    return f"fa:16:{a:02x}:{b:02x}:{c:02x}:{d:02x}"
