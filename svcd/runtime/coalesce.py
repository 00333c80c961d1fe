"""One call for several callers that ask for the same thing at the same time. No result is cached.

A call belongs to none of its callers: it runs under no lease, it continues when a caller gives up,
and all its callers get its result or its failure.

Note: fresh or joined. A fresh call begins after all its callers have asked, so its result is never
older than the result of a call of their own. A caller that asks while a fresh call runs shares the
next call. A joined call also answers the callers that ask while it runs. Joined calls fit results
that stay valid for longer than a call takes, such as tokens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from svcd.errors import ServiceUnavailable, SvcdError
from svcd.ports.faults import PortError
from svcd.runtime import fencing
from svcd.runtime.tasks import Parked

log = Logger()

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_PATIENCE_S = 1.0
"""Longest time for which a fresh call delays the next one of its key."""


class Coalescer:
    """One call for several callers with the same key. Each kind of call has a key of its own.

    fresh_by: the calls are fresh. When a call takes longer than `_PATIENCE_S` on this clock, the
    next call begins beside it. None: the calls are joined.
    """

    def __init__(self, fresh_by: IReactorTime | None = None) -> None:
        self._clock = fresh_by
        self._calls: dict[Hashable, _Calls] = {}

    def get(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> Deferred[T]:
        """The result of `call`, or of another caller's call with the same key."""
        caller: Deferred[T] = Deferred()
        calls = self._calls.get(key)
        if calls is None:
            calls = self._calls[key] = _Calls()
        if calls.under_way and self._clock is None:
            calls.newest.append(caller)
            return caller
        calls.waiting.append(caller)
        calls.next = calls.next or call
        if not calls.under_way or self._now() > calls.began + _PATIENCE_S:
            self._begin(key, calls)
        return caller

    def _now(self) -> float:
        return 0.0 if self._clock is None else float(self._clock.seconds())

    def _begin(self, key: Hashable, calls: _Calls) -> None:
        call, callers = calls.next, calls.waiting
        if call is None:
            return
        calls.next, calls.waiting, calls.newest = None, [], callers
        calls.under_way += 1
        calls.began = self._now()

        def ended(result: Any) -> None:
            calls.under_way -= 1
            if calls.waiting:
                self._begin(key, calls)
            elif not calls.under_way:
                self._calls.pop(key, None)
            _answer(callers, result)

        _start(call, ended)


class _Calls:
    """The calls of one key.

    under_way: number of running calls. began: start of the newest call. newest: callers of the
    newest call. waiting: callers of the next call. next: the next call.
    """

    __slots__ = ("began", "newest", "next", "under_way", "waiting")

    def __init__(self) -> None:
        self.under_way = 0
        self.began = 0.0
        self.newest: list[Deferred[Any]] = []
        self.waiting: list[Deferred[Any]] = []
        self.next: Callable[[], Awaitable[Any]] | None = None


class Batches(Generic[K, V]):
    """Fetches the values of different keys together, by fresh calls.

    ask: returns the values of distinct keys; it must end within a bounded time. soon: calls a
    function in the next turn of the reactor. most: most keys in one `ask`. at_once: most calls of
    `ask` at the same time. When `ask` raises ServiceUnavailable, all waiting callers get that error
    at once, so that they do not wait one after the other.
    """

    def __init__(
        self,
        ask: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
        soon: Callable[[Callable[[], object]], object],
        most: int = 64,
        at_once: int = 2,
    ) -> None:
        self._ask = ask
        self._soon = soon
        self._most = most
        self._at_once = at_once
        self._waiting: dict[K, list[Deferred[V | None]]] = {}
        self._under_way = 0
        self._due = False

    def get(self, key: K) -> Deferred[V | None]:
        """The value of `key`, or None when the key has no value. Fails with the error of `ask`."""
        caller: Deferred[V | None] = Deferred()
        self._waiting.setdefault(key, []).append(caller)
        self._schedule()
        return caller

    def _schedule(self) -> None:
        """Send the waiting keys in the next turn, if a further call may begin."""
        if self._waiting and not self._due and self._under_way < self._at_once:
            self._due = True
            self._soon(self._send)

    def _send(self) -> None:
        self._due = False
        if not self._waiting or self._under_way >= self._at_once:
            return
        asked = {key: self._waiting.pop(key) for key in list(self._waiting)[: self._most]}
        self._under_way += 1

        def ended(result: Mapping[K, V] | Failure) -> None:
            self._under_way -= 1
            if not isinstance(result, Failure):
                self._schedule()
                for key, callers in asked.items():
                    _answer(callers, result.get(key))
                return
            turned_away = [caller for callers in asked.values() for caller in callers]
            if isinstance(result.value, ServiceUnavailable):
                turned_away += [caller for callers in self._waiting.values() for caller in callers]
                self._waiting = {}
            self._schedule()
            _answer(turned_away, result)

        _start(lambda: self._ask(list(asked)), ended)
        self._schedule()


def _start(call: Callable[[], Awaitable[Any]], ended: Callable[[Any], None]) -> None:
    """Begin `call`; `ended` gets its result or failure."""

    async def run() -> Any:
        return await call()

    fencing.detached(lambda: Deferred.fromCoroutine(run())).addBoth(ended)


def _answer(callers: Iterable[Deferred[Any]], result: object) -> None:
    """Give the result to the callers that have not given up. Log a bug when none is left."""
    left = [caller for caller in callers if not caller.called]
    for caller in left:
        if not caller.called:  # an earlier caller may have cancelled it
            caller.callback(result)
    expected = PortError | SvcdError | Parked
    if not left and isinstance(result, Failure) and not isinstance(result.value, expected):
        log.failure("A shared call failed after all its callers gave up", failure=result)
