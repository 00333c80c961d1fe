"""Forwards of the SSH server of a loopback machine: direct-tcpip to the machine's own addresses.

A base of the server's connection. It answers the request for a channel after it has connected, as
OpenSSH does, so that a closed port is a channel that fails to open. It forwards to no other
address, and listens on none.

A forward counts for its machine from the request until its TCP connection is closed. So a service
that reads nothing holds its place after the channel has ended, until the SSH connection ends.

Note: early answers. A service may answer an upload before its end, and close. The kernel then
resets the TCP connection, and the next write fails while the answer still waits to be read. Twisted
closes a connection whose write has failed. So a relay keeps a second reference to the socket, and
reads the rest before it passes the end on.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from io import RawIOBase
from typing import Any, Final

from twisted.conch.ssh import common, connection, forwarding
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectingCancelledError
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from svcd.runtime.ssh_channel import WINDOW_BYTES, ChannelTransport

_CONNECT_S: Final = 30
"""Time-out of a connection to a port of the machine."""
_PIECE_BYTES: Final = 65_536


class ForwardingConnection(connection.SSHConnection):
    """Forwards to the addresses of the machine's door."""

    transport: Any  # of `machine_ssh`: its factory knows the machine's door and its relays
    congested = False  # a client reads all bytes of its channels, whose windows are small

    def __init__(self) -> None:
        super().__init__()
        self._connecting: set[Deferred[Any]] = set()
        self.relays: set[_Outer] = set()  # the sides of the relays at the machine's ports

    def ssh_CHANNEL_OPEN(self, packet: bytes) -> None:
        """See SSHConnection."""
        kind, rest = common.getNS(packet)
        if kind != b"direct-tcpip":
            super().ssh_CHANNEL_OPEN(packet)
            return
        number, window, piece = struct.unpack(">3L", rest[:12])
        (host, port), _ = forwarding.unpackOpen_direct_tcpip(rest[12:])
        address = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if address not in self.transport.factory.door().addresses:
            text = b"only to the machine's own addresses"
            self._refuse(number, connection.OPEN_ADMINISTRATIVELY_PROHIBITED, text)
        elif not self.transport.factory.relays.take():
            text = b"too many forwards of this machine: close some"
            self._refuse(number, connection.OPEN_RESOURCE_SHORTAGE, text)
        else:
            self._connect(address, port, number, window, piece)

    def serviceStopped(self) -> None:
        for connecting in list(self._connecting):
            connecting.cancel()
        super().serviceStopped()
        for relay in list(self.relays):
            relay.transport.abortConnection()

    def _connect(self, address: str, port: int, number: int, window: int, piece: int) -> None:
        server = self.transport.factory
        # from the machine's own address: services see their machine as the client
        endpoint = TCP4ClientEndpoint(server.reactor, address, port, _CONNECT_S, (address, 0))
        connecting = endpoint.connect(Factory.forProtocol(_Outer))
        self._connecting.add(connecting)

        def connected(outer: _Outer) -> None:
            self._connecting.discard(connecting)
            outer.transport.setTcpNoDelay(True)
            channel = ChannelTransport(
                outer.transport.getPeer(),
                server.clock,
                remoteWindow=window,
                remoteMaxPacket=piece,
                conn=self,
            )
            self.relays.add(outer)

            def gone() -> None:
                self.relays.discard(outer)
                server.relays.give_back()

            outer.gone = gone
            self._confirm(channel, number)
            _relay(outer, channel)

        def failed(reason: Failure) -> None:
            self._connecting.discard(connecting)
            server.relays.give_back()
            if not reason.check(ConnectingCancelledError):
                text = reason.getErrorMessage().encode()
                self._refuse(number, connection.OPEN_CONNECT_FAILED, text)

        connecting.addCallbacks(connected, failed)

    def _confirm(self, channel: ChannelTransport, theirs: int) -> None:
        """Register `channel` as Conch does for a channel that opens at once."""
        ours, self.localChannelID = self.localChannelID, self.localChannelID + 1
        channel.id = ours  # type: ignore[assignment]
        self.channels[ours] = channel
        self.channelsToRemoteChannel[channel] = theirs
        self.localToRemoteChannel[ours] = theirs
        self.transport.sendPacket(
            connection.MSG_CHANNEL_OPEN_CONFIRMATION,
            struct.pack(">4L", theirs, ours, WINDOW_BYTES, channel.localMaxPacket),
        )

    def _refuse(self, theirs: int, code: int, text: bytes) -> None:
        self.transport.sendPacket(
            connection.MSG_CHANNEL_OPEN_FAILURE,
            struct.pack(">2L", theirs, code) + common.NS(text) + common.NS(b""),
        )


@implementer(IHalfCloseableProtocol)
class _Side(Protocol):
    """One side of a relay: passes bytes, EOF and the end to the other side."""

    transport: Any
    other: _Side
    _read_all = False

    def dataReceived(self, data: bytes) -> None:
        self.other.transport.write(data)

    def readConnectionLost(self) -> None:
        self._read_all = True
        self.other.transport.unregisterProducer()
        self.other.transport.loseWriteConnection()
        if self.other._read_all:
            for side in (self, self.other):
                side.transport.unregisterProducer()
                side.transport.loseConnection()

    def writeConnectionLost(self) -> None:
        """Does nothing: the peer may still send."""

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.other.transport.unregisterProducer()
        self.other.transport.loseConnection()


class _Outer(_Side):
    """The side at a port of the machine. gone: called at its end."""

    gone: Callable[[], None]
    _rest: RawIOBase

    def connectionMade(self) -> None:
        # the socket stays open until this file is closed, too; both have one file number
        self._rest = self.transport.getHandle().makefile("rb", buffering=0)

    def connectionLost(self, reason: Failure | None = None) -> None:
        with self._rest, suppress(OSError):
            while data := self._rest.read(_PIECE_BYTES):  # at most what the kernel has buffered
                self.other.transport.write(data)
        self.gone()
        super().connectionLost(reason)


def _relay(outer: _Outer, channel: ChannelTransport) -> None:
    """Connect the TCP connection of `outer` with `channel`."""
    inner = _Side()
    inner.other, outer.other = outer, inner
    channel.attach(inner)
    channel.registerProducer(outer.transport, True)
    outer.transport.registerProducer(channel, True)
