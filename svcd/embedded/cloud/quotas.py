"""Quota sets as Nova and Cinder show them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svcd.embedded.cloud.openstack import Call
from svcd.embedded.services import Refusal


def quota_set(
    call: Call, project_id: str, limits: Mapping[str, int], used: Mapping[str, int] | None
) -> dict[str, Any]:
    """The limits of a project; with `used`, each as limit, in_use and reserved.

    Raises Refusal 403 for a project of another user.
    """
    if project_id != call.project and "admin" not in call.me.roles:
        raise Refusal(
            403, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed."
        )
    if used is None:
        return {"id": project_id, **limits}
    return {
        "id": project_id,
        **{
            name: {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
            for name, limit in limits.items()
        },
    }
