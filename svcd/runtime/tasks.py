"""The only module that starts timers and coroutines that outlive their caller.

Everything started here has an owner that can stop it and wait for it. `except Exception` is allowed
here, in `Loop` and `KeyedTasks`: they log a failure with an incident id and continue. An
unreachable database is not a bug: one line reports it. Work that is `Parked` rests, without a line.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from svcd.errors import ServiceUnavailable
from svcd.model.backoff import Backoff
from svcd.runtime.waits import Gate

if TYPE_CHECKING:
    from svcd.ports.lease import Lease

T = TypeVar("T")
K = TypeVar("K")

log = Logger()

STOP_S = 15.0
"""Longest wait for cancelled work at a stop: work that does not end must not keep the process."""
_MOST_NAMED: Final = 10
"""Runs without an end at a stop that the log names."""
_AGAIN: Final = Backoff(first_s=1.0, most_s=60.0)
"""Waits of `KeyedTasks` after failures."""


class Parked(Exception):
    """The work may not continue in this process. Its owner lets it rest; this is not a failure."""


class DeadlineExceeded(Exception):
    """A wait took longer than its limit. args[0]: name of the wait; args[1]: limit in seconds."""


def incident_id() -> str:
    """A short id that a log line and an answer share."""
    return uuid.uuid4().hex[:12]


def sleep(clock: IReactorTime, seconds: float) -> Deferred[None]:
    """Fires after `seconds`; cancelling it cancels the timer."""
    call: list[IDelayedCall] = []

    def cancel(_: Deferred[None]) -> None:
        if call[0].active():
            call[0].cancel()

    done: Deferred[None] = Deferred(cancel)
    call.append(clock.callLater(seconds, done.callback, None))
    return done


async def with_deadline(
    clock: IReactorTime, seconds: float, what: str, work: Coroutine[Any, Any, T] | Deferred[T]
) -> T:
    """The result of `work`, which is cancelled after `seconds`.

    Raises DeadlineExceeded(what, seconds).
    """
    running: Deferred[T] = work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)

    def late(result: T | Failure, _: float) -> T:
        if isinstance(result, Failure):
            raise DeadlineExceeded(what, seconds)
        return result

    return await running.addTimeout(seconds, clock, late)


def apart(work: Deferred[T], cancel: Callable[[Deferred[T]], None]) -> Deferred[T]:
    """A Deferred of the result of `work`. Cancelling it calls `cancel` with it, and not `work`'s.

    The result of `work` after that is dropped.
    """
    outer: Deferred[T] = Deferred(cancel)

    def ended(result: T | Failure) -> None:
        if not outer.called:
            outer.callback(result)

    work.addBoth(ended)
    return outer


def shielded(work: Coroutine[Any, Any, T] | Deferred[T]) -> Deferred[T]:
    """A Deferred of the result that can be cancelled while `work` itself runs to its end.

    A failure of abandoned work is logged: in one line when the database is unavailable, as it is at
    a stop, and with a traceback otherwise.
    """
    running: Deferred[T] = work if isinstance(work, Deferred) else Deferred.fromCoroutine(work)
    abandoned = False

    def abandon(_: Deferred[T]) -> None:
        nonlocal abandoned
        abandoned = True

    outer: Deferred[T] = Deferred(abandon)

    def finished(result: T | Failure) -> None:
        if not abandoned:
            outer.callback(result)
        elif isinstance(result, Failure) and not isinstance(result.value, Parked):
            if isinstance(result.value, ServiceUnavailable):
                log.info("Abandoned work was not done: {reason}", reason=result.value.message)
            else:
                log.failure("Abandoned work failed", failure=result)

    running.addBoth(finished)
    return outer


async def gather(
    work: Iterable[Callable[[], Coroutine[Any, Any, T]]], limit: int
) -> list[T | BaseException]:
    """Run all of `work`, at most `limit` at once; return results or exceptions in order.

    Cancelling cancels all.
    """
    thunks = list(work)
    results: list[T | BaseException | None] = [None] * len(thunks)
    pending = iter(range(len(thunks)))

    async def worker() -> None:
        for index in pending:
            try:
                results[index] = await thunks[index]()
            except CancelledError:
                raise
            except Exception as error:  # returned to the caller, who decides
                results[index] = error

    workers = [Deferred.fromCoroutine(worker()) for _ in range(min(limit, len(thunks)))]
    try:
        for task in workers:
            await task
    except GeneratorExit:  # garbage collection closes this coroutine and the workers
        raise
    except BaseException:
        for task in workers:
            task.addErrback(_swallow_cancel)
            task.cancel()
        raise
    return cast("list[T | BaseException]", results)


def _swallow_cancel(failure: Failure) -> None:
    failure.trap(CancelledError)  # type: ignore[no-untyped-call]


class Loop:
    """A LoopingCall that continues after failures: a failed turn is logged.

    A turn that is still running when the next one is due delays that one. `wake` runs a turn soon.
    lease: turns run only while it is held, and are driven under its term. None: always.
    """

    def __init__(
        self,
        clock: IReactorTime,
        name: str,
        every_s: float,
        turn: Callable[[], Coroutine[Any, Any, None]],
        lease: Lease | None = None,
    ) -> None:
        self._clock = clock
        self._name = name
        self._every_s = every_s
        self._turn = turn
        self._lease = lease
        self._running: Deferred[None] | None = None
        self._again = False
        self._call = LoopingCall(self._once)
        self._call.clock = clock
        self._stopped = True

    def start(self, now: bool = True) -> None:
        """Begin; the first turn runs at once unless `now` is False."""
        self._stopped = False
        self._call.start(self._every_s, now=now)

    def wake(self) -> None:
        """Run a turn soon: at once when idle, else directly after the current turn."""
        if self._stopped:
            return
        if self._running is not None:
            self._again = True
        elif self._call.running:
            self._once()

    async def stop(self) -> None:
        """Start no more turns; cancel the current turn and wait for it, at most STOP_S."""
        self._stopped = True
        if self._call.running:
            self._call.stop()
        if self._running is not None:
            await _ended(self._clock, self._name, {"its turn": self._running})

    def _once(self) -> Deferred[None] | None:
        if self._running is not None:
            return None
        # A new context: the turn must not inherit log ids or a lease from the caller of `wake`.
        running = Context().run(Deferred.fromCoroutine, self._guarded())
        if running.called:
            return None
        self._running = running
        return running

    async def _guarded(self) -> None:
        try:
            while True:
                self._again = False
                turn = self._turn()
                with contextlib.suppress(Parked):  # a wake may have come since, with a new lease
                    await (turn if self._lease is None else self._lease.drive(turn))
                if not self._again or self._stopped:
                    return
        except CancelledError:
            if not self._stopped:
                log.warn("Loop {name} was cancelled", name=self._name)
        except ServiceUnavailable as error:
            log.warn("Loop {name} cannot work now: {reason}", name=self._name, reason=error.message)
        except Exception:
            log.failure("Loop {name} failed, incident {i}", name=self._name, i=incident_id())
        finally:
            self._running = None


class KeyedTasks(Generic[K]):
    """One running task per key. A wake during a run causes exactly one more run.

    work: called with the key; returns the seconds until its next run, or None to rest.
    A failure is logged and retried with back-off. At most `limit` keys run at once.
    failed: called at each failure with the key, the number of failures in a row, the incident id
    and the exception.
    lease: work runs only while it is held, and is driven under its term. None: always.
    parked: called with a key whose work was `Parked`: the lease is not held or was lost.
    """

    def __init__(
        self,
        clock: IReactorTime,
        name: str,
        work: Callable[[K], Coroutine[Any, Any, float | None]],
        limit: int = 1000,
        backoff: Backoff = _AGAIN,
        rng: random.Random | None = None,
        failed: Callable[[K, int, str, Exception], None] | None = None,
        lease: Lease | None = None,
        parked: Callable[[K], None] | None = None,
    ) -> None:
        self._clock = clock
        self._name = name
        self._work = work
        self._failed = failed
        self._lease = lease
        self._parked = parked
        self._gate = Gate(limit)
        self._backoff = backoff
        self._rng = rng
        self._running: dict[K, Deferred[None]] = {}
        self._again: set[K] = set()
        self._timers: dict[K, IDelayedCall] = {}
        self._failures: dict[K, int] = {}
        self._stopping = False

    def wake(self, key: K, delay_s: float = 0.0) -> None:
        """Run `key` after `delay_s`, or once more directly after its current run."""
        if self._stopping:
            return
        if key in self._running:
            self._again.add(key)
            return
        timer = self._timers.get(key)
        if timer is not None and timer.active():
            if timer.getTime() <= self._clock.seconds() + delay_s:
                return
            timer.cancel()
        self._timers[key] = self._clock.callLater(delay_s, self._start, key)

    def rest(self, key: K) -> None:
        """Forget the timer and the failures of `key`. A current run continues to its end."""
        timer = self._timers.pop(key, None)
        if timer is not None and timer.active():
            timer.cancel()
        self._failures.pop(key, None)

    def active(self) -> Sequence[K]:
        """Keys that run or have a timer."""
        return [*self._running, *(k for k in self._timers if k not in self._running)]

    async def stop(self) -> None:
        """Cancel timers and runs, and wait until each run has ended, for STOP_S at most."""
        self._stopping = True
        for timer in self._timers.values():
            if timer.active():
                timer.cancel()
        self._timers.clear()
        runs = {str(key): running for key, running in self._running.items()}
        await _ended(self._clock, self._name, runs)

    def _start(self, key: K) -> None:
        self._timers.pop(key, None)
        if self._stopping or key in self._running:
            return
        placeholder: Deferred[None] = Deferred()
        self._running[key] = placeholder
        running = Deferred.fromCoroutine(self._run(key))
        if not running.called:
            self._running[key] = running

    async def _driven(self, key: K) -> float | None:
        """One run of the work. Raises Parked when the lease is not held."""
        work = self._work(key)
        return await (work if self._lease is None else self._lease.drive(work))

    async def _run(self, key: K) -> None:
        again: float | None = None
        try:
            async with self._gate:
                if self._stopping:
                    return
                again = await self._driven(key)
            self._failures.pop(key, None)
        except CancelledError:
            if not self._stopping:
                log.warn("Task {name} {key} was cancelled", name=self._name, key=key)
                again = self._backoff.first_s
        except Parked:
            self._failures.pop(key, None)
            if self._parked is not None:
                self._parked(key)
        except Exception as error:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            if self._rng is None:
                self._rng = random.Random(0)
            again = self._backoff.delay_s(count, self._rng)
            incident = incident_id()
            if isinstance(error, ServiceUnavailable):
                log.warn(
                    "Task {name} {key} cannot work now, next try in {s:.1f} s: {reason}",
                    name=self._name,
                    key=key,
                    s=again,
                    reason=error.message,
                )
            else:
                log.failure(
                    "Task {name} {key} failed, incident {i}, next try in {s:.1f} s",
                    name=self._name,
                    key=key,
                    i=incident,
                    s=again,
                )
            if self._failed is not None:
                self._failed(key, count, incident, error)
        finally:
            del self._running[key]
        if key in self._again:
            self._again.discard(key)
            again = 0.0
        if again is not None and not self._stopping:
            self.wake(key, again)


async def _ended(clock: IReactorTime, name: str, runs: Mapping[str, Deferred[None]]) -> None:
    """Cancel all `runs` and wait for them; those that do not end in time are logged and left.

    runs: by the words for each in the log.
    """
    left = dict(runs)  # a cancelled Deferred counts as called although its run has not ended
    ends = [_cancelled(running, partial(left.pop, run)) for run, running in runs.items()]

    async def all_ended() -> None:
        for end in ends:
            await end

    try:
        await with_deadline(clock, STOP_S, name, all_ended())
    except DeadlineExceeded:
        log.error(
            "{n} runs of {name} did not end within {s} s: {late}",
            n=len(left),
            name=name,
            s=STOP_S,
            late=", ".join(list(left)[:_MOST_NAMED]),
        )


def _cancelled(running: Deferred[None], ends: Callable[[], object]) -> Deferred[None]:
    """Cancel `running`; the result fires when `running` has ended, after a call of `ends`."""
    ended: Deferred[None] = Deferred()

    def end(_: object) -> None:
        ends()
        ended.callback(None)

    running.addBoth(end)
    running.cancel()
    return ended
