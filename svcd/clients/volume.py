"""Cinder v3: volumes and their quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from svcd.clients.rest import Rest, shaped, usage
from svcd.model.cloud import Usage, VolumeState

_PAGE = 1000
"""Entries of one page of a list."""


class Volumes:
    """One tenant's volumes."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def volumes(self, metadata: Mapping[str, str]) -> Sequence[VolumeState]:
        """The tenant's volumes with all of `metadata`."""
        wanted = metadata.items()
        rows = await self._rest.pages("/volumes/detail", "volumes", _volume, limit=_PAGE)
        return [row for row in rows if wanted <= row.metadata.items()]

    async def create(self, name: str, size_gib: int, metadata: Mapping[str, str]) -> str:
        """Create a volume and return its id. Its first status is `creating`."""
        volume: dict[str, Any] = {"name": name, "size": size_gib, "metadata": dict(metadata)}
        body = await self._rest.call("POST", "/volumes", {"volume": volume})
        return shaped("volume", "a volume", lambda body: str(body["volume"]["id"]), body)

    async def delete(self, volume_id: str) -> None:
        """Delete a volume. A missing volume is no fault, a volume in use is BUSY."""
        await self._rest.call("DELETE", f"/volumes/{volume_id}", absent_ok=True)

    async def usage(self) -> Mapping[str, Usage]:
        """The tenant's quotas by the fields of `Quota`."""
        body = await self._rest.call("GET", "/limits")
        return shaped("volume", "limits", _usage, body)


def _usage(body: Mapping[str, Any]) -> Mapping[str, Usage]:
    known = body["limits"]["absolute"]
    return {
        "volumes": usage(known.get("maxTotalVolumes"), known.get("totalVolumesUsed")),
        "volume_gib": usage(known.get("maxTotalVolumeGigabytes"), known.get("totalGigabytesUsed")),
    }


def _volume(row: Mapping[str, Any]) -> VolumeState:
    attachments = row.get("attachments") or [{}]
    return VolumeState(
        id=str(row["id"]),
        name=str(row.get("name") or ""),
        status=str(row.get("status") or ""),
        size_gib=int(row.get("size") or 0),
        attached_to=attachments[0].get("server_id"),
        device=attachments[0].get("device"),
        metadata=dict(row.get("metadata") or {}),
    )
