"""The network and the processes of the daemon of `svcd demo`."""

from __future__ import annotations

import os
import signal
import subprocess
from ipaddress import ip_network
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.demo_daemon import machine_processes, network_of


class MachineTests(SynchronousTestCase):
    def test_folder_keeps_its_own_network(self) -> None:
        """The same at each call, another one elsewhere, always loopback."""
        one, other = network_of(Path("/srv/a/demo")), network_of(Path("/srv/b/demo"))
        self.assertEqual(one, network_of(Path("/srv/a/demo")))
        self.assertNotEqual(one, other)
        self.assertTrue(ip_network(one).subnet_of(ip_network("127.0.0.0/8")))

    def test_only_processes_of_machines_below_the_folder_are_found(self) -> None:
        """By their environment; a folder whose name begins alike is another one."""
        state = Path(self.mktemp()).absolute()
        running = [
            subprocess.Popen(
                ["sleep", "60"], env={**os.environ, "SVCD_MACHINE_ROOT": f"{root}/machines/m"}
            )
            for root in (state, f"{state}-other")
        ]
        for each in running:
            self.addCleanup(each.wait)
            self.addCleanup(each.send_signal, signal.SIGKILL)
        self.assertEqual(list(machine_processes(state)), [running[0].pid])
