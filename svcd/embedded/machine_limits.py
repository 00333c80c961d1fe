"""Limits of the open files that the SSH servers of the loopback machines take from the daemon.

Each connection and each forward is an open file of the daemon, which all machines and the API
share. This module counts them and decides who gets one more. It opens and closes nothing.

Note: shares. A login is a part of its machine, and the machine a part of all machines. A part gets
one more only while it has no more than it leaves free in its whole. So one part has at most half,
two have at most a third each, and a part that has nothing still gets one.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import field, frozen

_CONNECTIONS: Final = 128
"""Logged-in connections of one machine; one login has at most half of them."""
_RELAYS: Final = 512
"""Forwarded channels of one machine; one login has at most half of them."""
_SESSIONS: Final = 128
"""Session channels of one machine; one login has at most half of them."""
_WAITING: Final = 32
"""Connections of one machine that have not logged in."""


class Share:
    """What one part has of `whole`. most: the part's own limit."""

    def __init__(self, most: int, whole: Share | None = None) -> None:
        self.most = most
        self.used = 0
        self._whole = whole

    def take(self) -> bool:
        """Take one, here and in the whole. False, and nothing is taken, when there is none."""
        if self.used >= self.most:
            return False
        whole = self._whole
        if whole is not None and not (self.used + 1 < whole.most - whole.used and whole.take()):
            return False
        self.used += 1
        return True

    def give_back(self) -> None:
        """Give one back that was taken."""
        self.used -= 1
        if self._whole is not None:
            self._whole.give_back()


@frozen
class Shares:
    """What one machine, or one login of a machine, has open."""

    connections: Share
    relays: Share
    sessions: Share

    @property
    def in_use(self) -> bool:
        """Whether anything is open."""
        return any(each.used for each in (self.connections, self.relays, self.sessions))

    def part(self) -> Shares:
        """The shares of one login."""
        return Shares(*(Share(x.most, x) for x in (self.connections, self.relays, self.sessions)))


class Waiting:
    """Connections that have not logged in, the oldest first. most: how many may wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: dict[Any, None] = {}

    def add(self, connection: Any) -> Any | None:
        """Add `connection`; the oldest one, when there are too many now: drop it."""
        self._all[connection] = None
        return next(iter(self._all)) if len(self._all) > self._most else None

    def discard(self, connection: Any) -> None:
        """Remove `connection`: it has logged in or ended."""
        self._all.pop(connection, None)

    def __len__(self) -> int:
        return len(self._all)


@frozen
class Room:
    """The open files of all machines: a quarter is for connections that have not logged in."""

    most_files: int
    files: Share = field(init=False)
    waiting: Waiting = field(init=False)

    @files.default
    def _files(self) -> Share:
        return Share(self.most_files - self.most_files // 4)

    @waiting.default
    def _waiting(self) -> Waiting:
        return Waiting(self.most_files // 4)

    def machine(self) -> tuple[Shares, Waiting]:
        """The limits of one machine. Sessions have a limit of the machine alone."""
        shares = Shares(
            Share(_CONNECTIONS, self.files), Share(_RELAYS, self.files), Share(_SESSIONS)
        )
        return shares, Waiting(_WAITING)
