"""The two clocks: a daemon's own time, which does not jump, and a virtual clock.

Note: own time. Twisted's reactor reads `time.time()`. When an administrator sets that clock back,
every timer stands still for as long; when the clock is set forward, every deadline passes at once.
So a daemon's reactor reads `SteadyTime`: it starts with the machine's wall time and continues by
the machine's steady clock, which cannot be set. Rows, timers and deadlines all use it. So a jump of
the wall clock changes no difference between two of its times, and its time never decreases. After a
jump, own time runs at most `STEER` faster or slower than real time until it agrees with the wall
clock again. Only one other module may read the wall clock: `svcd.store.lease.holding`, which must
notice that the machine was suspended.

`VirtualClock` is an `IReactorTime` on a heap: time moves only when the owner moves it.

Note: why not `twisted.internet.task.Clock`. Its list of calls is sorted again on every `callLater`,
which is quadratic in pending calls; a fake service with a thousand clusters holds thousands.
Here a call costs O(log n), and a cancelled or delayed call is dropped lazily when its turn comes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.base import DelayedCall
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

log = Logger()

STEER: Final = 0.01
"""The largest fraction of a second by which a second of own time differs from a real second."""

_JUMP_S: Final = 2.0
"""A smaller jump of the wall clock is not logged."""
_FEW: Final = 50
"""Number of cancelled calls that may stay in a virtual clock until their time."""
_BATCH_LIMIT = 1_000_000
"""Most calls at one moment of a virtual clock: one that repeats without delay must not hang it."""


wall_seconds: Callable[[], float] = time.time  # noqa: TID251 - the one place that reads it
"""Seconds since the epoch by the machine's clock, which may be set at any moment."""

steady_seconds: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)
"""Seconds of a clock that never decreases and that also counts while the machine sleeps."""


class SteadyTime:
    """Seconds since the epoch for one process: see the note "own time".

    wall: a clock that may jump. steady: a clock that may not. Each call of `seconds` reads both.
    """

    def __init__(
        self,
        wall: Callable[[], float] = wall_seconds,
        steady: Callable[[], float] = steady_seconds,
    ) -> None:
        self._wall = wall
        self._steady = steady
        self._now = wall()
        self._read_at = steady()
        self._off_s = 0.0

    def seconds(self) -> float:
        """The own time. A jump of the wall clock does not change it, and is logged once."""
        steady, wall = self._steady(), self._wall()
        passed = steady - self._read_at
        if passed < 0.0:
            passed = 0.0
        off = wall - (self._now + passed)
        jump = off - self._off_s
        most = passed * STEER
        steered = most if off > most else -most if off < -most else off
        self._read_at = steady
        self._now += passed + steered
        self._off_s = off - steered
        if not -_JUMP_S <= jump <= _JUMP_S:
            self._log_jump(jump)
        return self._now

    @property
    def off_s(self) -> float:
        """Seconds by which the wall clock was ahead of the own time at the last `seconds`."""
        return self._off_s

    def _log_jump(self, jump: float) -> None:
        log.warn(
            "The clock of this machine was set {way}: by {jump:+.1f} s. svcd works by its own time,"
            " which differs by {off:.1f} s now and approaches the clock by {steer:.0f} s in 100 s;"
            " restart svcd to use the clock's time at once",
            way="forward" if jump > 0 else "back",
            jump=jump,
            off=abs(self._off_s),
            steer=100 * STEER,
        )


@implementer(IReactorTime)
class VirtualClock:
    """Deterministic time. `seconds()` starts at `epoch` (seconds since 1970)."""

    def __init__(self, epoch: float = 1_767_225_600.0) -> None:
        self._now = epoch
        self._heap: list[tuple[float, int, DelayedCall]] = []
        self._count = 0
        self._cancelled = 0

    def seconds(self) -> float:
        """The current virtual time, seconds since the epoch."""
        return self._now

    def callLater(
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> IDelayedCall:
        """See IReactorTime. Calls due at the same time run in the order of their creation."""
        if delay < 0:
            raise ValueError(f"delay must not be negative: {delay}")
        call = DelayedCall(
            self._now + delay, callable, args, kw, self._forget, self._again, self.seconds
        )
        self._push(call)
        return call

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """The calls that have neither run nor been cancelled."""
        return tuple({id(c): c for _, _, c in self._heap if c.active()}.values())

    def next_call_in(self) -> float | None:
        """Seconds until the next call, 0.0 when it is due, None when there is none."""
        self._drop_stale()
        return max(0.0, self._heap[0][0] - self._now) if self._heap else None

    def advance(self, seconds: float) -> None:
        """Move time forward, and run every due call at its own time."""
        if seconds < 0:
            raise ValueError(f"seconds must not be negative: {seconds}")
        end = self._now + seconds
        left = _BATCH_LIMIT
        while left:
            self._drop_stale()
            if not self._heap or self._heap[0][0] > end:
                self._now = end
                return
            at, _, call = heapq.heappop(self._heap)
            left = _BATCH_LIMIT if at > self._now else left - 1
            self._now = max(self._now, at)
            call.called = 1
            call.func(*call.args, **call.kw)
        raise RuntimeError(f"more than {_BATCH_LIMIT} calls at one moment: a call repeats at once")

    def run_due(self) -> None:
        """Run all calls that are due now, also those that they schedule, without moving time."""
        self.advance(0.0)

    def _push(self, call: DelayedCall) -> None:
        self._count += 1
        heapq.heappush(self._heap, (call.getTime(), self._count, call))

    def _forget(self, call: DelayedCall) -> None:
        """Drop the cancelled calls when they are most of the heap, else when they reach its top."""
        self._cancelled += 1
        if self._cancelled > _FEW and self._cancelled > len(self._heap) // 2:
            self._heap = [entry for entry in self._heap if entry[2].active()]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def _again(self, call: DelayedCall) -> None:
        self._push(call)

    def _drop_stale(self) -> None:
        while self._heap:
            at, _, call = self._heap[0]
            if call.active() and call.getTime() == at:
                return
            heapq.heappop(self._heap)
            if call.active() and call.getTime() > at:
                call.activate_delay()  # an earlier time, from now on, comes to `_again`
                self._push(call)
