"""The pace of a connection, with a clock that the reader moves."""

from __future__ import annotations

from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.pace import Pace
from svcd.runtime.clock import VirtualClock


class PaceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.transport = StringTransport()
        self.pace = Pace(self.clock, self.transport)

    def read(self, spent_s: float) -> None:
        self.pace.deliver(lambda _: self.clock.advance(spent_s), b"x")

    @property
    def size(self) -> int:
        return int(self.transport.bufferSize)  # type: ignore[attr-defined]

    def test_quick_pieces_grow(self) -> None:
        for _ in range(9):
            self.read(0.0)
        self.assertEqual((self.size, self.transport.producerState), (65_536, "producing"))

    def test_a_slow_piece_is_followed_by_a_pause(self) -> None:
        """Four times as long, and the next piece is small again."""
        self.read(0.0)
        self.read(0.010)
        self.assertEqual((self.size, self.transport.producerState), (4096, "paused"))
        self.clock.advance(0.039)
        self.assertEqual(self.transport.producerState, "paused")
        self.clock.advance(0.002)
        self.assertEqual(self.transport.producerState, "producing")

    def test_a_reader_that_pauses_is_not_resumed(self) -> None:
        """Neither by the end of the pause nor before it."""
        self.read(0.010)
        self.pace.pause()
        self.clock.advance(1)
        self.assertEqual(self.transport.producerState, "paused")
        self.pace.resume()
        self.assertEqual(self.transport.producerState, "producing")

    def test_a_closed_connection_leaves_no_timer(self) -> None:
        self.read(0.010)
        self.pace.end()
        self.assertIsNone(self.clock.next_call_in())
