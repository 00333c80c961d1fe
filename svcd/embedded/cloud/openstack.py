"""The shared parts of the embedded OpenStack services: tokens, projects, pages, times."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

import msgspec
from twisted.web.http import Request

from svcd.embedded import services
from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.records import Token
from svcd.embedded.cloud.state import Table
from svcd.embedded.services import Refusal, Reply

T = TypeVar("T")
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


class _Owned(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def project_id(self) -> str: ...


Own = TypeVar("Own", bound=_Owned)


class Call(services.Call):
    """One request. `token` is set for services that ask for one."""

    __slots__ = ("token",)

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.token: Token | None = None

    @property
    def me(self) -> Token:
        """The caller's token; only in services that require one."""
        if self.token is None:
            raise Refusal(401, UNAUTHORIZED)
        return self.token

    @property
    def project(self) -> str:
        """The caller's project, "" for an unscoped token."""
        return self.me.project_id or ""

    def read_in(self, key: str, kind: type[T]) -> T:
        """The `kind` in the JSON body `{key: …}`. Raises Refusal 400."""
        body: T = getattr(self.read(_envelope(key, kind)), key)  # type: ignore[arg-type]
        return body

    def own(self, table: Table[Own], id_: str, text: str, kind: str = "") -> Own:
        """The record of the caller's project. Raises Refusal 404 with `text` and `kind`."""
        found = table.get(id_)
        if found is None or found.project_id != self.project:
            raise Refusal(404, text, kind)
        return found


@cache
def _envelope(key: str, kind: type[Any]) -> type[msgspec.Struct]:
    return msgspec.defstruct("Body", [(key, kind)])


class Service(services.Service[Call]):
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

    def next_link(self, call: Call, name: str, following: str) -> dict[str, Any]:
        """The field of a list's body that links to the next page; {} after the last."""
        href = self._core.public_url + call.request.path.decode("ascii") + following
        return {f"{name}_links": [{"rel": "next", "href": href}]} if following else {}


def of_project(table: Table[Own], project_id: str) -> list[Own]:
    """The records of a project."""
    return table.having("project", project_id)


def text_of(seconds: float, form: str) -> str:
    """A moment as the services write it: form `keystone`, `z` (…Z) or `bare` (microseconds)."""
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).replace(tzinfo=None)
    if form == "keystone":
        return moment.isoformat() + ".000000Z"
    return moment.isoformat() + ("Z" if form == "z" else ".000000")


def page(
    call: Call, rows: list[T], id_of: Callable[[T], str], most: int = 1000
) -> tuple[list[T], str]:
    """A page by `limit` and `marker`, and the query of the next one ("" after the last).

    Raises Refusal 400 for a bad limit or marker.
    """
    marker = call.one("marker")
    if marker:
        at = next((i for i, row in enumerate(rows) if id_of(row) == marker), None)
        if at is None:
            raise Refusal(400, f"marker [{marker}] not found")
        rows = rows[at + 1 :]
    limit = call.one("limit")
    if limit and not limit.isdigit():
        raise Refusal(400, f"Invalid input for query parameters limit. Value: {limit}.")
    shown = rows[: min(int(limit), most) if limit else most]
    is_last = not limit or not shown or shown[-1] is rows[-1]
    return shown, "" if is_last else f"?limit={limit}&marker={id_of(shown[-1])}"
