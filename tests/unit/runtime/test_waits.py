"""Callers wait for a place, for news, or until their work is interrupted."""

import gc

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

    def test_abandoned_gate_wakes_no_closed_waiter(self) -> None:
        """The collector closes the waiter first, then the holder: no turn is passed on."""

        def abandon() -> None:
            gate = Gate(1)

            async def hold() -> None:
                async with gate:
                    never: Deferred[None] = Deferred()
                    never.itself = never  # type: ignore[attr-defined]
                    await never

            waiter, holder = hold(), hold()  # collected in the order of their making
            running = [Deferred.fromCoroutine(holder), Deferred.fromCoroutine(waiter)]
            for each in running:
                each.all = running  # type: ignore[attr-defined]

        abandon()
        gc.collect()
        gc.collect()  # a Deferred logs its unhandled error once it is freed, a round later
        self.assertEqual(self.flushLoggedErrors(RuntimeError), [])


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

    def test_fire_wakes_in_the_order_of_waiting(self) -> None:
        """Not in that of addresses in memory, so a run can be repeated exactly."""
        waiters = Waiters()
        woken: list[int] = []
        for number in range(50):
            waiters.wait().addCallback(lambda _, n=number: woken.append(n))
        waiters.fire()
        self.assertEqual(woken, list(range(50)))

    def test_one_that_is_woken_may_cancel_another(self) -> None:
        """The rest are woken all the same."""
        waiters = Waiters()
        turns = [waiters.wait() for _ in range(4)]
        ended: list[Deferred[None]] = []

        def end_the_others(_: None) -> None:
            for each in turns:
                if not each.called and len(ended) < 2:
                    ended.append(each)
                    each.cancel()

        for each in turns:
            each.addCallback(end_the_others)
            each.addErrback(lambda failure: failure.trap(CancelledError))
        waiters.fire()
        self.assertEqual([each.called for each in turns], [True] * 4)


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
