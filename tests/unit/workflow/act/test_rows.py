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

    def test_newest_state_decides_when_the_known_one_asks_for_no_change(self) -> None:
        """As when it has been cancelled and a request has withdrawn that."""
        rows, row = self.controller.rows, self.execute()
        old = evolve(row, cancel_requested=True)

        def wanted(row: Execution) -> Execution:
            return row if row.cancel_requested else attempted(row)

        self.run_to_end(rows.change(row.id, wanted, known=old))
        self.assertEqual(self.execution(row.id).attempts, 1)

    def test_row_that_has_gone(self) -> None:
        """It is not made again."""
        rows, row = self.controller.rows, self.execute()
        self.tx(lambda tx: tx.executions.drop(row.id))
        self.assertIsNone(self.run_to_end(rows.change(row.id, attempted, known=row)))
        self.assertIsNone(self.tx(lambda tx: tx.executions.find(row.id)))

    def test_many_of_which_one_is_known_no_more(self) -> None:
        """Each change is made once, on the newest state."""
        rows, made = self.controller.rows, [self.execute() for _ in range(3)]
        self.tx(lambda tx: tx.executions.save(evolve(made[1], cancel_requested=True)))
        self.run_to_end(rows.change_each([(row, attempted) for row in made]))
        found = [self.execution(row.id) for row in made]
        self.assertEqual([row.attempts for row in found], [1, 1, 1])
        self.assertEqual([row.cancel_requested for row in found], [False, True, False])
