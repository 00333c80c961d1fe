"""The two clocks: a daemon's own, which no setting of the machine's clock moves, and a virtual one.

Note: own time. Twisted's reactor counts by `time.time()`: when that is set back, every timer stands
still for as long; when it is set forward, every deadline of everything has passed at once. So a
daemon's reactor counts by `SteadyTime`: it begins with the machine's wall time and goes on by a
clock that nobody sets. Rows, timers and deadlines all use it, so a jump changes no difference
between two of its moments, and no later moment is ever before an earlier one. To agree again with
everybody else after a jump it runs at most `STEER` faster or slower than real time. Nothing else
may read the wall, except for what must notice that the machine stood still
(`svcd.store.leases.holdings`).

`VirtualClock` is an `IReactorTime` on a heap: time moves only when the owner moves it.

Note: why not `twisted.internet.task.Clock`. Its list of calls is sorted again on every `callLater`,
which is quadratic in pending calls; a fake service with a thousand clusters holds thousands.
Here a call costs O(log n), and a cancelled or delayed call is dropped lazily when its turn comes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from twisted.internet.base import DelayedCall
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

log = Logger()

STEER: Final = 0.01
"""Most part of a second by which a second of own time may differ from a real one."""

_JUMP_S: Final = 2.0
_BATCH_LIMIT = 1_000_000


def wall_seconds() -> float:
    """Seconds since the epoch by the machine's clock, which may be set at any moment."""
    return time.time()  # noqa: TID251 - the one place that reads it


def steady_seconds() -> float:
    """Seconds of a clock that never goes back, and goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class SteadyTime:
    """Seconds since the epoch for one process, as the head of this module says.

    wall: may jump. steady: may not. Both are asked at each `seconds`.
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
        """The own time: at a jump of the wall it goes on, and the log tells once."""
        steady, wall = self._steady(), self._wall()
        passed = max(0.0, steady - self._read_at)
        off = wall - (self._now + passed)
        jump = off - self._off_s
        most = passed * STEER
        steered = max(-most, min(most, off))
        self._read_at = steady
        self._now += passed + steered
        self._off_s = off - steered
        if abs(jump) > _JUMP_S:
            self._tell(jump)
        return self._now

    @property
    def off_s(self) -> float:
        """How far the machine's clock was ahead of the own time when that was asked last."""
        return self._off_s

    def _tell(self, jump: float) -> None:
        log.warn(
            "The clock of this machine was set {way}: by {jump:+.1f} s. Work goes on undisturbed by"
            " svcd's own time, which is {off:.1f} s off now and nears it by {steer:.0f} s in 100 s;"
            " a restart takes it over at once",
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
