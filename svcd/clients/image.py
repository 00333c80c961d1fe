"""Glance v2: images, and their custom properties, which hold the image registry."""

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
"""Entries of one page of a list."""
_TRIES = 3
"""Tries of a change while others change the image."""

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

    async def images(self, name: str = "") -> Sequence[Image]:
        """All images that the tenant can see. name: only those of this name."""
        path = f"/images?name={quote(name, safe='')}" if name else "/images"
        return await self._rest.pages(path, "images", _image, limit=_PAGE)

    async def delete(self, image_id: str) -> None:
        """Delete an image. A missing image is no fault."""
        await self._rest.call("DELETE", _path(image_id), absent_ok=True)

    async def image(self, image_id: str) -> Image:
        """One image. Raises CloudError NOT_FOUND."""
        return _shown(await self._rest.call("GET", _path(image_id)))

    async def change(self, image_id: str, set_: Mapping[str, str], remove: Sequence[str]) -> Image:
        """Set and remove properties.

        The image is read first, because Glance refuses to remove a property that is absent.
        """
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
                if last or error.status != 409:  # 409: another user changed the image
                    raise
                continue
            return _shown(body)
        raise AssertionError("the last try returns or raises")


def _path(image_id: str) -> str:
    """The path of an image. Raises CloudError NOT_FOUND for an id that would change the path.

    Callers choose the id. HTTP clients resolve dots, and Glance's web servers unquote a slash.
    """
    if image_id in ("", ".", "..") or "/" in image_id:
        raise CloudError("image", Fault.NOT_FOUND, f"image {image_id!r} not found")
    return f"/images/{quote(image_id, safe='')}"


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _shown(body: Any) -> Image:
    return shaped("image", "an image", _image, body)


def _text(value: Any) -> str:
    """`value`, which must be text. Raises TypeError."""
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
