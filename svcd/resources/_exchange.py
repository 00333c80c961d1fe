"""One request on its way through the door, and its record in the audit log."""

from __future__ import annotations

from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall

from svcd.model.cloud import Caller
from svcd.resources._addresses import Addresses
from svcd.resources._answers import shown
from svcd.resources._route import Route

REFUSALS: Final = (401, 403)
"""Statuses of refusals of authority."""
_METHODS: Final = {
    name.encode(): name
    for name in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE")
}
"""Methods that metrics count by name; every other method counts as "other"."""


class Exchange:
    """One request.

    method: for metrics. pattern: of its path in the tree. route: None before it is known. caller:
    None before the token is checked. dry: only the plan is asked for. made: the id of the record
    that the handler has returned, else "". replayed: the answer is that of an earlier request with
    the same Idempotency-Key. own_id: svcd's id of the request; request_id: the one that the caller
    sees, its own choice when it has sent one. timer: of the time limit.
    """

    __slots__ = (
        "answered",
        "caller",
        "dry",
        "made",
        "method",
        "own_id",
        "pattern",
        "replayed",
        "request",
        "request_id",
        "route",
        "started",
        "tenant",
        "timer",
    )

    def __init__(self, request: Any, own_id: str, given_id: str, started: float) -> None:
        self.request = request
        self.own_id = own_id
        self.request_id = given_id or own_id
        self.started = started
        self.method = _METHODS.get(request.method, "other")
        self.pattern = "unknown"
        self.tenant = ""
        self.answered = False
        self.caller: Caller | None = None
        self.route: Route | None = None
        self.dry = False
        self.made = ""
        self.replayed = False
        self.timer: IDelayedCall | None = None

    @property
    def writes(self) -> bool:
        """Whether the audit log has the request when it is accepted."""
        route = self.route
        return route is not None and route.changes and route.spec.audited and not self.dry


def record_of(x: Exchange, status: int, addresses: Addresses) -> dict[str, object]:
    """The audit record of `x`, answered with `status`.

    outcome: accepted; refused, for want of authority; unknown, when the change may have happened.
    """
    caller, target = x.caller, shown(x.request.path)
    record: dict[str, object] = {
        "request": x.own_id,
        "user": caller.user_id if caller else "",
        "user_name": caller.user_name if caller else "",
        "project": caller.tenant_id if caller else "",
        "address": addresses.of(x.request),
        "action": f"{x.method} {x.pattern}",
        "target": target,
        "outcome": "refused" if status in REFUSALS else "accepted" if status < 400 else "unknown",
        "status": status,
    }
    if x.request_id != x.own_id:
        record["caller_request"] = x.request_id
    if x.made and x.made not in target:
        record["made"] = x.made
    if x.replayed:
        record["replayed"] = True
    return record


def access_fields(
    x: Exchange, status: int, seconds: float, addresses: Addresses
) -> dict[str, object]:
    """The fields of the JSON line of the access log about `x`."""
    fields: dict[str, object] = {
        "method": x.method,
        "path": shown(x.request.path),
        "route": x.pattern,
        "status": status,
        "duration_s": round(seconds, 6),
        "address": addresses.of(x.request),
    }
    if x.caller is not None:
        fields["user"] = x.caller.user_id
    return fields
