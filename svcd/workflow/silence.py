"""Engines that do not answer: their executions say so, and fail when it lasts too long."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.ids import ClusterId, Timestamp, timestamp
from svcd.model.job import Execution, ExecutionStatus
from svcd.ports import EngineError
from svcd.workflow import failures, lifecycle
from svcd.workflow.failures import Code
from svcd.workflow.waiting import Story, waiting_for

log = Logger()


class Silence:
    """Remembers since when each engine is silent. deadline_s: then its executions fail."""

    def __init__(self, clock: IReactorTime, story: Story, deadline_s: float) -> None:
        self._clock = clock
        self._story = story
        self._deadline_s = deadline_s
        self._since: dict[ClusterId, float] = {}

    def broken(self, cluster_id: ClusterId) -> None:
        """The engine has answered."""
        self._since.pop(cluster_id, None)

    def retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Forget what is known of all other clusters."""
        for cluster_id in [each for each in self._since if not wanted(each)]:
            del self._since[cluster_id]

    async def heard(
        self, cluster_id: ClusterId, rows: Sequence[Execution], error: EngineError
    ) -> Sequence[Execution]:
        """The engine of `rows` has not answered; those that have ended by that."""
        now = self._clock.seconds()
        since = self._since.setdefault(cluster_id, now)
        if since == now:
            log.warn("Engine of cluster {id} is silent: {why}", id=cluster_id, why=error.text)
        until = since + self._deadline_s
        if now < until:
            if since < now:  # the second time, at least
                await self._say(rows, error.text, timestamp(until))
            return ()
        text = f"no answer for {now - since:.0f} s: {error.text}"
        failure = failures.failure(Code.ENGINE_UNREACHABLE, "workflow", text)

        def change(current: Execution) -> Execution:
            if current.cancel_requested:
                return lifecycle.advance(current, ExecutionStatus.KILLED, timestamp(now))
            status = ExecutionStatus.FAILED
            return lifecycle.advance(current, status, timestamp(now), failure=failure)

        for row in rows:
            await self._story.apply(row.id, change)
        return rows

    async def _say(self, rows: Sequence[Execution], text: str, until: Timestamp) -> None:
        failure = failures.failure(Code.ENGINE_UNREACHABLE, "workflow", text)
        now = timestamp(self._clock.seconds())

        def change(current: Execution) -> Execution:
            if lifecycle.is_over(current):
                return current
            return evolve(current, waiting=waiting_for(current, failure, now, until))

        for row in rows:
            if row.waiting is None or row.waiting.code != failure.code:
                await self._story.apply(row.id, change)
