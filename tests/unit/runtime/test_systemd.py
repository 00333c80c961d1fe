"""Notifications to the service manager."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.systemd import ServiceManager


class ServiceManagerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.setblocking(False)

    def told(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self.manager.recv(4096).decode())
            except BlockingIOError:
                return found

    def serve(self, **more: str) -> ServiceManager:
        name = f"\0svcd-test-{id(self)}"
        self.manager.bind(name)
        self.environment = {"NOTIFY_SOCKET": "@" + name[1:], "PATH": "/bin", **more}
        return ServiceManager(self.environment, 17)

    def test_a_life_is_told(self) -> None:
        """In the words of sd_notify."""
        manager = self.serve(WATCHDOG_USEC="30000000", WATCHDOG_PID="17")
        manager.ready("Serving http://here")
        manager.alive()
        manager.stopping()
        self.assertEqual(
            self.told(),
            [
                "READY=1\nSTATUS=Serving http://here",
                "WATCHDOG=1",
                "STOPPING=1\nSTATUS=Stopping: waits for the requests in flight",
            ],
        )

    def test_what_the_manager_could_not_take_is_sent_again(self) -> None:
        """Its queue was full when the daemon was ready."""
        manager = self.serve()
        other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(other.close)
        other.setblocking(False)
        with self.assertRaises(BlockingIOError):
            while True:
                other.sendto(b"x", self.manager.getsockname())
        manager.ready("Serving")
        self.told()
        manager.alive()
        manager.alive()
        self.assertEqual(self.told(), ["READY=1\nSTATUS=Serving"])

    def test_without_a_watchdog_no_sign_of_life_is_sent(self) -> None:
        """So too for the watchdog of another process."""
        manager = self.serve(WATCHDOG_USEC="30000000", WATCHDOG_PID="18")
        manager.alive()
        self.assertEqual(self.told(), [])
