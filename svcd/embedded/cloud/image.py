"""Glance v2: images and their properties. Source: its API.

The built-in images are public. Every user may change them, unlike those of a real operator.
"""

from __future__ import annotations

from typing import Any

import msgspec
from attrs import evolve
from klein import Klein

from svcd.embedded.cloud.openstack import TITLES, Call, Service, page, text_of
from svcd.embedded.cloud.records import Image
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route

_PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
_BUILT_IN_KEYS = {
    "checksum",
    "container_format",
    "created_at",
    "disk_format",
    "file",
    "id",
    "locations",
    "min_disk",
    "min_ram",
    "name",
    "os_hash_algo",
    "os_hash_value",
    "os_hidden",
    "owner",
    "protected",
    "schema",
    "self",
    "size",
    "status",
    "stores",
    "tags",
    "updated_at",
    "virtual_size",
    "visibility",
}


class _Operation(msgspec.Struct):
    op: str
    path: str
    value: Any = None


class ImageService(Service):
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
    @route(app, ["GET"], "/versions")
    def versions(self, call: Call) -> Reply:
        href = f"{self._core.public_url}/image/v2/"
        current = {"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}
        old = {"id": "v2.0", "status": "SUPPORTED", "links": [{"rel": "self", "href": href}]}
        return Reply(status=300, body={"versions": [current, old]})

    @route(app, ["GET"], "/v2/schemas/image")
    def schema(self, call: Call) -> Reply:
        return Reply(body={"name": "image", "properties": {}, "additionalProperties": {}})

    def _visible(self, call: Call) -> list[Image]:
        return [
            image
            for image in self._core.images()
            if image.visibility in ("public", "community") or image.owner == call.project
        ]

    def _own(self, call: Call, image_id: str) -> Image:
        found = self._core.image(image_id)
        if found is None or (found.visibility == "private" and found.owner != call.project):
            raise Refusal(404, f"No image found with ID {image_id}")
        return found

    def _changeable(self, call: Call, image_id: str) -> Image:
        image = self._own(call, image_id)
        if not image.builtin and image.owner != call.project and "admin" not in call.me.roles:
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
            "min_ram": image.min_ram_mib,
            "size": image.size,
            "virtual_size": None,
            "disk_format": "raw",
            "container_format": "bare",
            "checksum": None,
            "os_hash_algo": None,
            "os_hash_value": None,
            "tags": list(image.tags),
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
        rows = [self._body(image) for image in self._visible(call)]
        for key, values in call.query.items():
            if key == "tag":
                rows = [row for row in rows if set(values) <= set(row["tags"])]
            elif key == "id" and values[-1].startswith("in:"):
                wanted = values[-1][3:].split(",")
                rows = [row for row in rows if row["id"] in wanted]
            elif key not in ("limit", "marker", "sort", "sort_key", "sort_dir", "member_status"):
                if key == "visibility" and values[-1] == "all":
                    continue
                rows = [row for row in rows if str(row.get(key, "")) == values[-1]]
        shown, following = page(call, rows, lambda row: str(row["id"]))
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
        if name in _BUILT_IN_KEYS:
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

    @route(app, ["PUT"], "/v2/images/<image_id>/tags/<tag>")
    def add_tag(self, call: Call, image_id: str, tag: str) -> Reply:
        image = self._changeable(call, image_id)
        tags = (*(t for t in image.tags if t != tag), tag)
        self._core.state.images.put(evolve(image, tags=tags))
        return Reply(status=204)

    @route(app, ["DELETE"], "/v2/images/<image_id>/tags/<tag>")
    def remove_tag(self, call: Call, image_id: str, tag: str) -> Reply:
        image = self._changeable(call, image_id)
        if tag not in image.tags:
            raise Refusal(404, "The resource could not be found.")
        tags = tuple(t for t in image.tags if t != tag)
        self._core.state.images.put(evolve(image, tags=tags))
        return Reply(status=204)
