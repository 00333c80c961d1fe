"""The image registry: it is kept as metadata of the cloud's images (behaviour, Part I 14)."""

from __future__ import annotations

from collections.abc import Sequence

from klein import Klein

from svcd.errors import ImageNotRegistered, InvalidReference, NotFound
from svcd.model import wire
from svcd.model.cloud import Image
from svcd.model.requests import RegisterImage, Tags
from svcd.ports.cloud import Access, CloudError, CloudSession
from svcd.ports.faults import Fault
from svcd.resources._call import Call
from svcd.resources._query import Query, paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices

_TAGS = Query("tags", "only images with all these tags", many=True, always=True)
_LIST = (*paged("name", "username", "status"), _TAGS)


class Images:
    """The registry of images: their login users and tags."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._cloud = services.cloud
        self._store = services.store

    def _session(self, call: Call) -> CloudSession:
        return self._cloud.session(Access(tenant_id=call.tenant_id, token=call.caller.token))

    async def _image(self, call: Call, image_id: str) -> Image:
        try:
            return await self._session(call).image(image_id)
        except CloudError as error:
            if error.kind is Fault.NOT_FOUND:
                raise NotFound.of("image", image_id) from None
            raise

    async def _exists(self, call: Call, image_id: str) -> None:
        await self._image(call, image_id)

    @route(app, "GET", "/images", returns="images", query=_LIST)
    async def list(self, call: Call) -> Sequence[wire.Image]:
        """List the registered images that have all requested tags."""
        wanted = set(call.query["tags"])
        shown = [
            wire.Image.of(image)
            for image in await self._session(call).images()
            if wire.is_registered(image) and wanted <= set(wire.image_tags(image))
        ]
        page = call.page
        for name, value in page.filters.items():
            shown = [image for image in shown if getattr(image, name) == value]
        if page.marker is not None:
            ids = [image.id for image in shown]
            if page.marker not in ids:
                raise NotFound.of("image", page.marker)
            shown = shown[ids.index(page.marker) + 1 :]
        return shown if page.limit is None else shown[: page.limit]

    @route(app, "GET", "/images/<image_id>", returns="image", raises=(ImageNotRegistered,))
    async def get(self, call: Call, image_id: str) -> wire.Image:
        """Return one registered image."""
        image = await self._image(call, image_id)
        if not wire.is_registered(image):
            raise ImageNotRegistered(
                f"image {image_id!r} is not registered: register it by POST images/{image_id}"
            )
        return wire.Image.of(image)

    @route(app, "POST", "/images/<image_id>", body=RegisterImage, returns="image", exists="_exists")
    async def register(self, call: Call, image_id: str, body: RegisterImage) -> wire.Image:
        """Register an image, or overwrite its registration.

        A new registration has no tags: tags of an image that is not registered are removed.
        """
        image = await self._image(call, image_id)
        given = {wire.IMAGE_USERNAME: body.username}
        gone = [wire.IMAGE_DESCRIPTION]
        if body.description:
            given[wire.IMAGE_DESCRIPTION] = body.description
            gone = []
        if not wire.is_registered(image):
            gone += [name for name in image.properties if name.startswith(wire.IMAGE_TAG)]
        return await self._change(call, image_id, given, gone)

    @route(app, "DELETE", "/images/<image_id>", raises=(InvalidReference,))
    async def unregister(self, call: Call, image_id: str) -> None:
        """Remove the registration of an image and its tags. Idempotent."""
        image = await self._image(call, image_id)
        user = await self._store.read(lambda tx: tx.clusters.uses_image(call.tenant_id, image_id))
        if user is not None:
            raise InvalidReference(
                f"image {image_id!r} is used by cluster {user!r}: delete the cluster first"
            )
        kept = [
            name
            for name in image.properties
            if name in (wire.IMAGE_USERNAME, wire.IMAGE_DESCRIPTION)
            or name.startswith(wire.IMAGE_TAG)
        ]
        if kept:
            await self._change(call, image_id, {}, kept)

    @route(app, "POST", "/images/<image_id>/tag", body=Tags, returns="image", exists="_exists")
    async def tag(self, call: Call, image_id: str, body: Tags) -> wire.Image:
        """Add tags to an image. Idempotent."""
        given = {wire.IMAGE_TAG + tag: wire.IMAGE_TAG_VALUE for tag in body.tags}
        return await self._change(call, image_id, given, [])

    @route(app, "POST", "/images/<image_id>/untag", body=Tags, returns="image", exists="_exists")
    async def untag(self, call: Call, image_id: str, body: Tags) -> wire.Image:
        """Remove tags from an image. Idempotent."""
        return await self._change(call, image_id, {}, [wire.IMAGE_TAG + tag for tag in body.tags])

    async def _change(
        self, call: Call, image_id: str, given: dict[str, str], gone: Sequence[str]
    ) -> wire.Image:
        changed = await self._session(call).set_image_properties(image_id, given, gone)
        return wire.Image.of(changed)
