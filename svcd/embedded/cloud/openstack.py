"""The shared parts of the embedded OpenStack services: tokens, projects, lists, quotas, times."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.records import Token
from svcd.embedded.cloud.state import Table
from svcd.embedded.services import Call, Refusal, Reply, Service

UNAUTHORIZED = "The request you have made requires authentication."
TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    415: "Unsupported Media Type",
}
_PAGE = 1000
"""Most rows of a page that a request limits."""
_NOVA_ENVELOPES = {
    400: "badRequest",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    429: "overLimit",
    503: "serviceUnavailable",
}


class _Owned(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def project_id(self) -> str: ...


Own = TypeVar("Own", bound=_Owned)


def caller(call: Call) -> Token:
    """The caller's token. Raises Refusal 401."""
    if call.token is None:
        raise Refusal(401, UNAUTHORIZED)
    return call.token


def project_of(call: Call) -> str:
    """The caller's project, "" for an unscoped token."""
    return caller(call).project_id or ""


def owned(call: Call, table: Table[Own], id_: str, text: str, kind: str = "") -> Own:
    """The record of the caller's project. Raises Refusal 404 with `text` and `kind`."""
    record = table.get(id_)
    if record is None or record.project_id != project_of(call):
        raise Refusal(404, text, kind)
    return record


class OpenStackService(Service):
    """Base of the OpenStack services."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Version documents are open."""
        if len(segments) > 1:
            self.authenticate(call)

    def authenticate(self, call: Call, text: str = UNAUTHORIZED) -> None:
        """Find the caller's token. Raises Refusal 401 with `text`."""
        call.token = self._core.living_token(call.header("X-Auth-Token"))
        if call.token is None:
            raise Refusal(401, text)

    def headers(self, refusal: Refusal) -> dict[str, str]:
        """The headers of a refusal; those of a 401 name the identity service."""
        if refusal.status != 401:
            return dict(refusal.headers)
        uri = f'Keystone uri="{self._core.public_url}/identity"'
        return {**refusal.headers, "WWW-Authenticate": uri}

    def unauthorized(self, refusal: Refusal) -> Reply:
        """The answer 401 of the token middleware, which is the same before most services."""
        error = {"code": 401, "title": "Unauthorized", "message": refusal.message}
        return Reply(status=401, body={"error": error}, headers=self.headers(refusal))

    def listing(self, call: Call, name: str, rows: Iterable[dict[str, Any]]) -> Reply:
        """The answer of a list, with the link to the next page."""
        shown, following = page(call, rows)
        href = self._core.public_url + call.request.path.decode("ascii") + following
        link = {f"{name}_links": [{"rel": "next", "href": href}]} if following else {}
        return Reply(body={name: shown, **link})


class NovaService(OpenStackService):
    """Nova, and Cinder with the same error envelope."""

    def envelope(self, refusal: Refusal) -> Reply:
        """{"badRequest": {code, message}} and the like; for 401 that of the token middleware."""
        if refusal.status == 401:
            return self.unauthorized(refusal)
        name = _NOVA_ENVELOPES.get(refusal.status, "computeFault")
        error = {"code": refusal.status, "message": refusal.message}
        if refusal.status in (413, 429):
            error["retryAfter"] = refusal.headers.get("Retry-After", "0")
        return Reply(status=refusal.status, body={name: error}, headers=self.headers(refusal))

    def quota_set(
        self, call: Call, project_id: str, limits: Mapping[str, int], used: Mapping[str, int] | None
    ) -> Reply:
        """The limits of a project; with `used`, each as limit, in_use and reserved.

        Raises Refusal 403 for a project of another user.
        """
        check_project(call, project_id)
        shown: dict[str, Any] = dict(limits)
        if used is not None:
            for name, limit in limits.items():
                shown[name] = {"limit": limit, "in_use": used.get(name, 0), "reserved": 0}
        return Reply(body={"quota_set": {"id": project_id, **shown}})


def check_project(call: Call, project_id: str) -> None:
    """Check that the caller may read the quota of a project. Raises Refusal 403."""
    if project_id != project_of(call) and "admin" not in caller(call).roles:
        raise Refusal(
            403, "Policy doesn't allow os_compute_api:os-quota-sets:show to be performed."
        )


def text_of(seconds: float, form: str) -> str:
    """A moment as the services write it: form `keystone`, `z` (…Z) or `bare` (microseconds)."""
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).replace(tzinfo=None)
    if form == "keystone":
        return moment.isoformat() + ".000000Z"
    return moment.isoformat() + ("Z" if form == "z" else ".000000")


def page(call: Call, rows: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The rows that the query asks for, and the query of the next page ("" after the last).

    Each parameter with the name of a plain field selects the rows with one of its values; `limit`
    and `marker` cut a page, `fields` names the fields. Raises Refusal 400 for a bad one.
    """
    chosen = [row for row in rows if _selected(row, call.query)]
    marker = call.one("marker")
    if marker:
        at = next((i for i, row in enumerate(chosen) if row["id"] == marker), None)
        if at is None:
            raise Refusal(400, f"marker [{marker}] not found")
        chosen = chosen[at + 1 :]
    limit, following = call.one("limit"), ""
    if limit and not limit.isdigit():
        raise Refusal(400, f"Invalid input for query parameters limit. Value: {limit}.")
    shown = chosen[: min(int(limit), _PAGE)] if limit else chosen
    if shown and len(shown) < len(chosen):
        following = f"?limit={limit}&marker={shown[-1]['id']}"
    fields = call.query.get("fields")
    if fields:
        shown = [{k: v for k, v in row.items() if k in fields} for row in shown]
    return shown, following


def _selected(row: Mapping[str, Any], query: Mapping[str, list[str]]) -> bool:
    for name, values in query.items():
        value = row.get(name, {})
        if isinstance(value, dict | list):
            continue
        if str("" if value is None else value).lower() not in (text.lower() for text in values):
            return False
    return True
