"""What is found of a cluster, and what comes of it: literal values."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cloud import Server
from svcd.model.cluster import Cluster, ClusterStatus, Unwell
from svcd.model.ids import InstanceId, timestamp
from svcd.provisioning.decide import health, lifecycle
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.health import Answer, Key, Seen, judged
from svcd.provisioning.decide.lifecycle import Input
from svcd.provisioning.distributions.spi import Command, HttpProbe, Stage, WriteFile
from tests.unit.provisioning.support import NOW, cluster, group, instance

AT = timestamp(NOW)
LATER = timestamp(NOW + 60)
ONE, TWO = "demo-worker-001", "demo-worker-002"
MANAGER: Key = (ONE, "the manager")
WORKER: Key = (TWO, "the worker")
PARTS = frozenset(
    {(ONE, "server"), (TWO, "server"), MANAGER, WORKER, ("", "cloud"), ("", "distribution")}
)


def row(**fields: object) -> Cluster:
    """Active; servers s1 and s2 are ACTIVE."""
    workers = [
        instance(n, server_id=f"s{n}", status="ACTIVE", step=lifecycle.STARTED) for n in (1, 2)
    ]
    made = cluster(group(instances=workers), status=ClusterStatus.ACTIVE, settled_generation=1)
    return evolve(made, **fields)


def server(number: int, status: str = "ACTIVE", **fields: object) -> Server:
    made = Server(id=f"s{number}", name=f"demo-worker-00{number}", status=status)
    return evolve(made, **fields)


@frozen
class Named:
    """Content when the body holds the word."""

    word: bytes

    def __call__(self, status: int, body: bytes) -> str:
        return "" if self.word in body else f"{self.word.decode()} is missing"


def probe(number: int, what: str, url: str, word: str) -> HttpProbe:
    return HttpProbe(
        machine=InstanceId(f"worker{number}"), what=what, url=url, missing=Named(word.encode())
    )


ASKED = [
    (probe(1, "the manager", "http://10.0.0.1:1/self", "up"), "read"),
    (probe(2, "the worker", "http://10.0.0.1:1/nodes", "two"), "read"),
]


def found(*answers: Answer) -> Seen:
    return health.of_daemons(row(), ASKED, answers, AT)


def bad(seen: Seen) -> Sequence[tuple[str, str, str]]:
    return [(a.code, a.machine, a.text) for a in seen.bad]


class TestServers(SynchronousTestCase):
    def test_all_that_run_are_good(self) -> None:
        """Nothing is said of the cloud by them."""
        seen = health.of_servers(row(), [server(1), server(2, "MIGRATING")], (), AT)
        self.assertEqual(seen.bad, ())
        self.assertEqual(seen.good, {(ONE, "server"), (TWO, "server")})

    def test_one_that_is_gone_is_so_for_sure(self) -> None:
        """Also one that is listed as DELETED."""
        for servers, gone in (([server(2)], ["s1"]), ([server(1, "DELETED"), server(2)], [])):
            seen = health.of_servers(row(), servers, gone, AT)
            told = [("SERVER_VANISHED", ONE, f"server s1 of {ONE} is gone")]
            self.assertEqual(bad(seen), told)
            self.assertEqual(seen.sure, {(ONE, "server")})
            self.assertEqual(seen.statuses, {"worker1": "DELETED", "worker2": "ACTIVE"})

    def test_one_that_is_neither_listed_nor_asked_for_is_unknown(self) -> None:
        """Neither good nor bad; nor is one that is being deleted."""
        self.assertEqual(health.unlisted(row(), [server(2)]), ["s1"])
        for servers in ([server(2)], [server(1, task_state="deleting"), server(2)]):
            seen = health.of_servers(row(), servers, (), AT)
            self.assertEqual((seen.bad, seen.good), ((), {(TWO, "server")}))

    def test_one_that_does_not_run_is_told_with_its_fault(self) -> None:
        """A second look has to confirm it, unless it is in ERROR and the cloud says why."""
        seen = health.of_servers(row(), [server(1, "ERROR", fault="no disk"), server(2)], (), AT)
        self.assertEqual(bad(seen), [("SERVER_DOWN", ONE, f"server s1 of {ONE} is ERROR: no disk")])
        self.assertEqual(seen.sure, {(ONE, "server")})
        seen = health.of_servers(row(), [server(1, "SHUTOFF"), server(2)], (), AT)
        self.assertEqual(bad(seen), [("SERVER_DOWN", ONE, f"server s1 of {ONE} is SHUTOFF")])
        self.assertEqual(seen.bad[0].advice, "start the server in the cloud, then its daemons")
        self.assertEqual(seen.sure, frozenset())


class TestDaemons(SynchronousTestCase):
    def test_each_question_has_its_answer(self) -> None:
        """What is missing is told with the machine."""
        seen = found(Answer(status=200, body=b"up"), Answer(status=200, body=b"one"))
        self.assertEqual(bad(seen), [("DAEMON_DOWN", TWO, f"the worker on {TWO}: two is missing")])
        self.assertEqual(seen.good, {MANAGER, ("", "distribution")})

    def test_of_a_silent_daemon_nothing_else_is_known(self) -> None:
        """It is told once, and not those that it knows of."""
        for answer in (Answer(error="refused"), Answer(status=503)):
            seen = found(answer, answer)
            self.assertEqual([a.key for a in seen.bad], [MANAGER])
            self.assertEqual(seen.good, {("", "distribution")})

    def test_a_stranger_in_place_of_a_daemon_is_certain(self) -> None:
        """No second check is needed, and of its other answers nothing counts."""
        own, nodes = ASKED
        asked = [(evolve(own[0], identity="c1"), "read"), nodes]
        answers = [Answer(status=200, body=b"up c2"), Answer(status=200, body=b"two")]
        seen = health.of_daemons(row(), asked, answers, AT)
        text = (
            f"the manager on {ONE}: a program that is not of this cluster answers at "
            "http://10.0.0.1:1/self (status 200)"
        )
        self.assertEqual(bad(seen), [("FOREIGN_DAEMON", ONE, text)])
        self.assertEqual(seen.sure, {MANAGER})
        self.assertEqual(seen.good, {("", "distribution")})
        answers = [Answer(status=200, body=b"up c1"), Answer(status=200, body=b"two")]
        self.assertEqual(health.of_daemons(row(), asked, answers, AT).bad, ())

    def test_a_command_is_judged_by_how_it_ended(self) -> None:
        """The code is that of the fault."""
        command = Command(machine=InstanceId("worker1"), what="it", script="true")
        for answer, told in (
            (Answer(), []),
            (Answer(error="exit code 1"), [("DAEMON_DOWN", ONE, f"it on {ONE}: exit code 1")]),
            (
                Answer(error="no route", code=Code.MACHINE_UNREACHABLE),
                [("MACHINE_UNREACHABLE", ONE, f"it on {ONE}: no route")],
            ),
        ):
            seen = health.of_daemons(row(), [(command, "")], [answer], AT)
            self.assertEqual(bad(seen), told)

    def test_files_of_a_check_are_no_questions(self) -> None:
        """A look writes nothing."""
        file = WriteFile(machine=InstanceId("worker1"), path="/a", content=b"")
        command = Command(machine=InstanceId("worker1"), what="it", script="true")
        stage = Stage(name="check", chains=((file, command),), deadline_s=1, advice="read")
        self.assertEqual(health.questions((stage,)), [(command, "read")])
        parts = {*PARTS, (ONE, "it")} - {MANAGER, WORKER}
        self.assertEqual(health.keys_of(row(), (stage,)), parts)


DEAD = found(Answer(status=200, body=b"up"), Answer(status=200, body=b"one"))
WELL = found(Answer(status=200, body=b"up"), Answer(status=200, body=b"two"))
REASON = f"the worker on {TWO}: two is missing"
TEXT = f"DAEMON_DOWN: {REASON}\nread"


def ill() -> Cluster:
    """The worker was told to be dead at NOW."""
    return judged(row(), DEAD, PARTS, {WORKER: AT}, NOW).cluster


class TestJudged(SynchronousTestCase):
    def test_what_is_found_twice_is_told(self) -> None:
        """In the description, and once in the story."""
        told = judged(
            row(), evolve(DEAD, bad=(evolve(DEAD.bad[0], since=LATER),)), PARTS, {WORKER: AT}, NOW
        )
        self.assertEqual(told.cluster.unwell, Unwell(text=TEXT, ailments=DEAD.bad))
        self.assertEqual(told.cluster.explained(), TEXT)
        self.assertEqual((told.cluster.status, told.unwell), (ClusterStatus.ACTIVE, True))
        self.assertEqual(told.cluster.updated_at, AT)
        [event] = told.events
        self.assertEqual(
            (event.step, event.outcome, event.code, event.machine, event.text),
            ("health", "failed", "DAEMON_DOWN", TWO, TEXT),
        )

    def test_what_is_well_again_is_told_once(self) -> None:
        """The description is empty then."""
        well = judged(ill(), WELL, PARTS, {}, NOW + 60)
        self.assertEqual((well.cluster.explained(), well.cluster.unwell), ("", None))
        self.assertEqual(well.cluster.updated_at, LATER)
        [event] = well.events
        self.assertEqual(
            (event.outcome, event.code, event.machine, event.text),
            ("done", "", TWO, f"the worker of {TWO} is well again after 60 s; all is well"),
        )
        self.assertFalse(well.unwell)

    def test_all_is_well_only_when_nothing_is_suspected_either(self) -> None:
        """A server that was started again, and its daemons were not."""
        stopped = health.of_servers(row(), [server(1), server(2, "SHUTOFF")], (), AT)
        told = judged(row(), stopped, PARTS, {(TWO, "server"): AT}, NOW).cluster
        runs = health.of_servers(row(), [server(1), server(2)], (), LATER)
        found_dead = judged(told, runs.and_of(DEAD), PARTS, {}, NOW + 60)
        self.assertEqual(
            [e.text for e in found_dead.events], [f"server of {TWO} is well again after 60 s"]
        )
        self.assertEqual(found_dead.suspected, {WORKER: AT})

    def test_what_cannot_be_found_out_stays_told(self) -> None:
        """The manager that knows of the worker is silent: suspected itself."""
        silent = found(Answer(error="refused"), Answer(error="refused"))
        unknown = judged(ill(), silent, PARTS, {}, NOW + 60)
        self.assertEqual(unknown.cluster, ill())
        self.assertEqual(unknown.suspected, {MANAGER: AT})

    def test_a_lost_server_takes_the_place_of_its_daemons(self) -> None:
        """At once, with its status; daemons of it are not told beside."""
        lost = health.of_servers(row(), [server(1)], ["s2"], LATER)
        told = judged(ill(), lost, PARTS, {}, NOW + 60)
        reason = f"server s2 of {TWO} is gone"
        self.assertEqual(
            told.cluster.explained(),
            f"SERVER_VANISHED: {reason} ({Code.SERVER_VANISHED.advice})",
        )
        self.assertEqual([i.status for i in told.cluster.instances()], ["ACTIVE", "DELETED"])
        self.assertEqual([e.code for e in told.events], ["SERVER_VANISHED"])

    def test_what_the_last_request_has_found_is_not_repeated(self) -> None:
        """It counts as unwell all the same."""
        reason = f"SERVER_VANISHED: server s2 of {TWO} is gone (…)"
        gone = lifecycle.with_instances(
            row(status_description=reason), {InstanceId("worker2"): {"status": "DELETED"}}
        )
        lost = health.of_servers(gone, [server(1)], ["s2"], AT)
        told = judged(gone, lost, PARTS, {}, NOW)
        self.assertEqual((told.cluster, told.events, told.unwell), (gone, (), True))

    def test_a_part_that_is_no_more_is_forgotten(self) -> None:
        """Of another release of the distribution, say."""
        parts = PARTS - {WORKER}
        told = judged(ill(), Seen(good=frozenset({MANAGER})), parts, {}, NOW + 60)
        self.assertIsNone(told.cluster.unwell)
        self.assertEqual(told.events, ())

    def test_very_many_are_counted(self) -> None:
        """The row and the texts stay small."""
        many = tuple(
            evolve(DEAD.bad[0], machine=f"m{n}", text=f"the worker on m{n}: gone")
            for n in range(500)
        )
        suspects = {a.key: AT for a in many}
        told = judged(row(), Seen(bad=many), PARTS | set(suspects), suspects, NOW)
        assert told.cluster.unwell is not None
        self.assertEqual(len(told.cluster.unwell.ailments), health.MOST_KEPT)
        self.assertIn("; and 40 more", told.cluster.explained())
        self.assertLess(len(told.cluster.explained()), 4000)
        again = judged(told.cluster, Seen(bad=many), PARTS | set(suspects), {}, NOW + 60)
        self.assertEqual(again.cluster, told.cluster)

    def test_a_request_empties_what_was_found(self) -> None:
        """It counts for the cluster as it was left alone."""
        self.assertIsInstance(ill().unwell, Unwell)
        self.assertIsNone(lifecycle.move(ill(), Input.SCALE, NOW).unwell)
        self.assertIsNone(lifecycle.delete(ill(), False, NOW).unwell)

    def test_only_a_cluster_at_rest_may_be_checked(self) -> None:
        """Active, settled, and not about to go."""
        self.assertTrue(lifecycle.may_be_checked(row()))
        self.assertFalse(lifecycle.may_be_checked(row(generation=2)))
        self.assertFalse(lifecycle.may_be_checked(lifecycle.delete(row(), False, NOW)))
        self.assertFalse(lifecycle.may_be_checked(row(status=ClusterStatus.ERROR)))
