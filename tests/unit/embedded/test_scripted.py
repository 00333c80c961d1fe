"""Scripted machines and probes, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.scripted import Said, ScriptedProbe, ScriptedRemote
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import CommandResult, Host, Location, ProbeError, RemoteError
from svcd.runtime.clock import VirtualClock

HOST = Host(address="10.0.0.5", port=22, user="ubuntu", private_key=Secret("k"))


def start(work: Coroutine[Any, Any, Any] | Awaitable[Any]) -> Deferred[Any]:
    """A Deferred of the coroutine."""
    assert isinstance(work, Coroutine)
    return Deferred.fromCoroutine(work)


class ScriptedRemoteTest(SynchronousTestCase):
    """Commands without machines."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.faults = Faults()
        self.remote = ScriptedRemote(self.clock, self.faults)

    def begin(self, command: str = "true", host: Host = HOST) -> Deferred[CommandResult]:
        return start(self.remote.run(host, command, stdin=b"in", timeout_s=30.0))

    def kind(self, waiting: Deferred[CommandResult]) -> Fault:
        return self.failureResultOf(waiting, RemoteError).value.kind

    def test_newest_script_answers(self) -> None:
        """A script is data or a function of host, command and stdin."""
        self.remote.script("start", Said(exit_code=1, stderr="old"))
        self.remote.script("start", lambda h, c, i: Said(stdout=f"{h.address} {c} {i!r}"))
        result = self.successResultOf(self.begin("start x"))
        self.assertEqual(result.stdout, "10.0.0.5 start x b'in'")

    def test_faults_choose_by_address_and_command(self) -> None:
        """Each effect as it is felt over SSH; what is done before is remembered."""
        expected = {
            Effect.RESET_BEFORE: (Fault.UNREACHABLE, 0),
            Effect.RESET_AFTER: (Fault.UNREACHABLE, 1),
            Effect.GARBAGE: (Fault.SERVER_ERROR, 1),
            Effect.TIMEOUT_BEFORE: (Fault.TIMEOUT, 0),
            Effect.TIMEOUT_AFTER: (Fault.TIMEOUT, 1),
        }
        for effect, (kind, done) in expected.items():
            before = len(self.remote.ran)
            path = r"^10\.0\.0\.5 .*start"
            self.faults.add(FaultRule(where="ssh", path=path, times=1, effect=effect))
            waiting = self.begin("start x")
            self.clock.advance(30.0)
            self.assertEqual((self.kind(waiting), len(self.remote.ran) - before), (kind, done))
            self.successResultOf(self.begin("start x"))


A = "http://a:1/"


class ScriptedProbeTest(SynchronousTestCase):
    """Probes without daemons."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.faults = Faults()
        self.probe = ScriptedProbe(self.clock, self.faults)

    def test_faults_are_probe_errors(self) -> None:
        """Refused at once, silent until the time-out."""
        self.faults.add(FaultRule(where="probe", times=1, effect=Effect.RESET_BEFORE))
        self.faults.add(FaultRule(where="probe", times=1, effect=Effect.TIMEOUT_BEFORE))
        refused = self.failureResultOf(start(self.probe.get(Location(A), 5)), ProbeError)
        self.assertEqual(refused.value.kind, Fault.UNREACHABLE)
        waiting = start(self.probe.get(Location(A), 5))
        self.clock.advance(4.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        self.assertEqual(self.failureResultOf(waiting, ProbeError).value.kind, Fault.TIMEOUT)
