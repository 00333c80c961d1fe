"""The images of the embedded cloud, which `endpoints.json` names with login and tags.

A command registers such an image when it makes something of it, and never when it only plans.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from svcd.cli.client import safe
from svcd.cli.session import Session

Json = Mapping[str, Any]


def unregistered(session: Session, registered: Collection[object]) -> Sequence[Json]:
    """The images with a login that svcd does not know yet. registered: ids of those it knows."""
    found = session.endpoints.get("images") or []
    return [image for image in found if image.get("username") and image.get("id") not in registered]


def register(session: Session, image: Json) -> Any:
    """Register an image of `unregistered` with its login and tags; the row of the registry."""
    answer = registered(session, image["id"], image["username"], "", image.get("tags") or [])
    session.note(f"registered image {image['name']} with the login {image['username']}")
    return answer["image"]


def registered(session: Session, id_: str, user: str, description: str, tags: Sequence[str]) -> Any:
    """Register an image of the cloud; the answer of the API."""
    path = f"/images/{safe(id_)}"
    answer = session.api.post(path, {"username": user, "description": description})
    return session.api.post(f"{path}/tag", {"tags": list(tags)}) if tags else answer
