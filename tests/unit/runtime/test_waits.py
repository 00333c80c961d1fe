"""Callers wait for a place, for news, or until their work is interrupted."""

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import sleep
from svcd.runtime.waits import Gate, Interrupt, Interrupted, Waiters


class GateTests(SynchronousTestCase):
    def test_cancelled_waiter_does_not_take_the_turn(self) -> None:
        """The one behind it gets in."""
        gate = Gate(1)
        log: list[str] = []
        first: Deferred[None] = Deferred()

        async def hold(name: str, until: Deferred[None] | None) -> None:
            async with gate:
                log.append(name)
                if until is not None:
                    await until

        Deferred.fromCoroutine(hold("a", first))
        second = Deferred.fromCoroutine(hold("b", None))
        Deferred.fromCoroutine(hold("c", None))
        second.cancel()
        self.failureResultOf(second, CancelledError)
        first.callback(None)
        self.assertEqual(log, ["a", "c"])

    def test_many_waiters_get_in_one_after_the_other(self) -> None:
        """Their turns do not nest, although each of them leaves at once."""
        gate = Gate(2)
        log: list[int] = []
        holders: list[Deferred[None]] = [Deferred(), Deferred()]

        async def hold(number: int) -> None:
            async with gate:
                if number < len(holders):
                    await holders[number]
                log.append(number)

        for number in range(2000):
            Deferred.fromCoroutine(hold(number))
        holders[0].callback(None)
        self.assertEqual(log, [0, *range(2, 2000)])
        holders[1].callback(None)
        Deferred.fromCoroutine(hold(2000))
        self.assertEqual(log[-2:], [1, 2000])


class WaitersTests(SynchronousTestCase):
    def test_fire_wakes_all_that_wait_now(self) -> None:
        """A cancelled one is forgotten; a later one waits for the next."""
        waiters = Waiters()
        first, second = waiters.wait(), waiters.wait()
        second.cancel()
        self.failureResultOf(second, CancelledError)
        waiters.fire()
        self.successResultOf(first)
        self.assertNoResult(waiters.wait())


class InterruptTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.interrupt = Interrupt()

    def guarded(self, seconds: float) -> Deferred[str]:
        async def work() -> str:
            await sleep(self.clock, seconds)
            return "done"

        return Deferred.fromCoroutine(self.interrupt.guard(work()))

    def test_fire_cancels_what_is_guarded(self) -> None:
        """At once, and its timer with it."""
        result = self.guarded(100)
        self.interrupt.fire()
        self.failureResultOf(result, Interrupted)
        self.assertEqual(list(self.clock.getDelayedCalls()), [])

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
