"""The bytes of connections in slices, with a clock that the reader moves."""

from __future__ import annotations

from functools import partial

from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.pace import Pace
from svcd.runtime.slices import Slices
from tests.support.turns import turn


class PaceTests(SynchronousTestCase):
    """Three connections that share slices; each piece takes 2 ms, so two of them fill a slice."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.read: list[str] = []
        self.wires = {name: StringTransport() for name in "abc"}
        self.paces = {n: Pace(self.wires[n], self.slices, partial(self.receive, n)) for n in "abc"}

    def receive(self, name: str, piece: bytes) -> None:
        if piece == b"bad":
            raise ZeroDivisionError
        self.clock.rightNow += 0.002
        self.read.append(f"{name} {piece.decode()}")

    def come(self, name: str, data: bytes) -> None:
        self.paces[name].deliver(data)

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

    def test_a_failure_in_a_later_turn_aborts_the_connection(self) -> None:
        """As Twisted does when it happens at once."""
        self.come("a", b"1")
        self.come("b", b"1")
        self.come("c", b"bad")
        self.assertRaises(ZeroDivisionError, turn, self.clock)
        self.assertTrue(self.wires["c"].disconnected)
