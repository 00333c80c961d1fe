"""The own time of a process, and the virtual clock."""

from __future__ import annotations

from typing import Any

from twisted.logger import globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.clock import SteadyTime, VirtualClock

HOUR_S = 3600.0
TEN_YEARS_S = 315_576_000.0


class SteadyTimeTests(SynchronousTestCase):
    """The machine's clock says 1000000, its steady clock 50."""

    def setUp(self) -> None:
        self.wall = 1_000_000.0
        self.steady = 50.0
        self.lines: list[tuple[str, float]] = []
        globalLogPublisher.addObserver(self.note)
        self.addCleanup(globalLogPublisher.removeObserver, self.note)
        self.time = SteadyTime(lambda: self.wall, lambda: self.steady)

    def note(self, event: Any) -> None:
        if event.get("log_namespace") == "svcd.runtime.clock":
            self.lines.append((event["way"], event["jump"]))

    def run_for(self, seconds: float) -> float:
        """Real time goes by; the own time after it."""
        self.wall += seconds
        self.steady += seconds
        return self.time.seconds()

    def test_wall_set_forward_moves_nothing(self) -> None:
        """An hour and ten years: a second is a second, and a hundredth at most."""
        for jump in (HOUR_S, TEN_YEARS_S):
            before = self.time.seconds()
            self.wall += jump
            self.assertEqual(self.time.seconds(), before)
            self.assertAlmostEqual(self.run_for(10.0), before + 10.1, places=3)
        self.assertEqual(self.lines, [("forward", HOUR_S), ("forward", TEN_YEARS_S)])

    def test_wall_set_back_stops_nothing(self) -> None:
        """Time neither stands still nor goes back."""
        for jump in (HOUR_S, TEN_YEARS_S):
            before = self.time.seconds()
            self.wall -= jump
            self.assertEqual(self.time.seconds(), before)
            self.assertAlmostEqual(self.run_for(10.0), before + 9.9, places=3)
        self.assertEqual(self.lines, [("back", -HOUR_S), ("back", -TEN_YEARS_S)])

    def test_own_time_comes_back_to_the_wall(self) -> None:
        """A minute in 100 minutes, and not beyond; nothing is told of it."""
        self.wall += 60.0
        self.time.seconds()
        for _ in range(5990):
            self.run_for(1.0)
        self.assertAlmostEqual(self.time.off_s, 0.1, places=3)
        for _ in range(20):
            self.run_for(1.0)
        self.assertAlmostEqual(self.time.seconds(), self.wall, places=6)
        self.assertEqual(len(self.lines), 1)


class VirtualClockTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock(epoch=100.0)
        self.seen: list[tuple[float, str]] = []

    def note(self, text: str) -> None:
        self.seen.append((self.clock.seconds(), text))

    def test_cancelled_calls_are_not_kept(self) -> None:
        """A daemon cancels a deadline of minutes for each call of milliseconds."""
        ran: list[str] = []
        self.clock.callLater(5.0, ran.append, "last")
        for _ in range(1000):
            self.clock.callLater(60.0, ran.append, "late").cancel()
        self.assertLess(len(self.clock._heap), 120)
        self.clock.advance(100.0)
        self.assertEqual(ran, ["last"])

    def test_call_that_is_delayed_and_then_brought_forward_runs(self) -> None:
        """It runs at the last moment that it was given, also when the clock was read between."""
        call = self.clock.callLater(5, self.note, "once")
        call.delay(3)
        self.assertEqual(self.clock.next_call_in(), 8.0)
        call.reset(6)
        self.assertEqual(self.clock.next_call_in(), 6.0)
        self.clock.advance(20)
        self.assertEqual(self.seen, [(106.0, "once")])

    def test_call_that_repeats_at_once_is_found_out(self) -> None:
        """An endless chain of calls without delay is an error and not a hang."""

        def again() -> None:
            self.clock.callLater(0, again)

        again()
        with self.assertRaises(RuntimeError):
            self.clock.advance(1)
