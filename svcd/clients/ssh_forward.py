"""TCP connections to the ports of a machine, as channels (direct-tcpip) of its SSH connection.

`ForwardedEndpoint` is the IStreamClientEndpoint of one port. Each fault of it means that nothing
was sent to that port. It decides neither when the SSH connection is made nor when it is closed.

Note: an abandoned channel. SSH cannot withdraw the request for a channel. So the caller gets its
error at once, and svcd closes the channel when the server confirms it. Until then it counts as
opening.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Final

from twisted.conch.error import ConchError
from twisted.conch.ssh import connection, forwarding
from twisted.internet.address import HostnameAddress
from twisted.internet.defer import Deferred, fail
from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionAborted,
    ConnectionRefusedError,
    NoProtocol,
    TimeoutError,
)
from twisted.internet.interfaces import (
    IProtocol,
    IProtocolFactory,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from svcd.clients.connections import ForwardingForbidden
from svcd.clients.ssh_wire import Connection
from svcd.runtime.ssh_channel import ChannelTransport

OPEN_TIMEOUT_S: Final = 10.0
"""Time for the server to open a channel."""
MOST_CHANNELS: Final = 256
"""Channels of one connection, those included that wait for the server's answer."""
_ORIGIN: Final = ("127.0.0.1", 0)
_FORBIDDEN: Final = (
    connection.OPEN_ADMINISTRATIVELY_PROHIBITED,
    connection.OPEN_UNKNOWN_CHANNEL_TYPE,
)


class SshLost(ConnectError):
    """The SSH connection is closed."""


class TooManyChannels(ConnectError):
    """The connection has as many channels as svcd allows."""


@implementer(IStreamClientEndpoint)
class ForwardedEndpoint:
    """`address:port` at the machine of `connection`. address: the machine's own, never a name."""

    def __init__(
        self, connection: Connection, address: str, port: int, clock: IReactorTime
    ) -> None:
        self._connection = connection
        self._address = address
        self._port = port
        self._clock = clock

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """See IStreamClientEndpoint. Fails with a ConnectError or a TimeoutError."""
        where = f"port {self._port} of {self._address}"
        conn = self._connection
        if not conn.usable:  # Conch would never answer
            return fail(SshLost(string=f"{where}: the SSH connection is closed"))
        if len(conn.channels) >= MOST_CHANNELS:
            text = f"{where}: {len(conn.channels)} channels of the SSH connection are in use"
            return fail(TooManyChannels(string=text))
        channel = _Outgoing(protocolFactory, where, self._address, self._port, self._clock)
        asked = forwarding.packOpen_direct_tcpip((self._address, self._port), _ORIGIN)
        conn.openChannel(channel, asked)

        def late(result: object, seconds: float) -> Failure:
            text = f"{where}: the SSH server opened no channel within {seconds:g} s"
            return Failure(TimeoutError(string=text))

        return channel.opened.addTimeout(OPEN_TIMEOUT_S, self._clock, late)


class _Outgoing(ChannelTransport):
    """A channel that svcd opens. `opened` fires with its protocol."""

    def __init__(
        self,
        factory: IProtocolFactory,
        where: str,
        address: str,
        port: int,
        clock: IReactorTime,
    ) -> None:
        super().__init__(HostnameAddress(address.encode(), port), clock)
        self.opened: Deferred[IProtocol] = Deferred(self._given_up)
        self._where = where
        self._factory: IProtocolFactory | None = factory  # None: opened, failed or given up
        factory.doStart()

    def channelOpen(self, specificData: bytes) -> None:
        factory = self._factory
        if factory is None:
            self._drop()
            return
        try:
            protocol = factory.buildProtocol(self.getPeer())
            if protocol is None:
                raise NoProtocol
            self.attach(protocol)
        except Exception:  # the caller gets the error
            self._drop()
            self._done().errback()
        else:
            self._done().callback(protocol)

    def openFailed(self, reason: object) -> None:
        if self._factory is not None:
            self._done().errback(self._fault(reason))

    def _fault(self, reason: object) -> Exception:
        if not isinstance(reason, ConchError):
            return SshLost(string=f"{self._where}: the SSH connection was lost")
        text = reason.value
        said = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
        if reason.data in _FORBIDDEN:
            return ForwardingForbidden(
                string=f"{self._where}: the SSH server does not forward to it ({said}). Check"
                " AllowTcpForwarding, DisableForwarding and PermitOpen in its sshd_config, and the"
                " options of svcd's key in authorized_keys"
            )
        kind = ConnectionRefusedError if "refused" in said.lower() else ConnectError
        return kind(string=f"{self._where}: {said}")

    def _drop(self) -> None:
        """Close a channel that has no protocol."""
        self._end, self._over = ConnectionAborted(), True
        self.conn.sendClose(self)

    def _given_up(self, opened: Deferred[IProtocol]) -> None:
        self._done().errback(ConnectingCancelledError(self.getPeer()))

    def _done(self) -> Deferred[IProtocol]:
        """The Deferred to fire, once."""
        factory, self._factory = self._factory, None
        if factory is not None:
            factory.doStop()
        return self.opened
