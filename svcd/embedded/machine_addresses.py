"""The addresses of this host on which other programs listen, and the words for a conflict."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.embedded.cloud.guests import AddressTaken, GuestError
from svcd.runtime.listeners import WILDCARDS, Listener, described, listeners, owners_of

_LOOK_S: Final = 1.0
"""Time for which a list of the listeners counts, so that a burst of servers reads it once."""


@frozen
class Holder:
    """A process that holds a port. text: its command line, for people."""

    pid: int
    text: str


class HostAddresses:
    """The addresses of this host, of which machines use some. port: the machines' SSH port."""

    def __init__(self, clock: IReactorTime, port: int) -> None:
        self._clock = clock
        self._port = port
        self._listeners: Sequence[Listener] | None = ()
        self._looked_at = float("-inf")
        self._holders: dict[str, Holder | None] = {}

    def occupied(self) -> Callable[[str], bool]:
        """Look at this host; the result says of an address whether a program listens on it alone.

        A program that listens on all addresses does not count: no other address would be better.
        Without `/proc` the result tries the SSH port of the address.
        """
        self._look()
        if self._listeners is None:
            return self._refuses
        return {each.address for each in self._listeners}.__contains__

    def conflict(self, address: str) -> GuestError:
        """The error of a machine that cannot listen on `address`, because its port is taken."""
        self._look()
        found = self._excluding(address)
        if not found:
            self._look(now=True)
            found = self._excluding(address)
        holders = [self._holder(each.inode) for each in found]
        holder = next((each for each in holders if each is not None), None)
        everywhere = any(each.address in WILDCARDS for each in found)
        return conflict(address, self._port, holder, everywhere)

    def _excluding(self, address: str) -> Sequence[Listener]:
        return [each for each in self._listeners or () if each.excludes(address, self._port)]

    def _look(self, now: bool = False) -> None:
        if not now and self._clock.seconds() - self._looked_at <= _LOOK_S:
            return
        self._listeners, self._looked_at = listeners(), self._clock.seconds()
        living = {each.inode for each in self._listeners or ()}
        self._holders = {inode: self._holders[inode] for inode in self._holders.keys() & living}

    def _holder(self, inode: str) -> Holder | None:
        """The process with this socket, when this user may see it: one search for each socket."""
        if inode not in self._holders:
            pids = owners_of([inode])
            self._holders[inode] = Holder(pids[0], described(pids[0])) if pids else None
        return self._holders[inode]

    def _refuses(self, address: str) -> bool:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, self._port))
            except OSError as error:
                return error.errno == errno.EADDRINUSE
        return False


def conflict(address: str, port: int, holder: Holder | None, everywhere: bool) -> GuestError:
    """The error for a taken port. everywhere: its holder listens on all addresses. Pure."""
    who = "another program" if holder is None else holder.text
    end = f"find it with: ss -ltnp 'sport = :{port}'" if holder is None else f"kill {holder.pid}"
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
