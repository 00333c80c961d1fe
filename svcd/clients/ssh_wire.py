"""The Conch side of the SSH client: one connection and the commands on it, as callbacks.

This module implements the protocol. Pooling, slots and deadlines are in `svcd.clients.ssh`. No
caller gets a Deferred of Conch, and no unhandled failure of one reaches the log.

Note: why parts of Conch are replaced. Conch signs with SHA-1 for RSA keys, which OpenSSH >= 8.8
refuses. Its exec endpoint drops stderr and cuts stdin that waits for window space. Its channel
copies the write buffer on each write (quadratic). A rekeying calls `connectionSecure` again. It
logs each lost connection and each channel. So here user authentication is one signed request, stdin
is sent piece by piece as the window opens, and Conch's own log is discarded.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, Protocol

from twisted.conch.error import ConchError
from twisted.conch.ssh import channel, common, connection, keys, transport, userauth
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.internet.protocol import ClientFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from svcd.clients.ends import Ends
from svcd.clients.pace import Pace
from svcd.ports.faults import Fault
from svcd.ports.machines import RemoteError
from svcd.runtime.slices import Slices
from svcd.runtime.ssh_channel import NO_LOG, PIECE_BYTES, WINDOW_BYTES, ChannelTransport
from svcd.runtime.tasks import Parked

END_BYTES: Final = 131_072
"""Bytes that svcd keeps of each end of stdout, and of each end of stderr."""

_STDERR: Final = 1

# The cheapest ones first. Conch has no GCM, no chacha20 and no MAC with -etm.
_CIPHERS: Final = (b"aes128-ctr", b"aes256-ctr")
_MACS: Final = (b"hmac-sha2-256", b"hmac-sha2-512")
_ALGORITHMS: Final = (
    " before the login (svcd needs a server that accepts aes128-ctr or aes256-ctr, and"
    " hmac-sha2-256 or hmac-sha2-512)"
)

_LEAST_PACKET_BYTES: Final = 1024
"""Smallest limit of a server for packets. Below, the input of a command would take a packet for
each byte, and with 0 it would have no end."""
_MOST_UNREAD_BYTES: Final = 1 << 20
"""Most bytes of replies and other packets without content that wait for a server to read."""
_PACKET_BYTES: Final = 100
"""Bytes of memory for a waiting packet beside its payload."""
_MOST_TEXT: Final = 500
"""Characters of a server's text that an error quotes."""

# No exchange in which the server chooses the group: a large prime would stall the reactor.
_KEY_EXCHANGES: Final = tuple(
    name
    for name in transport.SSHClientTransport.supportedKeyExchanges
    if not name.startswith(b"diffie-hellman-group-exchange-")
)
# The order of preference before a key is pinned; SHA-1 and DSA are not offered.
_HOST_KEY_ALGORITHMS: Final = (
    b"ssh-ed25519",
    b"ecdsa-sha2-nistp256",
    b"ecdsa-sha2-nistp384",
    b"ecdsa-sha2-nistp521",
    b"rsa-sha2-512",
    b"rsa-sha2-256",
)

MALFORMED: Final = (LookupError, ValueError, TypeError, AttributeError, struct.error, ConchError)
"""The exceptions that Conch raises for an invalid packet."""


class NotBegun(RemoteError):
    """The command has certainly not begun: the caller may send it again."""


class LinkEvents(Protocol):
    """The events of a connection, for its owner."""

    def link_up(self) -> None:
        """The login succeeded: commands can start."""
        ...

    def link_failed(self, error: RemoteError) -> None:
        """The connection will end with `error`. The first reason counts."""
        ...

    def link_gone(self, error: RemoteError) -> None:
        """The connection is closed, or was never made. Its commands fail after this call."""
        ...


def _always() -> None:
    """The check that always passes."""


class Exec(channel.SSHChannel):
    """One command. `done` fires with itself when the channel has closed, or with RemoteError."""

    name = b"session"
    conn: Any  # a Connection, once the channel is open
    _log = NO_LOG

    def __init__(self, command: str, stdin: bytes, may: Callable[[], None] = _always) -> None:
        """may: called directly before the command is sent; its exception ends the command."""
        super().__init__(localWindow=WINDOW_BYTES, localMaxPacket=PIECE_BYTES)
        self.out = Ends(END_BYTES, END_BYTES)
        self.err = Ends(END_BYTES, END_BYTES)
        self.exit_code: int | None = None
        self.signal = ""
        self.done: Deferred[Exec] = Deferred(self._cancelled)
        self._command = command.encode()
        self._may = may
        self._stdin = memoryview(stdin)
        self._sent = 0
        self._running = False
        self._fed = False
        self._ended = False

    def abandon(self) -> None:
        """Ask the server to kill the command, and close the channel."""
        self._ended = True
        # A channel that is not open yet is closed by `channelOpen`.
        if self.conn is not None and self in self.conn.channelsToRemoteChannel:
            self.conn.sendRequest(self, b"signal", common.NS(b"KILL"))
            self.conn.sendClose(self)

    def fail(self, error: RemoteError) -> None:
        """End the command with `error`, unless it has ended already."""
        if not self._ended:
            self._ended = True
            self.done.errback(error)

    # -- called by Conch ----------------------------------------------------------------------

    def channelOpen(self, specificData: bytes) -> None:
        if self._ended:
            self.conn.sendClose(self)
            return
        try:
            self._may()
        except Parked as parked:
            self._ended = True
            self.conn.sendClose(self)
            self.done.errback(parked)
            return
        self.conn.request_exec(self, self._command)

    def openFailed(self, reason: object) -> None:
        if isinstance(reason, ConchError):
            text = _quoted(reason.value) if reason.value else "no reason given"
            self.fail(RemoteError(Fault.BUSY, f"the server opened no channel: {text}"))
        else:
            self.fail(NotBegun(Fault.UNREACHABLE, "connection lost before the command began"))

    def exec_accepted(self) -> None:
        """The server runs the command: begin to send stdin."""
        self._running = True
        self._feed()

    def exec_refused(self) -> None:
        """The server refuses to run commands for this user."""
        text = self.err.text().strip()[:_MOST_TEXT] or "no reason given"
        self.fail(RemoteError(Fault.REFUSED, f"the server refused to run the command: {text}"))
        self.conn.sendClose(self)

    def addWindowBytes(self, data: int) -> None:
        self.remoteWindowLeft += data
        self._feed()

    def dataReceived(self, data: bytes) -> None:
        self.out.add(data)

    def extReceived(self, dataType: int, data: bytes) -> None:
        if dataType == _STDERR:
            self.err.add(data)

    def eofReceived(self) -> None:
        """Does nothing: the close follows."""

    def request_exit_status(self, data: bytes) -> int:
        self.exit_code = struct.unpack(">L", data[:4])[0]
        return 1

    def request_exit_signal(self, data: bytes) -> int:
        self.signal = common.getNS(data)[0].decode("ascii", "replace")
        return 1

    def closeReceived(self) -> None:
        self.conn.sendClose(self)

    def closed(self) -> None:
        if self._ended:
            return
        if self.exit_code is None and not self.signal:
            lost = RemoteError(Fault.UNREACHABLE, "connection lost while the command was running")
            self.fail(lost)
            return
        self._ended = True
        self.done.callback(self)

    # -- inside -------------------------------------------------------------------------------

    def _feed(self) -> None:
        """Send as much of stdin as the window allows, and EOF after the last byte."""
        if not self._running or self._fed or self._ended:
            return
        while self._sent < len(self._stdin) and self.remoteWindowLeft > 0:
            size = min(self.remoteWindowLeft, self.remoteMaxPacket, len(self._stdin) - self._sent)
            self.conn.sendData(self, bytes(self._stdin[self._sent : self._sent + size]))
            self._sent += size
            self.remoteWindowLeft -= size
        if self._sent == len(self._stdin):
            self._fed = True
            self.conn.sendEOF(self)

    def _cancelled(self, _: Deferred[Exec]) -> None:
        self.abandon()


@implementer(IPushProducer)
class Connection(connection.SSHConnection):
    """The channels of one connection; replies go to the channel, without Deferreds.

    usable: whether channels can be opened. As a producer of the TCP connection it holds back the
    forwarded channels (`congested`), because a server may announce a window of any size.
    """

    transport: Any
    _log = NO_LOG

    def __init__(self, events: LinkEvents) -> None:
        super().__init__()
        self._events = events
        self.usable = False
        self.congested = False

    def serviceStarted(self) -> None:
        super().serviceStarted()
        self.usable = True
        self.transport.transport.registerProducer(self, True)
        self._events.link_up()

    def serviceStopped(self) -> None:
        self.usable = False
        super().serviceStopped()

    def pauseProducing(self) -> None:
        """See IPushProducer."""
        self.congested = True

    def resumeProducing(self) -> None:
        """See IPushProducer."""
        self.congested = False
        for open_channel in list(self.channelsToRemoteChannel):
            if self.congested:
                return
            if isinstance(open_channel, ChannelTransport):
                open_channel.flush()

    def stopProducing(self) -> None:
        """See IPushProducer. The TCP connection is lost."""
        self.usable = False

    def start(self, command: Exec) -> None:
        """Open a channel for `command`."""
        self.openChannel(command)

    def request_exec(self, command: Exec, text: bytes) -> None:
        """Ask to run `text`; `exec_accepted` or `exec_refused` of the channel follows."""
        self.transport.sendPacket(
            connection.MSG_CHANNEL_REQUEST,
            struct.pack(">L", self.channelsToRemoteChannel[command])
            + common.NS(b"exec")
            + b"\1"
            + common.NS(text),
        )

    def keep_alive(self) -> None:
        """Send a keep-alive: a server answers every global request, even an unknown one."""
        self.transport.sendPacket(
            connection.MSG_GLOBAL_REQUEST, common.NS(b"keepalive@openssh.com") + b"\1"
        )

    def ssh_CHANNEL_OPEN_CONFIRMATION(self, packet: bytes) -> None:
        most = struct.unpack(">L", packet[12:16])[0]
        if most < _LEAST_PACKET_BYTES:
            text = f"it takes {most} bytes a packet, expected at least {_LEAST_PACKET_BYTES}"
            raise ConchError(text)
        super().ssh_CHANNEL_OPEN_CONFIRMATION(packet)

    def ssh_CHANNEL_SUCCESS(self, packet: bytes) -> None:
        self.channels[struct.unpack(">L", packet[:4])[0]].exec_accepted()

    def ssh_CHANNEL_FAILURE(self, packet: bytes) -> None:
        self.channels[struct.unpack(">L", packet[:4])[0]].exec_refused()

    def ssh_REQUEST_SUCCESS(self, packet: bytes) -> None:
        """Does nothing: any answer to a keep-alive shows that the server is alive."""

    def ssh_REQUEST_FAILURE(self, packet: bytes) -> None:
        """Does nothing, as `ssh_REQUEST_SUCCESS`."""

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> int:
        return 0

    def getChannel(self, channelType: bytes, windowSize: int, maxPacket: int, data: bytes) -> Any:
        raise ConchError("not here", connection.OPEN_ADMINISTRATIVELY_PROHIBITED)


class KeyLogin(userauth.SSHUserAuthClient):
    """Logs in with one key and by no other method."""

    transport: Any
    _log = NO_LOG

    def __init__(
        self, user: str, key: keys.Key, instance: Connection, refused: Callable[[], None]
    ) -> None:
        super().__init__(user.encode(), instance)
        self._key = key
        self._refused = refused

    def serviceStarted(self) -> None:
        """Send the signed request at once, without a query first: this saves a round trip."""
        algorithm = b"rsa-sha2-512" if self._key.type() == "RSA" else self._key.sshType()
        asked = b"\1" + common.NS(algorithm) + common.NS(self._key.public().blob())
        signed = (
            common.NS(self.transport.sessionID)
            + bytes((userauth.MSG_USERAUTH_REQUEST,))
            + common.NS(self.user)
            + common.NS(self.instance.name)
            + common.NS(b"publickey")
            + asked
        )
        signature = self._key.sign(signed, algorithm)
        self.askForAuth(b"publickey", asked + common.NS(signature))

    def ssh_USERAUTH_FAILURE(self, packet: bytes) -> None:
        self._refused()

    def ssh_USERAUTH_BANNER(self, packet: bytes) -> None:
        """Does nothing: the banner is a notice for people."""


class ClientTransport(transport.SSHClientTransport):
    """One TCP connection to a server. Its host key is pinned, or learnt by the first exchange."""

    transport: Any
    _log = NO_LOG

    def __init__(
        self,
        user: str,
        key: keys.Key,
        pinned: bytes | None,
        events: LinkEvents,
        heard: Callable[[], None],
        slices: Slices,
    ) -> None:
        self.connection = Connection(events)
        self._slices = slices
        self._pace: Pace | None = None
        self.host_key = ""  # the key that the server has shown, as an OpenSSH line
        self._login = KeyLogin(user, key, self.connection, self._refused)
        self._pinned = pinned
        self._events = events
        self._heard = heard
        self._secure = False
        self._unread_bytes = 0
        self.supportedPublicKeys = _preferred(pinned)
        self.supportedCiphers = list(_CIPHERS)
        self.supportedMACs = list(_MACS)
        self.supportedKeyExchanges = list(_KEY_EXCHANGES)
        self.supportedCompressions = [b"none"]  # a compressed packet could grow a thousand times

    def connectionMade(self) -> None:
        self.transport.setTcpNoDelay(True)
        self._pace = Pace(self.transport, self._slices, self._receive)
        super().connectionMade()

    def abort(self) -> None:
        """Abort the connection."""
        self.connection.usable = False
        if self.transport is not None:
            self.transport.abortConnection()

    def verifyHostKey(self, hostKey: bytes, fingerprint: bytes) -> Deferred[int]:
        if self._pinned is not None and hostKey != self._pinned:
            text = (
                f"the host key has changed (shown {fingerprint.decode('ascii', 'replace')}):"
                " another machine answers at this address, or it was rebuilt"
            )
            self._events.link_failed(RemoteError(Fault.HOST_KEY, text))
            return fail(ConchError("host key"))
        self._pinned = hostKey
        self.host_key = keys.Key.fromString(hostKey).toString("openssh").decode("ascii")
        return succeed(1)

    def connectionSecure(self) -> None:
        if not self._secure:  # Conch calls again after each rekeying
            self._secure = True
            self.requestService(self._login)

    def dataReceived(self, data: bytes) -> None:
        self._heard()
        assert self._pace is not None
        self._pace.deliver(data)

    def _receive(self, data: bytes) -> None:
        try:
            super().dataReceived(data)
        except MALFORMED as error:
            self._events.link_failed(
                RemoteError(Fault.SERVER_ERROR, f"the server sent an invalid packet ({error!r})")
            )
            self.abort()

    def sendPacket(self, messageType: int, payload: bytes) -> None:
        """See SSHTransportBase. Aborts the connection of a server that only sends requests.

        Conch replies to each request, and keeps the replies until the server reads them, or until
        the key exchange ends that the server has begun. The windows of channels limit content.
        """
        waits = self.connection.congested or self._keyExchangeState != self._KEY_EXCHANGE_NONE
        if not waits:
            self._unread_bytes = 0
        elif messageType != connection.MSG_CHANNEL_DATA:
            self._unread_bytes += len(payload) + _PACKET_BYTES
            if self._unread_bytes > _MOST_UNREAD_BYTES:
                text = f"the server does not read {_MOST_UNREAD_BYTES} bytes of replies"
                self._events.link_failed(RemoteError(Fault.SERVER_ERROR, text))
                self.abort()
                return
        super().sendPacket(messageType, payload)

    def receiveError(self, reasonCode: int, description: bytes) -> None:
        text = f"the server disconnected: {_quoted(description)}"
        self._events.link_failed(RemoteError(Fault.UNREACHABLE, text))

    def sendDisconnect(self, reason: int, desc: bytes) -> None:
        super().sendDisconnect(reason, desc)
        text = desc.decode("utf-8", "replace")
        if not self._secure:
            text += _ALGORITHMS
        self._events.link_failed(RemoteError(Fault.UNREACHABLE, f"disconnected: {text}"))

    def connectionLost(self, reason: Failure | None = None) -> None:
        try:
            if self._pace is not None:
                self._pace.catch_up()
        finally:
            self._lost(reason)

    def _lost(self, reason: Failure | None) -> None:
        text = reason.getErrorMessage() if reason is not None else "closed"
        if self.gotVersion and not self._secure:
            text += _ALGORITHMS
        self._events.link_gone(RemoteError(Fault.UNREACHABLE, text))
        super().connectionLost(reason)

    def _refused(self) -> None:
        self._events.link_failed(
            RemoteError(Fault.UNAUTHORIZED, "the server refused the key of this user")
        )
        self.transport.loseConnection()


class Dialer(ClientFactory):
    """The factory of exactly one transport."""

    noisy = False

    def __init__(self, made: ClientTransport, events: LinkEvents) -> None:
        self._made = made
        self._events = events

    def buildProtocol(self, addr: IAddress | None) -> ClientTransport:
        self._made.factory = self
        return self._made

    def clientConnectionFailed(self, connector: object, reason: Failure) -> None:
        self._events.link_gone(RemoteError(Fault.UNREACHABLE, reason.getErrorMessage()))


def _quoted(text: bytes) -> str:
    """The beginning of a text of a server."""
    return text[: 4 * _MOST_TEXT].decode("utf-8", "replace")[:_MOST_TEXT]


def _preferred(pinned: bytes | None) -> list[bytes]:
    """The algorithms to offer. Those of the pinned key come first, so that the server uses it."""
    if pinned is None:
        return list(_HOST_KEY_ALGORITHMS)
    kind = common.getNS(pinned)[0]
    first = [b"rsa-sha2-512", b"rsa-sha2-256"] if kind == b"ssh-rsa" else [kind]
    return first + [a for a in _HOST_KEY_ALGORITHMS if a not in first]
