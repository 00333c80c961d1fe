"""Places among the SSH connections: the shares of tenants, and those who wait for one."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients import ssh
from svcd.clients.ssh import SshRemote
from svcd.ports.faults import Fault
from svcd.ports.machines import Host, RemoteError
from svcd.runtime.keys import new_key_pair
from svcd.settings import Ssh
from tests.support.turns import turn


class SharesTest(SynchronousTestCase):
    """Machines that take connections and never answer, of several tenants."""

    def setUp(self) -> None:
        self.patch(ssh, "_MOST_LINKS", 16)
        self.clock = MemoryReactorClock()
        self.remote = SshRemote(self.clock, self.clock, Ssh())
        self.key = new_key_pair("")[1]
        self.runs: list[Deferred[Any]] = []
        self.refusals: list[RemoteError] = []

    def machine(self, tenant_id: str, number: int) -> Host:
        address = f"10.0.0.{number}"
        return Host(address=address, port=22, user="ann", private_key=self.key, tenant_id=tenant_id)

    def begin(self, tenant_id: str, number: int = 0) -> Deferred[Any]:
        """Run a command on the machine of this number; 0: on one that none has run on."""
        machine = self.machine(tenant_id, number or len(self.runs) + 1)
        run = Deferred.fromCoroutine(self.remote.run(machine, "true", timeout_s=60.0))
        self.addCleanup(run.cancel)
        self.runs.append(run.addErrback(self.refused))
        return run

    def refused(self, failure: Failure) -> None:
        failure.trap(RemoteError, CancelledError)
        if failure.check(RemoteError):
            self.refusals.append(failure.value)

    def addresses(self) -> list[str]:
        """Those that were dialled, in their order."""
        return [each[0] for each in self.clock.tcpClients]

    def dialled(self, tenant_id: str, number: int) -> int:
        """How many of so many runs of a tenant, each on another machine, wait for a login."""
        before = len(self.clock.tcpClients)
        for _ in range(number):
            self.begin(tenant_id)
        self.clock.advance(0.0)
        return len(self.clock.tcpClients) - before

    def test_those_without_a_place_follow_in_their_order(self) -> None:
        """The logins end with their time limit; the last ones have waited for a minute before."""
        self.assertEqual(self.dialled("a", 60), 8)
        for turns in range(1, 6):
            self.clock.advance(Ssh().connect_timeout_s)
            expected = [f"10.0.0.{number + 1}" for number in range(8 * turns + 8)]
            self.assertEqual(self.addresses(), expected)
        self.assertEqual({each.kind for each in self.refusals}, {Fault.UNREACHABLE})
        self.refusals.clear()
        self.clock.advance(Ssh().connect_timeout_s)
        busy = [each.text for each in self.refusals if each.kind is Fault.BUSY]
        self.assertEqual(len(busy), 12)
        self.assertIn("8 of them by this tenant, which is its share: try later", busy[0])

    def test_http_waits_for_a_place_only_a_moment(self) -> None:
        """Its callers have deadlines of seconds, and must know that nothing was sent."""
        self.assertEqual(self.dialled("a", 8), 8)
        pinned = evolve(self.machine("a", 100), host_key="ssh-ed25519 AAAA")

        async def ask() -> None:
            async with self.remote.agent(pinned):
                raise AssertionError("it has no place")

        asked = Deferred.fromCoroutine(ask())
        self.clock.advance(0.0)
        self.clock.advance(2.0)
        refusal = self.failureResultOf(asked, RemoteError).value
        self.assertEqual(refusal.kind, Fault.BUSY)

    def test_those_that_wait_end_with_the_client(self) -> None:
        """They hear that it is closed."""
        self.assertEqual(self.dialled("a", 9), 8)
        closing = Deferred.fromCoroutine(self.remote.close())
        turn(self.clock)
        self.assertEqual(
            [each.text for each in self.refusals[8:]], ["ssh ann@10.0.0.9:22: the client is closed"]
        )
        closing.addErrback(lambda failure: failure.trap(CancelledError))
        closing.cancel()
