"""Output that is no text. Both ends of a long one are in tests/contract/remote.py."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.ends import Ends


class EndsTests(SynchronousTestCase):
    def test_foreign_bytes_are_replaced(self) -> None:
        """Bytes that are no UTF-8 do not fail."""
        ends = Ends(5, 5)
        ends.add(b"a\xffb")
        self.assertEqual(ends.text(), "a\ufffdb")
