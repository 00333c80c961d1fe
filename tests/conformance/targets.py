"""What the suite runs against: stand-ins in memory, the fake service, and any base URL."""

from __future__ import annotations

import json as json_
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.client import Agent, readBody
from twisted.web.http_headers import Headers

from svcd.runtime.tasks import sleep, with_deadline
from svcd.testing import FakeService
from tests.support.api import Answered, StandInService, _Bytes

_CALL_S = 60.0


class InMemory:
    """A service whose `call` answers at once: `FakeService` or the stand-ins."""

    def __init__(
        self,
        service: FakeService | StandInService,
        values: Mapping[str, str],
        features: frozenset[str],
        advance: Callable[[float], None],
    ) -> None:
        self.values = values
        self.features = features
        self._service = service
        self._advance = advance

    async def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """See Target."""
        answer = self._service.call(method, path, json=json, data=data, headers=headers)
        found = {k.lower(): v for k, v in answer.headers.items()}
        return Answered(answer.status, found, answer.body)

    async def wait(self, seconds: float) -> None:
        """Move its clock."""
        self._advance(seconds)


class OverHttp:
    """Whatever listens at `base`. headers: sent with every request (a token)."""

    def __init__(
        self,
        reactor: IReactorTime,
        base: str,
        values: Mapping[str, str],
        features: frozenset[str],
        headers: Mapping[str, str],
    ) -> None:
        self.values = values
        self.features = features
        self._reactor = reactor
        self._base = base.rstrip("/")
        self._headers = headers
        self._agent = Agent(reactor)

    async def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """See Target."""
        sent = {**self._headers, **{k.lower(): v for k, v in (headers or {}).items()}}
        body = data
        if json is not None:
            body = json_.dumps(json).encode()
            sent.setdefault("content-type", "application/json")
        work = Deferred.fromCoroutine(self._exchange(method, path, body, sent))
        return await with_deadline(self._reactor, _CALL_S, f"{method} {path}", work)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, sent: Mapping[str, str]
    ) -> Answered:
        response = await self._agent.request(
            method.encode(),
            (self._base + path).encode(),
            Headers({k: [v] for k, v in sent.items()}),
            None if body is None else _Bytes(body),  # type: ignore[arg-type]
        )
        content = await readBody(response)
        found = {k.decode().lower(): v[-1].decode() for k, v in response.headers.getAllRawHeaders()}
        if isinstance(response.length, int):
            found.setdefault("content-length", str(response.length))
        return Answered(response.code, found, content)

    async def wait(self, seconds: float) -> None:
        """Real time."""
        await sleep(self._reactor, seconds)
