"""Machines over SSH: a pool of connections with commands and HTTP requests, and deadlines.

Each connection has an HTTP agent of its own, so that no HTTP connection is ever shared by two
machines: clusters of two tenants may have the same addresses. It never decides whether a command
succeeded, and never repeats a command that may have begun. A lost connection raises RemoteError at
the caller, and the next run opens a new connection.

A connection in use has one of the `Places`, which are shared out among the tenants: machines that
do not answer keep their connections in use.
"""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Final, cast

from twisted.conch.ssh import keys
from twisted.internet.interfaces import (
    IConnector,
    IDelayedCall,
    IReactorTCP,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.logger import Logger
from twisted.web.client import URI, Agent
from twisted.web.error import SchemeNotSupported
from twisted.web.iweb import IAgent, IAgentEndpointFactory
from zope.interface import implementer

from svcd.clients.connections import Connections
from svcd.clients.ssh_forward import ForwardedEndpoint
from svcd.clients.ssh_wire import ClientTransport, Dialer, Exec, NotBegun
from svcd.model.connect_rules import ConnectRules
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import CommandResult, Host, RemoteError
from svcd.runtime import fencing
from svcd.runtime.places import Places
from svcd.runtime.slices import Slices
from svcd.runtime.tasks import DeadlineExceeded, Loop, with_deadline
from svcd.runtime.waits import Gate, Waiters
from svcd.settings import Ssh

log = Logger()

_IDLE_S: Final = 60.0
"""Seconds after which a connection without users closes."""
_MOST_LINKS: Final = 1024
"""Open connections: one for each machine with work, an engine's for each cluster with jobs."""
_PLACE_S: Final = 60.0
"""Longest wait of a command for one of the places."""
_AGENT_PLACE_S: Final = 2.0
"""Longest wait of HTTP: its callers have short deadlines, and block no others meanwhile."""
_SILENT_KEEPALIVES: Final = 3
"""A server that sends nothing for this many keep-alive intervals counts as lost."""
_TEND_S: Final = 5.0
"""Longest time between two rounds that check all connections."""
_CLOSE_S: Final = 3.0
"""Seconds that `close` waits for the connections to close."""

_Key = tuple[str, int, str, Secret, str, str]


class SshRemote:
    """Implements `ports.Remote` with Conch. One connection per login of a machine.

    reactor: opens connections; clock: times them. At most `settings.channels` commands run at once
    on one connection. An idle connection closes after 60 s. At most 1,024 are open.
    rules: the addresses and ports that are allowed; None: all. slices: share the time of a turn
    among all machines; None: slices of its own.
    """

    def __init__(
        self,
        reactor: IReactorTCP,
        clock: IReactorTime,
        settings: Ssh,
        rules: ConnectRules | None = None,
        slices: Slices | None = None,
    ) -> None:
        self._reactor = reactor
        self._rules = rules
        self.clock = clock
        self.slices = slices or Slices(cast("IReactorTime", reactor))
        self.settings = settings
        self._links: dict[_Key, _Link] = {}
        self._open: set[_Link] = set()
        self._changed = Waiters()
        self._places = Places(_MOST_LINKS, self.slices.later)
        self._closed = False
        every_s = min(_TEND_S, max(0.05, settings.keepalive_s / 2))
        self._tender = Loop(clock, "ssh connections", every_s, self._tend)
        self._tending = False

    async def run(
        self, host: Host, command: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        """Run `command` in the user's shell. The time covers the wait for a slot and the command.

        Connecting has its own time-out, and so has the wait for a place. Only the first and
        last 128 KiB of output are kept.

        Raises RemoteError: UNREACHABLE (the command did not begin, or the connection broke),
        TIMEOUT (the command was killed; it may have done its work), UNAUTHORIZED, HOST_KEY,
        BUSY, REFUSED, FORBIDDEN (the settings do not allow the address or port).
        """
        try:
            try:
                return await self._attempt(host, command, stdin, timeout_s)
            except NotBegun:  # the pooled connection was broken: repeat on a new one
                return await self._attempt(host, command, stdin, timeout_s)
        except RemoteError as error:
            raise RemoteError(error.kind, f"{_where(host)}: {error.text}") from None

    @asynccontextmanager
    async def agent(self, host: Host) -> AsyncIterator[IAgent]:
        """The HTTP agent of a machine's own ports; only the port of a URL counts.

        The connection stays open while a caller is in the block. Raises RemoteError.
        """
        if host.host_key is None:
            text = f"{_where(host)}: no host key is pinned yet"
            raise RemoteError(Fault.HOST_KEY, text)
        try:
            link = await self._used(host, _AGENT_PLACE_S)
            try:
                await link.ready()
                link.check_key(host.host_key)
            except BaseException:
                self._release(link)
                raise
        except RemoteError as error:
            raise RemoteError(error.kind, f"{_where(host)}: {error.text}") from None
        try:
            yield link.agent
        finally:
            self._release(link)

    def forget(self, host: Host) -> None:
        """Close the connection of this login; its commands fail as UNREACHABLE."""
        link = self._links.get(_key(host))
        if link is not None:
            link.drop("the connection was closed: the machine is being removed or has changed")

    async def close(self) -> None:
        """Close all connections. No command can run after this."""
        self._closed = True
        for link in list(self._open):
            link.drop("the client is closing")

        async def gone() -> None:
            while self._open:
                await self._changed.wait()

        try:
            await with_deadline(self.clock, _CLOSE_S, "closing SSH connections", gone())
        except DeadlineExceeded:
            log.warn("{n} SSH connections did not close in time", n=len(self._open))
        await self._tender.stop()

    # -- inside -------------------------------------------------------------------------------

    async def _attempt(
        self, host: Host, command: str, stdin: bytes, timeout_s: float
    ) -> CommandResult:
        link = await self._used(host, _PLACE_S)
        try:
            await link.ready()
            link.check_key(host.host_key)
            return await self._run_on(link, command, stdin, timeout_s)
        finally:
            self._release(link)

    async def _used(self, host: Host, wait_s: float) -> _Link:
        """The connection for `host`, with one more user. A new connection is dialled in a slice.

        wait_s: longest wait for a place. Raises RemoteError, BUSY without one.
        """
        link = self._links.get(_key(host))
        if link is None or link.over:
            self._refuse_unreachable(host)
            await self.slices.turn()
        await self._place(host, wait_s)
        try:
            link = self._link(host)
        except BaseException:
            self._places.leave((host.tenant_id,), _key(host))
            raise
        link.users += 1
        return link

    def _release(self, link: _Link) -> None:
        link.users -= 1
        link.idle_since = self.clock.seconds()
        self._places.leave((link.tenant_id,), link.key)

    async def _place(self, host: Host, wait_s: float) -> None:
        """Wait for a place for the connection. Raises RemoteError BUSY."""
        place = self._places.take((host.tenant_id,), _key(host))
        try:
            await with_deadline(self.clock, wait_s, "connection", place)
        except DeadlineExceeded:
            text = (
                f"{self._places.used()} of at most {self._places.most} SSH connections are in use,"
                f" {self._places.used_by((host.tenant_id,))} of them by this tenant, which is its"
                " share: try later"
            )
            raise RemoteError(Fault.BUSY, text) from None

    async def _run_on(
        self, link: _Link, command: str, stdin: bytes, timeout_s: float
    ) -> CommandResult:
        started = False

        async def whole() -> Exec:
            nonlocal started
            async with link.slots:
                link.check()
                await self.slices.turn()
                if link.over:
                    raise NotBegun(Fault.UNREACHABLE, link.reason)
                term = fencing.current()
                channel = Exec(command, stdin, term.check) if term else Exec(command, stdin)
                started = True
                link.transport.connection.start(channel)
                return await channel.done

        try:
            channel = await with_deadline(self.clock, timeout_s, "command", whole())
        except DeadlineExceeded:
            if started:
                text = f"the command did not end within {timeout_s:g} s and was stopped"
                raise RemoteError(Fault.TIMEOUT, text) from None
            text = f"not begun within {timeout_s:g} s: all channels are in use, or svcd is busy"
            raise RemoteError(Fault.UNREACHABLE, text) from None
        except RemoteError as error:
            if started and link.over:
                raise type(error)(error.kind, f"{error.text} ({link.reason})") from None
            raise
        return CommandResult(
            exit_code=channel.exit_code,
            signal=channel.signal,
            stdout=channel.out.text(),
            stderr=channel.err.text(),
            host_key=link.host_key,
        )

    def _link(self, host: Host) -> _Link:
        """The connection for `host`; a new one when no open connection fits."""
        if self._closed:
            raise RemoteError(Fault.UNREACHABLE, "the client is closed")
        key = _key(host)
        link = self._links.get(key)
        if link is not None and not link.fits(host.host_key):
            link.drop("the pinned host key has changed")
            link = None
        if link is None or link.over:
            if link is not None:
                link.drop(link.reason)  # the old connection may still be closing
            self._make_room()
            link = _Link(self, host, self._reactor)
            self._links[key] = link
            self._open.add(link)
            link.dial(self._reactor, host)
            if not self._tending:
                self._tending = True
                self._tender.start(now=False)
        return link

    def _refuse_unreachable(self, host: Host) -> None:
        """Raises RemoteError FORBIDDEN for an address or port that the settings do not allow."""
        if self._rules is not None:
            _refuse(self._rules.refusal(host.address, host.port, _is_own(host.address)))

    def _make_room(self) -> None:
        """Close an idle connection when all are open."""
        if len(self._open) < _MOST_LINKS:
            return
        # ended connections close in the next turn
        kept = [connection for connection in self._open if not connection.over]
        idle = [connection for connection in kept if connection.users == 0]
        if len(kept) >= _MOST_LINKS and idle:
            min(idle, key=lambda connection: connection.idle_since).drop("idle")

    async def _tend(self) -> None:
        """Close idle connections, send keep-alives to silent servers, drop dead connections."""
        now = self.clock.seconds()
        for link in list(self._open):
            silent_s = now - link.heard_at
            if link.users == 0 and now - link.idle_since >= _IDLE_S:
                await self.slices.turn()  # all machines of many clusters are idle at once
                if link.users == 0 and now - link.idle_since >= _IDLE_S:
                    link.drop("idle")
            elif not link.up:
                continue
            elif silent_s >= self.settings.keepalive_s * _SILENT_KEEPALIVES:
                link.drop(f"the server has been silent for {silent_s:.0f} s")
            elif silent_s >= self.settings.keepalive_s:
                link.transport.connection.keep_alive()

    # called by links

    def discard(self, link: _Link) -> None:
        """Remove a link whose connection is closed."""
        self._open.discard(link)
        if self._links.get(link.key) is link:
            del self._links[link.key]
        self._changed.fire()


@implementer(IAgentEndpointFactory)
class _Link:
    """One connection: connecting, up, or over. users: number of callers that need the connection.

    agent: sends requests to the machine's own ports, whatever address a URL has.
    """

    def __init__(self, owner: SshRemote, host: Host, reactor: IReactorTCP) -> None:
        self.key = _key(host)
        self.tenant_id = host.tenant_id
        self._internal = host.internal or host.address
        self._http = Connections(owner.clock, slices=owner.slices)
        self.agent: IAgent = Agent.usingEndpointFactory(reactor, self, self._http)
        self.users = 0
        self.idle_since = self.heard_at = owner.clock.seconds()
        self.slots = Gate(owner.settings.channels)
        self.up = False
        self._owner = owner
        self._error: RemoteError | None = None
        self._gone = False
        self._change = Waiters()
        self._timer: IDelayedCall | None = None
        self._connector: IConnector | None = None
        self.transport = ClientTransport(
            host.user,
            _private_key(host.private_key),
            _blob(host.host_key),
            self,
            self._heard,
            owner.slices,
        )

    @property
    def over(self) -> bool:
        """Whether no command can start on the connection any more."""
        return self._error is not None

    @property
    def reason(self) -> str:
        """The reason of the end; "" before the end."""
        return self._error.text if self._error is not None else ""

    @property
    def host_key(self) -> str:
        """The host key of the server as an OpenSSH line."""
        return self.transport.host_key

    def fits(self, pinned: str | None) -> bool:
        """Whether the server has shown the key that is pinned now."""
        if pinned is None or not self.up or pinned == self.host_key:
            return True
        return _blob(pinned) == _blob(self.host_key)  # the pinned line may have a comment

    def check_key(self, pinned: str | None) -> None:
        """Raises RemoteError when the server has shown another key than the pinned one."""
        if not self.fits(pinned):
            raise RemoteError(Fault.HOST_KEY, "the host key is not the pinned one")

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        """See IAgentEndpointFactory. Raises SchemeNotSupported: machines speak plain HTTP."""
        if uri.scheme != b"http":
            raise SchemeNotSupported(f"{uri.scheme.decode()} through SSH: the URL must be http")
        return ForwardedEndpoint(
            self.transport.connection, self._internal, uri.port, self._owner.clock
        )

    def dial(self, reactor: IReactorTCP, host: Host) -> None:
        """Connect and log in, within the time-out for both."""
        limit_s = self._owner.settings.connect_timeout_s
        self._timer = self._owner.clock.callLater(
            limit_s, self.drop, f"not logged in within {limit_s:g} s"
        )
        self._connector = reactor.connectTCP(
            host.address, host.port, Dialer(self.transport, self), int(limit_s) + 1
        )

    async def ready(self) -> None:
        """Wait until commands can start. Raises RemoteError."""
        while not self.up and self._error is None:
            await self._change.wait()
        self.check()

    def check(self) -> None:
        """Raises RemoteError when the connection is over."""
        if self._error is not None:
            raise RemoteError(self._error.kind, self._error.text)

    def drop(self, why: str) -> None:
        """Close the connection at once."""
        self.link_failed(RemoteError(Fault.UNREACHABLE, why))
        if self._gone or self._connector is None:
            return
        if self.transport.transport is None:
            self._connector.stopConnecting()
        else:
            self.transport.abort()

    # LinkEvents

    def link_up(self) -> None:
        self.up = True
        self._stop_timer()
        self._change.fire()

    def link_failed(self, error: RemoteError) -> None:
        if self._error is None:
            self._error = error
            self._stop_timer()
            self._change.fire()

    def link_gone(self, error: RemoteError) -> None:
        self.up = False
        self._gone = True
        self._http.closeCachedConnections()
        self._owner.discard(self)
        self.link_failed(error)

    def _heard(self) -> None:
        self.heard_at = self._owner.clock.seconds()

    def _stop_timer(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()


def _key(host: Host) -> _Key:
    """The identity of a connection: two clusters never share one, because their keys differ."""
    return host.address, host.port, host.user, host.private_key, host.tenant_id, host.internal


def _where(host: Host) -> str:
    return f"ssh {host.user}@{host.address}:{host.port}"


def _refuse(reason: str) -> None:
    if reason:
        raise RemoteError(Fault.FORBIDDEN, f"svcd does not connect there: {reason}")


def _is_own(address: str) -> bool:
    """Whether an address belongs to this host: the kernel sends to own addresses from themselves.

    A connected UDP socket sends nothing. (To bind is no test: `ip_nonlocal_bind` allows any.)
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            return ip_address(probe.getsockname()[0]) == ip_address(address)
    except (OSError, ValueError):
        return False


def _private_key(text: Secret) -> keys.Key:
    try:
        return keys.Key.fromString(text.reveal())
    except (keys.BadKeyError, keys.EncryptedKeyError, ValueError, LookupError):
        raise RemoteError(
            Fault.UNAUTHORIZED, "the private key cannot be read: expected OpenSSH text"
        ) from None


def _blob(line: str | None) -> bytes | None:
    """The key of an OpenSSH line, without its comment."""
    if line is None:
        return None
    try:
        return keys.Key.fromString(line.encode(), type="public_openssh").blob()
    except (keys.BadKeyError, ValueError, LookupError):
        raise RemoteError(
            Fault.HOST_KEY, "the pinned host key cannot be read: expected an OpenSSH line"
        ) from None
