"""Both ends of an output that may be too long."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.ends import Ends


class EndsTests(SynchronousTestCase):
    def test_short_output_is_whole(self) -> None:
        """Nothing is added or lost up to the limit."""
        ends = Ends(5, 5)
        for piece in (b"abc", b"defgh", b"ij"):
            ends.add(piece)
        self.assertEqual(ends.text(), "abcdefghij")

    def test_long_output_keeps_both_ends(self) -> None:
        """The missing bytes are counted."""
        ends = Ends(5, 5)
        for piece in (b"abcdefgh", b"ijklmnop", b"qr", b"stuvwxyz"):
            ends.add(piece)
        self.assertEqual(ends.text(), "abcde\n[16 bytes left out]\nvwxyz")
        self.assertEqual((ends.ends().head, ends.ends().size), (b"abcde", 26))

    def test_foreign_bytes_are_replaced(self) -> None:
        """Bytes that are no UTF-8 do not fail."""
        ends = Ends(5, 5)
        ends.add(b"a\xffb")
        self.assertEqual(ends.text(), "a\ufffdb")
