"""The inside of a `FakeService`, its API on a port, and answers as tests compare them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.interfaces import IListeningPort
from twisted.internet.task import LoopingCall

from svcd.daemon import Daemon
from svcd.resources.api import ApiSite, Rest, build
from svcd.testing import FakeService

_TICK_S = 0.01
"""Time between two moves of the fake's clock."""


@frozen
class Answered:
    """An answer. headers: lower-case names, the last value of each."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def daemon_of(fake: FakeService) -> Daemon:
    """The daemon that runs now; a restart of `fake` makes another one."""
    assert fake._daemon is not None
    return fake._daemon


def now(deferred: Deferred[Any]) -> Any:
    """The result of a Deferred that has fired; raises its failure."""
    results: list[Any] = []
    failures: list[Any] = []
    deferred.addCallbacks(results.append, failures.append)
    if failures:
        failures[0].raiseException()
    if not results:
        raise AssertionError("it has not fired yet")
    return results[0]


class Served:
    """The API of a FakeService on a port of 127.0.0.1, until `stop`.

    url: of the API, without a slash at the end. site, rest: what listens.
    """

    def __init__(self, reactor: Any, fake: FakeService) -> None:
        services = daemon_of(fake).services
        self.rest: Rest
        self.site: ApiSite
        self.rest, self.site = build(evolve(services, clock=reactor))
        self.url = ""
        self._reactor = reactor
        self._fake = fake
        self._port: IListeningPort | None = None
        self._moved_at = 0.0
        self._pump = LoopingCall(self._move)
        self._pump.clock = reactor
        self._pumping: Deferred[LoopingCall] | None = None

    async def start(self) -> None:
        """Listen, and move the clock."""
        endpoint = TCP4ServerEndpoint(self._reactor, 0, interface="127.0.0.1")
        self._port = await endpoint.listen(self.site)
        self.url = f"http://127.0.0.1:{self._port.getHost().port}"
        self._moved_at = self._reactor.seconds()
        self._pumping = self._pump.start(_TICK_S, now=False)

    async def stop(self) -> None:
        """Close the port, let requests end and stop the clock. Raises what the clock raised."""
        if self._port is not None:
            await self._port.stopListening()
        await self.site.drain(5.0)
        if self._pump.running:
            self._pump.stop()
        if self._pumping is not None:
            await self._pumping

    def _move(self) -> None:
        at = self._reactor.seconds()
        passed, self._moved_at = at - self._moved_at, at
        self._fake.advance(passed)


async def served(reactor: Any, fake: FakeService) -> Served:
    """Serve the API of `fake` on a port, for clients that need a socket: a browser, a command.

    The connections live in real time, and the daemon behind them in the virtual time of `fake`,
    which moves with the real time; `fake.advance` moves it further at once. Await `stop()` before
    the reactor and `fake` end. A restart of `fake` ends the daemon behind the port: serve it anew.
    """
    made = Served(reactor, fake)
    await made.start()
    return made
