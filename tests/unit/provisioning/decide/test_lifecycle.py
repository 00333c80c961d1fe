"""The table of statuses, walked in full, and the changes of a row."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import timestamp
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.failures import MOST_TEXT, Code, describe
from svcd.provisioning.decide.lifecycle import IllegalMove, Input
from svcd.settings import Provisioning
from tests.unit.provisioning.support import NOW, cluster, group, instance

S = ClusterStatus
I = Input  # noqa: E741

WORKING = ["SPAWN", "PREPARE", "CONFIGURE", "START", "DECOMMISSION", "SETTLE", "FAIL", "DELETE"]
EXPECTED: dict[ClusterStatus, list[str]] = {
    S.WAITING: ["SPAWN", "FAIL", "DELETE"],
    S.VALIDATING: WORKING,
    S.SPAWNING: WORKING,
    S.PREPARING: WORKING,
    S.CONFIGURING: WORKING,
    S.STARTING: WORKING,
    S.DECOMMISSIONING: WORKING,
    S.ACTIVE: ["SCALE", "DELETE"],
    S.ERROR: ["RETRY", "DELETE", "FAIL"],
    S.DELETING: ["DELETE", "FAIL"],
}
RESULT = {
    I.SPAWN: S.SPAWNING,
    I.PREPARE: S.PREPARING,
    I.CONFIGURE: S.CONFIGURING,
    I.START: S.STARTING,
    I.DECOMMISSION: S.DECOMMISSIONING,
    I.SETTLE: S.ACTIVE,
    I.FAIL: S.ERROR,
    I.SCALE: S.VALIDATING,
    I.RETRY: S.VALIDATING,
    I.DELETE: S.DELETING,
}


class TableTests(SynchronousTestCase):
    def test_every_pair(self) -> None:
        """Each (status, input) either leads where it should or is refused."""
        for status in S:
            for what in I:
                row = cluster(status=status)
                if what.name in EXPECTED[status]:
                    after = lifecycle.move(row, what, NOW + 5)
                    self.assertIs(after.status, RESULT[what], (status, what))
                    self.assertTrue(lifecycle.allows(status, what))
                else:
                    self.assertFalse(lifecycle.allows(status, what))
                    with self.assertRaises(IllegalMove):
                        lifecycle.move(row, what, NOW)

    def test_every_status_has_an_end_or_rests(self) -> None:
        """Only Active has no deadline."""
        unlimited = [s for s in S if lifecycle.deadline_s(s, Provisioning()) is None]
        self.assertEqual(unlimited, [S.ACTIVE])

    def test_deadline_counts_from_the_change_of_the_status(self) -> None:
        """Passes that change nothing do not push it on."""
        row = cluster(status=S.SPAWNING)
        for what, since in ((I.SPAWN, NOW), (I.PREPARE, NOW + 60)):
            self.assertEqual(lifecycle.move(row, what, NOW + 60).status_since, timestamp(since))


def started(*numbers: int) -> Cluster:
    """A cluster whose machines serve."""
    return cluster(
        group(
            count=len(numbers),
            instances=[instance(n, step="started", server_id=f"s{n}") for n in numbers],
        ),
        status=S.ACTIVE,
        settled_generation=1,
    )


class FailTests(SynchronousTestCase):
    """What becomes of a cluster whose work failed."""

    def fail(self, row: Cluster, on_failure: str = "remove") -> Cluster:
        return lifecycle.fail(row, Code.QUOTA, "too small", on_failure, NOW + 9)

    def test_early_failure_of_a_create_is_cleaned_up_first(self) -> None:
        """Error at once, but not settled: the planner removes what was made.

        From Configuring on all servers stay, and all stays when the settings say so.
        """
        early, late = (S.WAITING, S.SPAWNING, S.PREPARING), (S.CONFIGURING, S.STARTING)
        for status in (*early, *late):
            for on_failure in ("remove", "keep"):
                after = self.fail(cluster(status=status), on_failure)
                settled = int(status in late or on_failure == "keep")
                self.assertEqual((after.status, after.settled_generation), (S.ERROR, settled))
                self.assertTrue(after.status_description.startswith("QUOTA: too small"))

    def test_failed_growth_marks_what_was_added(self) -> None:
        """Added instances leave, the count goes back, the way leads through Decommissioning."""
        row = started(1, 2)
        more = evolve(row.node_groups[0], count=3)
        more = evolve(more, instances=(*more.instances, instance(3)))
        after = self.fail(evolve(row, node_groups=(more,), status=S.SPAWNING, generation=2))
        self.assertEqual(after.status, S.DECOMMISSIONING)
        self.assertEqual([i.leaving for i in after.instances()], [False, False, True])
        self.assertEqual(after.node_groups[0].count, 2)
        self.assertEqual(after.settled_generation, 1)

    def test_failed_decommission_keeps_what_still_serves(self) -> None:
        """Those not yet taken out of service stay, those already out go on leaving."""
        row = started(1, 2, 3)
        instances = (
            row.instances()[0],
            evolve(row.instances()[1], leaving=True),
            evolve(row.instances()[2], leaving=True, step="decommissioned"),
        )
        shrunk = evolve(row.node_groups[0], count=1, instances=instances)
        after = self.fail(
            evolve(row, node_groups=(shrunk,), status=S.DECOMMISSIONING, generation=2)
        )
        self.assertEqual([i.leaving for i in after.instances()], [False, False, True])
        self.assertEqual(after.node_groups[0].count, 2)
        self.assertEqual(after.instances()[1].step, "returning")
        self.assertEqual(after.status, S.DECOMMISSIONING)

    def test_node_that_cannot_return_is_kept_all_the_same(self) -> None:
        """It may hold data: Active, with both reasons, never removed."""
        row = started(1, 2)
        staying = evolve(row.instances()[1], step="returning")
        kept = evolve(row.node_groups[0], instances=(row.instances()[0], staying))
        after = self.fail(
            evolve(
                row,
                node_groups=(kept,),
                status=S.STARTING,
                generation=2,
                status_description="before",
            )
        )
        self.assertEqual((after.status, after.settled_generation), (S.ACTIVE, 2))
        self.assertEqual([i.leaving for i in after.instances()], [False, False])
        self.assertTrue(after.status_description.startswith("before\nQUOTA: too small"))

    def test_removal_that_fails_in_a_scale_is_an_error(self) -> None:
        """There is no way back from half-removed nodes."""
        row = started(1, 2)
        gone = evolve(row.instances()[1], leaving=True, step="decommissioned")
        shrunk = evolve(row.node_groups[0], count=1, instances=(row.instances()[0], gone))
        after = self.fail(
            evolve(row, node_groups=(shrunk,), status=S.DECOMMISSIONING, generation=2)
        )
        self.assertEqual((after.status, after.settled_generation), (S.ERROR, 2))

    def test_failed_clean_up_adds_its_reason(self) -> None:
        """Both reasons are shown."""
        first = self.fail(cluster(status=S.SPAWNING))
        after = lifecycle.fail(first, Code.LEFTOVERS, "server s1", "remove", NOW + 99)
        self.assertIn("QUOTA: too small", after.status_description)
        self.assertIn("LEFTOVERS: server s1", after.status_description)
        self.assertEqual(after.settled_generation, 1)


class RequestTests(SynchronousTestCase):
    def test_delete_raises_the_generation(self) -> None:
        """A deletion is a newer wish."""
        after = lifecycle.delete(started(1), False, NOW)
        self.assertEqual(
            (after.status, after.desired, after.generation, after.force_delete),
            (S.DELETING, Desired.DELETED, 2, False),
        )

    def test_second_delete_is_the_same_row(self) -> None:
        """Nothing is written for it. Force can be added later, without a new generation."""
        first = lifecycle.delete(started(1), False, NOW)
        self.assertIs(lifecycle.delete(first, False, NOW + 1), first)
        after = lifecycle.delete(first, True, NOW + 1)
        self.assertEqual((after.force_delete, after.generation), (True, 2))

    def test_retry_gives_fresh_attempts(self) -> None:
        """Steps that are done stay done, counts begin again."""
        row = cluster(
            group(instances=[instance(1, step="prepared", attempts=2)], count=1),
            status=S.ERROR,
            status_description="why",
            settled_generation=1,
        )
        after = lifecycle.retry(row, NOW)
        self.assertEqual((after.status, after.generation), (S.VALIDATING, 2))
        self.assertEqual(after.status_description, "")
        self.assertEqual(
            (after.instances()[0].step, after.instances()[0].attempts), ("prepared", 0)
        )

    def test_retry_of_a_failed_deletion_deletes(self) -> None:
        """The failure is settled: nothing goes on until somebody asks."""
        deleting = lifecycle.delete(started(1), False, NOW)
        failed = lifecycle.fail(deleting, Code.LEFTOVERS, "x", "remove", NOW)
        self.assertEqual((failed.status, failed.settled_generation), (S.ERROR, 2))
        after = lifecycle.retry(failed, NOW)
        self.assertEqual((after.status, after.desired), (S.DELETING, Desired.DELETED))
        self.assertEqual(after.generation, 3)


class FailureTextTests(SynchronousTestCase):
    def test_long_reason_is_cut_but_not_its_advice(self) -> None:
        """The text stays below its bound."""
        text = describe(Code.QUOTA, "x" * 5000)
        self.assertEqual(len(text), MOST_TEXT)
        self.assertTrue(text.endswith(f"({Code.QUOTA.advice})"))
