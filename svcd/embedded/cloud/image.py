"""Glance v2: images and their properties. Source: its API.

The built-in images are public. Every user may change them, unlike those of a real operator.
"""

from __future__ import annotations

from typing import Any

import msgspec
from attrs import evolve
from klein import Klein

from svcd.embedded.cloud.openstack import (
    TITLES,
    OpenStackService,
    caller,
    page,
    project_of,
    text_of,
)
from svcd.embedded.cloud.records import Image
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route

_PATCH_TYPE = "application/openstack-images-v2.1-json-patch"


class _Operation(msgspec.Struct):
    op: str
    path: str
    value: Any = None


class ImageService(OpenStackService):
    """Mounted at /image."""

    app = Klein()
    where = "image"

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open."""
        if len(segments) > 1:
            self.authenticate(call, "This server could not verify that you are authorized.")

    def envelope(self, refusal: Refusal) -> Reply:
        """{"message", "code": "403 Forbidden", "title"} for every status, 401 too."""
        title = TITLES.get(refusal.status, "Internal Server Error")
        code = f"{refusal.status} {title}"
        body = {"message": refusal.message, "code": code, "title": title}
        return Reply(status=refusal.status, body=body, headers=self.headers(refusal))

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        href = f"{self._core.public_url}/image/v2/"
        current = {"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
        old = {"id": "v2.0", "status": "SUPPORTED", "links": [{"rel": "self", "href": href}]}
        return Reply(status=300, body={"versions": [current, old]})

    def _own(self, call: Call, image_id: str) -> Image:
        image = self._core.image(image_id)
        if image is None or not _visible(image, project_of(call)):
            raise Refusal(404, f"No image found with ID {image_id}")
        return image

    def _changeable(self, call: Call, image_id: str) -> Image:
        image = self._own(call, image_id)
        if (
            not image.builtin
            and image.owner != project_of(call)
            and "admin" not in caller(call).roles
        ):
            raise Refusal(403, "You do not own this image.")
        return image

    def _body(self, image: Image) -> dict[str, Any]:
        image = self._core.as_now(image)
        return {
            "id": image.id,
            "name": image.name,
            "status": image.status,
            "visibility": image.visibility,
            "owner": image.owner,
            "protected": False,
            "os_hidden": False,
            "min_disk": image.min_disk_gib,
            "min_ram": 0,
            "size": 0,
            "virtual_size": None,
            "disk_format": "raw",
            "container_format": "bare",
            "checksum": None,
            "os_hash_algo": None,
            "os_hash_value": None,
            "tags": [],
            "created_at": text_of(image.created_at, "z"),
            "updated_at": text_of(image.updated_at, "z"),
            "self": f"/v2/images/{image.id}",
            "file": f"/v2/images/{image.id}/file",
            "schema": "/v2/schemas/image",
            "stores": "file",
            **image.properties,
        }

    @route(app, ["GET"], "/v2/images")
    def images(self, call: Call) -> Reply:
        images = self._core.images()
        rows = [self._body(image) for image in images if _visible(image, project_of(call))]
        shown, following = page(call, rows)
        body = {"images": shown, "first": "/v2/images", "schema": "/v2/schemas/images"}
        if following:
            body["next"] = f"/v2/images{following}"
        return Reply(body=body)

    @route(app, ["GET"], "/v2/images/<image_id>")
    def image(self, call: Call, image_id: str) -> Reply:
        return Reply(body=self._body(self._own(call, image_id)))

    @route(app, ["PATCH"], "/v2/images/<image_id>")
    def change(self, call: Call, image_id: str) -> Reply:
        if call.header("Content-Type").partition(";")[0] != _PATCH_TYPE:
            accepted = {"Accept-Patch": _PATCH_TYPE}
            raise Refusal(415, "Unsupported Content-Type", headers=accepted)
        image = self._changeable(call, image_id)
        properties = dict(image.properties)
        for operation in call.read(list[_Operation], "Invalid patch"):
            image = self._apply(image, properties, operation)
        image = evolve(image, properties=properties, updated_at=self._core.now())
        self._core.state.images.put(image)
        return Reply(body=self._body(image))

    @route(app, ["DELETE"], "/v2/images/<image_id>")
    def delete(self, call: Call, image_id: str) -> Reply:
        image = self._changeable(call, image_id)
        if image.builtin:
            raise Refusal(403, f"Image {image_id} is protected and cannot be deleted.")
        self._core.state.images.remove(image_id)
        return Reply(status=204)

    def _apply(self, image: Image, properties: dict[str, str], operation: _Operation) -> Image:
        """Apply one operation: change custom `properties` in place, return the changed image."""
        if not operation.path.startswith("/") or "/" in operation.path[1:]:
            text = f"Invalid JSON pointer for this resource: '{operation.path}'"
            raise Refusal(400, text)
        name = operation.path[1:].replace("~1", "/").replace("~0", "~")
        if operation.op not in ("add", "replace", "remove"):
            raise Refusal(400, f"Unable to find '{operation.op}' in JSON Schema change")
        value = operation.value
        if name in ("name", "visibility") and operation.op == "replace":
            if not isinstance(value, str):
                raise Refusal(400, f"{value!r} is not of type 'string'")
            if name == "name":
                return evolve(image, name=value)
            return evolve(image, visibility=value)
        if name in self._body(evolve(image, properties={})):
            raise Refusal(403, f"Attribute '{name}' is read-only.")
        if operation.op != "add" and name not in properties:
            raise Refusal(409, f"Property {name} does not exist.")
        if operation.op == "remove":
            del properties[name]
            return image
        if not isinstance(value, str):
            text = f"Provided object does not match schema 'image': {value!r} is not 'string'"
            raise Refusal(400, text)
        properties[name] = value
        return image


def _visible(image: Image, project_id: str) -> bool:
    """Whether users of the project see the image."""
    return image.visibility in ("public", "community") or image.owner == project_id
