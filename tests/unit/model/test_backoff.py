"""The time to the next try."""

import random

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.backoff import Backoff


class BackoffTests(SynchronousTestCase):
    def test_delays_double_up_to_the_most(self) -> None:
        """Without jitter: 1, 2, 4, 5, 5."""
        backoff = Backoff(first_s=1.0, most_s=5.0, jitter=0.0)
        rng = random.Random(1)
        self.assertEqual([backoff.delay_s(n, rng) for n in range(1, 6)], [1, 2, 4, 5, 5])

    def test_random_part_needs_a_source(self) -> None:
        """Without one the delay has none."""
        backoff = Backoff(first_s=1.0, most_s=5.0, jitter=0.5)
        self.assertEqual(backoff.delay_s(3), 4)
        self.assertTrue(4 < backoff.delay_s(3, random.Random(1)) < 6)
