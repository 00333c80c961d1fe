"""Which executions would last for ever at their engine, read from their rows. Pure."""

from __future__ import annotations

import email.utils

from svcd.model.ids import Timestamp, seconds_of, timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure
from svcd.workflow import failures
from svcd.workflow.failures import Code


def failure_of_stuck(row: Execution, now: float, most_s: float) -> Failure | None:
    """Why `row` would last for ever, once it has done so for `most_s`.

    The engine waits for a person, or it took the job and died before it began it.
    """
    if row.status is ExecutionStatus.SUSPENDED and row.suspended_since is not None:
        action = failures.gave_up(row.record)
        if action is not None and now - seconds_of(row.suspended_since) >= most_s:
            return failures.of_giving_up(action)
    created = stamp_of(row.record.get("createdTime"))
    # The engine's clock may be another: the job is there since `created_at` at the earliest.
    waited = 0.0 if created is None else now - seconds_of(max(created, row.created_at))
    if row.status is ExecutionStatus.PREP and waited >= most_s:
        text = "the engine took the job and never began it"
        return failures.failure(Code.START_GAVE_UP, "workflow", text)
    return None


def stamp_of(date: object) -> Timestamp | None:
    """An engine's HTTP date as a timestamp; None for null and for what is no date."""
    if not isinstance(date, str):
        return None
    parsed = email.utils.parsedate_tz(date)
    return None if parsed is None else timestamp(email.utils.mktime_tz(parsed))
