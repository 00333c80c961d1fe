"""Who gets one more connection or forward of the loopback machines."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.machine_limits import Count


class CountTests(SynchronousTestCase):
    def test_a_machine_has_its_own_limit_and_that_of_all(self) -> None:
        """A refused one takes nothing; what is given back is there again, in both."""
        files = Count(5)
        one, other = Count(3, files), Count(3, files)
        self.assertEqual([one.take() for _ in range(4)], [True, True, True, False])
        self.assertEqual([other.take() for _ in range(3)], [True, True, False])
        self.assertEqual((one.used, other.used, files.used), (3, 2, 5))
        one.give_back()
        self.assertEqual((other.take(), files.used), (True, 5))
