"""Plans of a distribution on scripted machines: order, batches, failures, deadlines, the story."""

from __future__ import annotations

import random
from typing import Any, cast

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.scripted import Said, ScriptedProbe, ScriptedRemote
from svcd.model.ids import InstanceId, seconds_of, timestamp
from svcd.model.secret import Secret
from svcd.provisioning.act.rows import Journal
from svcd.provisioning.act.runner import PlanRunner
from svcd.provisioning.act.shells import Shells
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.steps import Done, Fail
from svcd.provisioning.distributions.spi import Chain, Command, HttpProbe, Stage, WriteFile
from svcd.runtime.clock import VirtualClock
from tests.unit.provisioning.support import NOW, cluster, group, instance

A, B = InstanceId("worker1"), InstanceId("worker2")
TOKEN = Secret("c0ffee-token-of-the-cluster")


def say(machine: InstanceId, script: str, **fields: Any) -> Command:
    return Command(machine=machine, what=script, script=script, **fields)


def write(machine: InstanceId, name: str) -> WriteFile:
    return WriteFile(machine=machine, path=f"/home/u/{name}", content=name.encode())


def serves(machine: InstanceId, **fields: Any) -> HttpProbe:
    values: dict[str, Any] = {
        "machine": machine,
        "what": "serves",
        "url": f"http://{machine}/",
        "missing": lambda status, body: "" if status == 200 else f"status {status}",
    }
    return HttpProbe(**{**values, **fields})


def stage(*chains: Chain, deadline_s: float = 60.0, name: str = "stage") -> Stage:
    return Stage(name=name, chains=chains, deadline_s=deadline_s, advice="ask somebody")


class KeptJournal(Journal):
    """Keeps all events, and writes none."""

    async def flush(self) -> None:
        pass


class RunnerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock(NOW)
        self.faults = Faults()
        self.remote = ScriptedRemote(self.clock, self.faults)
        self.probe = ScriptedProbe(self.clock, self.faults)

    @property
    def story(self) -> list[tuple[str, str, str]]:
        return [(e.step, e.machine, e.outcome) for e in self.journal.gathered]

    daemon_user = ""

    def start(self, *stages: Stage, deadline_s: float = 600.0, at_once: int = 30) -> list[Any]:
        """The result appears in the list once it is there."""
        row = cluster(
            group(
                instances=[
                    instance(1, internal_ip="10.0.0.1"),
                    instance(2, internal_ip="10.0.0.2", management_ip="203.0.113.2"),
                ]
            ),
            daemon_user=self.daemon_user,
        )

        self.journal = KeptJournal(cast(Any, None), self.clock, row)
        shells = Shells(self.remote, row, Secret("key"), TOKEN, at_once)
        runner = PlanRunner(shells, self.probe, self.clock, random.Random(1), self.journal)
        results: list[Any] = []
        Deferred.fromCoroutine(runner.run(stages, deadline_s)).addBoth(results.append)
        return results

    def test_stages_follow_one_another(self) -> None:
        """Chains of one stage run side by side, the next stage when all are done.

        Machines are addressed from outside, where they have an address there.
        """
        self.remote.latency_s = 1.0
        done = self.start(
            stage((say(A, "one"), say(A, "two")), (say(B, "other"),)), stage((say(A, "three"),))
        )
        self.clock.advance(10)
        self.assertIsInstance(done[0], Done)
        ran = [(r.command, r.address, r.at - NOW) for r in self.remote.ran]
        one, two = "10.0.0.1", "203.0.113.2"
        self.assertEqual(
            ran, [("one", one, 1.0), ("other", two, 1.0), ("two", one, 2.0), ("three", one, 3.0)]
        )

    def test_files_in_a_row_are_one_command(self) -> None:
        """Of one machine, until something else comes."""
        done = self.start(
            stage((write(A, "a"), write(A, "b"), write(B, "c"), say(A, "x"), write(A, "d")))
        )
        self.assertIsInstance(done[0], Done)
        self.assertEqual([r.stdin for r in self.remote.ran], [b"ab", b"c", b"", b"d"])

    def test_the_token_of_the_cluster_is_in_the_files_that_ask_for_it(self) -> None:
        """Only their owner may read them, and a machine's answer that repeats it is masked."""
        self.remote.script("", Said(exit_code=1, stderr="cannot write c0ffee-token-of-the-cluster"))
        file = WriteFile(machine=A, path="/home/u/a", content=b"is ***", mode=0o755, token=True)
        done = self.start(stage((file, evolve(file, path="/home/u/b", token=False))))
        (ran,) = self.remote.ran
        self.assertEqual(ran.stdin, b"is c0ffee-token-of-the-clusteris ***")
        self.assertIn("put 1 30 0700 /home/u/a\nput 31 6 0755 /home/u/b\n", ran.command)
        self.assertIn("cannot write ***", done[0].reason)

    def test_everything_runs_as_the_clusters_own_user(self) -> None:
        """Commands, files, the check for a live daemon and the last lines of its log."""
        self.daemon_user = "svcd"
        self.probe.answer("worker1", 503, b"")
        self.remote.script("say alive", Said(exit_code=1))
        self.start(
            stage((say(A, "say it's on"), write(A, "a"), serves(A, alive="say alive", log="/log")))
        )
        self.clock.advance(10)
        ran = [r.command for r in self.remote.ran]
        head = 'root=; [ "$(id -u)" = 0 ] || root="sudo -n"; exec $root su -s /bin/sh svcd -c '
        self.assertEqual(
            ran[0],
            head + "'cd /home/svcd || exit\nsay it'\"'\"'s on'",
        )
        self.assertEqual([r.startswith(head) for r in ran], [True] * 4, ran)
        self.assertEqual([r.user for r in self.remote.ran], ["debian"] * 4)
        self.assertIn("say alive", ran[2])
        self.assertIn("tail -n 20 -- /log", ran[3])

    def test_failing_command_says_where_and_why(self) -> None:
        """Machine, exit code, last words, last lines of the log, advice."""
        self.remote.script("^format", Said(exit_code=2, stderr="line\nno space left"))
        self.remote.script("^tail .*/log/nn", Said(stdout="FATAL x\n"))
        (failure,) = self.start(stage((say(B, "format", log="/log/nn"),)))
        self.assertEqual(
            failure,
            Fail(
                code=Code.COMMAND_FAILED,
                reason="stage on demo-worker-002: format: exit code 2: line\nno space left\n"
                "last lines of /log/nn:\nFATAL x\nask somebody",
                machine="demo-worker-002",
            ),
        )
        self.assertEqual(self.story[-1], ("stage", "demo-worker-002", "failed"))
        failed = self.journal.gathered[-1]
        self.assertEqual((failed.began, failed.ended), (timestamp(NOW), timestamp(NOW)))

    def test_first_failure_cuts_the_others_short(self) -> None:
        """Nobody waits for a stage that has failed."""
        self.remote.script("^bad", Said(exit_code=1, delay_s=3))
        self.probe.answer("worker1", 503, b"")
        result = self.start(stage((serves(A),), (say(B, "bad"),), deadline_s=1000))
        self.clock.advance(3.1)
        self.assertEqual(result[0].code, Code.COMMAND_FAILED)
        self.assertEqual(list(self.clock.getDelayedCalls()), [])

    def test_machine_that_is_away_is_tried_again(self) -> None:
        """A dropped connection is told as a retry. After four tries the stage fails."""
        self.faults.add(
            FaultRule(where="ssh", path="^10.0.0.1 x", times=2, effect=Effect.RESET_BEFORE)
        )
        done = self.start(stage((say(A, "x"),)))
        self.clock.advance(5)
        self.assertIsInstance(done[0], Done)
        self.assertEqual(
            self.story[1:4],
            [
                ("x", "demo-worker-001", "retry"),
                ("x", "demo-worker-001", "retry"),
                ("x", "demo-worker-001", "done"),
            ],
        )
        self.remote.take_down("10.0.0.1")
        result = self.start(stage((say(A, "x"),)))
        self.clock.advance(10)
        self.assertEqual(result[0].code, Code.MACHINE_UNREACHABLE)
        self.assertIn("(4 tries)", result[0].reason)

    def test_probe_waits_until_nothing_is_missing(self) -> None:
        """Asked every quarter of a second."""
        self.probe.answer("worker1", 503, b"")
        done = self.start(stage((serves(A),)))
        self.clock.advance(2)
        self.assertEqual(done, [])
        self.probe.answer("worker1", 200, b"")
        self.clock.advance(0.3)
        self.assertIsInstance(done[0], Done)
        self.assertEqual(len(self.probe.asked), 10)

    def test_dead_daemon_ends_the_wait(self) -> None:
        """Its `alive` script says so within two seconds, also when another program answers."""
        self.probe.answer("worker1", 503, b"")
        self.remote.script("^alive", Said(exit_code=1))
        self.remote.script("^tail", Said(stdout="OutOfMemoryError"))
        result = self.start(stage((serves(A, alive="alive", log="/l"),)))
        self.clock.advance(1.5)
        self.assertEqual(result[0].code, Code.DAEMON_DIED)
        self.assertIn("the daemon has died (status 503)", result[0].reason)
        self.assertIn("OutOfMemoryError", result[0].reason)
        self.probe.answer("worker1", 200, b"")
        result = self.start(stage((serves(A, alive="alive"),)))
        self.assertEqual(result[0].code, Code.DAEMON_DIED)
        self.assertIn(
            "the daemon has died (a good answer came, perhaps of another program)", result[0].reason
        )

    def test_good_answer_of_another_program_is_a_failure(self) -> None:
        """The page shows the identity of another cluster."""
        self.probe.answer("worker1", 200, b"cluster c2")
        result = self.start(stage((serves(A, identity="cluster c1", log="/l"), say(A, "next"))))
        self.clock.advance(0.9)
        self.assertEqual(result, [])  # a daemon that starts may answer 404 at first
        self.clock.advance(0.2)
        self.assertEqual(result[0].code, Code.FOREIGN_DAEMON)
        self.assertEqual(
            result[0].reason,
            "stage on demo-worker-001: serves: a program that is not of this cluster answers at "
            "http://worker1/ (status 200)\nask somebody",
        )
        self.assertNotIn("next", [r.command for r in self.remote.ran])
        self.probe.answer("worker1", 200, b"cluster c1")
        result = self.start(stage((serves(A, identity="cluster c1"), say(A, "next"))))
        self.assertIsInstance(result[0], Done)

    def test_stage_that_takes_too_long_says_what_is_missing(self) -> None:
        """On which machines, and the end of a log that one of them has.

        A stage gets the rest of the time of its phase at most.
        """
        self.probe.answer("worker", 404, b"")
        self.remote.script("^tail .*/l", Said(stdout="still starting"))
        chains = (serves(A),), (serves(B, log="/l"),)
        result = self.start(stage(*chains, deadline_s=30))
        self.clock.advance(31)
        self.assertEqual(
            result,
            [
                Fail(
                    code=Code.DAEMON_TIMEOUT,
                    reason="stage on demo-worker-002: not done within 30 s: demo-worker-001: "
                    "serves: status 404; demo-worker-002: serves: status 404\n"
                    "last lines of /l:\nstill starting\nask somebody",
                    machine="demo-worker-002",
                )
            ],
        )
        result = self.start(stage((serves(A),), deadline_s=500), deadline_s=20)
        self.clock.advance(21)
        told = "not done within 20 s: demo-worker-001: serves: status 404"
        self.assertEqual(result[0].reason, f"stage on demo-worker-001: {told}\nask somebody")

    def test_commands_at_once_are_limited(self) -> None:
        """Per cluster."""
        self.remote.latency_s = 1.0
        self.start(stage(*((say(A, f"c{n}"),) for n in range(4))), at_once=2)
        self.clock.advance(10)
        self.assertEqual([r.at - NOW for r in self.remote.ran], [1.0, 1.0, 2.0, 2.0])

    def test_events_have_their_time_and_what_they_waited_for(self) -> None:
        """The first action of a stage waits for the last one of the stage before."""
        self.remote.latency_s = 1.0
        self.remote.script("^slow", Said(delay_s=2))
        self.start(
            stage((say(A, "one"), say(A, "two")), (say(B, "slow"), say(B, "end")), name="first"),
            stage((write(A, "a"), say(A, "last")), name="second"),
        )
        self.clock.advance(20)
        found = []
        for each in self.journal.gathered:
            before = each.waited_for.step if each.waited_for else None
            moments = [None if t is None else seconds_of(t) - NOW for t in (each.began, each.ended)]
            found.append((each.step, each.outcome, *moments, before))
        self.assertEqual(
            found,
            [
                ("first", "started", 0.0, None, None),
                ("one", "done", 0.0, 1.0, None),
                ("two", "done", 1.0, 2.0, "one"),
                ("slow", "done", 0.0, 3.0, None),
                ("end", "done", 3.0, 4.0, "slow"),
                ("first", "done", 0.0, 4.0, None),
                ("second", "started", 4.0, None, "end"),
                ("write files", "done", 4.0, 5.0, "end"),
                ("last", "done", 5.0, 6.0, "write files"),
                ("second", "done", 4.0, 6.0, "end"),
            ],
        )
