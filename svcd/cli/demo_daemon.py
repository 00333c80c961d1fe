"""The demo's daemon: started as a child, found by `endpoints.json`, stopped with its machines.

The machines of the embedded cloud outlive a daemon on purpose. So a watchdog ends both, when the
demo asks for it and when the demo is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from svcd.cli.demo_steps import rounds
from svcd.embedded.watchdog import Watchdog

_READY_S = 30.0
"""Time for the daemon to write its `endpoints.json`."""
_LOOK_S = 0.05
"""Time between two checks of the file."""


class DaemonFailed(Exception):
    """The daemon did not start: the reason, with the last lines of its log."""


class DemoDaemon:
    """`twistd svcd` in the demo's state folder, on its own ports and addresses."""

    def __init__(self, state: Path, image: Path | None) -> None:
        self._state = state
        self._image = image
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None
        self.log = state / "daemon.log"

    def start(self) -> dict[str, Any]:
        """Start the daemon and return its endpoints. Raises DaemonFailed."""
        self._state.mkdir(parents=True, exist_ok=True)
        settings = {
            "server.state_dir": str(self._state),
            "server.listen": "tcp:127.0.0.1:0",
            "cloud.listen": "tcp:127.0.0.1:0",
            "embedded.network": network_of(self._state),
            "workflow.poll_s": "0.5",
        }
        if self._image is not None:
            settings["embedded.image_prefix"] = str(self._image.absolute())
        command = [str(Path(sys.executable).with_name("twistd")), "-n", "--pidfile=", "svcd"]
        for key, value in settings.items():
            command += ["--set", f"{key}={value}"]
        endpoints = self._state / "endpoints.json"
        endpoints.unlink(missing_ok=True)
        self._watchdog = Watchdog()
        self._watchdog.machines(self._state)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._watchdog.process(self._process.pid)
        for _ in rounds(_READY_S, _LOOK_S):
            if endpoints.exists():
                result: dict[str, Any] = json.loads(endpoints.read_text(encoding="utf-8"))
                return result
            if self._process.poll() is not None:
                raise DaemonFailed(f"the daemon ended at once: {self._last_lines()}")
        raise DaemonFailed(f"the daemon was not ready in {_READY_S:.0f} s: {self._last_lines()}")

    def stop(self) -> bool:
        """Stop the daemon, then every process of its machines. Returns whether all have ended."""
        ended = self._watchdog is None or self._watchdog.end()
        if self._process is not None:
            self._process.poll()
        return ended

    def _last_lines(self) -> str:
        """The reason of a daemon that could not start, else the end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        reason = [line for line in lines if line.startswith("svcd: ")]
        return " | ".join(reason or lines) + f" (whole log: {self.log})"


def network_of(state: Path) -> str:
    """The network for the machines below `state`; demos in other folders get other networks.

    One folder always gets the same network, because machines of an interrupted run keep theirs.
    """
    return f"127.{16 + zlib.crc32(os.fsencode(state.absolute())) % 224}.0.0/16"
