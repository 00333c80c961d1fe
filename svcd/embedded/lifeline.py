"""The connections of one daemon to the outside; a test can cut them to kill the daemon.

`cut` simulates `kill -9` within one process. The daemon's awaits never end, its timers never fire,
its later calls have no effect, and its clean-up reaches no peer. Peers carry out the requests that
the daemon sent before. This module does not decide the time of a cut.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.ports.machines import CommandResult, Host, Location, Probe, Remote
from svcd.runtime.clock import SteadyTime

T = TypeVar("T")

_MANY = 256


@implementer(IReactorTime)
class Lifeline:
    """The clock of one daemon, and wrappers for its other ways to the outside."""

    def __init__(self, clock: IReactorTime, ahead_s: float = 0.0) -> None:
        self.alive = True
        self._clock = clock
        self._ahead_s = ahead_s  # seconds that the clock of the daemon's machine is ahead
        self._own: SteadyTime | None = self._steady() if ahead_s else None
        self._timers: list[IDelayedCall] = []
        self._prune_at = _MANY
        self._in_flight = 0

    def cut(self) -> None:
        """Kill the daemon. Idempotent."""
        self.alive = False
        for timer in self.timers():
            timer.cancel()
        self._timers.clear()

    # ---- time ----

    def seconds(self) -> float:
        """See IReactorTime. The daemon's own time, as a reactor's after `svcd.tap`."""
        return float(self._clock.seconds() if self._own is None else self._own.seconds())

    def set_clock(self, ahead_s: float) -> None:
        """Set the clock of the daemon's machine, and no other clock."""
        if self._own is None:
            self._own = self._steady()
        self._ahead_s = ahead_s

    def _steady(self) -> SteadyTime:
        return SteadyTime(lambda: self._clock.seconds() + self._ahead_s, self._clock.seconds)

    def callLater(
        self, delay: float, callable: Callable[..., Any], *args: object, **kw: object
    ) -> IDelayedCall:
        """See IReactorTime."""
        call = _Call(self, self._clock, self._clock.callLater(delay, callable, *args, **kw))
        if not self.alive:
            call.cancel()
            return call
        self._timers.append(call)
        if len(self._timers) >= self._prune_at:
            self._timers = self.timers()
            self._prune_at = max(_MANY, 2 * len(self._timers))
        return call

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """See IReactorTime: those of this daemon."""
        return tuple(self.timers())

    def timers(self) -> list[IDelayedCall]:
        """The daemon's delayed calls that have not fired yet."""
        return [timer for timer in self._timers if timer.active()]

    # ---- waiting ----

    @property
    def in_flight(self) -> int:
        """Calls to the outside that the daemon waits for."""
        return self._in_flight

    async def held(self, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, which does not begin, or does not come, once the line is cut."""
        if self.alive:
            self._in_flight += 1
            try:
                result = await work()
            except GeneratorExit:
                raise  # the daemon is dead and drops the error
            except BaseException:
                if self.alive:
                    raise
            else:
                if self.alive:
                    return result
            finally:
                self._in_flight -= 1
        return await Deferred()

    def agent(self, agent: IAgent) -> IAgent:
        return _Agent(self, agent)

    def remote(self, remote: Remote) -> Remote:
        return _Remote(self, remote)

    def probe(self, probe: Probe) -> Probe:
        return _Probe(self, probe)

    def request(self, agent: IAgent, *args: Any) -> Deferred[IResponse]:
        """An agent's request; a cut one is neither answered nor withdrawn."""
        if not self.alive:
            return Deferred()
        self._in_flight += 1
        asked: Deferred[IResponse] = agent.request(*args)
        answer: Deferred[IResponse] = Deferred(lambda _: asked.cancel() if self.alive else None)

        def arrived(result: IResponse | Failure) -> None:
            self._in_flight -= 1
            if self.alive and not answer.called:
                answer.callback(result)

        asked.addBoth(arrived)
        return answer


@implementer(IDelayedCall)
class _Call:
    """A delayed call whose time is in the daemon's own time."""

    def __init__(self, line: Lifeline, clock: IReactorTime, call: IDelayedCall) -> None:
        self._line = line
        self._clock = clock
        self._call = call

    def getTime(self) -> float:
        """See IDelayedCall."""
        return self._call.getTime() - float(self._clock.seconds()) + self._line.seconds()

    def cancel(self) -> None:
        """See IDelayedCall. Coroutines of a dead daemon that are collected cancel their timers."""
        if self._line.alive or self._call.active():
            self._call.cancel()

    def delay(self, secondsLater: float) -> None:
        """See IDelayedCall."""
        self._call.delay(secondsLater)

    def reset(self, secondsFromNow: float) -> None:
        """See IDelayedCall."""
        self._call.reset(secondsFromNow)

    def active(self) -> bool:
        """See IDelayedCall."""
        return bool(self._call.active())


@implementer(IAgent)
class _Agent:
    def __init__(self, line: Lifeline, agent: IAgent) -> None:
        self._line = line
        self._agent = agent

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        """See IAgent."""
        return self._line.request(self._agent, method, uri, headers, bodyProducer)


class _Remote:
    """ports.Remote."""

    def __init__(self, line: Lifeline, remote: Remote) -> None:
        self._line = line
        self._remote = remote

    async def run(
        self, host: Host, command: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        return await self._line.held(
            lambda: self._remote.run(host, command, stdin=stdin, timeout_s=timeout_s)
        )

    def forget(self, host: Host) -> None:
        if self._line.alive:
            self._remote.forget(host)

    async def close(self) -> None:
        """The machines stay for the next daemon."""


class _Probe:
    """ports.Probe."""

    def __init__(self, line: Lifeline, probe: Probe) -> None:
        self._line = line
        self._probe = probe

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        return await self._line.held(lambda: self._probe.get(at, timeout_s))

    async def put(self, at: Location, body: bytes, timeout_s: float) -> int:
        return await self._line.held(lambda: self._probe.put(at, body, timeout_s))
