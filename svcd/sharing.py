"""One call for many who ask at the same time, and nothing that is remembered.

A call begins after everybody whom it answers has asked: what it gives is never older than a call of
one's own would give. Who asks while a call is under way waits for the next one, and shares it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from svcd.errors import ServiceUnavailable

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_WAITING = 2000
_RETRY_AFTER_S = 2
_PATIENCE_S = 1.0


class Gathering(Generic[K, V]):
    """Different keys, asked for together. ask: what there is of the given keys, which differ.

    soon: calls a function in the next turn. most: keys of one `ask`; at_once: of them under way.
    `ask` has to end within a bounded time. When it raises ServiceUnavailable, all who wait are
    told, and not each after a wait of its own.
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
        self._count = 0
        self._under_way = 0
        self._due = False

    def get(self, key: K) -> Deferred[V | None]:
        """What there is of `key`, None for nothing. Fails with what `ask` raises."""
        turn: Deferred[V | None] = Deferred()
        if self._count >= _WAITING:
            turn.errback(ServiceUnavailable("too many requests wait", _RETRY_AFTER_S))
            return turn
        self._count += 1
        self._waiting.setdefault(key, []).append(turn)
        self._look()
        return turn

    def _look(self) -> None:
        if self._waiting and not self._due and self._under_way < self._at_once:
            self._due = True
            self._soon(self._send)

    def _send(self) -> None:
        self._due = False
        if not self._waiting or self._under_way >= self._at_once:
            return
        asked = {key: self._waiting.pop(key) for key in list(self._waiting)[: self._most]}
        self._count -= sum(map(len, asked.values()))
        self._under_way += 1
        Deferred.fromCoroutine(self._answer(asked))
        self._look()

    async def _answer(self, asked: Mapping[K, list[Deferred[V | None]]]) -> None:
        turns = [(key, turn) for key, each in asked.items() for turn in each]
        found: Mapping[K, V] = {}
        problem: Exception | None = None
        try:
            found = await self._ask(list(asked))
        except Exception as error:  # theirs who asked
            problem = error
        finally:
            self._under_way -= 1
        if isinstance(problem, ServiceUnavailable):
            turns += [(key, turn) for key, each in self._waiting.items() for turn in each]
            self._waiting, self._count = {}, 0
        self._look()
        for key, turn in turns:
            _fire(turn, found.get(key), problem)


class Shared:
    """The same call, asked for by several. Each kind of call has a key of its own.

    A call that takes longer than `_PATIENCE_S` is not waited for: the next one begins beside it.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self._flights: dict[Hashable, _Flight] = {}

    def get(self, key: Hashable, call: Callable[[], Awaitable[T]]) -> Deferred[T]:
        """The result of `call`, or of one of the same key that somebody else has given."""
        turn: Deferred[T] = Deferred()
        now = self._clock.seconds()
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
        flight.waiting.append((turn, call))
        if not flight.under_way or now > flight.began + _PATIENCE_S:
            self._begin(key, flight)
        return turn

    def _begin(self, key: Hashable, flight: _Flight) -> None:
        waiting, flight.waiting = flight.waiting, []
        flight.under_way += 1
        flight.began = self._clock.seconds()
        Deferred.fromCoroutine(self._fly(key, flight, waiting))

    async def _fly(self, key: Hashable, flight: _Flight, waiting: list[_Waiting]) -> None:
        result: Any = None
        problem: Exception | None = None
        try:
            result = await waiting[0][1]()
        except Exception as error:  # theirs who asked
            problem = error
        finally:
            flight.under_way -= 1
        if flight.waiting:
            self._begin(key, flight)
        elif not flight.under_way:
            self._flights.pop(key, None)
        for turn, _ in waiting:
            _fire(turn, result, problem)


_Waiting = tuple[Deferred[Any], Callable[[], Awaitable[Any]]]


class _Flight:
    """Calls of one key: how many are under way, when the last began, who waits for the next."""

    __slots__ = ("began", "under_way", "waiting")

    def __init__(self) -> None:
        self.under_way = 0
        self.began = 0.0
        self.waiting: list[_Waiting] = []


def _fire(turn: Deferred[Any], result: object, problem: Exception | None) -> None:
    if turn.called:  # given up by its asker
        return
    if problem is None:
        turn.callback(result)
    else:
        turn.errback(Failure(problem))  # type: ignore[no-untyped-call]
