"""Cinder: volumes, and their attachment by Nova."""

from __future__ import annotations

from svcd.model.cloud import VolumeState
from svcd.model.ids import ClusterId
from svcd.ports.faults import Fault
from tests.contract.cloud import CloudCase


class VolumeContract(CloudCase):
    async def until_volume(self, cluster_id: ClusterId, status: str) -> VolumeState:
        async def there() -> bool:
            return [v.status for v in await self.session.volumes(cluster_id)] == [status]

        await self.until(f"volume {status}", there)
        return (await self.session.volumes(cluster_id))[0]

    async def check_the_life_of_a_volume(self) -> None:
        """Made, attached (twice is no fault), busy while attached, detached, gone."""
        cluster_id = ClusterId(self.unique("cluster"))
        metadata = {"svcd_cluster_id": cluster_id, "svcd_volume_index": "0"}
        volume_id = await self.session.create_volume(self.unique("volume"), 1, metadata)
        volume = await self.until_volume(cluster_id, "available")
        self.assertEqual((volume.id, volume.size_gib), (volume_id, 1))
        self.assertEqual(volume.metadata, metadata)
        server = await self.active_server(cluster_id)
        device = await self.session.attach_volume(server.id, volume_id)
        self.assertTrue(device.startswith("/dev/"))
        volume = await self.until_volume(cluster_id, "in-use")
        self.assertEqual((volume.attached_to, volume.device), (server.id, device))
        self.assertEqual(await self.session.attach_volume(server.id, volume_id), device)
        error = await self.refused(self.session.delete_volume(volume_id))
        self.assertEqual(error.kind, Fault.BUSY)
        await self.session.detach_volume(server.id, volume_id)
        await self.until_volume(cluster_id, "available")
        await self.session.detach_volume(server.id, volume_id)
        await self.without_server(server.id)
        await self.session.delete_volume(volume_id)

        async def gone() -> bool:
            return list(await self.session.volumes(cluster_id)) == []

        await self.until("volume gone", gone)
        await self.session.delete_volume(volume_id)

    async def check_usage_follows_a_volume(self) -> None:
        """One volume of one GiB, until it is deleted."""
        before = await self.session.volume_usage()
        cluster_id = ClusterId(self.unique("cluster"))
        metadata = {"svcd_cluster_id": cluster_id}
        volume_id = await self.session.create_volume(self.unique("volume"), 1, metadata)
        await self.until_volume(cluster_id, "available")
        after = await self.session.volume_usage()
        more = {name: each.used - before[name].used for name, each in after.items()}
        self.assertEqual(more, {"volumes": 1, "volume_gib": 1})
        await self.session.delete_volume(volume_id)

        async def as_before() -> bool:
            return dict(await self.session.volume_usage()) == dict(before)

        await self.until("the volume's quota to be free", as_before)

    async def check_an_unknown_volume_cannot_be_attached(self) -> None:
        """NOT_FOUND."""
        server = await self.active_server(ClusterId(self.unique("cluster")))
        unknown = "00000000-0000-4000-8000-00000000dead"
        error = await self.refused(self.session.attach_volume(server.id, unknown))
        self.assertEqual(error.kind, Fault.NOT_FOUND)
        await self.without_server(server.id)
