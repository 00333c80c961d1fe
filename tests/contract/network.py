"""Neutron: networks, security groups, floating IPs."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.model.cloud import Opening
from svcd.model.ids import ClusterId
from svcd.ports.faults import Fault
from tests.contract.cloud import CloudCase

SSH = Opening(22, "0.0.0.0/0")


class NetworkContract(CloudCase):
    async def check_networks_are_inner_and_external(self) -> None:
        """Exactly one inner one, so that servers need not name it."""
        networks = await self.session.networks()
        self.assertIn(self.pool, [each.name for each in networks if each.external])
        self.assertEqual(len([each for each in networks if not each.external]), 1)

    async def check_a_security_group_is_adopted(self) -> None:
        """The second create gives the same group with other openings; delete is idempotent."""
        name = self.unique("svcd")
        group_id = await self.session.create_security_group(name, "text", [SSH])
        self.assertEqual(await self.openings(name), [SSH])
        everywhere, office = Opening(8088, "0.0.0.0/0"), Opening(8088, "192.0.2.0/24")
        for wanted, others in (
            ([SSH, everywhere], ()),
            ([SSH, office], ()),
            ([Opening(22, "192.0.2.0/24")], ()),  # 8088 is nothing of this call: it stays
            ([SSH], (8088, 9870)),
        ):
            again = await self.session.create_security_group(name, "text", wanted, others)
            self.assertEqual(again, group_id)
            kept = [office] if wanted[0] != SSH else []
            self.assertEqual(await self.openings(name), [*wanted, *kept])
        self.assertEqual(list(await self.session.find_security_groups(name)), [group_id])
        await self.session.delete_security_group(group_id)
        await self.session.delete_security_group(group_id)
        self.assertEqual(list(await self.session.find_security_groups(name)), [])

    async def openings(self, name: str) -> Sequence[Opening]:
        """The openings of a group, as the service lists them."""
        return (await self.session.openings(name))[name]

    async def check_a_group_in_use_is_busy(self) -> None:
        """It can go when its server has gone."""
        group_id = await self.session.create_security_group(self.unique("svcd"), "", [SSH])
        cluster_id = ClusterId(self.unique("cluster"))
        server = await self.active_server(cluster_id, security_groups=(group_id,))
        error = await self.refused(self.session.delete_security_group(group_id))
        self.assertEqual(error.kind, Fault.BUSY)
        await self.without_server(server.id)
        await self.session.delete_security_group(group_id)

    async def check_the_life_of_a_floating_ip(self) -> None:
        """Made in a pool by name, tied to a server, found by its description, gone."""
        description = self.unique("svcd:c:i")
        ip = await self.session.create_floating_ip(self.pool, description)
        self.assertEqual((ip.port_id, ip.description), (None, description))
        server = await self.active_server(ClusterId(self.unique("cluster")))
        await self.session.associate_floating_ip(ip.id, server.id)
        found = [f for f in await self.session.floating_ips() if f.description == description]
        self.assertEqual([(f.id, f.address) for f in found], [(ip.id, ip.address)])
        self.assertTrue(found[0].port_id)

        async def seen() -> bool:
            addresses = (await self.session.server(server.id)).addresses
            return (ip.address, "floating") in addresses

        await self.until("floating address shown", seen)
        await self.without_server(server.id)
        found = [f for f in await self.session.floating_ips() if f.description == description]
        self.assertEqual([f.port_id for f in found], [None])
        await self.session.delete_floating_ip(ip.id)
        await self.session.delete_floating_ip(ip.id)

    async def check_an_unknown_pool_is_not_found(self) -> None:
        """Before anything is made."""
        error = await self.refused(self.session.create_floating_ip("no-such-pool", ""))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
