"""Limits of the open files that the SSH servers of the loopback machines take from the daemon.

Each connection and each forward is an open file of the daemon, which all machines and the API
share. This module counts them. It opens and closes nothing.
"""

from __future__ import annotations

from typing import Final

CONNECTIONS: Final = 128
"""Logged-in connections of one machine."""
RELAYS: Final = 512
"""Forwarded channels of one machine."""
WAITING: Final = 32
"""Connections of one machine that have not logged in."""


class Count:
    """Counts open files, at most `most`. Each counts in `whole`, too."""

    def __init__(self, most: int, whole: Count | None = None) -> None:
        self.most = most
        self.used = 0
        self._whole = whole

    def take(self) -> bool:
        """Count one, here and in `whole`. False, without a count, when one of the two is full."""
        if self.used >= self.most or (self._whole is not None and not self._whole.take()):
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        """End the count of one."""
        self.used -= 1
        if self._whole is not None:
            self._whole.give_back()
