"""Transient clusters end when their last execution has ended."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterStatus, Desired
from svcd.model.ids import ClusterId
from svcd.provisioning.act.transient import Transient
from tests.provisioning.support import Site, cluster, run

S = ClusterStatus


class TransientTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.site = Site(transient_poll_s=30.0)
        self.site.add(cluster(is_transient=True))
        self.site.advance(5)
        self.assertEqual(self.site.row.status, S.ACTIVE)
        self.transient = Transient(
            self.site.store,  # type: ignore[arg-type]
            self.site.controller,
            self.site.clock,
            self.site.settings,
        )
        self.transient.start()
        self.addCleanup(lambda: run(self.transient.stop()))

    def test_cluster_with_work_is_left_alone(self) -> None:
        """The store does not list it."""
        self.site.advance(100)
        self.assertEqual(self.site.row.status, S.ACTIVE)

    def test_idle_cluster_is_deleted_at_the_next_look(self) -> None:
        """Within the poll's period."""
        self.site.store.clusters.idle = [ClusterId("c1")]
        self.site.advance(31)
        self.assertTrue(self.site.gone)

    def test_wake_looks_at_once(self) -> None:
        """An execution has just ended."""
        self.site.store.clusters.idle = [ClusterId("c1")]
        self.transient.wake()
        self.assertEqual(self.site.row.status, S.DELETING)

    def test_cluster_that_is_deleted_already_is_not_touched(self) -> None:
        """The user was faster."""
        self.site.store.clusters.idle = [ClusterId("c1"), ClusterId("gone")]
        row = evolve(self.site.row, status=S.DELETING, desired=Desired.DELETED)
        self.site.store.clusters.rows[row.id] = row
        self.transient.wake()
        self.assertEqual(self.site.row, row)

    def test_cluster_in_error_goes_too(self) -> None:
        """Its executions have failed, and nobody can use it."""
        self.site.store.clusters.idle = [ClusterId("c1")]
        row = evolve(self.site.row, status=S.ERROR)
        self.site.store.clusters.rows[row.id] = row
        self.site.advance(31)
        self.assertTrue(self.site.gone)

    def test_cluster_whose_deletion_failed_is_left_to_its_owner(self) -> None:
        """Its description names what is left."""
        self.site.store.clusters.idle = [ClusterId("c1")]
        row = evolve(self.site.row, status=S.ERROR, desired=Desired.DELETED)
        self.site.store.clusters.rows[row.id] = row
        self.transient.wake()
        self.assertEqual(self.site.row, row)

    def test_lost_race_is_left_to_the_next_look(self) -> None:
        """Somebody else has written the row."""
        self.site.store.clusters.idle = [ClusterId("c1")]
        self.site.store.clusters.conflict_next = [lambda r: r]
        self.transient.wake()
        self.assertEqual(self.site.row.status, S.ACTIVE)
        self.site.advance(31)
        self.assertTrue(self.site.gone)
