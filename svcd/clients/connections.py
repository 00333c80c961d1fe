# mypy: allow-untyped-calls, allow-subclassing-any, disable-error-code="attr-defined"
"""The pool of HTTP connections to cloud, engines and machines: the last check before a request.

Seconds can pass between the call of a client and the moment when its connection is ready, or a
minute in which the process was stopped. So the pool checks again that the work still holds its
lease, see `svcd.runtime.fencing`.

A connection also limits the headers of an answer, because Twisted's client keeps all that a peer
sends: it counts the bytes from a request to the end of the headers, and aborts above the limit. It
reads in slices, see `svcd.clients.pace`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Final, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import HTTP11ClientProtocol, HTTPConnectionPool

from svcd.clients.pace import Pace
from svcd.runtime import fencing
from svcd.runtime.slices import Slices

MOST_HEADER_BYTES: Final = 128 << 10
"""Of one answer: status line and headers, interim answers (1xx) included. The first bytes of the
body come with the headers in one read."""


class HeadersTooLarge(Exception):
    """The headers of an answer exceed their limit. args[0]: the limit in bytes."""


class ForwardingForbidden(ConnectError):
    """The SSH server of a machine does not forward to this port: its settings, or the key's."""


class Connections(HTTPConnectionPool):
    """Gives out connections. A caller that has lost its lease gets LeaseLost.

    slices: share the time of a turn among the answers of all pools; None: slices of its own.
    """

    retryAutomatically = False  # the clients repeat the requests that are safe to repeat
    maxPersistentPerHost = 20  # idle connections to one host that the pool keeps
    cachedConnectionTimeout = 20  # below the keep-alive of the peers

    def __init__(self, reactor: Any, persistent: bool = True, slices: Slices | None = None) -> None:
        super().__init__(reactor, persistent)
        slices = slices or Slices(reactor)
        self._factory = cast(Any, partial(_Connecting, slices))

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:
        """See HTTPConnectionPool. The caller uses the connection at once, for one request."""
        waiting: Deferred[Any] = super().getConnection(key, endpoint)
        return waiting.addCallback(_checked, fencing.current())


def _checked(connection: Any, term: fencing.Term | None) -> Any:
    if term is not None:
        try:
            term.check()
        except fencing.LeaseLost:
            connection.abort()
            raise
    return connection


class _Connecting(Factory):
    """The factory of one connection. quiescent: gives it back to the pool after a request."""

    noisy = False

    def __init__(self, slices: Slices, quiescent: Callable[[Any], object], _: object) -> None:
        self._quiescent = quiescent
        self._slices = slices

    def buildProtocol(self, addr: IAddress | None) -> _Connection:
        """See Factory."""
        return _Connection(self._quiescent, self._slices)


class _Connection(HTTP11ClientProtocol):
    """A connection that limits the headers of each answer."""

    transport: Any
    _in_headers = False
    _header_bytes = 0

    def __init__(self, quiescent: Callable[[Any], object], slices: Slices) -> None:
        super().__init__(quiescent)
        self._slices = slices

    def connectionMade(self) -> None:
        """See Protocol."""
        super().connectionMade()
        self._pace = Pace(self.transport, self._slices, self._receive)

    def request(self, request: Any) -> Deferred[Any]:
        """The answer as soon as its headers are complete. May fail with HeadersTooLarge."""
        self._in_headers, self._header_bytes = True, 0
        asked: Deferred[Any] = super().request(request)
        return asked.addBoth(self._answered)

    def _answered(self, result: Any) -> Any:
        self._in_headers = False
        if self._header_bytes > MOST_HEADER_BYTES and isinstance(result, Failure):
            return Failure(HeadersTooLarge(MOST_HEADER_BYTES))
        return result

    def dataReceived(self, data: bytes) -> None:
        """See Protocol."""
        self._pace.deliver(data)

    def _receive(self, data: bytes) -> None:
        super().dataReceived(data)
        if self._in_headers:  # the headers did not end in `data`
            self._header_bytes += len(data)
            if self._header_bytes > MOST_HEADER_BYTES:
                self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See Protocol."""
        try:
            self._pace.catch_up()
        finally:
            super().connectionLost(reason)
