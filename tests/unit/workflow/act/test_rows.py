"""How rows of executions are written: by the state that a caller knows, or by the newest one."""

from __future__ import annotations

from attrs import evolve

from svcd.model.job import Execution
from tests.unit.workflow.support import WorkflowCase


def attempted(row: Execution) -> Execution:
    return evolve(row, attempts=row.attempts + 1)


class KnownTests(WorkflowCase):
    """`change` with the state that the caller knows."""

    def test_state_that_is_known_no_more_is_read(self) -> None:
        """Another writer's change stays."""
        rows, row = self.controller.rows, self.execute()
        self.tx(lambda tx: tx.executions.save(evolve(row, cancel_requested=True)))
        after = self.run_to_end(rows.change(row.id, attempted, known=row))
        found = self.execution(row.id)
        self.assertEqual(after, found)
        self.assertEqual((found.attempts, found.cancel_requested), (1, True))

    def test_row_that_has_gone(self) -> None:
        """It is not made again."""
        rows, row = self.controller.rows, self.execute()
        self.tx(lambda tx: tx.executions.drop(row.id))
        self.assertIsNone(self.run_to_end(rows.change(row.id, attempted, known=row)))
        self.assertIsNone(self.tx(lambda tx: tx.executions.find(row.id)))
