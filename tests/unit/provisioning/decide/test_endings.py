"""When svcd deletes a cluster by itself, with literal values: warned, kept, and never too early."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import Timestamp, timestamp
from svcd.model.lifetime import end_of
from svcd.provisioning.decide.endings import Decided, Look, decided, look_of, reason, unasked
from svcd.provisioning.decide.health import Answer
from svcd.provisioning.distributions.spi import Command, IdleProbe
from tests.unit.provisioning.support import NOW, cluster


def at(second: float) -> Timestamp:
    return timestamp(NOW + second)


def row(**fields: Any) -> Cluster:
    """An Active cluster, created at 0."""
    return cluster(status=ClusterStatus.ACTIVE, settled_generation=1, **fields)


def after(before: Cluster, second: float, **look: Any) -> Decided:
    """The decision on a look at `second` that ended a second later."""
    return decided(before, Look(at=NOW + second, **look), NOW + second + 1)


def told(result: Decided) -> list[tuple[str, str]]:
    return [(event.step, event.outcome) for event in result.events]


class IdleTests(SynchronousTestCase):
    def test_idle_time_begins_at_the_look_that_finds_nobody(self) -> None:
        result = after(row(idle_delete_s=1200), 100, mark="3")
        self.assertEqual(result.cluster, row(idle_delete_s=1200, idle_since=at(100), idle_mark="3"))
        self.assertEqual((result.events, result.ends_by, result.wait_s), ((), "", 120.0))

    def test_use_begins_it_anew(self) -> None:
        """A newer execution or another mark: the use is over. A use that goes on: None."""
        idle = row(idle_delete_s=1200, idle_since=at(100), idle_mark=f"{at(50)} 3")
        same = after(idle, 200, mark="3", newest=at(50))
        self.assertIs(same.cluster, idle)
        for mark, newest in (("4", at(50)), ("3", at(150)), ("3", None)):
            result = after(idle, 200, mark=mark, newest=newest)
            self.assertEqual(result.cluster.idle_since, at(200))
        used = after(idle, 200, busy="a job runs", mark="")
        self.assertEqual(used.cluster, evolve(idle, idle_since=None))

    def test_a_tenth_before_the_end_an_event_warns(self) -> None:
        idle = row(idle_delete_s=1200, idle_since=at(100))
        early = after(idle, 1150)
        self.assertEqual((told(early), early.wait_s), ([], 29.0))
        result = after(idle, 1180)
        self.assertEqual(result.cluster.warned_at, at(1181))
        (event,) = result.events
        self.assertEqual((event.step, event.outcome, event.until), ("end", "waiting", at(1300)))
        self.assertEqual(
            event.text,
            "svcd deletes the cluster at 2026-01-01T00:21:40Z if it is not used before"
            " (idle_delete_s: 20 min); to keep it longer: svcd cluster keep demo",
        )
        self.assertEqual(result.wait_s, 119.0)

    def test_the_end_comes_after_the_warning_with_a_look_of_its_own(self) -> None:
        warned = row(idle_delete_s=1200, idle_since=at(100), warned_at=at(1181))
        self.assertEqual(after(warned, 1299.5).ends_by, "")  # it began before the end
        self.assertEqual(after(warned, 1300).ends_by, "idle_delete_s")
        self.assertEqual(
            reason(warned, "idle_delete_s"),
            "deleted by itself: it was not used for 20 min (idle_delete_s)",
        )

    def test_a_daemon_that_was_down_warns_first(self) -> None:
        late = after(row(idle_delete_s=1200, idle_since=at(100)), 9000)
        self.assertEqual((told(late), late.ends_by), ([("end", "waiting")], ""))
        self.assertEqual(after(late.cluster, 9060.5).ends_by, "")
        self.assertEqual(after(late.cluster, 9061).ends_by, "idle_delete_s")

    def test_use_after_the_warning_is_told(self) -> None:
        warned = row(idle_delete_s=1200, idle_since=at(100), warned_at=at(1181))
        result = after(warned, 1300, busy="a job execution has not ended")
        self.assertEqual(result.cluster, evolve(warned, idle_since=None, warned_at=None))
        self.assertEqual((told(result), result.ends_by), ([("end", "done")], ""))
        self.assertIn("a job execution has not ended", result.events[0].text)

    def test_keep_until_puts_it_off(self) -> None:
        kept = row(idle_delete_s=1200, idle_since=at(100), keep_until=at(5000))
        self.assertEqual(told(after(kept, 4878)), [])
        result = after(kept, 4880)
        self.assertEqual((told(result), result.events[0].until), ([("end", "waiting")], at(5000)))
        self.assertEqual(after(result.cluster, 5000).ends_by, "idle_delete_s")

    def test_interval_of_looks_is_bounded(self) -> None:
        waits = [after(row(idle_delete_s=s), 1, busy="x").wait_s for s in (60, 900, 36000)]
        self.assertEqual(waits, [30.0, 90.0, 300.0])

    def test_cluster_that_is_not_active_waits_for_a_change_of_its_row(self) -> None:
        failed = evolve(row(idle_delete_s=60), status=ClusterStatus.ERROR)
        self.assertIsNone(after(failed, 1, busy="it is Error").wait_s)
        aged = evolve(failed, max_age_s=1000)
        self.assertEqual(after(aged, 1, busy="it is Error").wait_s, 898.0)


class AgeTests(SynchronousTestCase):
    def test_age_counts_from_the_creation_whatever_its_use(self) -> None:
        for status in ClusterStatus:
            before = evolve(row(max_age_s=3600), status=status)
            self.assertEqual(told(after(before, 3238, busy="x")), [])
            result = after(before, 3240, busy="x")
            self.assertEqual(told(result), [("end", "waiting")])
            self.assertEqual(after(result.cluster, 3600, busy="x").ends_by, "max_age_s")
        self.assertEqual(
            reason(row(max_age_s=3600), "max_age_s"),
            "deleted by itself: it is older than 1 h (max_age_s)",
        )

    def test_a_warning_of_idle_time_is_none_of_the_age(self) -> None:
        """Use after it ends the idle time, and the age that comes then is warned of anew."""
        both = row(idle_delete_s=1200, max_age_s=1310, idle_since=at(100), warned_at=at(1181))
        result = after(both, 1290, busy="x")
        self.assertEqual(told(result), [("end", "done"), ("end", "waiting")])
        self.assertEqual(after(result.cluster, 1350).ends_by, "")
        self.assertEqual(after(result.cluster, 1351).ends_by, "max_age_s")

    def test_use_that_comes_and_goes_does_not_put_off_the_age(self) -> None:
        before = row(idle_delete_s=1200, max_age_s=3600, idle_since=None, warned_at=at(3300))
        result = after(before, 3599)
        self.assertEqual((result.cluster.warned_at, result.events), (at(3300), ()))
        self.assertEqual(after(result.cluster, 3600, busy="x").ends_by, "max_age_s")

    def test_use_is_not_asked_when_the_age_alone_decides(self) -> None:
        self.assertEqual(unasked(row(max_age_s=3600), NOW), Look(at=NOW, asked=False))
        both = row(idle_delete_s=3000, max_age_s=3600, idle_since=at(2000), idle_mark="3")
        warned = evolve(both, warned_at=at(3240))
        for moment, before, asked in (
            (3239, both, True),
            (3240, both, False),
            (3599, warned, True),
            (3600, warned, False),
        ):
            self.assertEqual(unasked(before, NOW + moment) is None, asked, moment)
        result = after(both, 3240, asked=False)
        self.assertEqual(result.cluster, evolve(both, warned_at=at(3241)))
        self.assertEqual(after(result.cluster, 3600, asked=False).ends_by, "max_age_s")

    def test_no_end_while_it_is_being_deleted(self) -> None:
        self.assertIsNone(end_of(row(max_age_s=60, desired=Desired.DELETED)))


class LookTests(SynchronousTestCase):
    """Only good answers to all questions say that nobody uses it."""

    def ask(self, body: bytes = b"c1 0 apps", error: str = "", command: str = "") -> Look:
        probe = IdleProbe(
            machine=cluster().node_groups[0].instances[0].instance_id,
            what="YARN",
            url="http://rm/",
            missing=lambda status, text: "" if b"0 apps" in text else "applications run",
            identity="c1",
            mark=lambda text: text.decode().removeprefix("c1 "),
        )
        run = Command(machine=probe.machine, what="connect", script="true")
        answers = [Answer(status=200, body=body, error=error), Answer(error=command)]
        return look_of([probe, run], answers, NOW, at(5))

    def test_answers(self) -> None:
        self.assertEqual(self.ask(), Look(at=NOW, mark="0 apps", newest=at(5)))
        marks = {self.ask(body=b"c1 0 apps" + b"x" * size).mark for size in (200_000, 200_001)}
        self.assertEqual([len(mark) for mark in marks], [64, 64])
        busy = {
            "YARN: applications run": self.ask(body=b"c1 2 of them"),
            "YARN: time-out": self.ask(error="time-out"),
            "connect: exit code 1": self.ask(command="exit code 1"),
            "YARN: a program that is not of this cluster answers at http://rm/ (status 200)": (
                self.ask(body=b"0 apps")
            ),
        }
        for text, look in busy.items():
            self.assertEqual(look, Look(at=NOW, busy=text, newest=at(5)))
