"""An SSH channel as a transport: windows, pauses and the end."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import HostnameAddress
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.clock import VirtualClock
from svcd.runtime.ssh_channel import WINDOW_BYTES, ChannelTransport


class Conn:
    """The SSH connection: what the channel sends."""

    def __init__(self) -> None:
        self.congested = False
        self.sent: list[Any] = []

    def sendData(self, channel: ChannelTransport, data: bytes) -> None:
        self.sent.append(data)

    def sendEOF(self, channel: ChannelTransport) -> None:
        self.sent.append("EOF")

    def sendClose(self, channel: ChannelTransport) -> None:
        if not channel.localClosed:
            channel.localClosed = True
            self.sent.append("CLOSE")

    def adjustWindow(self, channel: ChannelTransport, size: int) -> None:
        channel.localWindowLeft += size
        self.sent.append(("WINDOW", size))

    def receive(self, channel: ChannelTransport, data: bytes) -> None:
        """As Conch does."""
        channel.localWindowLeft -= len(data)
        if channel.localWindowLeft < channel.localWindowSize // 2:
            self.adjustWindow(channel, channel.localWindowSize - channel.localWindowLeft)
        channel.dataReceived(data)


class Peer(Protocol):
    """The protocol: what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []
        self.end: type[BaseException] | None = None

    def dataReceived(self, data: bytes) -> None:
        if data == b"bug":
            raise ValueError("a bug")
        self.got.append(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.end = reason.type if reason is not None else None


class Producer:
    """A push producer: whether it is paused."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def pauseProducing(self) -> None:
        self.calls.append("pause")

    def resumeProducing(self) -> None:
        self.calls.append("resume")

    def stopProducing(self) -> None:
        self.calls.append("stop")


class ChannelTransportTest(SynchronousTestCase):
    """One channel with a window of 10 bytes and packets of 4."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.conn = Conn()
        self.channel = ChannelTransport(
            HostnameAddress(b"10.0.0.5", 80),
            self.clock,
            remoteWindow=10,
            remoteMaxPacket=4,
            conn=self.conn,
        )
        self.peer = Peer()
        self.channel.attach(self.peer)

    def test_bytes_wait_for_the_connection(self) -> None:
        """A peer with a large window cannot make svcd keep an upload in memory."""
        producer = Producer()
        self.channel.registerProducer(producer, True)
        self.conn.congested = True
        self.channel.write(b"abc")
        self.assertEqual((self.conn.sent, producer.calls), ([], ["pause"]))
        self.conn.congested = False
        self.channel.flush()
        self.assertEqual((self.conn.sent, producer.calls), ([b"abc"], ["pause", "resume"]))

    def test_paused_reader_holds_one_window(self) -> None:
        """The window opens only after the reader has got everything."""
        self.channel.pauseProducing()
        for _ in range(WINDOW_BYTES // 32_768):
            self.conn.receive(self.channel, b"x" * 32_768)
        self.assertEqual((self.conn.sent, self.peer.got), ([], []))
        self.assertEqual(self.channel.localWindowLeft, 0)
        self.channel.resumeProducing()
        self.assertEqual(self.peer.got, [])
        self.clock.advance(0)
        self.assertEqual(sum(map(len, self.peer.got)), WINDOW_BYTES)
        self.assertEqual(self.conn.sent, [("WINDOW", WINDOW_BYTES)])

    def test_end_waits_for_a_paused_reader(self) -> None:
        """As with TCP, bytes before the end are delivered first."""
        self.channel.pauseProducing()
        self.conn.receive(self.channel, b"last")
        self.channel.eofReceived()
        self.channel.closeReceived()
        self.clock.advance(1)
        self.assertEqual((self.peer.got, self.peer.end), ([], None))
        self.channel.resumeProducing()
        self.clock.advance(0)
        self.clock.advance(0)
        self.assertEqual(self.peer.got, [b"last"])
        self.assertEqual(self.peer.end.__name__, "ConnectionDone")  # type: ignore[union-attr]

    def test_error_of_a_protocol_ends_its_channel_only(self) -> None:
        """Conch would end the whole SSH connection."""
        self.conn.receive(self.channel, b"bug")
        self.clock.advance(0)
        self.assertEqual(self.conn.sent, ["CLOSE"])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
