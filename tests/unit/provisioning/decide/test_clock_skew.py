"""Times of a cluster's row that cannot be, and those that can."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from benchmarks.rows import cluster
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import Timestamp
from svcd.provisioning.decide.clock_skew import corrected

NOW = Timestamp("2026-01-01 12:00:00.000000")
NOW_S = 1_767_268_800.0
CALL_ENDS = Timestamp("2026-01-01 12:00:30.000000")
OLD = Timestamp("2026-01-01 11:00:00.000000")
LATER = Timestamp("2026-01-01 13:00:00.000000")


def spawning(since: Timestamp, **fields: Any) -> Cluster:
    """A master and two workers whose instances have `fields`."""
    base = cluster("thousand", 1)
    groups = tuple(
        evolve(g, instances=tuple(evolve(i, **fields) for i in g.instances))
        for g in base.node_groups
    )
    status = ClusterStatus.SPAWNING
    return evolve(base, status=status, status_since=since, node_groups=groups)


class BelievableTests(SynchronousTestCase):
    def test_row_whose_times_can_be_stays_the_same_object(self) -> None:
        """A call that is under way, and one that was made long ago by this very daemon."""
        row = spawning(NOW, requested_at=CALL_ENDS)
        self.assertIs(corrected(row, NOW_S, alien=True), row)
        row = spawning(OLD, requested_at=OLD)
        self.assertIs(corrected(row, NOW_S, alien=False), row)

    def test_status_began_now_at_the_latest(self) -> None:
        row = spawning(LATER)
        self.assertEqual(corrected(row, NOW_S, alien=False).status_since, NOW)

    def test_call_is_under_way_for_half_a_minute_at_most(self) -> None:
        row = spawning(NOW, requested_at=LATER)
        found = corrected(row, NOW_S, alien=False)
        self.assertEqual([i.requested_at for i in found.instances()], [CALL_ENDS] * 3)

    def test_old_intent_of_another_daemon_may_be_young(self) -> None:
        """The clock may have been set forward since; what is there already needs no such care."""
        found = corrected(spawning(NOW, requested_at=OLD), NOW_S, alien=True)
        self.assertEqual([i.requested_at for i in found.instances()], [CALL_ENDS] * 3)
        there = spawning(NOW, requested_at=OLD, step="spawned")
        self.assertIs(corrected(there, NOW_S, alien=True), there)

    def test_age_time_without_use_and_warning_are_not_ahead(self) -> None:
        row = spawning(NOW, requested_at=None)
        ahead = evolve(row, created_at=LATER, idle_since=LATER, warned_at=LATER, keep_until=LATER)
        now = evolve(row, created_at=NOW, idle_since=NOW, warned_at=NOW, keep_until=LATER)
        self.assertEqual(corrected(ahead, NOW_S, alien=False), now)
        self.assertIs(corrected(now, NOW_S, alien=False), now)
