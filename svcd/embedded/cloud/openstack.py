"""The shared parts of the embedded OpenStack services: tokens, pages of lists, times."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import TypeVar

from twisted.web.http import Request

from svcd.embedded import services
from svcd.embedded.cloud.records import Token
from svcd.embedded.services import Refusal

T = TypeVar("T")


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
            raise Refusal(401, "The request you have made requires authentication.")
        return self.token

    @property
    def project(self) -> str:
        """The caller's project, "" for an unscoped token."""
        return self.me.project_id or ""


class Service(services.Service[Call]):
    """Base of the OpenStack services."""


def text_of(seconds: float, form: str) -> str:
    """A moment as the services write it: form `keystone`, `z` (…Z) or `bare` (microseconds)."""
    moment = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC).replace(tzinfo=None)
    if form == "keystone":
        return moment.isoformat() + ".000000Z"
    return moment.isoformat() + ("Z" if form == "z" else ".000000")


def page(call: Call, rows: list[T], id_of: Callable[[T], str], most: int = 1000) -> list[T]:
    """`limit` and `marker` of the OpenStack APIs. Raises Refusal 400 for a bad one."""
    marker = call.one("marker")
    if marker:
        at = next((i for i, row in enumerate(rows) if id_of(row) == marker), None)
        if at is None:
            raise Refusal(400, f"marker [{marker}] not found")
        rows = rows[at + 1 :]
    limit = call.one("limit")
    if limit and not limit.isdigit():
        raise Refusal(400, f"Invalid input for query parameters limit. Value: {limit}.")
    return rows[: min(int(limit), most) if limit else most]
