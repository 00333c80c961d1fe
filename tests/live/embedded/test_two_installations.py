"""Two installations on one host with the same network of the embedded cloud."""

from __future__ import annotations

import sys
from typing import Any

from svcd.clients.ssh import SshRemote
from svcd.model.secret import Secret
from svcd.ports.machines import Host
from svcd.settings import Ssh
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, own_network, reactor, until

_BOOT_S = 30.0
"""Longest time until a machine has its port after the other installation has freed it."""
_LISTEN = """\
setsid nohup {python} -c '
import os, socket, time
with socket.create_server((os.environ["SVCD_MACHINE_ADDRESS"], 8020)):
    open("listens", "w").close()
    time.sleep(600)
' >log 2>&1 </dev/null &
while ! test -e listens; do sleep 0.05; done
"""
"""A daemon of a machine, which lives on when svcd dies."""


class TwoInstallationsTests(DaemonCase):
    """Neither takes or needs an address of the other one."""

    async def installations(self) -> tuple[Daemon, Daemon]:
        """Two daemons that run, in state folders of their own."""
        network = own_network()
        first, second = (self.daemon(embedded__network=network) for _ in range(2))
        for daemon in (first, second):
            await daemon.start()
        return first, second

    async def cluster(self, daemon: Daemon) -> str:
        """The id of a new cluster of three machines that is Active."""
        tenant = Tenant(daemon.endpoints)
        cluster_id = await tenant.new_cluster("mine", 2)
        await tenant.until_active(cluster_id)
        return cluster_id

    async def servers(self, daemon: Daemon) -> dict[str, Any]:
        """The servers of an installation by name."""
        return {server["name"]: server for server in await Tenant(daemon.endpoints).servers()}

    async def statuses(self, daemon: Daemon) -> dict[str, str]:
        """The statuses of the servers without their group's name in front."""
        servers = await self.servers(daemon)
        return {name.partition("-")[2]: server["status"] for name, server in servers.items()}

    async def addresses(self, daemon: Daemon) -> list[str]:
        """The addresses of the cluster's machines, the master's first."""
        clusters = (await Tenant(daemon.endpoints).done("GET", "/clusters"))["clusters"]
        groups = [group for cluster in clusters for group in cluster["node_groups"]]
        return [machine["internal_ip"] for group in groups for machine in group["instances"]]

    async def listen_on(self, daemon: Daemon, address: str) -> None:
        """Start a program on a machine that listens on the machine's address."""
        key = Secret((daemon.state / "cloud" / "keys" / "demo").read_text())
        host = Host(address=address, port=2222, user="svcd", private_key=key)
        remote = SshRemote(reactor, reactor, Ssh())
        try:
            result = await remote.run(host, _LISTEN.format(python=sys.executable), timeout_s=20)
        finally:
            await remote.close()
        self.assertEqual(result.exit_code, 0, result)

    async def test_both_work_side_by_side(self) -> None:
        """Their machines have different addresses, also after kills and starts in another order."""
        first, second = await self.installations()
        await self.cluster(first)
        await self.cluster(second)
        addresses = [*await self.addresses(first), *await self.addresses(second)]
        self.assertEqual(len(set(addresses)), 6)
        await first.kill()
        await second.kill()
        for daemon in (second, first):
            await daemon.start()
            self.assertEqual({*(await self.statuses(daemon)).values()}, {"ACTIVE"})
        again = [*await self.addresses(first), *await self.addresses(second)]
        self.assertEqual(again, addresses)

    async def test_machines_of_a_dead_daemon(self) -> None:
        """An address is free when nothing listens there; its first machine waits for its end."""
        first, second = await self.installations()
        await self.cluster(first)
        master, *workers = await self.addresses(first)
        await self.listen_on(first, master)
        await first.kill()
        cluster_id = await self.cluster(second)
        taken = await self.addresses(second)
        self.assertNotIn(master, taken)
        self.assertLess(set(workers), set(taken))
        expected = {"master-001": "ACTIVE", "worker-001": "ERROR", "worker-002": "ERROR"}
        for _ in range(2):
            await first.start()
            self.assertEqual(await self.statuses(first), expected)
            await first.kill()
        await first.start()
        fault = (await self.servers(first))["mine-worker-001"]["fault"]["message"]
        port = f"{workers[0]}:2222"
        self.assertIn(f"the port {port} is taken: process {second.program.pid} (", fault)
        self.assertEqual({*(await self.statuses(second)).values()}, {"ACTIVE"})
        other = Tenant(second.endpoints)
        await other.done("DELETE", f"/clusters/{cluster_id}")
        await other.until_gone(cluster_id)

        async def boots() -> bool:
            return {*(await self.statuses(first)).values()} == {"ACTIVE"}

        await until(boots, "all machines", _BOOT_S)
        self.assertEqual(await self.addresses(first), [master, *workers])
