"""What a project may still use of a quota."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cloud import Usage


class UsageTests(SynchronousTestCase):
    def test_nothing_is_left_of_a_quota_that_is_used_up(self) -> None:
        """Nor of one that was lowered below its use. None: no limit."""
        for used, limit, left in ((1, 4, 3), (4, 4, 0), (5, 4, 0), (5, None, None)):
            self.assertEqual(Usage(used=used, limit=limit).left, left)
