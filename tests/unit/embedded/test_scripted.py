"""Scripted machines and probes, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any

from attrs import evolve
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

    def test_every_command_succeeds_at_once(self) -> None:
        """And is remembered."""
        result = self.successResultOf(self.begin("rm -rf /"))
        self.assertEqual((result.exit_code, result.stdout, result.stderr), (0, "", ""))
        ran = self.remote.ran[0]
        self.assertEqual(
            (ran.address, ran.user, ran.command, ran.stdin),
            ("10.0.0.5", "ubuntu", "rm -rf /", b"in"),
        )

    def test_facts_are_those_of_a_server(self) -> None:
        """The preparing step gets what it asks for."""
        result = self.successResultOf(self.begin(": svcd-facts\necho"))
        self.assertEqual(
            result.stdout,
            "home=/home/ubuntu\nroot=\nprefix=/opt/svcd/vanilla\ncores=4\nmemory_mib=8192\n",
        )

    def test_newest_script_answers(self) -> None:
        """A script is data or a function of host, command and stdin."""
        self.remote.script("start", Said(exit_code=1, stderr="old"))
        self.remote.script("start", lambda h, c, i: Said(stdout=f"{h.address} {c} {i!r}"))
        result = self.successResultOf(self.begin("start x"))
        self.assertEqual(result.stdout, "10.0.0.5 start x b'in'")

    def test_latency_passes_in_virtual_time(self) -> None:
        """Nothing is answered earlier."""
        self.remote.latency_s = 2.0
        waiting = self.begin()
        self.clock.advance(1.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        self.successResultOf(waiting)

    def test_slow_command_times_out(self) -> None:
        """At its time-out, not later."""
        self.remote.script("slow", Said(delay_s=100.0))
        waiting = self.begin("slow")
        self.clock.advance(29.9)
        self.assertNoResult(waiting)
        self.clock.advance(0.1)
        self.assertEqual(self.kind(waiting), Fault.TIMEOUT)

    def test_machine_that_is_down_is_unreachable(self) -> None:
        """Until it is up again."""
        self.remote.take_down("10.0.0.5")
        self.assertEqual(self.kind(self.begin()), Fault.UNREACHABLE)
        self.successResultOf(self.begin(host=evolve(HOST, address="10.0.0.6")))
        self.remote.bring_up("10.0.0.5")
        self.successResultOf(self.begin())

    def test_rebuilt_machine_has_another_key(self) -> None:
        """A pinned key with a comment still fits; an old one does not."""
        learnt = self.successResultOf(self.begin()).host_key
        pinned = evolve(HOST, host_key=f"{learnt} comment")
        self.successResultOf(self.begin(host=pinned))
        self.remote.rebuild("10.0.0.5")
        self.assertEqual(self.kind(self.begin(host=pinned)), Fault.HOST_KEY)

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

    def test_fault_answer_is_a_failing_command(self) -> None:
        """Status becomes the exit code, the body stderr."""
        self.faults.add(FaultRule(where="ssh", status=12, body="no space"))
        result = self.successResultOf(self.begin())
        self.assertEqual((result.exit_code, result.stderr), (12, "no space"))


A = "http://a:1/"


class ScriptedProbeTest(SynchronousTestCase):
    """Probes without daemons."""

    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.faults = Faults()
        self.probe = ScriptedProbe(self.clock, self.faults)

    def test_everything_is_well(self) -> None:
        """200 with an empty object, unless a rule says otherwise."""
        self.probe.answer("/jmx", 503, b"starting")
        self.assertEqual(
            self.successResultOf(start(self.probe.get(Location(f"{A}jmx"), 5))),
            (503, b"starting"),
        )
        self.assertEqual(self.successResultOf(start(self.probe.get(Location(A), 5))), (200, b"{}"))
        self.assertEqual(self.probe.asked, ("http://a:1/jmx", "http://a:1/"))

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
