"""The outcome of a job execution, in words without the engine's double meaning of `KILLED`. Pure.

The engine calls a job KILLED when its program has failed, as when it was cancelled or killed.
"""

from __future__ import annotations

import enum
from typing import Final


class ExecutionOutcome(enum.StrEnum):
    """How a job execution ended. CANCELLED: by a request to svcd; KILLED: by others."""

    GOING_ON = "going on"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    KILLED = "killed"


_BY_OTHERS: Final = frozenset({"KILLED_ELSEWHERE", "CLUSTER_GONE"})
"""Codes of a failure that is not the program's own."""


def outcome_of(status: str, code: str | None) -> ExecutionOutcome:
    """The outcome of an execution. status: of its `info`; code: of its failure, None without."""
    if status == "SUCCEEDED":
        return ExecutionOutcome.SUCCEEDED
    if status == "FAILED":
        return ExecutionOutcome.FAILED
    if status != "KILLED":
        return ExecutionOutcome.GOING_ON
    if code is None:
        return ExecutionOutcome.CANCELLED
    return ExecutionOutcome.KILLED if code in _BY_OTHERS else ExecutionOutcome.FAILED
