# mypy: allow-untyped-calls
"""One simulated svcd process after the other at one place: started, stopped, killed, frozen.

It does in virtual time what `svcd.service.DaemonService` and a supervisor do with a real one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import treq.client
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost, ConnectionRefusedError
from twisted.python.failure import Failure
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from svcd.clients.bodies import Bytes
from svcd.daemon import Daemon
from svcd.errors import ServiceUnavailable
from svcd.model.ids import timestamp
from svcd.runtime.tasks import DeadlineExceeded, sleep, with_deadline
from svcd.store.database import SchemaError
from svcd.store.lease.keeper import LeaseKeeper, Me
from svcd.store.sessions import Lost
from svcd.store.store import SqlStore
from tests.simulation.database import Server, Sessions, SharedWay, Way
from tests.simulation.lease_rows import require
from tests.simulation.lines import Drift, Line

if TYPE_CHECKING:
    from tests.simulation.world import World

RESTART_AGAIN_S = 5.0
_CLOSE_S = 5.0
"""Longest wait at a stop for transactions that are under way."""


class Process:
    """A place where a process runs most of the time.

    state: "down", "starting", "up", "stopping" or "frozen". shared: others are on the database too.
    stopped_in_s: the last stop took so long. frozen_s: it was frozen for so long since its start.
    """

    def __init__(self, world: World, name: str, shared: bool, drift: Drift) -> None:
        self.name = name
        self.url = f"http://{name}.svcd.test:8386"
        self.state = "down"
        self.daemon: Daemon | None = None
        self.keeper: LeaseKeeper | None = None
        self.treq = treq.client.HTTPClient(_Door(self), data_to_body_producer=Bytes)
        self.stopped_in_s = 0.0
        self.frozen_s = 0.0
        self._world = world
        self._svcd = world.svcd
        self._shared = shared
        self._drift = drift
        self._server: Server = world.server
        self._way: Way | None = None
        self._waiting: list[Callable[[], None]] = []
        self._under_way: dict[Deferred[IResponse], None] = {}
        self._frozen_in = ""
        self.line = self._new_line()
        self.line.cut()

    # ---- life ----

    def start(self) -> None:
        """Begin; when it cannot, it tries again after a while, as under a supervisor."""
        self.line = line = self._new_line()
        self.state = "starting"
        self.frozen_s = 0.0
        self._svcd._starts += 1

        def ended(result: Failure | None) -> None:
            if line is not self.line or not line.alive:
                return
            if result is None:
                if self.state == "frozen":  # amid its last step
                    self._frozen_in = "up"
                else:
                    self.state = "up"
                if self._world.begun:
                    self._world.tell(f"{self.label}restarted")
                return
            result.trap(ServiceUnavailable, SchemaError, Lost)  # type: ignore[no-untyped-call]
            self._gone()
            self._world.clock.callLater(RESTART_AGAIN_S, self.start_if_down)

        with self._world.stage.by(self):
            begun = Deferred.fromCoroutine(self._begin(line))
        begun.addCallback(lambda _: None).addBoth(ended)
        begun.addErrback(self._world.bug)

    def start_if_down(self) -> None:
        """Begin, unless somebody else has begun it."""
        if self.state == "down":
            self.start()

    async def _begin(self, line: Line) -> None:
        svcd, clock = self._svcd, line
        keeper = None
        if self._shared:
            sessions: Any = Sessions(self._server, line, svcd.faults, self.name)
            keeper = LeaseKeeper(
                clock,
                sessions,
                svcd._settings.database,
                Me(self.name, self.name, line.steady),
                self._world.watch.breach,
            )
            await keeper.open()
            self._way = SharedWay(self._server, line, svcd.faults, self.name)
            store = SqlStore(self._way, svcd._sealer, self.name, require, seconds=clock.seconds)
        else:
            self._way = Way(self._server, line, svcd.faults, self.name)
            store = SqlStore(self._way, svcd._sealer, seconds=clock.seconds)
        await store.open(timestamp(clock.seconds()))
        self.keeper = keeper
        self.daemon = daemon = svcd._build(store, line, keeper)
        if keeper is not None:
            await keeper.begin()
        await daemon.start()
        svcd._memory.serve(self.url, daemon.resource)

    def kill(self) -> None:
        """As `kill -9` does. What it has sent is carried out."""
        self.line.cut()
        self._svcd._memory.unserve(self.url)
        self._gone()

    def _gone(self) -> None:
        """The process is not there any more."""
        self.line.cut()
        self.state = "down"
        if self._way is not None:
            self._server.close(self._way)
            self._way = None
        for session in list(self._server._sessions):
            if session.name == self.name:
                session.close()
        self._waiting.clear()
        under_way, self._under_way = self._under_way, {}
        for each in under_way:
            each.errback(Failure(ConnectionLost("the daemon died")))

    def stop(self, ended: Callable[[], None]) -> None:
        """As SIGTERM does: see `DaemonService.stop`. ended: the process has gone by itself."""
        line, daemon = self.line, self.daemon
        if self.state != "up" or daemon is None:
            return
        self.state = "stopping"
        began = self._world.now

        async def stop() -> None:
            self._svcd._memory.unserve(self.url)
            await daemon.site.drain(self._svcd._settings.server.drain_s)
            await daemon.stop()
            with suppress(DeadlineExceeded):
                await with_deadline(line, _CLOSE_S, "transactions", self._transactions(line))
            if self.keeper is not None:
                await self.keeper.stop()

        def done(result: Failure | None) -> None:
            if not line.alive or line is not self.line:
                return
            if isinstance(result, Failure):
                self._world.watch.breach(f"{self.label}stopped with {result.value!r}")
            self.stopped_in_s = self._world.now - began
            self._world.stopped(self)
            self._gone()
            ended()

        with self._world.stage.by(self):
            stopping = Deferred.fromCoroutine(stop())
        stopping.addBoth(done)
        stopping.addErrback(self._world.bug)

    async def _transactions(self, line: Line) -> None:
        while self._way is not None and self._way.under_way:
            await sleep(line, 0.1)

    # ---- frozen ----

    def freeze(self) -> None:
        """As SIGSTOP does."""
        if self.state in ("up", "stopping", "starting"):
            self._frozen_in = self.state
            self.state = "frozen"
            self.line.freeze()

    def thaw(self, timers_first: bool) -> None:
        """As SIGCONT does."""
        if self.state != "frozen":
            return
        self.state = self._frozen_in
        waiting, self._waiting = self._waiting, []
        self.line.thaw(timers_first)
        for each in waiting:
            self._world.clock.callLater(0.0, self._admit, each)

    def _admit(self, request: Callable[[], None]) -> None:
        if self.state == "frozen":
            self._waiting.append(request)
        else:
            with self._world.stage.by(self):
                request()

    # ---- what there is to see ----

    @property
    def label(self) -> str:
        """Before what is told of it, "" when it is the only one."""
        return f"{self.name} " if self._shared else ""

    @property
    def awake(self) -> bool:
        """It can answer."""
        return self.state == "up"

    def activity(self) -> Mapping[str, int]:
        """See FakeService.activity."""
        working = {} if self.daemon is None else self.daemon.activity()
        return {**working, "calls": self.line.in_flight, "timers": len(self.line.timers())}

    def works(self) -> bool:
        """Whether it holds the lease."""
        return self.keeper is not None and self.keeper.holding.held

    def _new_line(self) -> Line:
        def entered() -> Any:
            return self._world.stage.by(self)

        return Line(self._world.clock, entered, self._drift, lambda: self._world.trapped(self))

    # ---- requests ----

    def request(self, *request: Any) -> Deferred[IResponse]:
        """See IAgent: a frozen process takes it up when it is thawed."""
        answer: Deferred[IResponse] = Deferred(lambda d: self._under_way.pop(d, None))
        self._under_way[answer] = None

        def arrived(result: IResponse | Failure) -> None:
            if answer in self._under_way:
                del self._under_way[answer]
                answer.callback(result)

        def send() -> None:
            asked = cast("IAgent", self._svcd._memory).request(*request)
            cast("Deferred[Any]", asked).addBoth(arrived)

        if self.state in ("down", "starting"):
            arrived(Failure(ConnectionRefusedError("nobody listens")))
        else:
            self._admit(send)
        return answer


@implementer(IAgent)
class _Door:
    """A tenant's way to a process."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def request(
        self,
        method: bytes,
        uri: bytes,
        headers: Headers | None = None,
        bodyProducer: IBodyProducer | None = None,
    ) -> Deferred[IResponse]:
        """See IAgent."""
        return self._process.request(method, uri, headers, bodyProducer)
