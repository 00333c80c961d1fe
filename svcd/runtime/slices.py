"""Long work in slices: each turn of the reactor does a few milliseconds of it.

Hundreds of machines can be ready at once: their logins, their answers, the next command of each. An
engine's record or a list of rows can be long. Done in one turn, this work keeps every request
waiting to its end. So each turn does some of it, first come first served, and requests are served
between two turns. Nothing waits while a turn has time left, but for `turn`, which begins with the
next one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from typing import Final, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

T = TypeVar("T")

SLICE_S: Final = 0.0025
"""Time in one turn after which the rest of the work waits, while other work takes little."""
_SHARE: Final = 1 / 3
"""Fraction of the time of the other work in the last turn: a slice may take so long, up to
`_MOST_S`. So a quarter of a busy turn is for slices."""
_MOST_S: Final = 0.05
"""Longest slice."""


class Slices:
    """The slices of all callers together. Work that raises ends its slice; the rest goes on."""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._waiting: deque[Callable[[], object]] = deque()
        self._slice_s = SLICE_S
        self._spent_s = 0.0
        self._asked_at: float | None = None

    def offer(self, work: Callable[[], object]) -> bool:
        """Call `work` and return True, if this turn has time left and no other work waits."""
        if self._waiting or self._spent_s >= self._slice_s:
            return False
        try:
            self._do(work)
        finally:
            self._ask()
        return True

    def later(self, work: Callable[[], object]) -> None:
        """Call `work` in a slice of a later turn."""
        self._waiting.append(work)
        self._ask()

    async def turn(self) -> None:
        """Wait for a slice. The caller's work up to its next wait is a part of it."""
        began: Deferred[None] = Deferred()
        self.later(partial(_begin, began))
        await began

    async def run(self, steps: Generator[None, None, T]) -> T:
        """Run `steps` to the end and return its value. Short work ends without a pause."""
        began = self._clock.seconds()
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return cast(T, end.value)
            if self._clock.seconds() - began >= self._slice_s:
                await self.turn()
                began = self._clock.seconds()

    @property
    def busy(self) -> bool:
        """Whether work waits for a slice."""
        return bool(self._waiting)

    def _ask(self) -> None:
        if self._asked_at is None:
            self._asked_at = self._clock.seconds()
            self._clock.callLater(0.0, self._next)

    def _next(self) -> None:
        """Begin the slice of the present turn."""
        others_s = 0.0 if self._asked_at is None else self._clock.seconds() - self._asked_at
        self._slice_s = max(SLICE_S, min(_MOST_S, others_s * _SHARE))
        self._asked_at, self._spent_s = None, 0.0
        try:
            while self._waiting and self._spent_s < self._slice_s:
                self._do(self._waiting.popleft())
        finally:
            if self._spent_s or self._waiting:
                self._ask()

    def _do(self, work: Callable[[], object]) -> None:
        began = self._clock.seconds()
        try:
            work()
        finally:
            self._spent_s += self._clock.seconds() - began


def _begin(caller: Deferred[None]) -> None:
    if not caller.called:  # it was not cancelled
        caller.callback(None)
