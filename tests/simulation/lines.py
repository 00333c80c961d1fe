# mypy: allow-untyped-calls
"""The line of one simulated process: what it holds of the outside, on a clock of its own.

Beside what `svcd.embedded.lifeline` does (it can be cut), a line can be frozen as by SIGSTOP: its
timers and the answers to its calls wait, what it has sent is carried out by others, and what it is
about to send waits at the gate. Thawed, all of that comes at once. A call under a lease passes the
gate only while the lease is believed in, as in `svcd.clients.connections` and `ssh_wire`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Generic, TypeVar

from attrs import define, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.web.iweb import IAgent, IResponse
from zope.interface import implementer

from svcd.embedded.lifeline import Lifeline
from svcd.runtime import fencing
from svcd.runtime.fencing import LeaseLost

T = TypeVar("T")


@define
class Stage(Generic[T]):
    """Who acts at this moment, None: nobody of the processes."""

    speaker: T | None = None

    @contextmanager
    def by(self, speaker: T) -> Iterator[None]:
        """Inside, `speaker` acts."""
        before, self.speaker = self.speaker, speaker
        try:
            yield
        finally:
            self.speaker = before


@frozen
class Drift:
    """How a machine's clock differs from the true one.

    offset_s: of its wall clock. rate: seconds that it gains in a second.
    """

    offset_s: float = 0.0
    rate: float = 0.0


class Line(Lifeline):
    """trap: called at the gate when `spring` was, instead of letting the next call out."""

    def __init__(
        self,
        clock: IReactorTime,
        entered: Callable[[], Any],
        drift: Drift,
        trap: Callable[[], None],
    ) -> None:
        super().__init__(clock)
        self.frozen = False
        self._entered = entered
        self._drift = drift
        self._epoch = float(clock.seconds())
        self._trap = trap
        self._sprung = False
        self._gate: list[Callable[[], None]] = []
        self._answers: list[Callable[[], None]] = []
        self._due: list[_Timer] = []

    # ---- frozen and thawed ----

    def spring(self) -> None:
        """The next call to the outside meets the trap first."""
        self._sprung = True

    def freeze(self) -> None:
        self.frozen = True

    def thaw(self, timers_first: bool) -> None:
        """All that waited comes now: what was about to be sent, then answers and timers."""
        if not (self.frozen and self.alive):
            return
        self.frozen = False
        gate, self._gate = self._gate, []
        answers, self._answers = self._answers, []
        due, self._due = self._due, []
        timers = [each.run for each in due]
        for call in (*gate, *(timers + answers if timers_first else answers + timers)):
            self._clock.callLater(0.0, self._again, call)

    def _again(self, call: Callable[[], None]) -> None:
        if self.frozen:  # once more, before it came to this
            self._answers.append(call)
        elif self.alive:
            with self._entered():
                call()

    def cut(self) -> None:
        """See Lifeline."""
        super().cut()
        self.frozen = False
        self._gate.clear()
        self._answers.clear()
        self._due.clear()

    def deliver(self, call: Callable[[], None]) -> None:
        """Something comes from the outside; it waits while the process is frozen."""
        if not self.alive:
            return
        if self.frozen:
            self._answers.append(call)
            return
        with self._entered():
            call()

    # ---- time ----

    def seconds(self) -> float:
        """See IReactorTime: wall time as this machine sees it."""
        return self.shown(float(self._clock.seconds()))

    def steady(self) -> float:
        """Seconds of a clock that never goes back."""
        return self.shown(float(self._clock.seconds())) - self._drift.offset_s - self._epoch

    def shown(self, at: float) -> float:
        """What the machine's clock shows at the true time `at`."""
        drift = self._drift
        return at + drift.offset_s + (at - self._epoch) * drift.rate

    def callLater(
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> IDelayedCall:
        """See IReactorTime."""
        timer = _Timer(self, lambda: callable(*args, **kw))
        timer.call = self._clock.callLater(self.true(delay), self._fell_due, timer)
        if not self.alive:
            timer.cancel()
            return timer
        self._timers.append(timer)
        if len(self._timers) >= self._prune_at:
            self._timers = self.timers()
            self._prune_at = max(256, 2 * len(self._timers))
        return timer

    def true(self, seconds: float) -> float:
        """How long `seconds` of this machine really are."""
        return seconds / (1.0 + self._drift.rate)

    def _fell_due(self, timer: _Timer) -> None:
        if self.frozen:
            self._due.append(timer)
            return
        with self._entered():
            timer.run()

    # ---- calls ----

    async def held(self, work: Callable[[], Awaitable[T]], fenced: bool = True) -> T:
        """See Lifeline. fenced: it is let go only under a lease that is believed in."""
        self._arrive_at_gate()
        if self.frozen:
            turn: Deferred[None] = Deferred()
            self._gate.append(lambda: turn.callback(None))
            await turn
        if not self.alive:
            return await Deferred()
        if fenced:
            _check_fence()
        self._in_flight += 1
        with self._entered():
            running = Deferred.fromCoroutine(_result_of(work))
        return await self._answer(running)

    def request(self, agent: IAgent, *args: Any) -> Deferred[IResponse]:
        """See Lifeline."""
        self._arrive_at_gate()
        if not self.alive:
            return Deferred()
        if not self.frozen:
            return self._sent(agent, *args)
        answer: Deferred[IResponse] = Deferred()
        context = copy_context()

        def send() -> None:
            if not answer.called:
                context.run(self._sent, agent, *args).chainDeferred(answer)

        self._gate.append(send)
        return answer

    def _sent(self, agent: IAgent, *args: Any) -> Deferred[IResponse]:
        refused: Deferred[IResponse] = Deferred()
        try:
            _check_fence()
        except LeaseLost:
            refused.errback(Failure())
            return refused
        self._in_flight += 1
        with self._entered():
            asked: Deferred[IResponse] = agent.request(*args)
        return self._answer(asked.addCallback(_Response, self))

    def _arrive_at_gate(self) -> None:
        if self._sprung and self.alive and not self.frozen:
            self._sprung = False
            self._trap()

    def _answer(self, running: Deferred[T]) -> Deferred[T]:
        """The result of a call that was sent; dropped when the line is cut."""
        answer: Deferred[T] = Deferred(lambda _: running.cancel() if self.alive else None)

        def arrive(result: T | Failure) -> None:
            self._in_flight -= 1
            if not answer.called:
                answer.callback(result)

        def arrived(result: T | Failure) -> None:
            self.deliver(lambda: arrive(result))

        running.addBoth(arrived)
        return answer


@implementer(IResponse)
class _Response:
    """An answer whose body comes through the line too."""

    def __init__(self, response: IResponse, line: Line) -> None:
        self._response = response
        self._line = line
        self.version = response.version
        self.code = response.code
        self.phrase = response.phrase
        self.headers = response.headers
        self.length = response.length
        self.request = response.request
        self.previousResponse = response.previousResponse

    def setPreviousResponse(self, response: IResponse) -> None:
        """See IResponse."""
        self.previousResponse = response

    def deliverBody(self, protocol: IProtocol) -> None:
        """See IResponse."""
        self._response.deliverBody(_Body(protocol, self._line))


class _Body(Protocol):
    """What arrives of a body."""

    def __init__(self, reader: IProtocol, line: Line) -> None:
        self._reader = reader
        self._line = line

    def connectionMade(self) -> None:
        self._reader.makeConnection(self.transport)

    def dataReceived(self, data: bytes) -> None:
        self._line.deliver(lambda: self._reader.dataReceived(data))

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        self._line.deliver(lambda: self._reader.connectionLost(reason))


async def _result_of(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


@implementer(IDelayedCall)
class _Timer:
    """A delayed call of a line."""

    call: IDelayedCall

    def __init__(self, line: Line, what: Callable[[], object]) -> None:
        self._line = line
        self._what = what
        self._over = ""

    def run(self) -> None:
        if not self._over:
            self._over = "called"
            self._what()

    def active(self) -> bool:
        """See IDelayedCall."""
        return not self._over

    def cancel(self) -> None:
        """See IDelayedCall. Coroutines of a dead process that are collected cancel their timers."""
        if self._over and not self._line.alive:
            return
        if self._over:
            raise AlreadyCalled if self._over == "called" else AlreadyCancelled
        self._over = "cancelled"
        if self.call.active():  # else it waits for a thaw
            self.call.cancel()

    def getTime(self) -> float:
        """See IDelayedCall."""
        return self._line.shown(self.call.getTime())

    def reset(self, secondsFromNow: float) -> None:
        """See IDelayedCall."""
        if self.call.active():
            self.call.reset(self._line.true(secondsFromNow))

    def delay(self, secondsLater: float) -> None:
        """See IDelayedCall."""
        if self.call.active():
            self.call.delay(self._line.true(secondsLater))


def _check_fence() -> None:
    """Raises LeaseLost when the current work may no longer act, as the real clients do."""
    term = fencing.current()
    if term is not None:
        term.check()
