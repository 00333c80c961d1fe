# mypy: allow-untyped-calls
"""Answers recorded from a real OpenStack (tests/fixtures/openstack), and what plays them again."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import Request

from svcd.clients.cloud import OpenStack
from svcd.embedded.memory_agent import MemoryAgent
from svcd.runtime.clock import VirtualClock
from svcd.settings import CloudSettings

T = TypeVar("T")

FOLDER = Path(__file__).parents[2] / "fixtures" / "openstack"

PROJECT = "00000000000000000000000000000024"
"""The member's project, in the recordings."""

RECORDED = "Sat, 21 Nov 2026 21:00:00 GMT"
"""When: the clients compare the times in an answer with its `Date`."""

BASES = {
    "identity": "/v3",
    "compute": "/v2.1",
    "image": "/v2",
    "network": "/v2.0",
    "volume": f"/v3/{PROJECT}",
    "object-store": f"/v1/AUTH_{PROJECT}",
}
"""service -> what stands before the recorded path."""


def names() -> Sequence[str]:
    """Of all exchanges."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def answer(name: str) -> dict[str, Any]:
    """The whole exchange: request, status, headers, json or text."""
    tree: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return tree


class Player(Resource):
    """Serves recorded answers at the origins and paths where they were recorded.

    An answer is given to its own method and path (the query is not looked at); of several for one
    the last that was named. asked: `METHOD service path` of the calls, in order.
    """

    isLeaf = True

    def __init__(self, *names: str) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._answers: dict[tuple[str, str, str], dict[str, Any]] = {}
        for name in names:
            exchange = answer(name)
            request = exchange["request"]
            path = request["path"].partition("?")[0]
            self._answers[request["service"], request["method"], path] = exchange

    def render(self, request: Request) -> bytes:
        """See IResource."""
        service = request.getRequestHostname().decode("ascii").partition(".")[0]
        method = request.method.decode("ascii")
        path = request.path.decode("ascii").removeprefix(BASES[service])
        self.asked.append(f"{method} {service} {path}")
        exchange = self._answers.get((service, method, path))
        if exchange is None:
            request.setResponseCode(599)
            return f"nothing is recorded for {self.asked[-1]}".encode()
        request.setResponseCode(exchange["status"])
        request.setHeader("date", RECORDED)
        for name, value in exchange["headers"].items():
            request.setHeader(name, value)
        text = exchange.get("text")
        content = json.dumps(exchange["json"]) if text is None else text
        return content.encode("utf-8")


class Played:
    """The ordinary clients before recorded answers.

    They log in as svcd's own user, unless `names` has another token for that.
    """

    def __init__(self, *names: str, **settings: str) -> None:
        self.clock = VirtualClock()
        self.player = Player("token-service", "compute-version", *names)
        self.agent = MemoryAgent(self.clock)
        for service in BASES:
            self.agent.serve(f"http://{service}.example", self.player)
        given = {"username": "svcd", "password": "p", "project": "service", **settings}
        self.settings = CloudSettings(auth_url="http://identity.example/v3", **given)
        self.cloud = OpenStack(self.agent, self.clock, self.settings)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, for which no time has to pass."""
        out: list[object] = []
        Deferred.fromCoroutine(work).addBoth(out.append)
        if not out:
            raise AssertionError("it waits")
        if isinstance(out[0], Failure):
            out[0].raiseException()
        return cast("T", out[0])
