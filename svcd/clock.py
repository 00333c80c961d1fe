"""A virtual `IReactorTime` on a heap: time moves only when the owner moves it.

Note: why not `twisted.internet.task.Clock`. Its list of calls is sorted again on every `callLater`,
which is quadratic in pending calls; a fake service with a thousand clusters holds thousands.
Here a call costs O(log n), and a cancelled or delayed call is dropped lazily when its turn comes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.base import DelayedCall
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

_BATCH_LIMIT = 1_000_000


@implementer(IReactorTime)
class VirtualClock:
    """Deterministic time. `seconds()` starts at `epoch` (seconds since 1970)."""

    def __init__(self, epoch: float = 1_767_225_600.0) -> None:
        self._now = epoch
        self._heap: list[tuple[float, int, DelayedCall]] = []
        self._count = 0

    def seconds(self) -> float:
        """The current virtual time, seconds since the epoch."""
        return self._now

    def callLater(
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> IDelayedCall:
        """See IReactorTime. Calls of one moment run in the order in which they were made."""
        if delay < 0:
            raise ValueError(f"delay must not be negative: {delay}")
        call = DelayedCall(
            self._now + delay, callable, args, kw, self._forget, self._again, self.seconds
        )
        self._push(call)
        return call

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """The calls that are still to come."""
        return tuple({id(c): c for _, _, c in self._heap if c.active()}.values())

    def next_call_in(self) -> float | None:
        """Seconds until the next call, 0.0 when it is due, None when there is none."""
        self._drop_stale()
        return max(0.0, self._heap[0][0] - self._now) if self._heap else None

    def advance(self, seconds: float) -> None:
        """Move time forward, running every call that falls due on its own moment."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds}")
        end = self._now + seconds
        for _ in range(_BATCH_LIMIT):
            self._drop_stale()
            if not self._heap or self._heap[0][0] > end:
                self._now = end
                return
            at, _, call = heapq.heappop(self._heap)
            self._now = max(self._now, at)
            call.called = 1
            call.func(*call.args, **call.kw)
        raise RuntimeError(f"more than {_BATCH_LIMIT} calls in one advance: a call repeats at once")

    def run_due(self) -> None:
        """Run what is due now, and what becomes due by it, without moving time."""
        self.advance(0.0)

    def _push(self, call: DelayedCall) -> None:
        self._count += 1
        heapq.heappush(self._heap, (call.getTime(), self._count, call))

    def _forget(self, call: DelayedCall) -> None:
        """Cancelled: its entry is dropped when it reaches the top."""

    def _again(self, call: DelayedCall) -> None:
        self._push(call)

    def _drop_stale(self) -> None:
        while self._heap:
            at, _, call = self._heap[0]
            if call.active() and call.getTime() == at:
                return
            heapq.heappop(self._heap)
            if call.active() and call.getTime() > at:
                self._push(call)
