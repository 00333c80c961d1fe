# mypy: allow-untyped-calls
"""Runs the asynchronous work of one command on a reactor of its own, until a signal ends it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.selectreactor import SelectReactor
from twisted.python.failure import Failure
from twisted.web.client import Agent
from twisted.web.iweb import IAgent

from svcd.cli.exits import INTERRUPTED, TIMED_OUT, CommandError, OutOfTime
from svcd.clients.connections import Connections

T = TypeVar("T")
Stop = Callable[[CommandError], None]

_CONNECT_S: Final = 10.0
"""Time to open one connection."""


def run(work: Callable[[Any, IAgent], Coroutine[Any, Any, T]], stop: Stop | None = None) -> T:
    """The result of `work`, which gets the reactor and an agent. Raises what `work` raises.

    stop: is called with the error that a signal stands for, as often as signals come. Without it
    the first signal cancels the work, and the error is raised.
    """
    reactor: Any = SelectReactor()
    agent = Agent(reactor, pool=Connections(reactor, persistent=False), connectTimeout=_CONNECT_S)
    running: list[Deferred[T]] = []
    stopped: list[CommandError] = []
    ended: list[T | Failure] = []

    def begin() -> None:
        running.append(Deferred.fromCoroutine(work(reactor, agent)))
        running[0].addBoth(end)

    def end(result: T | Failure) -> None:
        ended.append(result)
        reactor.stop()

    def cancel(error: CommandError) -> None:
        stopped.append(error)
        running[0].cancel()

    reactor.callWhenRunning(begin)
    with _signals(lambda error: reactor.callFromThread(stop or cancel, error)):
        reactor.run(installSignalHandlers=False)
    (result,) = ended
    if isinstance(result, Failure):
        if stopped:
            raise stopped[0]
        result.raiseException()
    return result


@contextmanager
def _signals(stop: Stop) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM, the end of the terminal and `--timeout` call `stop`.

    They must raise no exception in the reactor. A signal that is ignored, as after nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    errors = {
        number: CommandError("interrupted", INTERRUPTED)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    errors[signal.SIGALRM] = OutOfTime("--timeout ran out", TIMED_OUT)
    former = {
        number: signal.signal(number, lambda given, _frame: stop(errors[signal.Signals(given)]))
        for number in errors
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
