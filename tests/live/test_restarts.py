"""Restarts under load with a socket that outlives the daemon, as systemd holds it.

This test is the service manager: it keeps the listening socket, hands it over as descriptor 3, and
waits for READY=1 and the exit.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from twisted.trial.unittest import SynchronousTestCase

from tests.support.processes import BIN, own_network, watchdog

RESTARTS: Final = 5
_START_S: Final = 120.0
_REQUEST_S: Final = 120.0
_HAND_OVER: Final = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="svcd")
os.execv(sys.argv[2], sys.argv[2:])
"""
_LOST: Final = (OSError, http.client.HTTPException)


class Manager:
    """Starts and stops the daemon as `svcd.socket` and `svcd.service` do."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._log = folder / "log"
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(1024)
        self.port: int = self.listener.getsockname()[1]
        self._told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._name = f"svcd-test-{os.getpid()}-{self.port}"
        self._told.bind("\0" + self._name)
        self._told.settimeout(_START_S)
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin a start; see `ready`."""
        settings = {
            "server.state_dir": str(self._folder / "state"),
            "server.listen": "systemd:domain=INET:name=svcd",
            "cloud.listen": "tcp:127.0.0.1:0",
            "embedded.network": own_network(),
            "plugins.enabled": "fake",
            "auth.allow_none": "true",
        }
        descriptor = self.listener.fileno()
        command = [sys.executable, "-c", _HAND_OVER, str(descriptor), str(BIN / "twistd"), "-n",
                   "--pidfile=", "svcd"]  # fmt: skip
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        with self._log.open("ab") as log:
            self._daemon = subprocess.Popen(
                command,
                pass_fds=[descriptor],
                stdout=log,
                stderr=log,
                env={**os.environ, "NOTIFY_SOCKET": "@" + self._name, "WATCHDOG_USEC": "60000000"},
            )
        watchdog().process(self._daemon.pid)

    def until(self, word: str) -> None:
        """Wait until the daemon has sent `word`. Raises AssertionError."""
        try:
            while word not in self._told.recv(4096).decode().split("\n"):
                pass
        except TimeoutError:
            raise AssertionError(f"no {word} in {_START_S} s\n{self.said()}") from None

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        assert self._daemon is not None
        self._daemon.send_signal(signal.SIGTERM)
        try:
            return self._daemon.wait(_START_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end\n{self.said()}") from None

    def said(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-4000:]

    def close(self) -> None:
        """End everything."""
        if self._daemon is not None and self._daemon.poll() is None:
            self._daemon.kill()
            self._daemon.wait()
        self.listener.close()
        self._told.close()


class Load:
    """Clients that ask without a pause. Each failure is a text in `failures`.

    keeps: they keep their connections; then a lost GET is sent once more on a new connection.
    """

    def __init__(self, port: int, keeps: bool, clients: int) -> None:
        self._port = port
        self._keeps = keeps
        self._over = threading.Event()
        self.failures: list[str] = []
        self.answers = 0
        self.repeated = 0
        self._threads = [threading.Thread(target=self._run) for _ in range(clients)]
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """Returns when all clients have had their last answer."""
        self._over.set()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        line: http.client.HTTPConnection | None = None
        while not self._over.is_set():
            fresh = line is None
            line = line or http.client.HTTPConnection("127.0.0.1", self._port, timeout=_REQUEST_S)
            try:
                line = self._ask(line)
            except _LOST as error:
                line.close()
                line = None
                if fresh:
                    self.failures.append(repr(error))
                else:
                    self.repeated += 1
            self._over.wait(0.005)
        if line is not None:
            line.close()

    def _ask(self, line: http.client.HTTPConnection) -> http.client.HTTPConnection | None:
        """One request. The connection for the next one, or None for a new one."""
        headers = {} if self._keeps else {"Connection": "close"}
        line.request("GET", "/v1.1/demo/plugins", headers=headers)
        answer = line.getresponse()
        answer.read()
        if answer.status != 200:
            self.failures.append(f"status {answer.status}")
        self.answers += 1
        if self._keeps and not answer.will_close:
            return line
        line.close()
        return None


class RestartTests(SynchronousTestCase):
    @contextlib.contextmanager
    def load(self, port: int) -> Iterator[tuple[Load, Load]]:
        loads = Load(port, False, 4), Load(port, True, 4)
        try:
            yield loads
        finally:
            for each in loads:
                each.stop()

    def test_restarts_fail_no_request(self) -> None:
        """Requests of a start wait in the socket; those of a stop are answered."""
        manager = Manager(Path(self.mktemp()).absolute())
        self.addCleanup(manager.close)
        manager.start()
        manager.until("READY=1")
        with self.load(manager.port) as (single, keeping):
            manager.until("WATCHDOG=1")
            for _ in range(RESTARTS):
                before = single.answers
                self.assertEqual(manager.stop(), 0, manager.said())
                manager.start()
                manager.until("READY=1")
                manager.until("WATCHDOG=1")
                self.assertGreater(single.answers, before)
        self.assertEqual((single.failures, keeping.failures), ([], []), manager.said())
        self.assertEqual(manager.stop(), 0)
        print(
            f"{RESTARTS} restarts: {single.answers} and {keeping.answers} answers,"
            f" {keeping.repeated} repeated"
        )
