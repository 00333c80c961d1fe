"""A request as its handler sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from svcd.model.cloud import Caller
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import TenantId
from svcd.ports.store import Page
from svcd.resources._addresses import Origin
from svcd.resources._callers import Callers
from svcd.resources._exchange import Exchange
from svcd.resources._route import Route


class Call:
    """A request as its handler sees it, without the path and the body.

    key: of its answer, for the command that makes a record; None without an Idempotency-Key.
    query: the values of the query parameters that the
    route declares. headers: of the answer, in addition to those of every answer.
    """

    __slots__ = ("_callers", "_exchange", "_route", "caller", "headers", "key", "query")

    def __init__(self, x: Exchange, callers: Callers, route: Route, caller: Caller) -> None:
        self.caller = caller
        self.key: KeyedRequest | None = None
        self.query: Mapping[str, Any] = {}
        self.headers: dict[str, str] = {}
        self._exchange = x
        self._callers = callers
        self._route = route

    @property
    def tenant_id(self) -> TenantId:
        """The tenant of the path."""
        return self.caller.tenant_id

    @property
    def hides_credentials(self) -> bool:
        """Whether the answer masks credentials of data sources and binaries, and tokens."""
        return self._callers.policy.hides_credentials(self.caller.roles)

    @property
    def page(self) -> Page:
        """The page that a request for a list asks for."""
        return self._route.spec.queries.page(self.query)

    @property
    def head(self) -> bool:
        """Whether the caller asks only for the headers of the answer."""
        return bool(self._exchange.request.method == b"HEAD")

    # ---- the connection ----

    def gone(self) -> bool:
        """Whether the caller has disconnected."""
        return bool(self._exchange.request._disconnected)

    def when_left(self, work: Callable[[], None]) -> None:
        """Call `work` when the caller disconnects, or when the request has been answered."""
        self._exchange.request.notifyFinish().addBoth(lambda _: work())

    # ---- the caller ----

    async def renew(self) -> None:
        """Check the token again, and take the roles that the caller has now.

        Raises Unauthorized, Forbidden, ServiceUnavailable.
        """
        caller = await self._callers.authenticate(self._exchange, self.tenant_id)
        self._callers.authorize(self._exchange, self._route, caller)
        self.caller = caller

    async def bearer(self) -> Caller:
        """The owner of the token of an OPEN request. The token may be of any tenant or of none.

        Raises Unauthorized, Forbidden, ServiceUnavailable.
        """
        return await self._callers.authenticate(self._exchange, None)

    def act_as(self, caller: Caller) -> None:
        """Name the user of an OPEN request for the audit log."""
        self._exchange.caller = caller

    def origin(self) -> Origin:
        """Where the request comes from."""
        return self._callers.addresses.origin(self._exchange.request)
