"""What is done after the end must not stand in the way of what still runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ExecutionId
from svcd.model.job import ExecutionStatus
from svcd.ports.store import Store, Tx
from svcd.workflow.act.controller import Controller
from tests.unit.workflow.support import WorkflowCase


class _Rows:
    """Executions whose `untidy` takes too long, as many times as `times` says."""

    def __init__(self, rows: Any, owner: SlowStore) -> None:
        self._rows = rows
        self._owner = owner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    async def untidy(self) -> list[ExecutionId]:
        self._owner.asked += 1
        if self._owner.asked <= self._owner.times:
            raise ServiceUnavailable("the database took too long for a statement")
        return list(await self._rows.untidy())


class _Tx:
    def __init__(self, tx: Tx, owner: SlowStore) -> None:
        self._tx = tx
        self.executions = _Rows(tx.executions, owner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tx, name)


class SlowStore:
    """A store of very many rows. asked: how often for those that are untidy."""

    def __init__(self, store: Store, times: int) -> None:
        self._store = store
        self.times = times
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        return await self._store.read(lambda tx: work(_Tx(tx, self)))


class SearchTests(WorkflowCase):
    def make_controller(self) -> Controller:
        controller = super().make_controller()
        self.slow = SlowStore(self.store, 3)
        controller.rows._store = self.slow
        return controller

    def test_search_for_folders_that_takes_too_long(self) -> None:
        """It is tried again at the next tick; jobs are started and followed meanwhile."""
        row = self.execute()
        self.controller.start()
        self.clock.advance(12)
        self.assertEqual(self.slow.asked, 3)
        self.assertEqual(self.execution(row.id).status, ExecutionStatus.SUCCEEDED)
        self.clock.advance(5)
        self.assertEqual(self.slow.asked, 4)
        self.clock.advance(50)
        self.assertEqual(self.slow.asked, 4)
