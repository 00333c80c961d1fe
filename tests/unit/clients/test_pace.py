"""The pace of a connection, with a clock that the reader moves."""

from __future__ import annotations

from functools import partial

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.pace import Pace
from svcd.runtime.clock import VirtualClock
from svcd.runtime.slices import Slices
from tests.support.turns import turn


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


class SlicedPaceTests(SynchronousTestCase):
    """Three connections that share slices; each piece takes 2 ms, so two of them fill a slice."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.read: list[str] = []
        self.wires = {name: StringTransport() for name in "abc"}
        self.paces = {n: Pace(self.clock, self.wires[n], self.slices) for n in "abc"}

    def come(self, name: str, data: bytes) -> None:
        def receive(piece: bytes) -> None:
            self.clock.rightNow += 0.002
            self.read.append(f"{name} {piece.decode()}")

        self.paces[name].deliver(receive, data)

    def states(self) -> list[str]:
        return [each.producerState for each in self.wires.values()]

    def test_a_piece_without_room_waits_for_the_next_turn(self) -> None:
        """Its connection is paused meanwhile, and its further bytes stay behind it."""
        for name in "abc":
            self.come(name, b"1")
        self.come("c", b"2")
        self.assertEqual((self.read, self.wires["c"].producerState), (["a 1", "b 1"], "paused"))
        turn(self.clock)
        self.assertEqual(self.read, ["a 1", "b 1", "c 12"])
        self.clock.advance(1.0)
        self.assertEqual(self.states(), ["producing", "producing", "producing"])

    def test_bytes_that_wait_do_not_end_a_pause(self) -> None:
        """TLS gives several pieces of one read: one can wait during the pause of the first."""

        def receive(_: bytes) -> None:
            self.clock.rightNow += 0.010

        for piece in (b"1", b"2"):
            self.paces["a"].deliver(receive, piece)
        turn(self.clock)
        self.assertEqual(self.wires["a"].producerState, "paused")
        self.clock.advance(1.0)
        self.assertEqual(self.wires["a"].producerState, "producing")

    def test_the_end_of_a_pause_does_not_resume_while_bytes_wait(self) -> None:
        """The connection stays paused until its slice has come."""

        def receive(_: bytes) -> None:
            self.clock.rightNow += 0.010

        for _ in range(6):
            self.slices.later(partial(receive, b""))
        self.paces["a"]._receive(receive, b"1")
        self.paces["a"].deliver(receive, b"2")
        self.clock.rightNow += 1.0  # the pause is over in this turn
        turn(self.clock)
        self.assertEqual(self.wires["a"].producerState, "paused")

    def test_a_closed_connection_has_read_all(self) -> None:
        """What came before the end is read before it, once, and no timer is left."""
        for name in "abc":
            self.come(name, b"1")
        for name in "abc":
            self.paces[name].end()
        self.assertEqual(self.read, ["a 1", "b 1", "c 1"])
        turn(self.clock)
        turn(self.clock)
        self.assertEqual((self.read[3:], self.clock.calls), ([], []))

    def test_a_failure_in_a_later_turn_aborts_the_connection(self) -> None:
        """As Twisted does when it happens at once."""

        def fail(_: bytes) -> None:
            raise ZeroDivisionError

        self.come("a", b"1")
        self.come("b", b"1")
        self.paces["c"].deliver(fail, b"1")
        self.assertRaises(ZeroDivisionError, turn, self.clock)
        self.assertTrue(self.wires["c"].disconnected)

    def test_a_reader_that_pauses_meanwhile_stays_paused(self) -> None:
        for name in "abc":
            self.come(name, b"1")
        self.paces["c"].pause()
        self.paces["c"].resume()  # its bytes still wait
        self.assertEqual(self.wires["c"].producerState, "paused")
        self.paces["c"].pause()
        turn(self.clock)
        self.clock.advance(1.0)
        self.assertEqual((self.read[-1], self.wires["c"].producerState), ("c 1", "paused"))
