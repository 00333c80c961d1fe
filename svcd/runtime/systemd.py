"""Tells the service manager (systemd) that the daemon is ready, alive or stopping.

Without `NOTIFY_SOCKET` every call does nothing. A notification that cannot be sent is logged once:
the daemon works all the same.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import socket
from collections.abc import MutableMapping
from typing import Final

from twisted.logger import Logger

log = Logger()

_LEAST_WATCHDOG_S: Final = 3.0
"""Seconds. A shorter watchdog would end a daemon whose beat of one second is a little late."""
_MOST_DIGITS: Final = 20
"""Digits of the largest time that the manager can write."""


class ServiceManager:
    """Sends the notifications of one process.

    environment: of the process; the variables of the manager are taken out, so that no child has
    them. pid: of the process.
    """

    def __init__(self, environment: MutableMapping[str, str], pid: int) -> None:
        address = environment.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._broken = False
        self._unsent = ""
        self._watched = _watchdog_s(environment, pid) > 0

    def ready(self, status: str) -> None:
        """The start has succeeded. status: a line for `systemctl status`."""
        self._send(f"READY=1\nSTATUS={status}")

    def stopping(self) -> None:
        """The stop has begun."""
        self._send("STOPPING=1\nSTATUS=Stopping: waits for the requests in flight")

    def alive(self) -> None:
        """The reactor runs. The manager ends the process when this does not come in time."""
        if self._unsent:
            self._send(self._unsent)
        if self._watched:
            self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address or self._broken:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as way:
                way.setblocking(False)
                way.sendto(text.encode(), self._address)
                self._unsent = self._unsent if text != self._unsent else ""
        except BlockingIOError:
            log.warn("The service manager takes no notification now: {text}", text=text)
            if not text.startswith("WATCHDOG"):  # `alive` sends it later
                self._unsent = text
        except OSError as error:
            self._broken = True
            log.warn(
                "The service manager cannot be notified ({error}): use NotifyAccess=main in the"
                " unit, or Type=exec",
                error=error,
            )


def _watchdog_s(environment: MutableMapping[str, str], pid: int) -> float:
    """The time in which the manager expects a sign of life; 0.0 without a watchdog."""
    text, of = environment.pop("WATCHDOG_USEC", ""), environment.pop("WATCHDOG_PID", "")
    if not text.isdecimal() or len(text) > _MOST_DIGITS or of not in ("", str(pid)):
        return 0.0
    seconds = int(text) / 1e6
    if 0 < seconds < _LEAST_WATCHDOG_S:
        log.warn(
            "WatchdogSec={seconds:g} of the unit is too short: use at least {least:g}",
            seconds=seconds,
            least=_LEAST_WATCHDOG_S,
        )
    return seconds
