"""Two installations on one host with the same network of the embedded cloud."""

from __future__ import annotations

from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, own_network


class TwoInstallationsTests(DaemonCase):
    """Neither takes an address of the other. Taken ports: tests/unit/embedded/test_machines."""

    async def cluster(self, daemon: Daemon) -> None:
        """Make a cluster of three machines that is Active."""
        tenant = Tenant(daemon.endpoints)
        await tenant.until_active(await tenant.new_cluster("mine", 2))

    async def addresses(self, daemon: Daemon) -> list[str]:
        """The addresses of the cluster's machines, whose servers are ACTIVE."""
        tenant = Tenant(daemon.endpoints)
        self.assertEqual({each["status"] for each in await tenant.servers()}, {"ACTIVE"})
        clusters = (await tenant.done("GET", "/clusters"))["clusters"]
        groups = [group for cluster in clusters for group in cluster["node_groups"]]
        return [machine["internal_ip"] for group in groups for machine in group["instances"]]

    async def test_both_work_side_by_side(self) -> None:
        """Their machines have different addresses, also after kills and starts in another order."""
        network = own_network()
        first, second = (self.daemon(embedded__network=network) for _ in range(2))
        for daemon in (first, second):
            await daemon.start()
            await self.cluster(daemon)
        addresses = [*await self.addresses(first), *await self.addresses(second)]
        self.assertEqual(len(set(addresses)), 6)
        await first.kill()
        await second.kill()
        for daemon in (second, first):
            await daemon.start()
        again = [*await self.addresses(first), *await self.addresses(second)]
        self.assertEqual(again, addresses)
