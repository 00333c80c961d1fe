"""The steps of a change: attempts, statuses, the longest path and faults, with literal values."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterEvent, StepName
from svcd.model.ids import Timestamp, seconds_of
from svcd.model.step_kind import StepKind
from svcd.model.wire_story import ChangeOutcome, ChangeSteps, StoryFault
from svcd.provisioning.decide.change_steps import change_steps
from tests.unit.provisioning.support import cluster


def at(second: int) -> Timestamp:
    return Timestamp(f"2026-01-01 00:00:{second:02}.000000")


def step(
    name: str, machine: str, began: int, ended: int, waited: tuple[str, str] | None, **more: Any
) -> ClusterEvent:
    """An attempt of a step, which was done unless `more` has another outcome."""
    given = {"outcome": "done", "generation": 1, **more}
    waited_for = StepName(step=waited[0], machine=waited[1]) if waited else None
    times = {"at": at(ended), "began": at(began), "ended": at(ended)}
    return ClusterEvent(step=name, machine=machine, waited_for=waited_for, **{**times, **given})


def status(second: int, name: str, outcome: str = "started") -> ClusterEvent:
    return ClusterEvent(at=at(second), generation=1, step=name, outcome=outcome)


TRY = {"outcome": "retry", "code": "SSH_TIMEOUT", "text": "no route"}
REQUEST = status(0, "request", "accepted")
EVENTS = (
    REQUEST,
    step("create server", "a", 0, 1, None),
    step("create server", "b", 0, 2, None),
    step("boot", "a", 1, 3, ("create server", "a")),
    step("boot", "b", 2, 5, ("create server", "b")),
    step("start", "a", 5, 6, ("boot", "b"), attempt=1, **TRY),
    step("start", "a", 6, 7, ("boot", "b"), attempt=2, **TRY),
    step("start", "b", 5, 7, ("boot", "b")),
    step("start", "a", 5, 9, ("boot", "b"), attempt=3),
    status(9, "Active", "done"),
    step("job", "", 20, 40, None, **TRY),
)
"""Two machines: the boot of b decides when both start, and a starts at its third attempt.

A job waits later; that is no part of the change.
"""


def steps(*events: ClusterEvent, is_over: bool = True, now: int = 0) -> ChangeSteps:
    outcome = ChangeOutcome.DONE if is_over else ChangeOutcome.GOING_ON
    told = change_steps(cluster(), events, 1, outcome, seconds_of(at(now)))
    assert told is not None
    return told


def names(told: ChangeSteps) -> list[tuple[str, str]]:
    """Step and machine along the longest path."""
    return [(told.steps[n].step, told.steps[n].machine) for n in told.longest_path]


class StepsTests(SynchronousTestCase):
    def test_attempts_in_the_order_of_their_begins(self) -> None:
        told = steps(*EVENTS)
        self.assertEqual((told.began, told.ended), (at(0), at(9)))
        self.assertEqual(
            [(s.step, s.machine, s.attempt, s.outcome) for s in told.steps[4:]],
            [
                ("start", "b", 0, "done"),
                ("start", "a", 3, "done"),
                ("start", "a", 2, "retry"),
            ],
        )

    def test_begin_and_end_of_a_stage(self) -> None:
        """They are two events of one attempt, in any order."""
        begun = ClusterEvent(at=at(4), generation=1, step="stage", outcome="started", began=at(4))
        ended = step("stage", "", 4, 8, None)
        for events in ((REQUEST, begun, ended), (REQUEST, ended, begun)):
            (stage,) = steps(*events).steps
            self.assertEqual((stage.began, stage.ended, stage.outcome), (at(4), at(8), "done"))

    def test_another_change(self) -> None:
        """Nothing is told of a change whose events are not kept."""
        self.assertIsNone(change_steps(cluster(), EVENTS, 2, ChangeOutcome.DONE, 0.0))

    def test_a_server_that_boots(self) -> None:
        """Its wait has no event yet: it goes on since the end of the create call."""
        told = steps(*EVENTS[:3], is_over=False, now=7)
        self.assertIsNone(told.ended)
        self.assertEqual(
            [(s.step, s.kind.value, s.machine, s.began, s.ended) for s in told.steps[2:]],
            [
                ("wait for server", "wait", "a", at(1), None),
                ("wait for server", "wait", "b", at(2), None),
            ],
        )
        self.assertEqual(names(told), [("create server", "b"), ("wait for server", "b")])


class PathTests(SynchronousTestCase):
    def test_from_the_last_step_back_to_what_each_waited_for(self) -> None:
        told = steps(*EVENTS)
        path = [("create server", "b"), ("boot", "b"), ("start", "a")]
        self.assertEqual(names(told), path)
        marked = [(s.step, s.machine) for s in told.steps if s.longest_path]
        self.assertEqual(marked, path)

    def test_a_stage_is_no_step_of_the_path(self) -> None:
        """Unless no event tells of its steps, as where its files are small."""
        told = steps(
            REQUEST,
            step("create server", "a", 0, 2, None),
            step("write the configuration", "", 2, 4, ("create server", "a")),
            step("start oozie", "a", 4, 6, ("write the configuration", "")),
            step("Oozie to read its share library", "a", 6, 9, ("start oozie", "a")),
            step("start the daemons", "", 4, 10, ("write the configuration", "")),
        )
        self.assertEqual(
            names(told),
            [
                ("create server", "a"),
                ("write the configuration", ""),
                ("start oozie", "a"),
                ("Oozie to read its share library", "a"),
            ],
        )


class PhaseTests(SynchronousTestCase):
    def test_each_status_ends_with_the_next_one(self) -> None:
        """The last one, in which the cluster rests, is not a part of the change."""
        waits = status(2, "Spawning", "waiting")
        moves = (REQUEST, status(1, "Spawning"), waits, status(4, "Preparing"))
        told = steps(*moves, status(9, "Active", "done"))
        self.assertEqual(
            [(p.status.value, p.began, p.ended) for p in told.phases],
            [("Spawning", at(1), at(4)), ("Preparing", at(4), at(9))],
        )
        going = steps(*moves, is_over=False, now=30)
        self.assertEqual([p.ended for p in going.phases], [at(4), None])
        replaced = steps(*moves)
        self.assertEqual([p.ended for p in replaced.phases], [at(4), at(4)])


ONE, TWO = "demo-worker-001", "demo-worker-002"
GIVEN_UP = (
    REQUEST,
    status(0, "Spawning"),
    step("create server", ONE, 0, 1, None),
    step("create server", TWO, 0, 1, None),
    ClusterEvent(
        at=at(4), generation=1, step="replace", machine=TWO, outcome="retry", attempt=1,
        text="in ERROR",
    ),
    step("wait for server", ONE, 1, 5, ("create server", ONE)),
    step("create server", TWO, 6, 7, ("wait for server", ONE)),
    step("wait for server", TWO, 7, 9, ("create server", TWO), attempt=2),
)  # fmt: skip
"""The second server goes to ERROR, and svcd replaces it."""


class ReplacementTests(SynchronousTestCase):
    def test_a_server_that_was_given_up(self) -> None:
        """Its wait ended with the replacement; the next server waited for that."""
        told = steps(*GIVEN_UP, status(9, "Preparing"), status(9, "Active", "done"))
        self.assertEqual(
            [(s.step, s.machine, s.outcome, s.attempt, s.began) for s in told.steps[2:]],
            [
                ("wait for server", TWO, "replaced", 1, at(1)),
                ("wait for server", ONE, "done", 0, at(1)),
                ("create server", TWO, "done", 0, at(6)),
                ("wait for server", TWO, "done", 2, at(7)),
            ],
        )
        self.assertEqual(names(told), [("create server", TWO), ("wait for server", TWO)] * 2)
        self.assertEqual([(m.machine, m.replaced) for m in told.machines], [(ONE, 0), (TWO, 1)])
        (fault,) = told.faults
        self.assertEqual(
            (fault.step, fault.outcome, fault.code, fault.text, fault.machines),
            ("wait for server", "replaced", "", "in ERROR", [TWO]),
        )

    def test_a_server_that_boots_after_one_that_was_given_up(self) -> None:
        told = steps(*GIVEN_UP[:7], is_over=False, now=8)
        (wait,) = (s for s in told.steps if s.ended is None)
        self.assertEqual((wait.machine, wait.attempt, wait.began), (TWO, 2, at(7)))

    def test_a_server_that_had_run(self) -> None:
        """No wait ended with it: its replacement is a moment."""
        replace = ClusterEvent(
            at=at(8), generation=1, step="replace", machine=ONE, outcome="retry", attempt=1
        )
        told = steps(*GIVEN_UP[:6], replace).steps[-1]
        self.assertEqual(
            (told.step, told.outcome, told.began, told.ended), ("replace", "replaced", at(8), at(8))
        )


class MachineTests(SynchronousTestCase):
    def machines(self, *events: ClusterEvent, **more: Any) -> list[tuple[str, str, bool]]:
        return [(m.machine, m.group, m.done) for m in steps(*events, **more).machines]

    def test_machines_that_are_done_with_the_present_status(self) -> None:
        """A server that boots is not done, and a machine without a step is none."""
        begun = GIVEN_UP[:2]
        self.assertEqual(
            self.machines(*begun, is_over=False, now=1),
            [(ONE, "worker", False), (TWO, "worker", False)],
        )
        self.assertEqual(
            self.machines(*GIVEN_UP[:7], is_over=False, now=8),
            [(ONE, "worker", True), (TWO, "worker", False)],
        )
        preparing = (*GIVEN_UP, status(9, "Preparing"))
        self.assertEqual(
            self.machines(*preparing, step("log in", TWO, 9, 10, None), is_over=False, now=11),
            [(ONE, "worker", False), (TWO, "worker", True)],
        )

    def test_machines_of_a_change_that_has_ended(self) -> None:
        """With those that the cluster has no more; without those on which nothing was done."""
        gone = step("delete server", "demo-more-hands-007", 5, 6, None, outcome="failed")
        self.assertEqual(
            self.machines(*GIVEN_UP[:3], gone),
            [(ONE, "worker", True), ("demo-more-hands-007", "more-hands", False)],
        )

    def test_machines_that_stand_out(self) -> None:
        """By the longest path or a trouble, and in the end the slowest of a group."""
        events = [step("create server", f"demo-worker-{n:03}", 0, n, None) for n in range(1, 7)]
        retry = step("start", "demo-worker-002", 6, 7, None, **TRY)
        oozie = step("Oozie", "demo-master-001", 7, 9, None)

        def notable(*events: ClusterEvent, **more: Any) -> list[str]:
            return [m.machine[-3:] for m in steps(*events, **more).machines if m.notable]

        self.assertEqual(notable(*events, retry, oozie), ["002", "006", "001"])
        self.assertEqual(notable(status(0, "Spawning"), *events, is_over=False, now=6), ["006"])


class FaultTests(SynchronousTestCase):
    def test_a_trouble_is_told_once_with_its_machines(self) -> None:
        self.assertEqual(
            steps(*EVENTS).faults,
            [
                StoryFault(
                    step="start",
                    kind=StepKind.DAEMONS,
                    code="SSH_TIMEOUT",
                    outcome="retry",
                    text="no route",
                    times=2,
                    machines=["a"],
                )
            ],
        )

    def test_a_status_repeats_the_failure_of_a_step(self) -> None:
        """Alone it tells the failure."""
        failed = step("log in", "a", 1, 2, None, outcome="failed", code="SSH_FAILED")
        stage = ClusterEvent(
            at=at(2), generation=1, step="Preparing", outcome="failed", code="SSH_FAILED"
        )
        self.assertEqual([f.step for f in steps(REQUEST, failed, stage).faults], ["log in"])
        self.assertEqual([f.step for f in steps(REQUEST, stage).faults], ["Preparing"])

    def test_findings_of_health_checks_are_no_faults_of_the_change(self) -> None:
        ill = ClusterEvent(at=at(20), generation=1, step="health", outcome="failed", code="X")
        told = steps(REQUEST, ill)
        self.assertEqual((told.faults, told.ended), ([], at(0)))
