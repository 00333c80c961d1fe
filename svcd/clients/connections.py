# mypy: allow-untyped-calls, allow-subclassing-any
"""The pool of HTTP connections to cloud, engines and machines: the last check before a request.

Seconds can pass between the call of a client and the moment when its connection is ready, or a
minute in which the process was stopped. So the pool checks again that the work still holds its
lease, see `svcd.runtime.fencing`.

The agent makes the endpoint of a URL only for a new connection. Most requests use a connection of
the pool, and an endpoint takes longer than the rest of Twisted's agent: it encodes the host's name
by IDNA.

The pool also limits the headers of an answer, because Twisted's client keeps all that a peer sends.
Each connection counts the bytes from a request to the end of the headers, and aborts above the
limit. It also keeps a peer's flood from taking all of the reactor's time, see `svcd.clients.pace`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectError, DNSLookupError
from twisted.internet.interfaces import IProtocolFactory, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import connectionDone
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.error import SchemeNotSupported
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from svcd.clients.pace import Pace
from svcd.runtime import fencing
from svcd.runtime.slices import Slices

MOST_HEADER_BYTES = 128 << 10
"""Of one answer: status line and headers, interim answers (1xx) included. The first bytes of the
body come with the headers in one read of 64 KiB at most, so headers of 64 KiB always pass."""


_SCHEMES = (b"http", b"https")


class HeadersTooLarge(Exception):
    """The headers of an answer exceed their limit. args[0]: the limit in bytes."""


class ForwardingForbidden(ConnectError):
    """The SSH server of a machine does not forward to this port: its settings, or the key's."""


class Connections(HTTPConnectionPool):
    """Gives out connections. A caller that has lost its lease gets LeaseLost.

    slices: share the time of a turn among the answers; None: an answer is read when it comes.
    """

    retryAutomatically = False  # the clients repeat the requests that are safe to repeat
    slices: Slices | None = None

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:
        """See HTTPConnectionPool. The caller uses the connection at once, for one request."""
        metered = _Metered(endpoint, self._reactor, self.slices)
        waiting: Deferred[Any] = super().getConnection(key, metered)
        return waiting.addCallback(_checked, fencing.current())


def agent_of(reactor: Any, pool: HTTPConnectionPool, connect_s: float) -> Agent:
    """An agent that uses the connections of `pool`. connect_s: time-out of a new connection."""
    made: Agent = Agent.usingEndpointFactory(reactor, _Endpoints(reactor, connect_s), pool)
    return made


@implementer(IAgentEndpointFactory)
class _Endpoints:
    """The endpoints of an agent."""

    def __init__(self, reactor: Any, connect_s: float) -> None:
        self.reactor = reactor
        self.connect_s = connect_s
        self.policy = BrowserLikePolicyForHTTPS()

    def endpointForURI(self, uri: URI) -> _Endpoint:
        """See IAgentEndpointFactory. Raises SchemeNotSupported."""
        if uri.scheme not in _SCHEMES:
            raise SchemeNotSupported(f"Unsupported scheme: {uri.scheme!r}")
        return _Endpoint(self, uri)


@implementer(IStreamClientEndpoint)
class _Endpoint:
    """The host and the port of a URL, with TLS for `https`."""

    def __init__(self, owner: _Endpoints, uri: URI) -> None:
        self._owner = owner
        self._uri = uri

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """See IStreamClientEndpoint."""
        owner, uri = self._owner, self._uri
        host = uri.host.decode("ascii")
        endpoint: Any = HostnameEndpoint(owner.reactor, host, uri.port, timeout=owner.connect_s)
        if uri.scheme == b"https":
            creator = owner.policy.creatorForNetloc(uri.host, uri.port)
            endpoint = wrapClientTLS(creator, endpoint)
        connecting: Deferred[Any] = endpoint.connect(protocolFactory)
        return connecting.addErrback(_no_host)


def _no_host(failure: Failure) -> Failure:
    """A text that cannot be the name of a host has the error of a name that does not exist."""
    if failure.check(ValueError):
        return Failure(DNSLookupError(str(failure.value)))
    return failure


def _checked(connection: Any, term: fencing.Term | None) -> _Turn:
    if term is not None:
        try:
            term.check()
        except fencing.LeaseLost:
            connection.abort()
            raise
    return _Turn(connection)


class _Turn:
    """A connection for one request."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def request(self, request: Any) -> Deferred[Any]:
        """The answer as soon as its headers are complete. May fail with HeadersTooLarge."""
        meter: _Meter = self._connection.transport
        meter.start()
        asked: Deferred[Any] = self._connection.request(request)
        return asked.addBoth(meter.stop)


@implementer(IStreamClientEndpoint)
class _Metered:
    """Puts a meter between the connections of an endpoint and their protocols."""

    def __init__(self, endpoint: Any, clock: IReactorTime, slices: Slices | None) -> None:
        self._endpoint = endpoint
        self._clock = clock
        self._slices = slices

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """See IStreamClientEndpoint."""
        connecting: Deferred[Any] = self._endpoint.connect(
            _MeterFactory(protocolFactory, self._clock, self._slices)
        )
        return connecting.addCallback(lambda meter: meter.wrappedProtocol)


class _Meter(ProtocolWrapper):
    """Counts the bytes of an answer up to the end of its headers."""

    transport: Any
    _counts = False
    _over = False
    _seen = 0
    _pace: Pace

    def makeConnection(self, transport: Any) -> None:
        """See Protocol."""
        self._pace = Pace(self.factory.clock, transport, self.factory.slices)
        super().makeConnection(transport)

    def start(self) -> None:
        """Begin to count: a request will be sent now."""
        self._counts, self._seen = True, 0

    def stop(self, result: Any) -> Any:
        """End the count: `result` is the answer with complete headers, or the failure."""
        self._counts = False
        if self._over and isinstance(result, Failure):
            return Failure(HeadersTooLarge(MOST_HEADER_BYTES))
        return result

    def pauseProducing(self) -> None:
        """See IPushProducer."""
        self._pace.pause()

    def resumeProducing(self) -> None:
        """See IPushProducer."""
        self._pace.resume()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See Protocol."""
        try:
            self._pace.end()
        finally:
            super().connectionLost(reason)

    def dataReceived(self, data: bytes) -> None:
        """See Protocol."""
        self._pace.deliver(self._receive, data)

    def _receive(self, data: bytes) -> None:
        """Pass `data` on. The inner protocol calls `stop` when the headers end in it."""
        super().dataReceived(data)
        if self._counts:
            self._seen += len(data)
            if self._seen > MOST_HEADER_BYTES:
                self._over = True
                self.transport.abortConnection()


class _MeterFactory(WrappingFactory):
    protocol = _Meter
    noisy = False

    def __init__(self, wrapped: Any, clock: IReactorTime, slices: Slices | None) -> None:
        super().__init__(wrapped)
        self.clock = clock
        self.slices = slices
