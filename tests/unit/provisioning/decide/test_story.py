"""The story of a cluster, with literal values."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterEvent, ClusterStatus
from svcd.model.failures import Code
from svcd.model.ids import Timestamp
from svcd.model.wire import Event
from svcd.model.wire_story import (
    ChangeOutcome,
    ClusterChange,
    ClusterFailure,
    ClusterStory,
    ClusterWork,
    ServerWait,
)
from svcd.provisioning.decide.story import story_of
from tests.unit.provisioning.support import NOW, cluster

ONE, TWO = "demo-worker-001", "demo-worker-002"
UNTIL = Timestamp("2026-01-01 00:30:00.000000")


def at(second: int) -> Timestamp:
    return Timestamp(f"2026-01-01 00:00:{second:02}.000000")


def event(second: int, step: str, outcome: str = "done", machine: str = "", **more: Any) -> Any:
    given = {"generation": 1, "machine": machine, **more}
    return ClusterEvent(at=at(second), step=step, outcome=outcome, **given)


REQUEST = event(0, "request", "accepted", text="create", until=UNTIL)
SPAWNING = event(1, "Spawning", "started", until=UNTIL)
ACTIVE = event(9, "Active")


def story(*events: ClusterEvent, status: ClusterStatus, text: str = "") -> ClusterStory:
    """Of a cluster of two workers that have no servers yet."""
    row = cluster(status=status, status_description=text)
    return story_of(row, events, NOW)


class WorkTests(SynchronousTestCase):
    def work(self, *events: ClusterEvent, status: ClusterStatus) -> ClusterWork:
        work = story(*events, status=status).work
        assert work is not None
        return work

    def test_a_status_begins_with_its_own_event(self) -> None:
        """Deadline, servers that do not run; with such a server no machine is done."""
        made = event(2, "create server", machine=ONE)
        servers = [ServerWait(machine=name, status="") for name in (ONE, TWO)]
        self.assertEqual(
            self.work(REQUEST, SPAWNING, made, status=ClusterStatus.SPAWNING),
            ClusterWork(
                since=at(1), until=UNTIL, machines_done=0, waits=[], waits_in_all=0,
                servers=servers, servers_in_all=2,
            ),
        )  # fmt: skip

    def test_a_deletion_begins_with_its_request(self) -> None:
        """It waits for no servers to run."""
        delete = event(20, "request", "accepted", text="delete", generation=2)
        work = self.work(REQUEST, SPAWNING, ACTIVE, delete, status=ClusterStatus.DELETING)
        self.assertEqual((work.since, work.until, work.servers), (at(20), None, []))

    def test_steps_that_go_on(self) -> None:
        """The newest event of each, in the order of their begins; what has ended is no wait."""
        start = event(3, "start the daemons", "started")
        first = event(4, "Oozie", "waiting", ONE, attempt=10)
        second = event(6, "Oozie", "waiting", ONE, attempt=30)
        retry = event(5, "log in", "retry", TWO, code="SSH_TIMEOUT", text="no route")
        over = event(7, "log in", machine=TWO)
        begun = event(1, "Starting", "started")
        events = (REQUEST, begun, start, first, retry, second)
        work = self.work(*events, status=ClusterStatus.STARTING)
        self.assertEqual(work.waits, [Event.of(start), Event.of(second), Event.of(retry)])
        work = self.work(*events, over, status=ClusterStatus.STARTING)
        self.assertEqual((len(work.waits), work.waits_in_all, work.machines_done), (2, 2, 1))

    def test_a_replacement_goes_on_until_its_server_runs(self) -> None:
        replace = event(3, "replace", "retry", ONE, attempt=1, text="in ERROR")
        work = self.work(REQUEST, SPAWNING, replace, status=ClusterStatus.SPAWNING)
        self.assertEqual(work.waits, [Event.of(replace)])
        runs = event(6, "wait for server", machine=ONE, attempt=2)
        work = self.work(REQUEST, SPAWNING, replace, runs, status=ClusterStatus.SPAWNING)
        self.assertEqual(work.waits, [])

    def test_many_waits(self) -> None:
        """The newest ten, and the number of all."""
        steps = [event(2, "log in", "retry", f"demo-{number}") for number in range(12)]
        begun = event(1, "Preparing", "started")
        work = self.work(REQUEST, begun, *steps, status=ClusterStatus.PREPARING)
        self.assertEqual([wait.machine for wait in work.waits], [f"demo-{n}" for n in range(2, 12)])
        self.assertEqual(work.waits_in_all, 12)

    def test_a_cluster_that_rests(self) -> None:
        """And one whose begin is not kept any more."""
        active = story(REQUEST, SPAWNING, ACTIVE, status=ClusterStatus.ACTIVE)
        self.assertEqual((active.work, active.failure), (None, None))
        self.assertIsNone(story(ACTIVE, status=ClusterStatus.CONFIGURING).work)


class FailureTests(SynchronousTestCase):
    def test_code_machine_and_advice(self) -> None:
        """The text has the advice once: it is a field."""
        advice = Code.QUOTA.advice
        text = f"QUOTA: no servers left ({advice})"
        failed = event(3, "create server", "failed", ONE, code="QUOTA", text="no servers left")
        stage = event(3, "Spawning", "failed", code="QUOTA", text=text)
        told = story(REQUEST, SPAWNING, failed, stage, status=ClusterStatus.ERROR, text=text)
        self.assertEqual(
            told.failure,
            ClusterFailure(
                code="QUOTA",
                text="QUOTA: no servers left",
                machine=ONE,
                by_health_check=False,
                meaning=Code.QUOTA.meaning,
                advice=advice,
            ),
        )

    def test_what_a_health_check_found(self) -> None:
        ill = event(20, "health", "failed", TWO, code="SERVER_DOWN", text="it is SHUTOFF")
        text = "SERVER_DOWN: it is SHUTOFF"
        told = story(REQUEST, ACTIVE, ill, status=ClusterStatus.ACTIVE, text=text).failure
        assert told is not None
        self.assertEqual((told.machine, told.by_health_check), (TWO, True))

    def test_a_text_without_a_known_code(self) -> None:
        told = story(REQUEST, status=ClusterStatus.ERROR, text="odd").failure
        assert told is not None
        self.assertEqual((told.code, told.text, told.meaning, told.advice), ("", "odd", "", ""))


class ChangeTests(SynchronousTestCase):
    def test_how_each_change_ended(self) -> None:
        """Done, also when a health check finds a fault later; replaced; failed; going on."""
        events = (
            REQUEST,
            ACTIVE,
            event(15, "health", "failed", ONE, code="SERVER_DOWN"),
            event(20, "request", "accepted", text="resize: worker 2 -> 3", generation=2),
            event(21, "create server", machine=ONE, generation=2),
            event(30, "request", "accepted", text="retry", generation=3),
            event(31, "create server", "failed", ONE, code="QUOTA", generation=3),
            event(40, "request", "accepted", text="resize: worker 2 -> 4", generation=4),
            event(41, "Starting", "failed", ONE, code="SCRIPT_FAILED", generation=4),
            event(42, "Active", generation=4),
            event(43, "health", "failed", ONE, code="SERVER_DOWN", generation=4),
            event(50, "request", "accepted", text="delete", generation=5),
        )
        told = story(*events, status=ClusterStatus.DELETING)
        self.assertEqual(
            [(c.generation, c.at, c.request, c.outcome.value, c.code) for c in told.changes],
            [
                (1, at(0), "create", "done", ""),
                (2, at(20), "resize: worker 2 -> 3", "replaced", ""),
                (3, at(30), "retry", "failed", "QUOTA"),
                (4, at(40), "resize: worker 2 -> 4", "failed", "SCRIPT_FAILED"),
                (5, at(50), "delete", "going on", ""),
            ],
        )

    def test_a_change_whose_request_is_not_kept(self) -> None:
        """It has the time of the first event that is."""
        told = story(event(3, "log in", machine=ONE), ACTIVE, status=ClusterStatus.ACTIVE)
        change = ClusterChange(
            generation=1, at=at(3), request="", outcome=ChangeOutcome.DONE, code=""
        )
        self.assertEqual(told.changes, [change])
