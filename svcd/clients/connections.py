# mypy: allow-untyped-calls, allow-subclassing-any
"""The pool of HTTP connections to cloud, engines and machines: the last gate before a request.

Between the call of a client and the moment when its connection stands seconds can pass, or a minute
in which the process was stopped. So whether the work may still act is asked here, see
`svcd.runtime.fencing`.

Here, too, the headers of an answer get a limit: Twisted's client keeps as many as a peer sends.
Each connection counts the bytes from a request to the headers' end and is cut above the limit.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.python.failure import Failure
from twisted.web.client import HTTPConnectionPool
from zope.interface import implementer

from svcd.runtime import fencing

MOST_HEADER_BYTES = 128 << 10
"""Of one answer: status line and headers, interim answers (1xx) included. The first bytes of the
body come with the headers in one read of 64 KiB at most, so headers of 64 KiB always pass."""


class HeadersTooLarge(Exception):
    """args[0]: the most bytes that are allowed."""


class Connections(HTTPConnectionPool):
    """Hands out connections to those that may act; others get LeaseLost."""

    retryAutomatically = False  # the clients repeat what is safe to repeat

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:
        """See HTTPConnectionPool: what it gives is used at once, for one request."""
        waiting: Deferred[Any] = super().getConnection(key, _Metered(endpoint))
        return waiting.addCallback(_checked, fencing.current())


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
        """The answer as soon as its headers are complete. Fails with HeadersTooLarge, too."""
        meter: _Meter = self._connection.transport
        meter.start()
        asked: Deferred[Any] = self._connection.request(request)
        return asked.addBoth(meter.stop)


@implementer(IStreamClientEndpoint)
class _Metered:
    """Puts a meter between the connections of an endpoint and their protocols."""

    def __init__(self, endpoint: Any) -> None:
        self._endpoint = endpoint

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        """See IStreamClientEndpoint."""
        connecting: Deferred[Any] = self._endpoint.connect(_MeterFactory(protocolFactory))
        return connecting.addCallback(lambda meter: meter.wrappedProtocol)


class _Meter(ProtocolWrapper):
    """Counts the bytes of an answer up to the end of its headers."""

    transport: Any
    _counts = False
    _over = False
    _seen = 0

    def start(self) -> None:
        """A request is about to be sent."""
        self._counts, self._seen = True, 0

    def stop(self, result: Any) -> Any:
        """Its answer has begun, or failed with `result`."""
        self._counts = False
        if self._over and isinstance(result, Failure):
            return Failure(HeadersTooLarge(MOST_HEADER_BYTES))
        return result

    def dataReceived(self, data: bytes) -> None:
        """See Protocol. `stop` is called from within when the headers end in `data`."""
        super().dataReceived(data)
        if self._counts:
            self._seen += len(data)
            if self._seen > MOST_HEADER_BYTES:
                self._over = True
                self.transport.abortConnection()


class _MeterFactory(WrappingFactory):
    protocol = _Meter
    noisy = False
