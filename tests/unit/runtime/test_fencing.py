"""The term that work runs under, and the gates that ask for it at the last moment."""

from __future__ import annotations

from typing import Any

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import Agent
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from svcd.clients.connections import Connections
from svcd.clients.ssh_wire import Exec
from svcd.runtime import fencing
from svcd.runtime.clock import VirtualClock
from svcd.runtime.fencing import LeaseLost
from svcd.runtime.tasks import KeyedTasks, Loop, sleep
from svcd.store.lease.holding import Holding


@define
class _Term:
    lost: bool = False
    holder: str = "me"
    epoch: int = 1

    def check(self) -> None:
        if self.lost:
            raise LeaseLost("gone")


class TermTests(SynchronousTestCase):
    def under(self, term: _Term, work: Any) -> Deferred[Any]:
        return Deferred.fromCoroutine(fencing.under(term, work))

    def test_term_goes_with_the_work_and_what_it_starts(self) -> None:
        """Not with what others do meanwhile."""
        turn: Deferred[None] = Deferred()
        seen: list[Any] = []

        async def inner() -> None:
            await turn
            seen.append(fencing.current())

        async def work() -> None:
            await Deferred.fromCoroutine(inner())
            seen.append(fencing.current())

        term = _Term()
        done = self.under(term, work())
        self.assertIsNone(fencing.current())
        turn.callback(None)
        self.successResultOf(done)
        self.assertEqual(seen, [term, term])


class LeasedTasksTests(SynchronousTestCase):
    """Tasks and loops of the daemon that holds the lease."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.lease = Holding(self.clock, self.clock.seconds, "me", 1e9, 0.0)
        self.lease.renewed(self.lease.now())
        self.runs: list[tuple[str, int | None]] = []
        self.parked: list[str] = []

    def epoch(self) -> int | None:
        term = fencing.current()
        return None if term is None else term.epoch

    async def work(self, key: str) -> float | None:
        self.runs.append((key, self.epoch()))
        return None

    def test_task_runs_under_the_lease(self) -> None:
        """Without it the task rests, without a failure."""
        tasks = KeyedTasks(
            self.clock, "test", self.work, lease=self.lease, parked=self.parked.append
        )
        tasks.wake("a")
        self.clock.advance(1000)
        self.assertEqual((self.runs, self.parked), ([], ["a"]))
        self.lease.took(7, 1.0)
        tasks.wake("a")
        self.clock.advance(1000)
        self.assertEqual((self.runs, self.parked), ([("a", 7)], ["a"]))
        self.assertEqual(list(tasks.active()), [])

    def test_turn_of_a_loop_runs_under_the_lease(self) -> None:
        """Without it the turn is skipped, without a failure; a lost lease ends a turn."""
        turns: list[int | None] = []

        async def turn() -> None:
            turns.append(self.epoch())
            await sleep(self.clock, 1.5)
            turns.append(-1)

        loop = Loop(self.clock, "test", 1.0, turn, self.lease)
        loop.start()
        self.clock.advance(5)
        self.assertEqual(turns, [])
        self.lease.took(7, 1.0)
        self.clock.advance(1)
        self.lease.lose()
        self.clock.advance(5)
        self.assertEqual(turns, [7])


class _Endpoint:
    """Connects when it is told to."""

    def __init__(self) -> None:
        self.waiting: Deferred[Any] = Deferred()
        self.transport = StringTransport()

    def connect(self, factory: Any) -> Deferred[Any]:
        self.protocol = factory.buildProtocol(None)
        return self.waiting

    def connected(self) -> None:
        self.protocol.makeConnection(self.transport)
        self.waiting.callback(self.protocol)


@implementer(IAgentEndpointFactory)
class ConnectionsTests(SynchronousTestCase):
    """The gate of HTTP."""

    def asked(self, term: _Term | None) -> Deferred[Any]:
        """A request that waits for its connection."""
        self.endpoint = _Endpoint()
        pool = Connections(Clock(), persistent=False)
        agent = Agent.usingEndpointFactory(Clock(), self, pool)

        async def ask() -> Any:
            return await agent.request(b"POST", b"http://peer/x")

        return Deferred.fromCoroutine(ask() if term is None else fencing.under(term, ask()))

    def endpointForURI(self, uri: object) -> _Endpoint:
        return self.endpoint

    def sent(self) -> bytes:
        """The line of the request."""
        return self.endpoint.transport.value().partition(b"\r\n")[0]

    def test_lease_that_is_lost_while_it_connects(self) -> None:
        """Nothing is sent, and the connection is not kept."""
        term = _Term()
        asked = self.asked(term)
        term.lost = True
        self.endpoint.connected()
        self.failureResultOf(asked, LeaseLost)
        self.assertEqual(self.sent(), b"")
        self.assertTrue(self.endpoint.transport.disconnecting)

    def test_request_of_a_caller(self) -> None:
        """Has no term."""
        asked = self.asked(None)
        self.endpoint.connected()
        self.assertNoResult(asked)
        self.assertEqual(self.sent(), b"POST /x HTTP/1.1")


class _Channels:
    """The connection of an SSH channel."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def sendClose(self, channel: Any) -> None:
        self.sent.append("close")

    def request_exec(self, channel: Any, command: bytes) -> None:
        self.sent.append(command.decode())


class ExecTests(SynchronousTestCase):
    """The gate of SSH."""

    def opened(self, term: _Term) -> tuple[Exec, list[str]]:
        """A channel that was just opened by the server."""
        channel, channels = Exec("rm -r /", b"", term.check), _Channels()
        channel.conn = channels
        channel.channelOpen(b"")
        return channel, channels.sent

    def test_lease_that_was_lost_while_the_channel_was_opened(self) -> None:
        """The command is not sent."""
        channel, sent = self.opened(_Term(lost=True))
        self.assertEqual(sent, ["close"])
        self.failureResultOf(channel.done, LeaseLost)
