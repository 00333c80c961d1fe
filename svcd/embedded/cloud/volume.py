"""Cinder v3: volumes and limits. Source: its API."""

from __future__ import annotations

from typing import Any

import msgspec
from klein import Klein

from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import NovaService, caller, owned, project_of, text_of
from svcd.embedded.cloud.records import Volume
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route


class _NewVolume(msgspec.Struct):
    size: int
    name: str | None = None
    metadata: dict[str, str] | None = None


class VolumeService(NovaService):
    """Mounted at /volume."""

    app = Klein()
    where = "volume"

    def __init__(self, core: Core, life: Life) -> None:
        super().__init__(core)
        self._life = life

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open; the project of the path must be the token's.

        The service uses only its oldest microversion, whatever version the request names.
        """
        if len(segments) <= 1:
            return
        call.set_answer_header("OpenStack-API-Version", "volume 3.0")
        self.authenticate(call)
        if segments[1] != project_of(call):
            raise Refusal(400, "Malformed request url")

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
        text = f"Volume {volume_id} could not be found."
        return owned(call, self._core.state.volumes, volume_id, text)

    def _body(self, volume: Volume) -> dict[str, Any]:
        path = f"/volume/v3/{volume.project_id}/volumes/{volume.id}"
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
            "links": [{"rel": "self", "href": f"{self._core.public_url}{path}"}],
        }

    @route(app, ["GET"], "/v3/<project>/volumes/detail")
    def volumes(self, call: Call, project: str) -> Reply:
        rows = self._core.listed(self._core.state.volumes.having("project", project), Volume)
        mine = [self._body(row) for row in reversed(rows) if row.project_id == project]
        return self.listing(call, "volumes", mine)

    @route(app, ["GET"], "/v3/<project>/volumes/<volume_id>")
    def volume(self, call: Call, project: str, volume_id: str) -> Reply:
        return Reply(body={"volume": self._body(self._own(call, volume_id))})

    @route(app, ["POST"], "/v3/<project>/volumes")
    def create(self, call: Call, project: str) -> Reply:
        new = call.read_in("volume", _NewVolume)
        core = self._core
        if new.size < 1:
            raise Refusal(400, f"Invalid input for field/attribute size. Value: {new.size}.")
        volumes = core.state.volumes
        limit = core.limit(project, "volumes")
        if 0 <= limit <= volumes.count("project", project):
            text = f"VolumeLimitExceeded: Maximum number of volumes allowed ({limit}) exceeded"
            raise Refusal(413, f"{text} for quota 'volumes'.", headers={"Retry-After": "0"})
        used = self._used(project)["gigabytes"]
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
            user_id=caller(call).user_id,
            size_gib=new.size,
            status="creating",
            metadata=new.metadata or {},
            server_id=None,
            device=None,
            created_at=now,
            updated_at=now,
            due_at=now,
        )
        volume = self._life.change_volume(volume, volume.status)
        return Reply(status=202, body={"volume": self._body(volume)})

    @route(app, ["DELETE"], "/v3/<project>/volumes/<volume_id>")
    def delete(self, call: Call, project: str, volume_id: str) -> Reply:
        volume = self._own(call, volume_id)
        if volume.status not in ("available", "error", "deleting"):
            text = "Invalid volume: Volume status must be available or error or error_restoring or "
            raise Refusal(400, text + f"error_extending, but is {volume.status}.")
        if volume.status != "deleting":
            self._life.change_volume(volume, "deleting")
        return Reply(status=202)

    # ---- limits and quotas ----

    def _limits(self, project: str) -> dict[str, int]:
        names = {"volumes": "volumes", "gigabytes": "volume_gib"}
        limits = {name: self._core.limit(project, key) for name, key in names.items()}
        return limits | _FIXED_LIMITS

    def _used(self, project: str) -> dict[str, int]:
        volumes = self._core.state.volumes.having("project", project)
        return {"volumes": len(volumes), "gigabytes": sum(v.size_gib for v in volumes)}

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
    def quota(self, call: Call, project: str, project_id: str) -> Reply:
        used = self._used(project_id) if call.one("usage").lower() == "true" else None
        return self.quota_set(call, project_id, self._limits(project_id), used)


_FIXED_LIMITS = {
    "per_volume_gigabytes": -1,
    "snapshots": 0,
    "backups": 0,
    "backup_gigabytes": 0,
    "groups": 0,
}
