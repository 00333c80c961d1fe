"""The shape of the tasks of executions: one task for each, under the lease of its cluster."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.ids import ExecutionId
from svcd.ports.leases import Leases
from svcd.runtime.tasks import KeyedTasks
from svcd.settings import Workflow
from svcd.workflow.act.perform import Performer
from svcd.workflow.act.rows import Rows

AT_ONCE: Final = 20
"""Executions on which tasks of one kind work in parallel."""


@frozen(kw_only=True)
class Means:
    """The parts that all work on executions uses."""

    rows: Rows
    performer: Performer
    clock: IReactorTime
    settings: Workflow
    rng: random.Random
    leases: Leases


class ExecutionTasks(ABC):
    """One task for each execution. name: of the tasks, in the log. The rows hold their progress."""

    name: ClassVar[str]

    def __init__(
        self,
        means: Means,
        failed: Callable[[ExecutionId, int, str, Exception], None] | None = None,
    ) -> None:
        """failed: see KeyedTasks."""
        self._rows = means.rows
        self._performer = means.performer
        self._clock = means.clock
        self._settings = means.settings
        self._rng = means.rng
        self._leases = means.leases
        self._tasks: KeyedTasks[ExecutionId] = KeyedTasks(
            means.clock,
            self.name,
            self._run,
            limit=AT_ONCE,
            rng=means.rng,
            failed=failed,
            leases=means.leases,
            lease_key=self._lease_key,
            parked=self._parked,
        )

    def wake(self, id_: ExecutionId, delay_s: float = 0.0) -> None:
        """Run the task of the execution after `delay_s`."""
        self._tasks.wake(id_, delay_s)

    def active(self) -> Sequence[ExecutionId]:
        """The executions whose task runs or has a timer."""
        return self._tasks.active()

    async def stop(self) -> None:
        """Stop all tasks."""
        await self._tasks.stop()

    @abstractmethod
    async def _run(self, id_: ExecutionId) -> float | None:
        """One run of the task, see KeyedTasks."""

    async def _lease_key(self, id_: ExecutionId) -> str | None:
        return await self._rows.lease_of(id_)

    @abstractmethod
    def _parked(self, id_: ExecutionId) -> None:
        """Forget the execution: this daemon does not drive it now."""
