"""What a watchdog ends, and when, with processes of this system."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

_OWNER = """
import os, subprocess, sys
from pathlib import Path
from svcd.embedded.watchdog import Watchdog

def started(**more):
    return subprocess.Popen(["sleep", "60"], stdout=2, env={**os.environ, **more})

watchdog = Watchdog()
watchdog.machines(Path(sys.argv[1]))
watchdog.process((child := started()).pid)
machine = started(SVCD_MACHINE_ROOT=sys.argv[1] + "/cloud/machines/m")
print(watchdog._process.pid, child.pid, machine.pid, flush=True)
sys.stdin.read()
"""
_LIMIT_MS = 20_000


def ended(handle: int) -> bool:
    """Whether the process of a handle ends within the limit."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(_LIMIT_MS))


class WatchdogTest(SynchronousTestCase):
    def setUp(self) -> None:
        self.state = Path(self.mktemp()).absolute()

    def started(self, **environ: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(["sleep", "60"], env={**os.environ, **environ})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def owner(self) -> tuple[subprocess.Popen[str], list[int]]:
        """A process with a watchdog, and handles of watchdog, child and machine process."""
        owner = subprocess.Popen(
            [sys.executable, "-c", _OWNER, str(self.state)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        assert owner.stdin is not None and owner.stdout is not None
        self.addCleanup(owner.stdout.close)
        self.addCleanup(owner.stdin.close)
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        handles = [os.pidfd_open(int(pid)) for pid in owner.stdout.readline().split()]
        for handle in handles:
            self.addCleanup(self.drop, handle)
        return owner, handles

    def drop(self, handle: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        os.close(handle)

    def test_a_killed_owner_leaves_nothing(self) -> None:
        """Its child, its machine and the watchdog end; a machine of another folder goes on."""
        other = self.started(SVCD_MACHINE_ROOT=f"{self.state}-other/cloud/machines/m")
        owner, handles = self.owner()
        owner.kill()
        self.assertEqual([ended(handle) for handle in handles], [True] * 3)
        self.assertIs(other.poll(), None)

    def test_it_outlives_the_interrupt_that_ends_its_owner(self) -> None:
        """Ctrl-C and the end of a terminal reach a process group."""
        for number in (signal.SIGINT, signal.SIGHUP):
            owner, handles = self.owner()
            os.killpg(owner.pid, number)
            self.assertEqual([ended(handle) for handle in handles], [True] * 3)
