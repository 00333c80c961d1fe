"""The network of the daemon of `svcd demo`, and what its log says."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.demo_daemon import DemoDaemon, network_of


class MachineTests(SynchronousTestCase):
    def test_folder_keeps_its_own_network(self) -> None:
        """The same at each call, another one elsewhere, always loopback."""
        one, other = network_of(Path("/srv/a/demo")), network_of(Path("/srv/b/demo"))
        self.assertEqual(one, network_of(Path("/srv/a/demo")))
        self.assertNotEqual(one, other)
        self.assertTrue(ip_network(one).subnet_of(ip_network("127.0.0.0/8")))


class LogTests(SynchronousTestCase):
    def test_reason_of_a_daemon_that_could_not_start(self) -> None:
        """Its one line, else the end of the log; not a line of an earlier start."""
        state = Path(self.mktemp())
        state.mkdir()
        daemon = DemoDaemon(state, None)
        before = "svcd: an earlier reason\n" + "1\n2\n3\n4\n"
        for text, said in (
            ("Starting\nsvcd: the reason\nStopped\n", "svcd: the reason"),
            ("Starting\n", "1 | 2 | 3 | 4 | Starting"),
        ):
            daemon.log.write_text(before + text)
            self.assertEqual(daemon._last_lines(), f"{said} (whole log: {daemon.log})")
