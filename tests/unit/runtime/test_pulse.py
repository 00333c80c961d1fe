"""The pulse says how late the reactor is."""

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.pulse import Pulse


class PulseTests(SynchronousTestCase):
    def test_a_held_reactor_is_late_once(self) -> None:
        """The beat after it comes at its usual place and is not late."""
        clock, late = Clock(), list[float]()
        pulse = Pulse(clock, late.append)
        pulse.start()
        clock.advance(1.0)
        clock.advance(3.25)  # one piece of work of 3.25 s
        clock.advance(0.75)
        clock.advance(1.0)
        self.assertEqual(late, [0.0, 0.0, 2.25, 0.0, 0.0])

    def test_a_stopped_pulse_does_not_beat(self) -> None:
        """Nor does it keep a timer."""
        clock, late = Clock(), list[float]()
        pulse = Pulse(clock, late.append)
        pulse.start()
        self.successResultOf(Deferred.fromCoroutine(pulse.stop()))
        self.assertEqual((late, clock.getDelayedCalls()), ([0.0], []))
