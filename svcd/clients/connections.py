# mypy: allow-untyped-calls, allow-subclassing-any
"""The pool of HTTP connections to cloud, engines and machines: the last gate before a request.

Between the call of a client and the moment when its connection stands seconds can pass, or a minute
in which the process was stopped. So whether the work may still act is asked here, see
`svcd.fencing`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.web.client import HTTPConnectionPool

from svcd import fencing


class Connections(HTTPConnectionPool):
    """Hands out connections to those that may act; others get LeaseLost."""

    def getConnection(self, key: Hashable, endpoint: Any) -> Deferred[Any]:
        """See HTTPConnectionPool: what it gives is used at once."""
        waiting: Deferred[Any] = super().getConnection(key, endpoint)
        term = fencing.current()
        return waiting if term is None else waiting.addCallback(_checked, term)


def _checked(connection: Any, term: fencing.Term) -> Any:
    try:
        term.check()
    except fencing.LeaseLost:
        connection.abort()
        raise
    return connection
