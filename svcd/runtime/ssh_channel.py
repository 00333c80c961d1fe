"""An SSH channel as the transport of a Twisted protocol, for both ends of a forward.

The client uses it for the channels that it opens to a machine's ports, the SSH server of a loopback
machine for the channels that it relays.

Note: parts of Conch's channel that are not used. `SSHChannel.write` copies its buffer on each
write, and never closes a channel whose peer closed while the buffer was not empty. Conch's own
forwarding answers before it has connected, and has neither back-pressure nor EOF. Of Conch this
module uses the packets and the book-keeping of windows.

Note: a reader that pauses. Conch opens the window of a channel again when less than half of
`localWindowSize` is left. While the reader pauses, this size is 0, so the peer sends at most one
window, which the channel keeps. The window opens again after the reader has got these bytes.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from twisted.conch.ssh import channel
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IHalfCloseableProtocol,
    IProtocol,
    IPushProducer,
    IReactorTime,
    ITransport,
)
from twisted.logger import ILogObserver, LogEvent, Logger
from twisted.python.failure import Failure
from zope.interface import implementer

WINDOW_BYTES: Final = 524_288
"""Bytes that a peer may send on one channel before the window is opened again."""
PIECE_BYTES: Final = 32_768
"""The largest packet that a peer may send."""

log = Logger()


@implementer(ILogObserver)
class _Discard:
    """Discards Conch's log of each disconnect and channel: the owner of a connection reports it."""

    def __call__(self, event: LogEvent) -> None:
        """Discard `event`."""


NO_LOG: Final = Logger(namespace="svcd.conch", observer=_Discard())


@implementer(ITransport, IConsumer, IPushProducer)
class ChannelTransport(channel.SSHChannel):
    """An open channel with one protocol. It never calls the protocol from within its methods.

    `conn.congested`: whether the SSH connection takes no more bytes now; it calls `flush` later.
    """

    name = b"direct-tcpip"
    conn: Any
    _log = NO_LOG

    def __init__(self, peer: IAddress, clock: IReactorTime, **theirs: Any) -> None:
        super().__init__(localWindow=WINDOW_BYTES, localMaxPacket=PIECE_BYTES, **theirs)
        self._peer = peer
        self._clock = clock
        self._protocol: IProtocol | None = None
        self._end: Exception | None = None  # the reason, once the channel has begun to end
        self._over = False  # the protocol knows the end
        # bytes to the peer
        self._unsent: deque[memoryview] = deque()
        self._producer: Any = None
        self._held_back = False
        self._no_more = False
        self._sent_eof = False
        # bytes from the peer
        self._paused = False
        self._unread: deque[bytes] = deque()
        self._got_eof = False
        self._passed_eof = False

    def attach(self, protocol: IProtocol) -> None:
        """Connect `protocol` to the open channel."""
        self._protocol = protocol
        protocol.makeConnection(self)

    # -- ITransport and IConsumer -------------------------------------------------------------

    @property
    def disconnecting(self) -> bool:
        """See ITransport."""
        return bool(self.closing)

    def write(self, data: bytes) -> None:
        """See ITransport."""
        if data and not self._no_more and not self._has_ended:
            self._unsent.append(memoryview(data))
            self.flush()

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """See ITransport."""
        self.write(b"".join(data))

    def loseConnection(self) -> None:
        """Close after the unsent bytes and after the producer."""
        if not self.closing:
            self.closing = 1
            self._continue()

    def loseWriteConnection(self) -> None:
        """Send EOF after the unsent bytes and after the producer."""
        if not self._no_more:
            self._no_more = True
            self._continue()

    def abortConnection(self) -> None:
        """Close now, without the unsent and the unread bytes."""
        self._finish(ConnectionAborted())

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """See IConsumer. The channel takes producers that push; Twisted's HTTP has no others."""
        if self._producer is not None or not streaming:
            raise RuntimeError("the channel has a producer already, or this one does not push")
        if self._has_ended:
            producer.stopProducing()
            return
        self._producer, self._held_back = producer, False

    def unregisterProducer(self) -> None:
        """See IConsumer."""
        self._producer = None
        self._continue()

    def getPeer(self) -> IAddress:
        """See ITransport."""
        return self._peer

    def getHost(self) -> IAddress:
        """See ITransport. A channel has no address of its own."""
        return self._peer

    def flush(self) -> None:
        """Send as much as window and connection take."""
        while (
            self._unsent
            and self.remoteWindowLeft > 0
            and not self.localClosed
            and not self.conn.congested
        ):
            first = self._unsent.popleft()
            size = min(len(first), self.remoteWindowLeft, max(1, self.remoteMaxPacket))
            if size < len(first):
                self._unsent.appendleft(first[size:])
            self.remoteWindowLeft -= size
            self.conn.sendData(self, bytes(first[:size]))
        self._continue()

    # -- IPushProducer ------------------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Deliver nothing until `resumeProducing`."""
        self._paused = True
        self.localWindowSize = 0

    def resumeProducing(self) -> None:
        """Deliver again, in a later turn."""
        if self._paused:
            self._paused = False
            self._clock.callLater(0, self._deliver_unread)

    def stopProducing(self) -> None:
        """See IPushProducer."""
        self.loseConnection()

    # -- called by Conch ----------------------------------------------------------------------

    def addWindowBytes(self, data: int) -> None:
        self.remoteWindowLeft += data
        self.flush()

    def dataReceived(self, data: bytes) -> None:
        if self.closing or self._has_ended:
            return
        if self._paused or self._unread:
            self._unread.append(data)
        else:
            self._deliver(data)

    def extReceived(self, dataType: int, data: bytes) -> None:
        """Does nothing: a forward has no standard error."""

    def requestReceived(self, requestType: bytes, data: bytes) -> int:
        """Refuse it. OpenSSH sends keep-alives in this way; any answer is good."""
        return 0

    def eofReceived(self) -> None:
        self._got_eof = True
        self._clock.callLater(0, self._deliver_unread)

    def closeReceived(self) -> None:
        if not self.localClosed:  # after our own CLOSE this is its answer
            self._unsent.clear()
            self._end = ConnectionDone()
            self.conn.sendClose(self)
            self._clock.callLater(0, self._deliver_unread)

    def closed(self) -> None:
        """Both ends have closed the channel, or the SSH connection is lost."""
        if self._end is None:
            self._end = ConnectionLost("the SSH connection was lost")
            self._report()

    # -- inside -------------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self._over or bool(self.localClosed)

    def _continue(self) -> None:
        """Pause or resume the producer; without one send the EOF or the CLOSE that is due."""
        producer = self._producer
        if self._has_ended:
            return
        if self._unsent:
            if producer is not None and not self._held_back:
                self._held_back = True
                producer.pauseProducing()
        elif producer is not None:
            if self._held_back:
                self._held_back = False
                producer.resumeProducing()
        else:
            if self._no_more and not self._sent_eof:
                self._sent_eof = True
                self.conn.sendEOF(self)
            if self.closing:
                self._finish(ConnectionDone())

    def _deliver(self, data: bytes) -> None:
        # an error here would end the SSH connection with all other channels
        try:
            self._protocol.dataReceived(data)  # type: ignore[union-attr]
        except Exception:
            log.failure("A protocol failed on the bytes of its channel")
            self.abortConnection()

    def _deliver_unread(self) -> None:
        """The bytes that came during a pause, then EOF, then the end."""
        while self._unread and not self._paused and not self.closing and not self._over:
            self._deliver(self._unread.popleft())
        if self._paused or self._over:
            return
        if self.localWindowSize == 0:
            self.localWindowSize = WINDOW_BYTES
            if self.localWindowLeft < WINDOW_BYTES // 2:
                self.conn.adjustWindow(self, WINDOW_BYTES - self.localWindowLeft)
        if self._got_eof and not self._passed_eof:
            self._passed_eof = True
            half = IHalfCloseableProtocol(self._protocol, None)
            if half is None:
                self._finish(ConnectionDone())
            else:
                half.readConnectionLost()
        if self._end is not None:
            self._report()

    def _finish(self, reason: Exception) -> None:
        """Send CLOSE, and report the end soon. Conch keeps the number until the peer's CLOSE."""
        self._unsent.clear()
        self._unread.clear()
        if self._end is None:
            self._end = reason
        self.conn.sendClose(self)
        self._clock.callLater(0, self._report)

    def _report(self) -> None:
        """Report the end to producer and protocol, once."""
        if self._over:
            return
        self._over = True
        self._unsent.clear()
        self._unread.clear()
        producer, self._producer = self._producer, None
        protocol, self._protocol = self._protocol, None
        # an error here would keep Conch from ending the other channels
        try:
            if producer is not None:
                producer.stopProducing()
            if protocol is not None:
                protocol.connectionLost(Failure(self._end or ConnectionDone()))
        except Exception:
            log.failure("A protocol failed on the end of its channel")
