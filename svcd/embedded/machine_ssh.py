"""The SSH server of a loopback machine: public keys only, commands and shells without a terminal.

It also forwards to the machine's own ports, see `machine_forward`.
Each command is a process in its own session. The machine's environment identifies it and all its
children. Closing a channel kills the process group of a running command; processes that left the
group (setsid) live on. Output waits for the client, and stdin for the process.

Note: strangers. A connection that has not logged in counts apart from those that have. When there
are too many of them, the server drops the oldest, so that a newcomer always gets in: strangers that
hold silent connections lock no user out.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import contextlib
import os
import signal
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from twisted.conch.avatar import ConchUser
from twisted.conch.error import ConchError, ValidPublicKey
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh import channel, common, connection, factory, transport, userauth
from twisted.conch.ssh.keys import Key
from twisted.cred.credentials import ISSHPrivateKey
from twisted.cred.error import UnauthorizedLogin
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import (
    IDelayedCall,
    IPushProducer,
    IReactorProcess,
    IReactorTime,
)
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from svcd.embedded.machine_forward import ForwardingConnection
from svcd.embedded.machine_limits import CONNECTIONS, RELAYS, WAITING, Count
from svcd.embedded.processes import session_leader
from svcd.runtime.ssh_channel import NO_LOG, PIECE_BYTES, WINDOW_BYTES

_LOGIN_GRACE_S: Final = 30.0
"""Seconds for a login; then the server drops the connection."""
_ATTEMPTS: Final = 6
_SESSIONS: Final = 10
"""Session channels of one connection."""
_COMMAND_BYTES: Final = 120_000
"""The longest command."""
_STDERR: Final = 1
_STDIN: Final = 0
_USER_KEY_ALGORITHMS: Final = (
    b"ssh-ed25519",
    b"ecdsa-sha2-nistp256",
    b"ecdsa-sha2-nistp384",
    b"ecdsa-sha2-nistp521",
    b"rsa-sha2-512",
    b"rsa-sha2-256",
)
_SIGNALS: Final = {n.name.removeprefix("SIG").encode(): n for n in signal.Signals}
_MALFORMED: Final = (LookupError, ValueError, TypeError, AttributeError, struct.error, ConchError)

_ENTER: Final = 'cd "$HOME" && exec /bin/sh -c "$0"'
_SHELL: Final = 'cd "$HOME" && exec /bin/sh'


@frozen(kw_only=True)
class Door:
    """The facts of a machine that its SSH server needs.

    authorized: the keys that may log in now; user: the login user; environment: of each process;
    addresses: of the machine.
    """

    user: str
    addresses: tuple[str, ...]
    authorized: Callable[[], Sequence[Key]]
    environment: Mapping[str, str]


@implementer(IPushProducer)
class _Command(ProcessProtocol):
    """One process and its channel. As a producer it is the channel's stdin."""

    transport: Any

    def __init__(self, session: Session) -> None:
        self._session = session
        self.running = False
        self.stdin_open = False

    # -- process to channel -------------------------------------------------------------------

    def connectionMade(self) -> None:
        self.running = self.stdin_open = True
        self.transport.pipes[_STDIN].registerProducer(self, True)

    def outReceived(self, data: bytes) -> None:
        self._session.write(data)

    def errReceived(self, data: bytes) -> None:
        self._session.writeExtended(_STDERR, data)

    def inConnectionLost(self) -> None:
        self.stdin_open = False
        self.resumeProducing()

    def processExited(self, reason: Failure) -> None:
        self.running = False

    def processEnded(self, reason: Failure) -> None:
        self.running = False
        self._session.ended(reason.value)

    # -- channel to process -------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Write bytes to stdin, unless the process has closed it."""
        if self.stdin_open:
            self.transport.writeToChild(_STDIN, data)

    def feed_end(self) -> None:
        """Close stdin after the waiting bytes."""
        if self.stdin_open:
            self.transport.pipes[_STDIN].unregisterProducer()
            self.transport.closeStdin()

    def pauseProducing(self) -> None:
        self._session.stdin_full()

    def resumeProducing(self) -> None:
        self._session.stdin_ready()

    def stopProducing(self) -> None:
        """The process does not read any more."""

    def send(self, number: int) -> None:
        """Signal the process group, while its leader runs."""
        if not self.running:
            return
        with contextlib.suppress(ProcessLookupError):
            try:
                os.killpg(self.transport.pid, number)
            except ProcessLookupError:  # the process has not become a leader yet
                os.kill(self.transport.pid, number)

    def cut(self) -> None:
        """Kill the process group, and close the pipes."""
        self.send(signal.SIGKILL)
        self.transport.loseConnection()


class Session(channel.SSHChannel):
    """A session channel: at most one command or shell."""

    name = b"session"
    conn: Any
    _log = NO_LOG

    def __init__(
        self, reactor: IReactorProcess, door: Door, window: int, packet: int, conn: Connection
    ) -> None:
        super().__init__(
            localWindow=WINDOW_BYTES,
            localMaxPacket=PIECE_BYTES,
            remoteWindow=window,
            remoteMaxPacket=packet,
            conn=conn,
        )
        self._reactor = reactor
        self._door = door
        self._command: _Command | None = None
        self._gone = False

    def request_exec(self, data: bytes) -> int:
        text = common.getNS(data)[0]
        if len(text) > _COMMAND_BYTES:
            self.writeExtended(_STDERR, b"svcd: the command is longer than 120,000 bytes\n")
            return 0
        return self._start(_ENTER, text)

    def request_shell(self, data: bytes) -> int:
        return self._start(_SHELL)

    def request_signal(self, data: bytes) -> int:
        number = _SIGNALS.get(common.getNS(data)[0])
        if number is None or self._command is None:
            return 0
        self._command.send(number)
        return 1

    def dataReceived(self, data: bytes) -> None:
        if self._command is not None:
            self._command.feed(data)

    def eofReceived(self) -> None:
        if self._command is not None:
            self._command.feed_end()

    def stopWriting(self) -> None:
        """The client's window is used up: read no more of the process."""
        if self._command is not None:
            self._command.transport.pauseProducing()

    def startWriting(self) -> None:
        if self._command is not None:
            self._command.transport.resumeProducing()

    def stdin_full(self) -> None:
        """The process does not read as fast as the client sends: the window stays as it is."""
        self.localWindowSize = 0

    def stdin_ready(self) -> None:
        """The process has taken all stdin so far: open the window again."""
        self.localWindowSize = WINDOW_BYTES
        if not self._gone and self.localWindowLeft < WINDOW_BYTES:
            self.conn.adjustWindow(self, WINDOW_BYTES - self.localWindowLeft)

    def ended(self, outcome: BaseException | None) -> None:
        """Send the exit status, then close: the process is gone and its pipes are read."""
        if self._gone:
            return
        number = getattr(outcome, "signal", None)
        if number is not None:
            name = signal.Signals(number).name.removeprefix("SIG").encode()
            signal_data = common.NS(name) + b"\0" + common.NS(b"") + common.NS(b"")
            self.conn.sendRequest(self, b"exit-signal", signal_data)
        else:
            code = getattr(outcome, "exitCode", 0) or 0
            self.conn.sendRequest(self, b"exit-status", struct.pack(">L", code))
        self.loseConnection()

    def closeReceived(self) -> None:
        self.conn.sendClose(self)

    def closed(self) -> None:
        self._gone = True
        if self._command is not None:
            self._command.cut()

    def _start(self, shell: str, *words: bytes) -> int:
        if self._command is not None:
            return 0
        command = _Command(self)
        try:
            session_leader(self._reactor, command, self._door.environment, shell, *words)
        except OSError as error:
            self.writeExtended(_STDERR, f"svcd: cannot start a process: {error}\n".encode())
            return 0
        self._command = command
        return 1


class Connection(ForwardingConnection):
    """Session channels, and forwards to the machine itself."""

    _log = NO_LOG

    def getChannel(self, channelType: bytes, windowSize: int, maxPacket: int, data: bytes) -> Any:
        if channelType != b"session":
            raise ConchError("not here", connection.OPEN_ADMINISTRATIVELY_PROHIBITED)
        if (
            sum(isinstance(open_channel, Session) for open_channel in self.channels.values())
            >= _SESSIONS
        ):
            raise ConchError("too many sessions", connection.OPEN_RESOURCE_SHORTAGE)
        server: Server = self.transport.factory
        return Session(server.reactor, server.door(), windowSize, maxPacket, self)

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> int:
        return 0


class Login(userauth.SSHUserAuthServer):
    """Login by public keys, with few attempts and a time limit."""

    transport: Any
    attemptsBeforeDisconnect = _ATTEMPTS
    loginTimeout = int(_LOGIN_GRACE_S)
    _log = NO_LOG

    def serviceStarted(self) -> None:
        self.clock = self.transport.factory.clock
        super().serviceStarted()

    def _cbFinishedAuth(self, result: Any) -> None:
        if self.transport.logged_in():
            super()._cbFinishedAuth(result)


class ServerTransport(transport.SSHServerTransport):
    """One connection. The server drops a peer that sends nonsense, without a log line."""

    transport: Any
    factory: Server
    _log = NO_LOG
    _grace: IDelayedCall | None = None
    _counted = False

    def connectionMade(self) -> None:
        self.transport.setTcpNoDelay(True)
        super().connectionMade()
        self.factory.connections.add(self)
        self._grace = self.factory.clock.callLater(_LOGIN_GRACE_S, self.abort)
        self.factory.waiting[self] = None
        if len(self.factory.waiting) > WAITING:
            oldest = next(iter(self.factory.waiting))
            oldest.waits_no_more()
            oldest.abort()

    def logged_in(self) -> bool:
        """Count the connection. False: the machine has too many, and this one ends."""
        if self._counted:  # a second login on one connection
            return True
        if not self.factory.logins.take():
            text = b"too many connections to this machine: close some"
            self.sendDisconnect(transport.DISCONNECT_TOO_MANY_CONNECTIONS, text)
            return False
        self._counted = True
        self.waits_no_more()
        return True

    def waits_no_more(self) -> None:
        """The connection has logged in or ends."""
        self.factory.waiting.pop(self, None)
        if self._grace is not None and self._grace.active():
            self._grace.cancel()

    def abort(self) -> None:
        """Drop the connection now."""
        self.transport.abortConnection()

    def dataReceived(self, data: bytes) -> None:
        try:
            super().dataReceived(data)
        except _MALFORMED:
            self.abort()

    def sendExtInfo(self, extensions: list[tuple[bytes, bytes]]) -> None:
        """Conch names the algorithms of the host keys; users' keys may be of other kinds."""
        super().sendExtInfo([(b"server-sig-algs", b",".join(_USER_KEY_ALGORITHMS))])

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.waits_no_more()
        self.factory.connections.discard(self)
        super().connectionLost(reason)
        if self._counted:
            self.factory.logins.give_back()


class Server(factory.SSHFactory):
    """The server of one machine, for any number of addresses.

    door: asked at each login and each command, so that changes count at once. files: the open files
    of all machines. waiting: the connections that have not logged in, the oldest first.
    """

    noisy = False
    protocol = ServerTransport
    services = {b"ssh-userauth": Login, b"ssh-connection": Connection}  # noqa: RUF012
    _log = NO_LOG

    def __init__(
        self,
        reactor: IReactorProcess,
        clock: IReactorTime,
        host_key: Key,
        door: Callable[[], Door],
        files: Count,
    ) -> None:
        self.reactor = reactor
        self.clock = clock
        self.door = door
        self.connections: set[ServerTransport] = set()
        self.waiting: dict[ServerTransport, None] = {}
        self.logins = Count(CONNECTIONS, files)
        self.relays = Count(RELAYS, files)
        self.portal = self
        self.privateKeys = {b"ssh-ed25519": host_key}
        self.publicKeys = {b"ssh-ed25519": host_key.public()}

    def abort_connections(self) -> None:
        """Drop all; commands in progress are killed."""
        for open_connection in list(self.connections):
            open_connection.abort()

    # -- the portal that Conch's user authentication asks ---------------------------------------

    def listCredentialsInterfaces(self) -> Sequence[Any]:
        """Public keys alone."""
        return [ISSHPrivateKey]

    def login(self, credentials: Any, mind: object, *interfaces: object) -> Deferred[Any]:
        """Whether the key may log in as the machine's user, and whether it signed."""
        door = self.door()
        try:
            key = Key.fromString(credentials.blob)
            if credentials.username != door.user.encode() or key not in door.authorized():
                return fail(UnauthorizedLogin("not an authorized key of this user"))
            if not credentials.signature:
                return fail(ValidPublicKey())
            if not key.verify(credentials.signature, credentials.sigData):
                return fail(UnauthorizedLogin("wrong signature"))
        except _MALFORMED as error:
            return fail(UnauthorizedLogin(repr(error)))
        return succeed((IConchUser, ConchUser(), _nothing))


def _nothing() -> None:
    """Do nothing at a logout."""
