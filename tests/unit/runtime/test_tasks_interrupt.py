"""`tasks.Interrupt`: guarded work ends when the flag is raised, and says so."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import Interrupt, Interrupted, KeyedTasks, sleep


class InterruptTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.interrupt = Interrupt()

    def guarded(self, seconds: float) -> Deferred[str]:
        async def work() -> str:
            await sleep(self.clock, seconds)
            return "done"

        return Deferred.fromCoroutine(self.interrupt.guard(work()))

    def test_undisturbed_work_gives_its_result(self) -> None:
        """The flag is not raised."""
        result = self.guarded(1)
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(result), "done")

    def test_fire_cancels_what_is_guarded(self) -> None:
        """At once, and its timer with it."""
        result = self.guarded(100)
        self.interrupt.fire()
        self.failureResultOf(result, Interrupted)
        self.assertEqual(list(self.clock.getDelayedCalls()), [])

    def test_fire_cancels_in_the_order_of_guarding(self) -> None:
        """Not in that of addresses in memory, so a run can be repeated exactly."""
        ended: list[int] = []
        for number in range(50):
            self.guarded(100).addErrback(lambda _, n=number: ended.append(n))
        self.interrupt.fire()
        self.assertEqual(ended, list(range(50)))

    def test_raised_flag_refuses_new_work_until_cleared(self) -> None:
        """What comes too late does not begin."""
        self.interrupt.fire()
        self.failureResultOf(self.guarded(1), Interrupted)
        self.interrupt.clear()
        result = self.guarded(1)
        self.clock.advance(1)
        self.assertEqual(self.successResultOf(result), "done")

    def test_cancel_from_outside_stays_a_cancel(self) -> None:
        """A shutdown is not an interruption."""
        result = self.guarded(100)
        result.cancel()
        self.failureResultOf(result, CancelledError)


class FailedHookTests(SynchronousTestCase):
    def test_owner_is_told_of_each_failure_in_a_row(self) -> None:
        """Key, count, incident id and error; the count begins again after a success."""
        clock = VirtualClock()
        told: list[tuple[str, int, str]] = []
        broken = [True, True, False, True]

        async def work(key: str) -> float | None:
            if broken.pop(0):
                raise ZeroDivisionError("a bug")
            return 1.0

        def failed(key: str, count: int, incident: str, error: Exception) -> None:
            told.append((key, count, type(error).__name__))

        tasks: KeyedTasks[str] = KeyedTasks(clock, "test", work, failed=failed)
        tasks.wake("a")
        clock.advance(5)
        self.assertEqual(
            told,
            [
                ("a", 1, "ZeroDivisionError"),
                ("a", 2, "ZeroDivisionError"),
                ("a", 1, "ZeroDivisionError"),
            ],
        )
        stopped: list[Any] = []
        Deferred.fromCoroutine(tasks.stop()).addBoth(stopped.append)
        self.assertEqual(len(stopped), 1)
        self.flushLoggedErrors(ZeroDivisionError)
