"""What YARN says of the applications of a real cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.processes import send

_LIST_S = 10.0


async def applications(manager: str, more: str = "") -> Sequence[Any]:
    """As the resource manager lists them. manager: its URL; more: `?states=RUNNING`, or all."""
    url = f"{manager}/ws/v1/cluster/apps{more}"
    reply = await send("GET", url, limit_s=_LIST_S)
    if reply.status != 200:
        raise AssertionError(f"GET {url}: {reply.status} {reply.body.decode(errors='replace')}")
    found: Sequence[Any] = (reply.json["apps"] or {}).get("app", [])
    return found


def works(application: Mapping[str, Any]) -> bool:
    """Whether the application does its work, and not just its master's start.

    A small job of MapReduce has no container but its master's. Its progress is 5 % as soon as its
    first task may run.
    """
    if application["state"] != "RUNNING":
        return False
    small = application["applicationType"] == "MAPREDUCE" and application["progress"] > 0
    return small or application["runningContainers"] > 1
