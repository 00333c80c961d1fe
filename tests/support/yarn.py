"""What YARN says of an application of a real cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def works(application: Mapping[str, Any]) -> bool:
    """Whether the application does its work, and not just its master's start.

    application: as the resource manager lists it. A small job of MapReduce has no container but its
    master's. Its progress is 5 % as soon as its first task may run.
    """
    if application["state"] != "RUNNING":
        return False
    small = application["applicationType"] == "MAPREDUCE" and application["progress"] > 0
    return small or application["runningContainers"] > 1
