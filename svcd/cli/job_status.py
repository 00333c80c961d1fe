"""The status of a job execution in people's words. Pure.

The workflow engine calls a job KILLED when its program has failed, as when it was cancelled. The
API keeps the engine's words. Commands show people whether the program failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
KILLED: Final = "killed"
_BY_OTHERS: Final = frozenset({"KILLED_ELSEWHERE", "CLUSTER_GONE"})
"""Codes of a failure that is not the program's own."""


def status_of(execution: Mapping[str, Any]) -> str:
    """The status: of the engine, or `failed`, `cancelled` (a request to svcd), or `killed`."""
    info = execution.get("info") or {}
    status, failure = str(info.get("status") or ""), info.get("failure") or {}
    if status == "FAILED":
        return FAILED
    if status != "KILLED":
        return status
    if not failure:
        return CANCELLED
    return KILLED if failure.get("code") in _BY_OTHERS else FAILED
