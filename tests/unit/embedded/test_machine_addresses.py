"""Addresses of this host that other programs use, and what a conflict says."""

from __future__ import annotations

import os
import socket

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.guests import AddressTaken
from svcd.embedded.machine_addresses import HostAddresses, conflict
from svcd.runtime.listeners import described

OWN, OTHER = "127.4.5.1", "127.4.5.2"


class OccupiedTests(SynchronousTestCase):
    def listen(self, address: str) -> None:
        self.addCleanup(socket.create_server((address, 0)).close)

    def test_an_address_on_which_any_port_listens_is_occupied(self) -> None:
        """One that only programs on all addresses serve is not."""
        self.listen(OWN)
        self.listen("0.0.0.0")
        occupied = HostAddresses(Clock(), 2222).occupied()
        self.assertEqual((occupied(OWN), occupied(OTHER)), (True, False))


class ConflictTests(SynchronousTestCase):
    def test_texts(self) -> None:
        """The address, the holder when this user may see it, and what to do."""
        error = conflict(OWN, 2222, 0, False)
        self.assertIsInstance(error, AddressTaken)
        self.assertEqual(
            str(error),
            "the port 127.4.5.1:2222 is taken: another program holds it. The machine boots when"
            " that program has ended (find it with: ss -ltnp 'sport = :2222'). To do without the"
            " machine, remove its cluster (svcd cluster rm CLUSTER)",
        )
        own = os.getpid()
        words = (
            f"{described(own)} holds it. The machine boots when that program has ended (kill {own})"
        )
        self.assertIn(words, str(conflict(OWN, 2222, own, False)))

    def test_a_port_of_all_addresses(self) -> None:
        """No other address would be better."""
        error = conflict(OWN, 2222, 0, True)
        self.assertNotIsInstance(error, AddressTaken)
        self.assertEqual(
            str(error),
            "port 2222 is taken on all addresses, so no machine can listen on 127.4.5.1:2222:"
            " another program holds it. The machine boots when that program has ended (find it"
            " with: ss -ltnp 'sport = :2222'). To use another port, set embedded.ssh_port and"
            " start svcd again",
        )
