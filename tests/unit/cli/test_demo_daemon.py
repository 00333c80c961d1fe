"""The network of the daemon of `svcd demo`."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.demo_daemon import network_of


class MachineTests(SynchronousTestCase):
    def test_folder_keeps_its_own_network(self) -> None:
        """The same at each call, another one elsewhere, always loopback."""
        one, other = network_of(Path("/srv/a/demo")), network_of(Path("/srv/b/demo"))
        self.assertEqual(one, network_of(Path("/srv/a/demo")))
        self.assertNotEqual(one, other)
        self.assertTrue(ip_network(one).subnet_of(ip_network("127.0.0.0/8")))
