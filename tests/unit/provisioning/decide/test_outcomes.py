"""What outcomes lead to, with literal values."""

from __future__ import annotations

import random

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterStatus, Desired, StepName
from svcd.model.ids import InstanceId, timestamp
from svcd.provisioning.decide import outcomes
from svcd.provisioning.decide.failures import Code
from svcd.provisioning.decide.outcomes import OBSERVE
from svcd.provisioning.decide.planner import Plan
from svcd.provisioning.decide.steps import (
    DeleteServer,
    Done,
    Fail,
    Interrupted,
    Memory,
    Outcome,
    Reach,
    Retry,
    Span,
    Tried,
    Wait,
)
from svcd.settings import Provisioning
from tests.unit.provisioning.support import NOW, cluster

STEP = Reach(machine="demo-worker-001", instance=InstanceId("w1"), server_id="s1")
OTHER = DeleteServer(server_id="s1")
BUSY = Retry(code=Code.CLOUD_BUSY, reason="busy", after_s=40.0)


MEMORY = Memory(idle=3)


def learned(*found: Outcome, memory: Memory = MEMORY) -> outcomes.Learned:
    """Of one step with these outcomes, one after the other."""
    for outcome in found:
        result = outcomes.learned(cluster(), memory, [(STEP, outcome)], NOW, random.Random(1))
        memory = result.memory
    return result


class LearnedTests(SynchronousTestCase):
    def test_done_ends_the_history_and_the_idle_passes(self) -> None:
        """One event, no failure."""
        found = learned(BUSY, Done())
        self.assertEqual(found.memory, Memory(tried={STEP.key: Tried(done=True)}))
        told = [(e.step, e.outcome, e.machine) for e in found.events]
        self.assertEqual(told, [("log in", "done", "demo-worker-001")])
        self.assertIsNone(found.failure)

    def test_what_is_not_visible_at_once_is_not_repeated_at_once(self) -> None:
        found = learned(Done(repeat_s=5.0))
        self.assertEqual(found.memory.of(STEP.key), Tried(done=True, not_before=NOW + 5.0))

    def test_retry_waits_as_long_as_the_cloud_says(self) -> None:
        """The reason is remembered; idle passes go on counting."""
        found = learned(BUSY)
        history = Tried(failures=1, not_before=NOW + 40.0, reason="busy", code=Code.CLOUD_BUSY)
        self.assertEqual(found.memory, Memory(tried={STEP.key: history}, idle=3))

    def test_few_of_many_retries_are_events(self) -> None:
        """The first three, then every tenth."""
        counts = [len(learned(*[BUSY] * n).events) for n in (1, 2, 3, 4, 9, 10, 11)]
        self.assertEqual(counts, [1, 1, 1, 0, 0, 1, 0])

    def test_waits_are_events_at_the_counts_of_events(self) -> None:
        wait = Wait(seconds=0.2, reason="it boots")
        self.assertEqual([len(learned(*[wait] * n).events) for n in (1, 9, 10)], [0, 0, 1])

    def test_limit_of_retries_is_a_failure(self) -> None:
        limited = Retry(code=Code.PREPARE_FAILED, reason="no disk", limit=2)
        self.assertIsNone(learned(limited).failure)
        expected = Fail(
            code=Code.PREPARE_FAILED, reason="no disk (2 tries)", machine="demo-worker-001"
        )
        self.assertEqual(learned(limited, limited).failure, expected)

    def test_first_failure_counts(self) -> None:
        """It names the machine of its step."""
        first, second = (Fail(code=Code.LEFTOVERS, reason=r) for r in ("one", "two"))
        pairs = [(STEP, first), (OTHER, second)]
        found = outcomes.learned(cluster(), Memory(), pairs, NOW, random.Random(1))
        expected = Fail(code=Code.LEFTOVERS, reason="one", machine="demo-worker-001")
        self.assertEqual(found.failure, expected)
        self.assertEqual([e.outcome for e in found.events], ["failed", "failed"])

    def test_interruption_changes_nothing(self) -> None:
        memory = Memory(tried={STEP.key: Tried(failures=2)})
        found = learned(Interrupted(), memory=memory)
        self.assertEqual((found.memory, found.events), (memory, []))


class SpanTests(SynchronousTestCase):
    """The times of steps, and the steps that they waited for."""

    BEFORE = StepName(step="wait for server", machine="demo-worker-002")

    def learned(
        self, memory: Memory, began: float, ended: float, outcome: Outcome
    ) -> outcomes.Learned:
        times = {STEP.key: (NOW + began, NOW + ended)}
        pairs = [(STEP, outcome)]
        return outcomes.learned(cluster(), memory, pairs, NOW + ended, random.Random(1), times)

    def spans(self, found: outcomes.Learned) -> list[tuple[str, str | None, str | None]]:
        return [(e.outcome, e.began, e.ended) for e in found.events]

    def test_a_step_has_begin_end_and_the_step_before_it(self) -> None:
        """And the next steps wait for it."""
        found = self.learned(Memory(last=self.BEFORE), 1.0, 3.0, Done())
        self.assertEqual(self.spans(found), [("done", timestamp(NOW + 1), timestamp(NOW + 3))])
        self.assertEqual(found.events[0].waited_for, self.BEFORE)
        self.assertEqual(found.memory.last, StepName(step="log in", machine="demo-worker-001"))

    def test_waits_belong_to_one_attempt(self) -> None:
        """It began with the first try, and waited for what had ended then."""
        wait = Wait(seconds=0.2, reason="it boots")
        memory = self.learned(Memory(last=self.BEFORE), 1.0, 2.0, wait).memory
        self.assertEqual(memory.of(STEP.key).span, Span(began=NOW + 1, waited_for=self.BEFORE))
        memory = evolve(memory, last=StepName(step="log in", machine="demo-worker-003"))
        found = self.learned(self.learned(memory, 4.0, 5.0, wait).memory, 7.0, 8.0, Done())
        self.assertEqual(self.spans(found), [("done", timestamp(NOW + 1), timestamp(NOW + 8))])
        self.assertEqual(found.events[0].waited_for, self.BEFORE)

    def test_a_wait_that_is_an_event_has_no_end(self) -> None:
        """The tenth one."""
        memory = Memory(tried={STEP.key: Tried(failures=9, span=Span(began=NOW))})
        found = self.learned(memory, 9.0, 9.5, Wait(seconds=0.2, reason="it boots"))
        self.assertEqual(self.spans(found), [("waiting", timestamp(NOW), None)])

    def test_an_attempt_after_a_fault_has_a_begin_of_its_own(self) -> None:
        first = self.learned(Memory(), 1.0, 2.0, BUSY)
        second = self.learned(first.memory, 42.0, 43.0, Done())
        self.assertEqual(self.spans(first), [("retry", timestamp(NOW + 1), timestamp(NOW + 2))])
        self.assertEqual(self.spans(second), [("done", timestamp(NOW + 42), timestamp(NOW + 43))])

    def test_the_next_steps_wait_for_the_slowest(self) -> None:
        """Of the steps that run side by side."""
        times = {STEP.key: (NOW, NOW + 9), OTHER.key: (NOW, NOW + 2)}
        pairs = [(STEP, Done()), (OTHER, Done())]
        found = outcomes.learned(cluster(), Memory(), pairs, NOW + 9, random.Random(1), times)
        self.assertEqual(found.memory.last, StepName(step="log in", machine="demo-worker-001"))


class KnownTests(SynchronousTestCase):
    def test_fields_of_several_outcomes_are_joined(self) -> None:
        """A failure too can take an intent back."""
        one, two = InstanceId("worker1"), InstanceId("worker2")
        pairs = [
            (STEP, Done(instances={one: {"server_id": "s1"}}, cluster={"security_group_id": "g"})),
            (OTHER, Fail(code=Code.QUOTA, reason="", instances={two: {"requested_at": None}})),
            (OTHER, Done(instances={one: {"internal_ip": "10.0.0.1"}})),
        ]
        known = outcomes.known(cluster(), pairs)
        first, second = known.instances()
        self.assertEqual((first.server_id, first.internal_ip), ("s1", "10.0.0.1"))
        self.assertEqual((known.security_group_id, second.requested_at), ("g", None))


class SightTests(SynchronousTestCase):
    """The cloud's lists."""

    def refused(self, times: int, code: Code = Code.CREDENTIALS_EXPIRED) -> Memory:
        memory = Memory()
        for _ in range(times):
            trouble = Retry(code=code, reason="no")
            memory = outcomes.observed(memory, trouble, NOW, random.Random(1))
        return memory

    def test_lists_that_come_end_the_trouble(self) -> None:
        memory = outcomes.observed(self.refused(2), None, NOW, random.Random(1))
        self.assertEqual(memory, Memory())

    def test_five_refusals_are_enough(self) -> None:
        self.assertIsNone(outcomes.hopeless(cluster(), self.refused(4)))
        expected = Fail(code=Code.CREDENTIALS_EXPIRED, reason="no (5 tries)")
        self.assertEqual(outcomes.hopeless(cluster(), self.refused(5)), expected)

    def test_cloud_that_is_away_is_waited_for(self) -> None:
        self.assertIsNone(outcomes.hopeless(cluster(), self.refused(50, Code.CLOUD_UNAVAILABLE)))

    def test_deletion_waits_unless_its_trust_is_lost(self) -> None:
        """A new request brings another trust."""
        row = cluster(status=ClusterStatus.DELETING, desired=Desired.DELETED)
        memory = self.refused(9)
        self.assertIsNone(outcomes.hopeless(row, memory))
        trusted = cluster(status=ClusterStatus.DELETING, desired=Desired.DELETED, trust_id="t")
        found = outcomes.hopeless(trusted, memory)
        self.assertEqual(None if found is None else found.code, Code.CREDENTIALS_EXPIRED)


class WaitTests(SynchronousTestCase):
    def wait_s(
        self, memory: Memory, steps: tuple[Reach, ...] = (), waiting: tuple[str, ...] = ()
    ) -> float:
        row = cluster(status=ClusterStatus.SPAWNING)
        plan = Plan(cluster=row, steps=steps, waiting=waiting)
        found = outcomes.wait_s(plan.cluster, plan, memory, Provisioning(poll_s=2.0), NOW)
        return round(found, 3)

    def test_passes_become_rarer(self) -> None:
        waits = [self.wait_s(Memory(idle=n), waiting=("it boots",)) for n in (0, 1, 5, 50)]
        self.assertEqual(waits, [0.1, 0.15, 0.759, 2.0])

    def test_time_of_a_step_counts(self) -> None:
        """Where nothing else is waited for, it alone."""
        memory = Memory(tried={STEP.key: Tried(failures=1, not_before=NOW + 7.0)}, idle=50)
        self.assertEqual(self.wait_s(memory, steps=(STEP,)), 7.0)
        self.assertEqual(self.wait_s(memory, steps=(STEP,), waiting=("it boots",)), 2.0)

    def test_lists_are_asked_for_again_at_their_time(self) -> None:
        memory = Memory(tried={OBSERVE: Tried(failures=1, not_before=NOW + 9.0)})
        self.assertEqual(self.wait_s(memory), 9.0)
