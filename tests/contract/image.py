"""Glance: images and their properties."""

from __future__ import annotations

from svcd.ports.faults import Fault
from tests.contract.cloud import CloudCase


class ImageContract(CloudCase):
    async def check_images_are_listed_and_shown(self) -> None:
        """The list holds what show tells."""
        shown = await self.session.image(self.image_id)
        self.assertEqual(shown.status, "ACTIVE")
        self.assertIn(shown, await self.session.images())

    async def check_an_unknown_image_is_not_found(self) -> None:
        """By show."""
        error = await self.refused(self.session.image("00000000-0000-4000-8000-00000000dead"))
        self.assertEqual(error.kind, Fault.NOT_FOUND)

    async def check_an_id_is_never_a_path(self) -> None:
        """Whatever a caller names an image, no other path of the service is asked."""
        mine = self.image_id
        for odd in (
            "é",
            " a",
            "..",
            ".",
            "a b",
            f"{mine}?x",
            f"{mine}#x",
            f"{mine}/file",
            f"x/../{mine}",
        ):
            error = await self.refused(self.session.image(odd))
            self.assertEqual(error.kind, Fault.NOT_FOUND, odd)

    async def check_a_property_named_twice_is_removed_once(self) -> None:
        """The service would refuse the second removal."""
        await self.session.set_image_properties(self.image_id, {"_svc_tag_twice": "True"}, [])
        twice = ["_svc_tag_twice", "_svc_tag_twice"]
        image = await self.session.set_image_properties(self.image_id, {}, twice)
        self.assertNotIn("_svc_tag_twice", image.properties)

    async def check_properties_are_set_and_removed(self) -> None:
        """Twice the same is no fault; names with a slash, a tilde or a dot are kept."""
        set_ = {"_svc_username": "debian", "_svc_tag_3.5.0": "True", "odd/~name": "é"}
        for _ in range(2):
            image = await self.session.set_image_properties(self.image_id, set_, ["absent"])
            self.assertEqual({k: image.properties.get(k) for k in set_}, set_)
        for _ in range(2):
            image = await self.session.set_image_properties(self.image_id, {}, list(set_))
            self.assertEqual(set(set_) & set(image.properties), set())
        self.assertEqual(await self.session.image(self.image_id), image)
