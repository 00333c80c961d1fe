"""The processes of a real OpenStack on this machine: stopped, killed, and brought up again.

Needed beside openstack_case: SVCD_TEST_OS_UP, the command that brings up what is gone of the
platform, and the pids that it keeps in the folder `run` beside its platform.json.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from twisted.internet.defer import Deferred

from svcd.runtime.tasks import sleep
from tests.support.openstack_case import OpenStackCase, no_platform, state_folder
from tests.support.processes import reactor, run

UP_S = 120.0
UP = os.environ.get("SVCD_TEST_OS_UP", "")


def no_services() -> str:
    """Why nothing can be done to the platform; "" when it can."""
    reason = no_platform()
    if reason:
        return reason
    if not os.access(UP, os.X_OK):
        return "SVCD_TEST_OS_UP names no command that brings the platform up"
    for name in ("nova", "keystone", "neutron", "postgres"):
        try:
            os.kill(pid(name), 0)
        except (OSError, ValueError, IndexError):
            return f"{name} of the platform in {state_folder()} does not run on this machine"
    return ""


def pid(name: str) -> int:
    """Of a service."""
    return int((state_folder() / "run" / f"{name}.pid").read_text().split()[0])


async def up(**environment: str) -> None:
    """Bring up what is gone, and wait until all of it answers."""
    kept = {"OPENSTACK_STATE": str(state_folder()), **environment}
    ended = await run(UP, environment=kept, limit_s=UP_S)
    if ended.code != 0:
        raise AssertionError(f"{UP} ended with {ended.code}: {ended.err[-2000:]}")


class FaultCase(OpenStackCase):
    """Whatever a test does to the services is undone after it."""

    timeout = 300
    skip = no_services() or None

    def kill(self, *names: str) -> None:
        """kill -9; `up` brings them back, at the latest after the test."""
        self.addCleanup(self._restored)
        for name in names:
            os.kill(pid(name), signal.SIGKILL)

    def _restored(self) -> Any:
        return Deferred.fromCoroutine(up())

    def hang(self, name: str) -> None:
        """It answers nothing from now on, until `go_on`."""
        number = pid(name)
        self.addCleanup(os.kill, number, signal.SIGCONT)
        os.kill(number, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        os.kill(pid(name), signal.SIGCONT)

    async def lasting(self, seconds: float) -> None:
        """Let the fault last."""
        await sleep(reactor, seconds)
