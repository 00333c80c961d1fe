"""Nova: flavors, key pairs, servers, groups, limits."""

from __future__ import annotations

from svcd.model.cloud import NewServer
from svcd.model.ids import ClusterId
from svcd.ports.faults import Fault
from svcd.runtime.keys import new_key_pair
from tests.contract.cloud import CloudCase


class ComputeContract(CloudCase):
    async def check_flavors_have_sizes(self) -> None:
        """Ids are texts, memory is MiB."""
        flavors = {flavor.id: flavor for flavor in await self.session.flavors()}
        self.assertEqual(flavors[self.flavor_id].ram_mib, 512)
        self.assertEqual(flavors[self.flavor_id].vcpus, 1)

    async def check_a_key_pair_by_name(self) -> None:
        """A missing one is NOT_FOUND."""
        found = await self.session.keypair(self.keypair)
        self.assertTrue(found.public_key.startswith("ssh-"))
        error = await self.refused(self.session.keypair("no-such-key"))
        self.assertEqual(error.kind, Fault.NOT_FOUND)

    async def check_the_life_of_a_server(self) -> None:
        """Found by its metadata, has a fixed address, goes away; a second delete is no fault."""
        cluster_id = ClusterId(self.unique("cluster"))
        server = await self.active_server(cluster_id, keypair=self.keypair, user_data="#!/bin/sh\n")
        self.assertEqual([kind for _, kind in server.addresses], ["fixed"])
        self.assertTrue(server.host_id)
        found = await self.session.servers(cluster_id)
        self.assertEqual([each.id for each in found], [server.id])
        self.assertEqual(found[0].metadata["svcd_instance_id"], "i")
        self.assertEqual(list(await self.session.servers(ClusterId("another"))), [])
        await self.without_server(server.id)
        await self.session.delete_server(server.id)

    async def check_refused_servers(self) -> None:
        """An unknown image, flavor or key pair is the request's fault."""
        good = NewServer(name="x", image_id=self.image_id, flavor_id=self.flavor_id)
        unknown = "00000000-0000-4000-8000-00000000dead"
        for bad in (
            NewServer(name="x", image_id=unknown, flavor_id=good.flavor_id),
            NewServer(name="x", image_id=good.image_id, flavor_id="99"),
            NewServer(name="x", image_id=good.image_id, flavor_id="1", keypair="no-such-key"),
            NewServer(name="x", image_id=good.image_id, flavor_id="1", network_id=unknown),
        ):
            error = await self.refused(self.session.create_server(bad))
            self.assertEqual((error.kind, error.service), (Fault.REFUSED, "compute"), error.text)

    async def check_an_unknown_server_is_not_found(self) -> None:
        """By show."""
        error = await self.refused(self.session.server("00000000-0000-4000-8000-00000000dead"))
        self.assertEqual(error.kind, Fault.NOT_FOUND)

    async def check_the_life_of_a_key_pair(self) -> None:
        """A second one of the name is BUSY; a second removal is no fault."""
        name, compute = self.unique("pair"), self.compute
        public, _ = new_key_pair("")
        await compute.create_keypair(name, public)
        self.assertEqual((await compute.keypair(name)).public_key.split()[1], public.split()[1])
        error = await self.refused(compute.create_keypair(name, public))
        self.assertEqual(error.kind, Fault.BUSY)
        for _ in range(2):
            await compute.delete_keypair(name)
        error = await self.refused(compute.keypair(name))
        self.assertEqual(error.kind, Fault.NOT_FOUND)

    async def check_the_snapshot_of_a_stopped_server(self) -> None:
        """An image of the server's project with the given properties, found by its name."""
        name, compute = self.unique("image"), self.compute
        server = await self.active_server(ClusterId(self.unique("cluster")))
        await compute.set_metadata(server.id, {"beat": "1"})
        self.assertEqual((await compute.server(server.id)).metadata["beat"], "1")
        self.assertTrue(isinstance(await compute.console(server.id, 5), str))
        await compute.stop_server(server.id)

        async def stopped() -> bool:
            return (await compute.server(server.id)).status == "SHUTOFF"

        await self.until("server SHUTOFF", stopped)
        error = await self.refused(compute.stop_server(server.id))
        self.assertEqual(error.kind, Fault.BUSY)
        await compute.create_image(server.id, name, {"svcd_bake": "unfinished"})
        (image,) = await self.images.images(name)
        self.assertEqual(image.properties["svcd_bake"], "unfinished")
        self.assertEqual(image.properties["instance_uuid"], server.id)
        self.assertIn(image.status, ("QUEUED", "SAVING", "ACTIVE"))
        for _ in range(2):
            await self.images.delete(image.id)
        self.assertEqual(list(await self.images.images(name)), [])
        await self.without_server(server.id)

    async def check_anti_affinity_spreads_servers(self) -> None:
        """Two members have different hosts; the group is found by name, and goes."""
        name = self.unique("group")
        group_id = await self.session.create_server_group(name)
        self.assertEqual(list(await self.session.find_server_groups(name)), [group_id])
        cluster_id = ClusterId(self.unique("cluster"))
        one = await self.active_server(cluster_id, server_group_id=group_id)
        two = await self.active_server(cluster_id, server_group_id=group_id)
        self.assertTrue(one.host_id != two.host_id)
        await self.without_server(one.id)
        await self.without_server(two.id)
        await self.session.delete_server_group(group_id)
        await self.session.delete_server_group(group_id)
        self.assertEqual(list(await self.session.find_server_groups(name)), [])

    async def check_quota_tells_what_is_left(self) -> None:
        """Of servers, volumes and floating IPs."""
        quota = await self.session.quota()
        for left in (quota.instances, quota.cores, quota.ram_mib, quota.volumes):
            self.assertTrue(left is None or left > 0)

    async def check_usage_follows_a_server(self) -> None:
        """Servers, processors and memory of its flavor; limits stay."""
        before = await self.session.server_usage()
        server = await self.active_server(ClusterId(self.unique("cluster")))
        after = await self.session.server_usage()
        more = {name: each.used - before[name].used for name, each in after.items()}
        self.assertEqual(more, {"instances": 1, "cores": 1, "ram_mib": 512})
        await self.without_server(server.id)
        self.assertEqual(dict(await self.session.server_usage()), dict(before))
