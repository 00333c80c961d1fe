"""The virtual clock."""

from twisted.trial.unittest import SynchronousTestCase

from svcd.clock import VirtualClock


class VirtualClockTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock(epoch=100.0)
        self.seen: list[tuple[float, str]] = []

    def note(self, text: str) -> None:
        self.seen.append((self.clock.seconds(), text))

    def test_calls_run_at_their_own_moment_in_order(self) -> None:
        """A call sees its own time, not the end of the advance."""
        self.clock.callLater(2, self.note, "b")
        self.clock.callLater(1, self.note, "a")
        self.clock.callLater(2, self.note, "c")
        self.clock.advance(5)
        self.assertEqual(self.seen, [(101.0, "a"), (102.0, "b"), (102.0, "c")])
        self.assertEqual(self.clock.seconds(), 105.0)

    def test_call_made_by_a_call_runs_in_the_same_advance(self) -> None:
        """Chains of timers unfold within one advance."""
        self.clock.callLater(1, lambda: self.clock.callLater(1, self.note, "late"))
        self.clock.advance(3)
        self.assertEqual(self.seen, [(102.0, "late")])

    def test_cancelled_call_does_not_run(self) -> None:
        """It is no longer listed either."""
        call = self.clock.callLater(1, self.note, "x")
        call.cancel()
        self.assertEqual(list(self.clock.getDelayedCalls()), [])
        self.clock.advance(2)
        self.assertEqual(self.seen, [])

    def test_delayed_call_runs_at_the_new_moment_only(self) -> None:
        """Both `delay` and `reset` move a call later or earlier."""
        first = self.clock.callLater(1, self.note, "first")
        second = self.clock.callLater(9, self.note, "second")
        first.delay(3)
        second.reset(2)
        self.clock.advance(10)
        self.assertEqual(self.seen, [(102.0, "second"), (104.0, "first")])

    def test_next_call_is_told(self) -> None:
        """None without calls; never negative."""
        self.assertIsNone(self.clock.next_call_in())
        self.clock.callLater(4, self.note, "x")
        self.assertEqual(self.clock.next_call_in(), 4.0)

    def test_call_that_repeats_at_once_is_found_out(self) -> None:
        """An endless chain of calls without delay is an error and not a hang."""

        def again() -> None:
            self.clock.callLater(0, again)

        again()
        with self.assertRaises(RuntimeError):
            self.clock.advance(1)

    def test_time_does_not_go_back(self) -> None:
        """Neither a negative advance nor a negative delay is taken."""
        with self.assertRaises(ValueError):
            self.clock.advance(-1)
        with self.assertRaises(ValueError):
            self.clock.callLater(-1, self.note, "x")
