"""Cinder v3: volumes and limits. Source: its API."""

from __future__ import annotations

from typing import Any

import msgspec
from attrs import evolve
from klein import Klein

from svcd.embedded.cloud.compute_basics import nova_envelope
from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import Call, Service, page, text_of
from svcd.embedded.cloud.quotas import quota_set
from svcd.embedded.cloud.records import Volume
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route


class _NewVolume(msgspec.Struct):
    size: int
    name: str | None = None
    metadata: dict[str, str] | None = None
    volume_type: str | None = None
    availability_zone: str | None = None


class _VolumeBody(msgspec.Struct):
    volume: _NewVolume


class VolumeService(Service):
    """Mounted at /volume."""

    app = Klein()
    where = "volume"

    def __init__(self, core: Core, life: Life) -> None:
        self._core = core
        self._life = life

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open; the project of the path must be the token's.

        Only the oldest microversion is spoken, whatever is asked for within the range.
        """
        if len(segments) <= 1:
            return
        call.set_answer_header("OpenStack-API-Version", "volume 3.0")
        call.token = self._core.living_token(call.header("X-Auth-Token"))
        if call.token is None:
            raise Refusal(401, "The request you have made requires authentication.")
        if len(segments) > 1 and segments[1] != call.project:
            raise Refusal(400, "Malformed request url")

    def envelope(self, refusal: Refusal) -> Reply:
        """The error envelope of Cinder, which is the same as Nova's."""
        return nova_envelope(self._core, refusal)

    @route(app, ["GET"], "/")
    @route(app, ["GET"], "/v3")
    def versions(self, call: Call) -> Reply:
        version = {
            "id": "v3.0",
            "status": "CURRENT",
            "version": "3.70",
            "min_version": "3.0",
            "updated": "2022-03-30T00:00:00Z",
            "links": [{"rel": "self", "href": f"{self._core.public_url}/volume/v3/"}],
        }
        return Reply(
            status=300 if call.request.path.count(b"/") < 3 else 200, body={"versions": [version]}
        )

    def _own(self, call: Call, volume_id: str) -> Volume:
        found = self._core.state.volumes.get(volume_id)
        if found is None or found.project_id != call.project:
            raise Refusal(404, f"Volume {volume_id} could not be found.")
        return found

    def _body(self, volume: Volume) -> dict[str, Any]:
        attachments: list[dict[str, Any]] = []
        if volume.server_id is not None:
            attachments.append(
                {
                    "id": volume.id,
                    "volume_id": volume.id,
                    "attachment_id": volume.id,
                    "server_id": volume.server_id,
                    "device": volume.device,
                    "host_name": None,
                    "attached_at": text_of(volume.updated_at, "bare"),
                }
            )
        return {
            "id": volume.id,
            "name": volume.name,
            "description": None,
            "status": volume.status,
            "size": volume.size_gib,
            "attachments": attachments,
            "metadata": volume.metadata,
            "availability_zone": "nova",
            "volume_type": "loopback",
            "bootable": "false",
            "encrypted": False,
            "multiattach": False,
            "snapshot_id": None,
            "source_volid": None,
            "consistencygroup_id": None,
            "replication_status": None,
            "user_id": volume.user_id,
            "os-vol-tenant-attr:tenant_id": volume.project_id,
            "created_at": text_of(volume.created_at, "bare"),
            "updated_at": text_of(volume.updated_at, "bare"),
            "links": [
                {"rel": "self", "href": f"{self._base(volume)}/{volume.id}"},
            ],
        }

    def _base(self, volume: Volume) -> str:
        return f"{self._core.public_url}/volume/v3/{volume.project_id}/volumes"

    def _list(self, call: Call, detail: bool) -> Reply:
        rows = self._core.listed(self._core.state.volumes.values(), Volume)
        mine = [v for v in reversed(rows) if v.project_id == call.project]
        for key in ("name", "status"):
            wanted = call.one(key)
            if wanted:
                mine = [v for v in mine if getattr(v, key) == wanted]
        shown = page(call, mine, lambda volume: volume.id)
        bodies = [self._body(v) for v in shown]
        if not detail:
            bodies = [{"id": b["id"], "name": b["name"], "links": []} for b in bodies]
        body: dict[str, Any] = {"volumes": bodies}
        if call.one("limit") and shown and shown[-1] is not mine[-1]:
            path = call.request.path.decode("ascii")
            href = f"{self._core.public_url}{path}?limit={call.one('limit')}&marker={shown[-1].id}"
            body["volumes_links"] = [{"rel": "next", "href": href}]
        return Reply(body=body)

    @route(app, ["GET"], "/v3/<project>/volumes")
    def volumes(self, call: Call, project: str) -> Reply:
        return self._list(call, detail=False)

    @route(app, ["GET"], "/v3/<project>/volumes/detail")
    def volumes_in_detail(self, call: Call, project: str) -> Reply:
        return self._list(call, detail=True)

    @route(app, ["GET"], "/v3/<project>/volumes/<volume_id>")
    def volume(self, call: Call, project: str, volume_id: str) -> Reply:
        return Reply(body={"volume": self._body(self._own(call, volume_id))})

    @route(app, ["POST"], "/v3/<project>/volumes")
    def create(self, call: Call, project: str) -> Reply:
        new = call.read(_VolumeBody).volume
        core = self._core
        if new.size < 1:
            raise Refusal(400, f"Invalid input for field/attribute size. Value: {new.size}.")
        rows = [v for v in core.state.volumes.values() if v.project_id == project]
        limit = core.limit(project, "volumes")
        if 0 <= limit <= len(rows):
            text = f"VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded"
            raise Refusal(413, f"{text} for quota 'volumes'.", headers={"Retry-After": "0"})
        used = sum(v.size_gib for v in rows)
        limit = core.limit(project, "volume_gib")
        if 0 <= limit < used + new.size:
            text = (
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed "
                f"gigabytes quota. Requested {new.size}G, quota is {limit}G and {used}G has been "
                "consumed."
            )
            raise Refusal(413, text, headers={"Retry-After": "0"})
        now = core.now()
        volume = Volume(
            id=core.new_id(),
            name=new.name or "",
            project_id=project,
            user_id=call.me.user_id,
            size_gib=new.size,
            status="creating",
            metadata=new.metadata or {},
            server_id=None,
            device=None,
            created_at=now,
            updated_at=now,
            due_at=now + core.config.volume_s,
        )
        core.state.volumes.put(volume)
        self._life.wake_volume(volume.id)
        return Reply(status=202, body={"volume": self._body(volume)})

    @route(app, ["DELETE"], "/v3/<project>/volumes/<volume_id>")
    def delete(self, call: Call, project: str, volume_id: str) -> Reply:
        volume = self._own(call, volume_id)
        if volume.status not in ("available", "error", "deleting"):
            text = "Invalid volume: Volume status must be available or error or error_restoring or "
            raise Refusal(400, text + f"error_extending, but is {volume.status}.")
        core = self._core
        if volume.status != "deleting":
            now = core.now()
            core.state.volumes.put(
                evolve(volume, status="deleting", updated_at=now, due_at=now + core.config.volume_s)
            )
        self._life.wake_volume(volume_id)
        return Reply(status=202)

    # ---- limits and quotas ----

    def _limits(self, project: str) -> dict[str, int]:
        core = self._core
        limits = {name: core.limit(project, key) for name, key in _LIMITED.items()}
        return limits | _FIXED_LIMITS

    def _used(self, project: str) -> dict[str, int]:
        rows = [v for v in self._core.state.volumes.values() if v.project_id == project]
        return {"volumes": len(rows), "gigabytes": sum(v.size_gib for v in rows)}

    @route(app, ["GET"], "/v3/<project>/limits")
    def limits(self, call: Call, project: str) -> Reply:
        most, used = self._limits(project), self._used(project)
        absolute = {
            "maxTotalVolumes": most["volumes"],
            "maxTotalVolumeGigabytes": most["gigabytes"],
            "maxTotalSnapshots": most["snapshots"],
            "maxTotalBackups": most["backups"],
            "maxTotalBackupGigabytes": most["backup_gigabytes"],
            "totalVolumesUsed": used["volumes"],
            "totalGigabytesUsed": used["gigabytes"],
            "totalSnapshotsUsed": 0,
            "totalBackupsUsed": 0,
            "totalBackupGigabytesUsed": 0,
        }
        return Reply(body={"limits": {"rate": [], "absolute": absolute}})

    @route(app, ["GET"], "/v3/<project>/os-quota-sets/<project_id>")
    @route(app, ["GET"], "/v3/<project>/os-quota-sets/<project_id>/defaults")
    def quota(self, call: Call, project: str, project_id: str) -> Reply:
        defaults = call.request.path.rstrip(b"/").endswith(b"/defaults")
        limits = self._limits("" if defaults else project_id)
        used = self._used(project_id) if call.one("usage").lower() == "true" else None
        return Reply(body={"quota_set": quota_set(call, project_id, limits, used)})


_LIMITED = {"volumes": "volumes", "gigabytes": "volume_gib"}
_FIXED_LIMITS = {
    "per_volume_gigabytes": -1,
    "snapshots": 0,
    "backups": 0,
    "backup_gigabytes": 0,
    "groups": 0,
}
