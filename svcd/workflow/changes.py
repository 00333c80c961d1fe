"""Every write of an execution's row: read, decide, compare-and-set, and again after a lost race."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ExecutionId
from svcd.model.job import Execution
from svcd.ports import Store, Tx
from svcd.workflow.lifecycle import is_over

_TRIES: Final = 20


class Changes:
    """Writes executions. saved: called in the transaction that has written one."""

    def __init__(
        self, store: Store, saved: Callable[[Tx, Execution], Awaitable[None]] | None = None
    ) -> None:
        self._store = store
        self._saved = saved

    async def apply(
        self, id_: ExecutionId, change: Callable[[Execution], Execution]
    ) -> Execution | None:
        """The row after `change` (pure, may be called again), None when the row is gone.

        A row that is to be deleted is dropped, and answered as it was last, when nothing is left to
        do for it: it has ended, without doubt about its submit, and its folder has gone.
        Raises ServiceUnavailable after many lost races.
        """

        async def once(tx: Tx) -> tuple[bool, Execution | None]:
            row = await tx.executions.find(id_)
            if row is None:
                return True, None
            after = change(row)
            done_with = is_over(after) and not after.submitting and after.workflow_dir is None
            if after.delete_requested and done_with:
                await tx.executions.drop(id_)
                return True, after
            if after == row:
                return True, row
            saved = await tx.executions.save(after)
            if saved and self._saved is not None:
                await self._saved(tx, after)
            return saved, after

        for _ in range(_TRIES):
            done, after = await self._store.tx(once)
            if done:
                return after
        raise ServiceUnavailable(f"job execution {id_} is being changed by others; try again")
