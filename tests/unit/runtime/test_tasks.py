"""Timers, loops and owned coroutines."""

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.model.backoff import Backoff
from svcd.runtime.clock import VirtualClock
from svcd.runtime.tasks import (
    STOP_S,
    DeadlineExceeded,
    KeyedTasks,
    Loop,
    Parked,
    gather,
    shielded,
    with_deadline,
)


class DeadlineTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()

    def test_late_work_is_cancelled(self) -> None:
        """The error says what was waited for."""
        work: Deferred[int] = Deferred()
        done = Deferred.fromCoroutine(with_deadline(self.clock, 3, "answer", work))
        self.clock.advance(3)
        failure = self.failureResultOf(done, DeadlineExceeded)
        self.assertEqual(failure.value.args, ("answer", 3))

    def test_cancel_from_outside_is_not_taken_for_lateness(self) -> None:
        """It stays a CancelledError."""
        done = Deferred.fromCoroutine(with_deadline(self.clock, 3, "answer", Deferred()))
        done.cancel()
        self.failureResultOf(done, CancelledError)


class ShieldedTests(SynchronousTestCase):
    def test_cancel_does_not_reach_the_work(self) -> None:
        """The work ends by itself and its failure is logged."""
        work: Deferred[int] = Deferred()
        outer = shielded(work)
        outer.cancel()
        self.failureResultOf(outer, CancelledError)
        work.errback(ValueError("late"))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)


class GatherTests(SynchronousTestCase):
    def test_results_and_errors_come_in_order_within_the_limit(self) -> None:
        """At most `limit` run at once; an exception is a result."""
        gates: list[Deferred[None]] = [Deferred() for _ in range(4)]
        running: list[int] = []

        def work(number: int):
            async def run() -> int:
                running.append(number)
                await gates[number]
                if number == 2:
                    raise ValueError("two")
                return number

            return run

        done = Deferred.fromCoroutine(gather([work(n) for n in range(4)], limit=2))
        self.assertEqual(running, [0, 1])
        for gate in gates:
            gate.callback(None)
        results = self.successResultOf(done)
        self.assertEqual([results[0], results[1], results[3]], [0, 1, 3])
        self.assertIsInstance(results[2], ValueError)

    def test_cancel_reaches_every_member(self) -> None:
        """None goes on alone."""
        ended: list[str] = []

        async def member() -> None:
            try:
                await Deferred()
            except CancelledError:
                ended.append("cancelled")
                raise

        done = Deferred.fromCoroutine(gather([member, member], limit=2))
        done.cancel()
        self.failureResultOf(done, CancelledError)
        self.assertEqual(ended, ["cancelled", "cancelled"])


class LoopTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.turns = 0
        self.block: Deferred[None] | None = None

    async def turn(self) -> None:
        self.turns += 1
        if self.block is not None:
            await self.block
        if self.turns == 2:
            raise ValueError("second turn")

    def test_failed_turn_does_not_end_the_loop(self) -> None:
        """It is logged, and the next turn comes."""
        loop = Loop(self.clock, "test", 10, self.turn)
        loop.start()
        self.clock.advance(20)
        self.assertEqual(self.turns, 3)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.successResultOf(Deferred.fromCoroutine(loop.stop()))
        self.clock.advance(100)
        self.assertEqual(self.turns, 3)

    def test_database_that_is_away_is_a_line_and_no_failure(self) -> None:
        """Trial would fail on a logged failure; the next turn comes all the same."""

        async def turn() -> None:
            self.turns += 1
            raise ServiceUnavailable("away")

        loop = Loop(self.clock, "test", 10, turn)
        loop.start()
        self.clock.advance(10)
        self.assertEqual(self.turns, 2)
        self.successResultOf(Deferred.fromCoroutine(loop.stop()))

    def test_wake_during_a_turn_causes_one_more(self) -> None:
        """However often it is poked."""
        self.block = Deferred()
        loop = Loop(self.clock, "test", 1000, self.turn)
        loop.start()
        loop.wake()
        loop.wake()
        block, self.block = self.block, None
        block.callback(None)
        self.assertEqual(self.turns, 2)
        self.flushLoggedErrors(ValueError)
        self.successResultOf(Deferred.fromCoroutine(loop.stop()))

    def test_stop_waits_for_the_present_turn(self) -> None:
        """It is cancelled, and nothing is left on the clock."""
        self.block = Deferred()
        loop = Loop(self.clock, "test", 10, self.turn)
        loop.start()
        self.successResultOf(Deferred.fromCoroutine(loop.stop()))
        self.assertEqual(list(self.clock.getDelayedCalls()), [])


class KeyedTasksTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.runs: list[str] = []
        self.block: Deferred[None] | None = None
        self.answer: float | None = None
        self.fail = False
        self.tasks: KeyedTasks[str] = KeyedTasks(self.clock, "test", self.work)

    async def work(self, key: str) -> float | None:
        self.runs.append(key)
        if self.block is not None:
            await self.block
        if self.fail:
            raise ValueError("no")
        answer, self.answer = self.answer, None
        return answer

    def test_wakes_during_a_run_cause_exactly_one_more(self) -> None:
        """Three wakes, two runs."""
        self.block = Deferred()
        self.tasks.wake("a")
        self.clock.advance(0)
        for _ in range(3):
            self.tasks.wake("a")
        block, self.block = self.block, None
        block.callback(None)
        self.clock.advance(0)
        self.assertEqual(self.runs, ["a", "a"])
        self.assertEqual(list(self.tasks.active()), [])

    def test_run_that_wants_another_gets_it_at_its_time(self) -> None:
        """The returned seconds are a delay; a wake brings it forward."""
        self.answer = 30.0
        self.tasks.wake("a")
        self.clock.advance(10)
        self.assertEqual(self.runs, ["a"])
        self.tasks.wake("a")
        self.clock.advance(0)
        self.assertEqual(self.runs, ["a", "a"])
        self.clock.advance(100)
        self.assertEqual(self.runs, ["a", "a"])

    def test_failure_is_logged_and_tried_again(self) -> None:
        """With back-off; a later success ends it."""
        self.fail = True
        self.tasks.wake("a")
        self.clock.advance(0)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.fail = False
        self.clock.advance(5)
        self.assertEqual(self.runs, ["a", "a"])

    def test_stop_ends_runs_and_timers(self) -> None:
        """Nothing runs or waits afterwards, and wakes are ignored."""
        self.block = Deferred()
        self.tasks.wake("a")
        self.tasks.wake("b", 50)
        self.clock.advance(0)
        self.successResultOf(Deferred.fromCoroutine(self.tasks.stop()))
        self.tasks.wake("c")
        self.clock.advance(100)
        self.assertEqual(self.runs, ["a"])
        self.assertEqual(list(self.clock.getDelayedCalls()), [])


class ParkedWorkTests(SynchronousTestCase):
    """Work that may not go on here: nobody is told, nothing is tried again."""

    def setUp(self) -> None:
        self.clock = VirtualClock()

    async def parked(self, key: str = "") -> None:
        self.runs = getattr(self, "runs", 0) + 1
        raise Parked("another daemon has it")

    def test_task_rests(self) -> None:
        """Until somebody wakes it."""
        tasks = KeyedTasks(self.clock, "test", self.parked)
        tasks.wake("a")
        self.clock.advance(1000)
        self.assertEqual((self.runs, list(tasks.active())), (1, []))
        tasks.wake("a")
        self.clock.advance(0)
        self.assertEqual(self.runs, 2)
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_rest_forgets_the_timer(self) -> None:
        tasks = KeyedTasks(self.clock, "test", self.parked)
        tasks.wake("a", 5.0)
        tasks.rest("a")
        tasks.rest("b")
        self.assertEqual((list(tasks.active()), list(self.clock.getDelayedCalls())), ([], []))


class StubbornWorkTests(SynchronousTestCase):
    """Work that takes no notice of its cancel does not keep the daemon from ending."""

    def stopped(self, clock: VirtualClock, owner: "KeyedTasks[str] | Loop") -> None:
        done = Deferred.fromCoroutine(owner.stop())
        clock.advance(STOP_S - 0.1)
        self.assertNoResult(done)
        clock.advance(0.2)
        self.successResultOf(done)

    @staticmethod
    async def stubborn(key: str = "") -> None:
        try:
            await Deferred()
        except CancelledError:
            await Deferred()

    def test_the_log_names_the_tasks_that_do_not_end(self) -> None:
        """A cancelled run counts as called, whether it has ended or not."""

        async def work(key: str) -> None:
            await (self.stubborn() if key == "b" else Deferred())

        clock = VirtualClock()
        tasks = KeyedTasks(clock, "test", work)
        for key in "abc":
            tasks.wake(key)
        clock.advance(0)
        with capturedLogs() as events:
            self.stopped(clock, tasks)
        self.assertEqual(
            [formatEvent(event) for event in events],
            ["1 runs of test did not end within 15.0 s: b"],
        )


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


class CancelledWorkTests(SynchronousTestCase):
    def test_work_that_is_always_cancelled_does_not_spin(self) -> None:
        """It is tried again after the first delay."""
        clock, runs = VirtualClock(), []

        async def work(key: str) -> None:
            runs.append(key)
            raise CancelledError

        tasks = KeyedTasks(clock, "test", work, backoff=Backoff(first_s=1.0))
        tasks.wake("a")
        clock.advance(10.5)
        self.assertEqual(len(runs), 11)
