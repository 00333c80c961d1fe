"""Glance v2: images, and their custom properties as the registry keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from svcd.clients.rest import Rest, RestError, shaped
from svcd.model.cloud import Image
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

_PATCH_TYPE = "application/openstack-images-v2.1-json-patch"
_PAGE = 500
_TRIES = 3

_BUILT_IN = frozenset(
    {
        "checksum", "container_format", "created_at", "direct_url",
        "disk_format", "file", "id", "locations", "min_disk", "min_ram", "name", "os_hash_algo",
        "os_hash_value", "os_hidden", "owner", "protected", "schema", "self", "size", "status",
        "stores", "tags", "updated_at", "virtual_size", "visibility", "deleted", "deleted_at",
    }
)  # fmt: skip


class Images:
    """One tenant's images."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def images(self) -> Sequence[Image]:
        """All images the tenant sees."""
        return await self._rest.pages("/images", "images", _image, limit=_PAGE)

    async def image(self, image_id: str) -> Image:
        """Raises CloudError NOT_FOUND."""
        return _shown(await self._rest.call("GET", _path(image_id)))

    async def change(self, image_id: str, set_: Mapping[str, str], remove: Sequence[str]) -> Image:
        """Set and remove properties; looked up first, because removing an absent one is refused."""
        for last in (*(False,) * (_TRIES - 1), True):
            image = await self.image(image_id)
            operations: list[dict[str, Any]] = [
                {"op": "add", "path": _pointer(name), "value": value}
                for name, value in set_.items()
                if image.properties.get(name) != value
            ]
            operations += [
                {"op": "remove", "path": _pointer(name)}
                for name in dict.fromkeys(remove)
                if name in image.properties and name not in set_
            ]
            if not operations:
                return image
            try:
                body = await self._rest.call(
                    "PATCH",
                    _path(image_id),
                    operations,
                    headers={"Content-Type": _PATCH_TYPE},
                )
            except RestError as error:
                if last or error.status != 409:  # somebody else changed it between the two calls
                    raise
                continue
            return _shown(body)
        raise AssertionError("the last try returns or raises")


def _path(image_id: str) -> str:
    """Raises CloudError NOT_FOUND: callers choose the id, and clients of HTTP resolve dots.

    A quoted slash is one all the same behind the servers that Glance runs under.
    """
    if image_id in ("", ".", "..") or "/" in image_id:
        raise CloudError("image", Fault.NOT_FOUND, f"image {image_id!r} not found")
    return f"/images/{quote(image_id, safe='')}"


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _shown(body: Any) -> Image:
    return shaped("image", "an image", _image, body)


def _text(value: Any) -> str:
    """Raises TypeError for anything but text."""
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _image(row: Mapping[str, Any]) -> Image:
    size = row.get("size")
    return Image(
        id=_text(row["id"]),
        name=str(row.get("name") or ""),
        status=_text(row["status"]).upper(),
        min_disk_gib=int(row.get("min_disk") or 0),
        min_ram_mib=int(row.get("min_ram") or 0),
        size_bytes=size if isinstance(size, int) else None,
        properties={
            key: value
            for key, value in row.items()
            if key not in _BUILT_IN and isinstance(value, str)
        },
        created_at=row.get("created_at"),
        updated_at=row.get("updated_at"),
    )
