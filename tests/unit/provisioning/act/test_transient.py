"""Transient clusters end when their last execution has ended."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import ClusterId, ExecutionId, JobId, timestamp
from svcd.model.job import Execution, ExecutionStatus
from svcd.provisioning.act.transient import Transient
from svcd.provisioning.decide import lifecycle
from tests.unit.provisioning.support import NOW, TENANT, Site, cluster, run

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

    def worked(self, **fields: Any) -> None:
        """An execution on the cluster, which has ended unless `fields` say otherwise."""
        execution = Execution(
            id=ExecutionId("e1"),
            tenant_id=TENANT,
            job_id=JobId("j1"),
            cluster_id=ClusterId("c1"),
            status=ExecutionStatus.SUCCEEDED,
            end_time=timestamp(NOW),
            created_at=timestamp(NOW),
        )
        record = evolve(execution, **fields)
        run(self.site.store.tx(lambda tx: tx.executions.add(record)))

    def put(self, row: Cluster) -> None:
        """Another writer's row."""
        self.site.store.clusters.rows[row.id] = evolve(row, version=row.version + 1)

    def test_cluster_without_work_is_left_alone(self) -> None:
        """Until it has had an execution."""
        self.site.advance(100)
        self.assertEqual(self.site.row.status, S.ACTIVE)

    def test_cluster_with_work_is_left_alone(self) -> None:
        """An execution has not ended yet."""
        self.worked(status=ExecutionStatus.RUNNING, end_time=None)
        self.site.advance(100)
        self.assertEqual(self.site.row.status, S.ACTIVE)

    def test_idle_cluster_is_deleted_at_the_next_look(self) -> None:
        """Within the poll's period."""
        self.worked()
        self.site.advance(31)
        self.assertTrue(self.site.gone)

    def test_wake_looks_at_once(self) -> None:
        """An execution has just ended."""
        self.worked()
        self.transient.wake()
        self.assertEqual(self.site.row.status, S.DELETING)

    def test_cluster_that_is_deleted_already_is_not_touched(self) -> None:
        """The user was faster."""
        self.worked()
        row = lifecycle.delete(self.site.row, False, NOW)
        self.put(row)
        row = self.site.row
        self.transient.wake()
        self.assertEqual(self.site.row, row)

    def test_cluster_in_error_goes_too(self) -> None:
        """Its executions have failed, and nobody can use it."""
        self.worked()
        row = evolve(self.site.row, status=S.ERROR)
        self.put(row)
        self.site.advance(31)
        self.assertTrue(self.site.gone)

    def test_cluster_whose_deletion_failed_is_left_to_its_owner(self) -> None:
        """Its description names what is left."""
        self.worked()
        row = evolve(self.site.row, status=S.ERROR, desired=Desired.DELETED)
        self.put(row)
        row = self.site.row
        self.transient.wake()
        self.assertEqual(self.site.row, row)

    def test_lost_race_is_left_to_the_next_look(self) -> None:
        """Somebody else has written the row."""
        self.worked()
        self.site.store.clusters.conflict_next = [lambda r: r]
        self.transient.wake()
        self.assertEqual(self.site.row.status, S.ACTIVE)
        self.site.advance(31)
        self.assertTrue(self.site.gone)
