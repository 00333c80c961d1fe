"""The addresses of this host on which other programs listen, and the words for a conflict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.embedded.cloud.guests import AddressTaken, GuestError
from svcd.runtime.listeners import WILDCARDS, Listener, described, listeners, owners_of

_LOOK_S: Final = 1.0
"""Seconds for which svcd uses a list of the listeners, so that a burst of servers reads it once."""


class HostAddresses:
    """The addresses of this host, of which machines use some. port: the machines' SSH port."""

    def __init__(self, clock: IReactorTime, port: int) -> None:
        self._clock = clock
        self._port = port
        self._listeners: Sequence[Listener] = ()
        self._looked_at = float("-inf")
        self._holders: dict[str, int] = {}  # inode of a socket -> its process; 0: of another user

    def occupied(self) -> Callable[[str], bool]:
        """Look at this host; the result says of an address whether a program listens on it alone.

        A program that listens on all addresses does not count: no other address would be better.
        """
        self._look()
        return {listener.address for listener in self._listeners}.__contains__

    def conflict(self, address: str) -> GuestError:
        """The error of a machine that cannot listen on `address`, because its port is taken."""
        self._look()
        others = self._excluding(address)
        if not others:
            self._look(now=True)
            others = self._excluding(address)
        holder = next(filter(None, [self._holder(other.inode) for other in others]), 0)
        everywhere = any(other.address in WILDCARDS for other in others)
        return conflict(address, self._port, holder, everywhere)

    def _excluding(self, address: str) -> Sequence[Listener]:
        return [other for other in self._listeners if other.excludes(address, self._port)]

    def _look(self, now: bool = False) -> None:
        if not now and self._clock.seconds() - self._looked_at <= _LOOK_S:
            return
        self._listeners, self._looked_at = listeners(), self._clock.seconds()
        living = {listener.inode for listener in self._listeners}
        self._holders = {inode: self._holders[inode] for inode in self._holders.keys() & living}

    def _holder(self, inode: str) -> int:
        """The process with this socket, 0 when this user may not see it. Searches once."""
        if inode not in self._holders:
            self._holders[inode] = next(iter(owners_of([inode])), 0)
        return self._holders[inode]


def conflict(address: str, port: int, holder: int, everywhere: bool) -> GuestError:
    """The error for a taken port.

    holder: a process, 0 when unknown. everywhere: it listens on all addresses.
    """
    who = described(holder) if holder else "another program"
    end = f"kill {holder}" if holder else f"find it with: ss -ltnp 'sport = :{port}'"
    if everywhere:
        return GuestError(
            f"port {port} is taken on all addresses, so no machine can listen on {address}:{port}:"
            f" {who} holds it. The machine boots when that program has ended ({end}). To use"
            " another port, set embedded.ssh_port and start svcd again"
        )
    return AddressTaken(
        f"the port {address}:{port} is taken: {who} holds it. The machine boots when that program"
        f" has ended ({end}). To do without the machine, remove its cluster (svcd cluster rm"
        " CLUSTER)",
        address,
    )
