"""Servers in processes of their own; the kernel's clocks tell the processor time of each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import svcd
from svcd.settings import schema

_START_S: Final = 60.0
_STOP_S: Final = 30.0
_LOOK_S: Final = 0.002
_ROOT: Final = Path(svcd.__file__).absolute().parent.parent
_TAIL_BYTES: Final = 4000
_WITH_CONSTANTS: Final = (
    "from svcd import tap; from twisted.scripts.twistd import run;"
    " tap.Options.constants = True; run()"
)
"""`twistd` with values of constants that a benchmark chooses."""
_OURS: Final = ("SVCD_", "PYTHONDONTWRITEBYTECODE")


class StartFailed(Exception):
    """A server did not become ready; the message has the end of its log."""


class Server:
    """A server process. port: where it answers, known once it is ready."""

    def __init__(self, name: str, command: Sequence[str], folder: Path) -> None:
        self.name = name
        self.port = 0
        self._log = folder / f"{name}.log"
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        environment |= {"PYTHONPATH": str(_ROOT), "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        self.started = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )

    def wait(self, look: Callable[[], bool]) -> float:
        """Seconds from the start until `look` is true. Raises StartFailed."""
        while not look():
            if self._process.poll() is not None or self.age_s() > _START_S:
                self.stop()
                words = self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")
                raise StartFailed(f"{self.name} is not ready:\n{words}")
            time.sleep(_LOOK_S)
        return self.age_s()

    def age_s(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    def cpu_s(self) -> float:
        """Processor time of the process, all its threads. Source: clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self._process.pid << 3) | 2) / 1e9

    def memory_mib(self) -> float:
        """Resident memory of the process."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        return int(lines["VmRSS"].split()[0]) / 1024

    def stop(self) -> None:
        """End it; kill it when it does not end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def peer(kind: str, folder: Path) -> Server:
    """A server of `benchmarks.peers`, ready."""
    ready = folder / f"{kind}.port"
    server = Server(kind, ["-m", "benchmarks.peers", kind, str(ready)], folder)
    server.wait(ready.exists)
    server.port = int(ready.read_text())
    return server


def twistd(
    name: str, plugin: str, folder: Path, settings: Mapping[str, str]
) -> tuple[Server, Mapping[str, Any], float]:
    """`twistd plugin`, ready, its endpoints, and the seconds it took. State: folder/name."""
    state = folder / name
    state.mkdir(exist_ok=True)
    flags = {
        "server.listen": "tcp:127.0.0.1:0",
        "cloud.listen": "tcp:127.0.0.1:0",
        "server.state_dir": str(state),
        "plugins.enabled": "fake",
        **settings,
    }
    program = [str(Path(sys.executable).with_name("twistd"))]
    if not flags.keys() <= schema().keys():
        program = ["-c", _WITH_CONSTANTS]
    command = [*program, "-n", "--pidfile=", plugin]
    for key, value in flags.items():
        command += ["--set", f"{key}={value}"]
    ready = state / "endpoints.json"
    server = Server(name, command, folder)
    seconds = server.wait(ready.exists)
    endpoints = json.loads(ready.read_text())
    if "api" in endpoints:
        server.port = int(endpoints["api"].rpartition(":")[2].strip("/"))
    return server, endpoints, seconds


@contextmanager
def cloud_and_daemon(
    folder: Path, cloud_settings: Mapping[str, str], settings: Mapping[str, str]
) -> Iterator[tuple[Server, Server, Mapping[str, Any]]]:
    """`svcd-cloud`, a daemon that uses it, and the endpoints of the cloud."""
    cloud, told, _ = twistd("cloud", "svcd-cloud", folder, cloud_settings)
    try:
        daemon, _, _ = twistd("daemon", "svcd", folder, {**beside(told), **settings})
        try:
            yield cloud, daemon, told
        finally:
            daemon.stop()
    finally:
        cloud.stop()


def beside(told: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a daemon whose cloud is another process. told: its endpoints."""
    return {
        "cloud.kind": "openstack",
        "auth.mode": "none",
        "cloud.auth_url": told["identity"],
        "cloud.username": told["username"],
        "cloud.password": told["password"],
        "cloud.project": told["tenant"],
    }
