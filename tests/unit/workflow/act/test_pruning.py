"""Ended executions go after `workflow.keep_days`, and nothing else does."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from svcd.model.ids import ClusterId, ExecutionId, timestamp
from svcd.model.job import Execution, ExecutionStatus
from svcd.runtime.clock import VirtualClock
from svcd.runtime.fencing import Alone
from svcd.settings import Workflow
from svcd.workflow.act.pruning import SURE_S, Pruning
from tests.contract.store.job_credentials import noted
from tests.unit.workflow.support import CLUSTER, PIG, TENANT, WorkflowCase

DAY = 86_400.0


class Shifted:
    """A clock that shows another time than the timers keep."""

    ahead_s = 0.0

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.callLater = clock.callLater
        self.getDelayedCalls = clock.getDelayedCalls

    def seconds(self) -> float:
        return self._clock.seconds() + self.ahead_s


class PruningTests(WorkflowCase):
    def pruning(self, keep_days: int) -> Pruning:
        made = Pruning(self.store, self.clock, Alone(), keep_days)
        made.start()
        self.clock.advance(SURE_S)
        self.addCleanup(lambda: self.run_to_end(made.stop()))
        return made

    def ended(self, id_: str, ago_s: float, **more: Any) -> Execution:
        """A stored execution that ended so long before the first pruning, after an hour."""
        now = self.clock.seconds() + SURE_S
        row = Execution(
            id=ExecutionId(id_),
            tenant_id=TENANT,
            job_id=PIG,
            cluster_id=CLUSTER,
            status=ExecutionStatus.SUCCEEDED,
            created_at=timestamp(now - ago_s - 3600.0),
            end_time=timestamp(now - ago_s),
        )
        row = evolve(row, **more)
        self.tx(lambda tx: tx.executions.add(row))
        return row

    def left(self) -> list[str]:
        async def read(tx: Any) -> list[str]:
            rows = await tx.executions.of_cluster(CLUSTER)
            return [r.id for r in [*rows, *await tx.executions.of_cluster("c2")]]

        return self.tx(read)

    def test_a_clock_that_was_wrong_deletes_nothing(self) -> None:
        """It is ahead at the start, or jumps later, and is corrected within the hour."""
        self.ended("young", 0.0)
        clock = Shifted(self.clock)
        clock.ahead_s = 9 * DAY
        made = Pruning(self.store, clock, Alone(), 2)
        made.start()
        self.addCleanup(lambda: self.run_to_end(made.stop()))
        self.clock.advance(3500.0)
        clock.ahead_s = 0.0
        self.clock.advance(2 * SURE_S)
        clock.ahead_s = 9 * DAY
        self.clock.advance(3500.0)
        clock.ahead_s = 0.0
        self.clock.advance(SURE_S)
        self.assertEqual(self.left(), ["young"])
        self.clock.advance(2 * DAY)
        self.assertEqual(self.left(), [])

    def test_0_days_keep_all(self) -> None:
        """Which is the default."""
        self.assertEqual(Workflow().keep_days, 0)
        self.ended("old", DAY * 10_000)
        self.pruning(0)
        self.clock.advance(3600.0)
        self.assertEqual(self.left(), ["old"])

    def test_what_has_to_be_cleaned_up_stays(self) -> None:
        """A folder in a cluster that is there, a login, a job in doubt, a deletion under way."""
        self.ended("folder", DAY * 3, workflow_dir="/user/u/svcd/folder")
        self.ended("login", DAY * 3)
        credential = evolve(noted(1), execution_id=ExecutionId("login"))
        self.tx(lambda tx: tx.job_credentials.add(credential))
        self.ended("doubt", DAY * 3, submitting=True)
        self.ended("hidden", DAY * 3, delete_requested=True)
        gone = {"cluster_id": ClusterId("c2"), "workflow_dir": "/user/u/svcd/gone"}
        self.ended("gone", DAY * 3, **gone)
        self.pruning(1)
        self.clock.advance(61.0)
        self.assertEqual(sorted(self.left()), ["doubt", "folder", "hidden", "login"])
        self.tx(lambda tx: tx.job_credentials.forget(credential.name))
        self.clock.advance(60.0)
        self.assertEqual(sorted(self.left()), ["doubt", "folder", "hidden"])
