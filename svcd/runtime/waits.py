"""How callers wait for each other: for a place, for news, or until their work is interrupted."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred

T = TypeVar("T")


class Gate:
    """At most `limit` holders at once, first come first served; cancelling a wait is O(1).

    A holder that leaves calls the waiters in one loop, also those that leave meanwhile: waiters
    that call each other would nest, and some hundreds of them exceed Python's recursion limit.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._waiting: deque[Deferred[None]] | tuple[()] = ()  # an empty deque takes 600 bytes
        self._calling = False

    async def __aenter__(self) -> None:
        if self._free > 0 and not self._waiting:
            self._free -= 1
            return
        turn: Deferred[None] = Deferred()
        if isinstance(self._waiting, tuple):
            self._waiting = deque()
        waiting = self._waiting
        waiting.append(turn)
        try:
            await turn
        except GeneratorExit:  # collected as garbage: a closed coroutine cannot take its turn
            waiting.remove(turn)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._free += 1
        if self._calling:
            return
        self._calling = True
        try:
            while self._free > 0 and self._waiting:
                turn = self._waiting.popleft()
                if not turn.called:  # a cancelled wait stays in the queue until it is reached
                    self._free -= 1
                    turn.callback(None)
        finally:
            self._calling = False


class Waiters:
    """Deferreds that fire together at the next `fire`."""

    def __init__(self) -> None:
        self._waiting: dict[Deferred[None], None] = {}  # the order of a set differs in each process

    def wait(self) -> Deferred[None]:
        """A Deferred of the next `fire`; they fire in order of waiting. It may be cancelled."""
        turn: Deferred[None] = Deferred(lambda d: self._waiting.pop(d, None))
        self._waiting[turn] = None
        return turn

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def fire(self) -> None:
        """Fire all Deferreds that wait now."""
        waiting, self._waiting = self._waiting, {}
        for turn in list(waiting):
            if not turn.called:  # an earlier one may have cancelled it
                turn.callback(None)


class Interrupted(Exception):
    """Work under an `Interrupt` was cancelled by its `fire`."""


class Interrupt:
    """A flag that cancels guarded work when it is set, and stays set until `clear`."""

    def __init__(self) -> None:
        self.fired = False
        self._guarded: dict[Deferred[Any], None] = {}

    def fire(self) -> None:
        """Cancel all guarded work; work guarded later fails at once."""
        self.fired = True
        for work in list(self._guarded):
            work.cancel()

    def clear(self) -> None:
        self.fired = False

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises Interrupted when `fire` has cancelled `work`."""
        if self.fired:
            work.close()
            raise Interrupted
        running = Deferred.fromCoroutine(work)
        self._guarded[running] = None
        try:
            return await running
        except CancelledError:
            if self.fired:
                raise Interrupted from None
            raise
        finally:
            self._guarded.pop(running, None)
