"""What the suite runs against: the fake service, and any base URL."""

from __future__ import annotations

import json as json_
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.web.client import Agent, readBody
from twisted.web.http_headers import Headers

from svcd.clients.bodies import Bytes
from svcd.runtime.tasks import sleep, with_deadline
from svcd.testing import FakeService
from tests.support.api import Answered

_CALL_S = 60.0
FAKE_FEATURES = frozenset({"commands", "build", "engine"})


def values_of(fake: FakeService, plugin: str = "fake") -> Mapping[str, str]:
    """The values of a target."""
    base = f"/v1.0/{fake.tenant}"
    image = fake.call("GET", f"{base}/images/{fake.image_id}").json["image"]
    return {
        "tenant": fake.tenant,
        "image_id": fake.image_id,
        "flavor_id": fake.flavor_id,
        "keypair": fake.keypair,
        "plugin": plugin,
        "version": fake.call("GET", f"{base}/plugins/{plugin}").json["plugin"]["versions"][-1],
        "username": image["username"],
        "run": "r1",
    }


class InMemory:
    """A `FakeService`, whose `call` answers at once."""

    def __init__(
        self, fake: FakeService, plugin: str = "fake", features: frozenset[str] = FAKE_FEATURES
    ) -> None:
        self.values = values_of(fake, plugin)
        self.features = features
        self._fake = fake

    async def call(
        self,
        method: str,
        path: str,
        json: Any = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """See Target."""
        answer = self._fake.call(method, path, json=json, data=data, headers=headers)
        found = {k.lower(): v for k, v in answer.headers.items()}
        return Answered(answer.status, found, answer.body)

    async def wait(self, seconds: float) -> None:
        """Move its clock."""
        self._fake.advance(seconds)


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
            Bytes.of(body),
        )
        content = await readBody(response)
        found = {k.decode().lower(): v[-1].decode() for k, v in response.headers.getAllRawHeaders()}
        if isinstance(response.length, int):
            found.setdefault("content-length", str(response.length))
        return Answered(response.code, found, content)

    async def wait(self, seconds: float) -> None:
        """Real time."""
        await sleep(self._reactor, seconds)
