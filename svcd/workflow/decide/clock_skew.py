"""Times of an execution's row, made believable when a clock was set meanwhile. Pure.

A daemon's own time never goes back (svcd.runtime.clock). So a time that lies ahead was written by
another: a former process, which ended while the machine's clock was ahead, or a daemon elsewhere.
It is cut to what it can be at most, so that nothing waits longer than it would have waited anyway.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from svcd.model.ids import Timestamp, timestamp
from svcd.model.job import Execution
from svcd.workflow.decide.submission import WATCH_S

MOST_WAIT_S: Final = 120.0
"""No back-off and no doubt lasts longer (see `submission`)."""

_SKEW_S: Final = 1.0


class Bounds:
    """What is possible at the moment `now`, seconds since the epoch."""

    def __init__(self, now: float) -> None:
        self._now = timestamp(now)
        self._ahead = timestamp(now + _SKEW_S)
        self._waits = timestamp(now + _SKEW_S + MOST_WAIT_S)
        self._watches = timestamp(now + _SKEW_S + WATCH_S)
        self._watch_until = timestamp(now + WATCH_S)

    def believable(self, row: Execution) -> Execution:
        """`row` with no time that lies too far ahead; the same object when there is none."""
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
                # Both waits begin again: that costs seconds, and too short a one could double.
                fenced = None if doubt.fenced_at is None else self._now
                doubt = evolve(doubt, denied_at=self._now, fenced_at=fenced)
            if doubt is not row.doubt:
                row = evolve(row, doubt=doubt)
        return row

    def _is_ahead(self, stamp: Timestamp | None) -> bool:
        return stamp is not None and stamp > self._ahead
