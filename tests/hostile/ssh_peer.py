"""SSH servers that misbehave, one port for each way, see `WAYS`."""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from twisted.conch.ssh import common, connection, factory, keys, transport
from twisted.internet import reactor as _reactor  # noqa: TID251 - a part of a program
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import LoopingCall, deferLater

reactor: Any = _reactor
_READ_S = 0.05

_VERSION = b"SSH-2.0-peer\r\n"


class RawPeer(Protocol):
    """Sends the bytes of a way, or one of them a second."""

    transport: Any
    _begun = False

    def __init__(self, first: bytes, then: bytes, again: bytes, every_s: float) -> None:
        self._first, self._then, self._again = first, then, again
        self._ticking = LoopingCall(self._tick) if every_s else None
        self._every_s = every_s

    def connectionMade(self) -> None:
        self.transport.write(self._first)
        if self._ticking is not None:
            self._ticking.start(self._every_s, now=False)

    def dataReceived(self, data: bytes) -> None:
        """The client reads our version now, and must not read more with it."""
        if not self._begun:
            self._begun = True
            deferLater(reactor, _READ_S, self._go_on)

    def _go_on(self) -> None:
        self.transport.write(self._then)
        if self._again and self._ticking is None and self.transport.connected:
            self.transport.registerProducer(self, False)

    def _tick(self) -> None:
        self.transport.write(self._again)

    def resumeProducing(self) -> None:
        self.transport.write(self._again)

    def stopProducing(self) -> None:
        self.transport.unregisterProducer()

    def connectionLost(self, reason: Any = None) -> None:
        if self._ticking is not None:
            self._ticking.stop()


class Closing(Protocol):
    transport: Any

    def connectionMade(self) -> None:
        self.transport.loseConnection()


class Sessions(connection.SSHConnection):
    """Accepts each channel and each command; then the way of the server goes on."""

    transport: Any

    def serviceStarted(self) -> None:
        super().serviceStarted()
        self.transport.way.connected(self)

    def packetReceived(self, messageNum: int, packet: bytes) -> None:
        self.transport.way.packet(self, messageNum, packet)

    def channelless(self, number: int, payload: bytes) -> None:
        self.transport.sendPacket(number, payload)


class Way:
    """A good server, whose answers subclasses spoil. It runs no command."""

    window = 1 << 20
    most_packet = 32_768
    authentication = True

    def connected(self, conn: Sessions) -> None:
        """The client has logged in."""

    def packet(self, conn: Sessions, number: int, packet: bytes) -> None:
        if number == connection.MSG_CHANNEL_OPEN:
            self.opened(conn, packet)
        elif number == connection.MSG_CHANNEL_REQUEST:
            self.accept(conn)
            self.command(conn)

    def opened(self, conn: Sessions, packet: bytes) -> None:
        self.remote = struct.unpack(">L", common.getNS(packet)[1][:4])[0]
        numbers = struct.pack(">4L", self.remote, 0, self.window, self.most_packet)
        conn.transport.sendPacket(connection.MSG_CHANNEL_OPEN_CONFIRMATION, numbers)

    def accept(self, conn: Sessions) -> None:
        number = struct.pack(">L", self.remote)
        conn.transport.sendPacket(connection.MSG_CHANNEL_SUCCESS, number)

    def command(self, conn: Sessions) -> None:
        self.exit(conn)

    def exit(self, conn: Sessions) -> None:
        number = struct.pack(">L", self.remote)
        status = number + common.NS(b"exit-status") + b"\0" + struct.pack(">L", 0)
        conn.transport.sendPacket(connection.MSG_CHANNEL_REQUEST, status)
        conn.transport.sendPacket(connection.MSG_CHANNEL_CLOSE, number)

    def flood(self, conn: Sessions, number: int, payload: bytes, at_once: int = 1) -> None:
        """Send the same packet for ever, as fast as the client reads."""
        server = conn.transport

        class Flood:
            def resumeProducing(self) -> None:
                for _ in range(at_once):
                    server.sendPacket(number, payload)

            def stopProducing(self) -> None:
                server.transport.unregisterProducer()

        server.transport.registerProducer(Flood(), False)


class _Flooding(Way):
    """Floods from the command on."""

    def __init__(self, number: int, payload: Callable[[int], bytes], at_once: int = 1) -> None:
        self._number, self._payload, self._at_once = number, payload, at_once

    def command(self, conn: Sessions) -> None:
        self.flood(conn, self._number, self._payload(self.remote), self._at_once)


class _SmallPackets(Way):
    def __init__(self, most_packet: int, window: int = 1 << 30) -> None:
        self.most_packet, self.window = most_packet, window

    def command(self, conn: Sessions) -> None:
        """Wait for all of the input."""


class _Silent(Way):
    def command(self, conn: Sessions) -> None:
        """Never answer."""


class _NoStatus(Way):
    def exit(self, conn: Sessions) -> None:
        conn.transport.sendPacket(connection.MSG_CHANNEL_CLOSE, struct.pack(">L", self.remote))


class _Refusing(Way):
    def accept(self, conn: Sessions) -> None:
        conn.transport.sendPacket(connection.MSG_CHANNEL_FAILURE, struct.pack(">L", self.remote))

    def command(self, conn: Sessions) -> None:
        """Refused."""


class _NoChannel(Way):
    def opened(self, conn: Sessions, packet: bytes) -> None:
        remote = common.getNS(packet)[1][:4]
        text = common.NS(b"\x1b[2Jno\n" * 30_000)
        failure = remote + struct.pack(">L", 1) + text + common.NS(b"")
        conn.transport.sendPacket(connection.MSG_CHANNEL_OPEN_FAILURE, failure)


class _WrongChannel(Way):
    def opened(self, conn: Sessions, packet: bytes) -> None:
        numbers = struct.pack(">4L", 4711, 0, 1, 1)
        conn.transport.sendPacket(connection.MSG_CHANNEL_OPEN_CONFIRMATION, numbers)


class _Rekeying(Way):
    """Exchanges keys again and again."""

    def command(self, conn: Sessions) -> None:
        again = LoopingCall(conn.transport.sendKexInit)
        conn.transport.rekeying = again
        again.start(0.01)


class _Disconnecting(Way):
    def command(self, conn: Sessions) -> None:
        conn.transport.sendDisconnect(2, b"\x1b]0;x\x07" * 5000)


class _Welcome(transport.SSHServerTransport):
    """Lets everybody in. Sends its packets in clear text as long as no keys were exchanged."""

    rekeying: LoopingCall | None = None
    way: Way

    def ssh_SERVICE_REQUEST(self, packet: bytes) -> None:
        service = common.getNS(packet)[0]
        self.sendPacket(transport.MSG_SERVICE_ACCEPT, common.NS(service))
        if service == b"ssh-userauth":
            self.service = self

    # as the service "ssh-userauth"

    def packetReceived(self, number: int, packet: bytes) -> None:
        if self.way.authentication:
            self.sendPacket(52, b"")
            self.setService(Sessions())
        else:
            self.sendPacket(51, common.NS(b"publickey," * 3000) + b"\0")

    def serviceStopped(self) -> None:
        """Nothing to stop."""

    def sendKexInit(self) -> None:
        if not self.sessionID or self._keyExchangeState == self._KEY_EXCHANGE_NONE:
            super().sendKexInit()

    def connectionLost(self, reason: Any = None) -> None:
        if self.rekeying is not None and self.rekeying.running:
            self.rekeying.stop()


class _Compressing(_Welcome):
    """Offers compression only, by which a packet could grow a thousand times."""

    supportedCompressions = [b"zlib"]


class _GroupExchange(_Welcome):
    """Chooses the exchange in which the server names the prime, and names a large one."""

    supportedKeyExchanges = [b"diffie-hellman-group-exchange-sha256"]

    def ssh_KEX_DH_GEX_REQUEST(self, packet: bytes) -> None:
        prime = (1 << 9_999) | 0xF1
        self.sendPacket(transport.MSG_KEX_DH_GEX_GROUP, common.MP(prime) + b"\0\0\0\1\2")


class _Server(factory.SSHFactory):
    noisy = False

    def __init__(self, way: Way, protocol: type[_Welcome], key: keys.Key) -> None:
        self._way = way
        self.protocol = protocol
        self.primes = {2048: [(2, 23)]}
        self.publicKeys = {b"ssh-ed25519": key.public()}
        self.privateKeys = {b"ssh-ed25519": key}

    def startFactory(self) -> None:
        """The keys are there."""

    def buildProtocol(self, addr: Any) -> Any:
        made = super().buildProtocol(addr)
        made.way = self._way
        return made


def _raw(first: bytes, then: bytes = b"", again: bytes = b"", every_s: float = 0.0) -> Factory:
    made = Factory()
    made.noisy = False
    made.buildProtocol = lambda addr: RawPeer(first, then, again, every_s)  # type: ignore[method-assign,assignment]
    return made


def _closing() -> Factory:
    made: Factory = Factory.forProtocol(Closing)
    made.noisy = False
    return made


def _data(data: bytes) -> Callable[[int], bytes]:
    return lambda channel: struct.pack(">L", channel) + common.NS(data)


def _errors(data: bytes) -> Callable[[int], bytes]:
    return lambda channel: struct.pack(">2L", channel, 1) + common.NS(data)


def _opening(_: int) -> bytes:
    return common.NS(b"session") + struct.pack(">3L", 7, 1 << 20, 1 << 15)


def _asking(_: int) -> bytes:
    return common.NS(b"x" * 1000) + b"\1"


class _Rejecting(Way):
    authentication = False


WAYS: Mapping[str, Callable[[keys.Key], Factory]] = {
    "silence": lambda _: _raw(b""),
    "close-at-once": lambda _: _closing(),
    "no-ssh": lambda _: _raw(b"HTTP/1.1 200 OK\r\n\r\n"),
    "endless-banner": lambda _: _raw(b"welcome\r\n" * 5000),
    "banner-a-byte-a-second": lambda _: _raw(b"S", again=b"S", every_s=1.0),
    "packet-length-4-gib": lambda _: _raw(_VERSION, b"\xff" * 64),
    "packet-length-1-mib-endless": lambda _: _raw(
        _VERSION, b"\x00\x0f\xff\xfc\x04", b"\0" * 65_536
    ),
    "packet-length-lies": lambda _: _raw(_VERSION, b"\x00\x00\x00\x01\xff" + b"\0" * 64),
    "empty-packets": lambda _: _raw(
        _VERSION, again=(b"\x00\x00\x00\x0c\x0a\x02" + b"\0" * 10) * 4000
    ),
    "huge-prime": lambda key: _Server(Way(), _GroupExchange, key),
    "compression-only": lambda key: _Server(Way(), _Compressing, key),
    "wrong-host-key": lambda key: _Server(Way(), _Welcome, key),
    "no-login": lambda key: _Server(_Rejecting(), _Welcome, key),
    "no-channel": lambda key: _Server(_NoChannel(), _Welcome, key),
    "unknown-channel": lambda key: _Server(_WrongChannel(), _Welcome, key),
    "command-refused": lambda key: _Server(_Refusing(), _Welcome, key),
    "no-exit-status": lambda key: _Server(_NoStatus(), _Welcome, key),
    "command-without-end": lambda key: _Server(_Silent(), _Welcome, key),
    "packets-of-0-bytes": lambda key: _Server(_SmallPackets(0), _Welcome, key),
    "packets-of-1-byte": lambda key: _Server(_SmallPackets(1), _Welcome, key),
    "endless-output": lambda key: _Server(_Flooding(94, _data(b"x" * 32_000)), _Welcome, key),
    "endless-errors": lambda key: _Server(_Flooding(95, _errors(b"\xff" * 32_000)), _Welcome, key),
    "output-a-byte-a-packet": lambda key: _Server(_Flooding(94, _data(b"x"), 500), _Welcome, key),
    "endless-channel-opens": lambda key: _Server(_Flooding(90, _opening, 500), _Welcome, key),
    "endless-requests": lambda key: _Server(_Flooding(80, _asking, 100), _Welcome, key),
    "endless-ignores": lambda key: _Server(_Flooding(2, lambda _: b"\0\0\0\0", 500), _Welcome, key),
    "endless-debug": lambda key: _Server(
        _Flooding(4, lambda _: b"\1" + common.NS(b"\x1b[2J" * 8000) + common.NS(b"")), _Welcome, key
    ),
    "endless-rekeying": lambda key: _Server(_Rekeying(), _Welcome, key),
    "huge-farewell": lambda key: _Server(_Disconnecting(), _Welcome, key),
}
