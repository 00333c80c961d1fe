"""Slices bound the work of a turn, with a clock that the work moves."""

from __future__ import annotations

from collections.abc import Callable, Generator

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.slices import Slices
from tests.support.turns import turn


class SlicesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.done: list[int] = []

    def work(self, number: int, spent_s: float = 0.001) -> Callable[[], None]:
        def done() -> None:
            self.clock.rightNow += spent_s
            self.done.append(number)

        return done

    def test_a_turn_takes_work_until_its_time_is_spent(self) -> None:
        """Three pieces of 1 ms; the next ones are refused until the next turn."""
        taken = [self.slices.offer(self.work(n)) for n in range(5)]
        self.assertEqual((taken, self.done), ([True, True, True, False, False], [0, 1, 2]))
        turn(self.clock)
        self.assertTrue(self.slices.offer(self.work(5)))

    def test_later_work_runs_in_order_a_few_pieces_a_turn(self) -> None:
        for number in range(7):
            self.slices.later(self.work(number))
        counts = []
        for _ in range(4):
            counts.append(len(self.done))
            turn(self.clock)
        self.assertEqual((counts, self.done), ([0, 3, 6, 7], [0, 1, 2, 3, 4, 5, 6]))

    def test_a_busy_turn_is_followed_by_a_longer_slice(self) -> None:
        """A third of 90 ms; at most 50 ms; and short again after a short turn."""
        for number in range(200):
            self.slices.later(self.work(number, 2**-10))  # about a millisecond
        counts = []
        for others_s in (0.0, 0.090, 1.0, 0.0):
            self.clock.rightNow += others_s
            before = len(self.done)
            turn(self.clock)
            counts.append(len(self.done) - before)
        self.assertEqual(counts, [3, 31, 52, 3])

    def test_steps_run_in_slices(self) -> None:
        """Three steps of 1 ms a turn; short work needs one turn."""

        def steps(count: int) -> Generator[None, None, str]:
            for number in range(count):
                self.work(number)()
                yield
            return "done"

        self.assertEqual(self.successResultOf(self.ran(steps(2))), "done")
        running = self.ran(steps(7))
        self.assertEqual(self.done[2:], [0, 1, 2])
        turn(self.clock)
        turn(self.clock)
        self.assertEqual(self.successResultOf(running), "done")

    def ran(self, steps: Generator[None, None, str]) -> Deferred[str]:
        return Deferred.fromCoroutine(self.slices.run(steps))
