"""One request on its way through the door, and its record in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.interfaces import IDelayedCall

from svcd.model.cloud import Caller
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import TenantId
from svcd.ports.store import Page
from svcd.resources._addresses import Addresses, Origin
from svcd.resources._answers import shown
from svcd.resources._route import Route

if TYPE_CHECKING:
    from svcd.resources._callers import Callers

REFUSALS: Final = (401, 403)
"""Statuses of refusals of authority."""
_METHODS: Final = {
    name.encode(): name
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}
"""Methods that metrics count by name; every other method counts as "other"."""
_NOBODY: Final = Caller(tenant_id=TenantId(""), user_id="", user_name="")
"""The caller before the token is checked, and of an OPEN request."""


class Call:
    """One request.

    For handlers: caller. key: of the answer, for the command that makes a record; None without an
    Idempotency-Key. query: the values of the query parameters that the route declares. headers: of
    the answer, in addition to those of every answer.

    For the door: method: for metrics. pattern: of the path in the tree. tenant: for the log, once
    the token is checked. route: None before it is known. dry: only the plan is asked for. made: the
    id of the record that the handler has returned, else "". replayed: the answer is that of an
    earlier request with the same Idempotency-Key. own_id: svcd's id of the request; request_id: the
    id for the caller, who may have chosen it. timer: of the time limit.
    """

    __slots__ = (
        "_callers",
        "answered",
        "caller",
        "dry",
        "headers",
        "key",
        "made",
        "method",
        "own_id",
        "pattern",
        "query",
        "replayed",
        "request",
        "request_id",
        "route",
        "started",
        "tenant",
        "timer",
    )

    def __init__(
        self, request: Any, callers: Callers, own_id: str, given_id: str, started: float
    ) -> None:
        self.request = request
        self.own_id = own_id
        self.request_id = given_id or own_id
        self.started = started
        self.method = _METHODS.get(request.method, "other")
        self.pattern = "unknown"
        self.tenant = ""
        self.answered = False
        self.caller = _NOBODY
        self.route: Route | None = None
        self.key: KeyedRequest | None = None
        self.query: Mapping[str, Any] = {}
        self.headers: dict[str, str] = {}
        self.dry = False
        self.made = ""
        self.replayed = False
        self.timer: IDelayedCall | None = None
        self._callers = callers

    @property
    def tenant_id(self) -> TenantId:
        """The tenant of the path."""
        return self.caller.tenant_id

    @property
    def hides_credentials(self) -> bool:
        """Whether the answer masks credentials of data sources and binaries, and tokens."""
        return self._callers.policy.hides_credentials(self.caller.roles)

    @property
    def is_since_1_1(self) -> bool:
        """Whether the caller sees the fields that v1.1 adds (`fields.SINCE_1_1`)."""
        return self.route is not None and self.route.version != "1.0"

    @property
    def page(self) -> Page:
        """The page that a request for a list asks for."""
        assert self.route is not None
        return self.route.spec.queries.page(self.query)

    @property
    def head(self) -> bool:
        """Whether the caller asks only for the headers of the answer."""
        return bool(self.request.method == b"HEAD")

    @property
    def writes(self) -> bool:
        """Whether the audit log has the request when it is accepted."""
        route = self.route
        return route is not None and route.changes and route.spec.audited and not self.dry

    # ---- the connection ----

    def gone(self) -> bool:
        """Whether the caller has disconnected."""
        return bool(self.request._disconnected)

    def when_left(self, work: Callable[[], None]) -> None:
        """Call `work` when the caller disconnects, or when the request has been answered."""
        self.request.notifyFinish().addBoth(lambda _: work())

    # ---- the caller ----

    async def renew(self) -> None:
        """Check the token again, and take the roles that the caller has now.

        Raises Unauthorized, Forbidden, ServiceUnavailable.
        """
        assert self.route is not None
        await self._callers.authenticate(self, self.tenant_id)
        self._callers.authorize(self, self.route)

    async def bearer(self) -> Caller:
        """The owner of the token of an OPEN request. The token may be of any tenant or of none.

        Raises Unauthorized, Forbidden, ServiceUnavailable.
        """
        await self._callers.authenticate(self, None)
        return self.caller

    def origin(self) -> Origin:
        """Where the request comes from."""
        return self._callers.addresses.origin(self.request)


def record_of(call: Call, status: int, addresses: Addresses) -> dict[str, object]:
    """The audit record of `call`, answered with `status`.

    outcome: accepted; refused, for want of authority; unknown, when the change may have happened.
    """
    caller, target = call.caller, shown(call.request.path)
    record: dict[str, object] = {
        "request": call.own_id,
        "user": caller.user_id,
        "user_name": caller.user_name,
        "project": caller.tenant_id,
        "address": addresses.of(call.request),
        "action": f"{call.method} {call.pattern}",
        "target": target,
        "outcome": "refused" if status in REFUSALS else "accepted" if status < 400 else "unknown",
        "status": status,
    }
    if call.request_id != call.own_id:
        record["caller_request"] = call.request_id
    if call.made and call.made not in target:
        record["made"] = call.made
    if call.replayed:
        record["replayed"] = True
    return record


def access_fields(
    call: Call, status: int, seconds: float, addresses: Addresses
) -> dict[str, object]:
    """The fields of the JSON line of the access log about `call`."""
    fields: dict[str, object] = {
        "method": call.method,
        "path": shown(call.request.path),
        "route": call.pattern,
        "status": status,
        "duration_s": round(seconds, 6),
        "address": addresses.of(call.request),
    }
    if call.caller.user_id:
        fields["user"] = call.caller.user_id
    return fields
