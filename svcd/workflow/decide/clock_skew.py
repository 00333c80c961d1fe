"""Corrects the times in an execution's row after a clock was set. Pure.

A daemon's own time never goes back (svcd.runtime.clock). So another writer wrote a time in the
future: a former process, which ended while the machine's clock was ahead, or a daemon on another
machine. svcd cuts such a time to its largest possible value, so that no wait becomes longer.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from svcd.model.ids import Timestamp, timestamp
from svcd.model.job import Execution
from svcd.workflow.decide.submission import WATCH_S

MOST_WAIT_S: Final = 120.0
"""No back-off and no wait of the submit recovery is longer (see `submission`)."""

_SKEW_S: Final = 1.0
"""Seconds. svcd tolerates this difference between the clocks of daemons."""


class Bounds:
    """The latest possible times at `now`, in epoch seconds."""

    def __init__(self, now: float) -> None:
        self._now = timestamp(now)
        self._ahead = timestamp(now + _SKEW_S)
        self._waits = timestamp(now + _SKEW_S + MOST_WAIT_S)
        self._watches = timestamp(now + _SKEW_S + WATCH_S)
        self._watch_until = timestamp(now + WATCH_S)

    def corrected(self, row: Execution) -> Execution:
        """`row` without times too far in the future; the same object when it has none."""
        if row.retry_at is not None and row.retry_at > self._waits:
            row = evolve(row, retry_at=None)
        if row.suspended_since is not None and row.suspended_since > self._ahead:
            row = evolve(row, suspended_since=self._now)
        if row.waiting is not None and row.waiting.since > self._ahead:
            row = evolve(row, waiting=evolve(row.waiting, since=self._now))
        doubt = row.doubt
        if doubt is not None:
            until = doubt.watch_until
            if until is not None and until > self._watches:
                doubt = evolve(doubt, watch_until=self._watch_until)
            if self._is_ahead(doubt.denied_at) or self._is_ahead(doubt.fenced_at):
                # Both waits begin again. This costs seconds; a shorter wait could run a job twice.
                fenced = None if doubt.fenced_at is None else self._now
                doubt = evolve(doubt, denied_at=self._now, fenced_at=fenced)
            if doubt is not row.doubt:
                row = evolve(row, doubt=doubt)
        return row

    def _is_ahead(self, stamp: Timestamp | None) -> bool:
        return stamp is not None and stamp > self._ahead
