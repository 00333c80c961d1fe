"""What an execution waits for that ought to be there, and the telling of it in its cluster's story.

`Waiting` is kept in the row and shown in `info.waiting` from the first failed try on. Of many
executions that wait for the same the story tells one: its beginning (`retry`) and its end (`done`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId, ExecutionId, Timestamp, iso_seconds, seconds_of, timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.ports import Store, Tx
from svcd.workflow import failures
from svcd.workflow.changes import Changes
from svcd.workflow.failures import Code

LAUNCH_S: Final = 45.0
"""Time that the engine may take to hand a step to the cluster without our remarking on it."""

_STEP: Final = "job"
_MOST_TOLD: Final = 1000


def waiting_for(
    row: Execution, failure: Failure, now: Timestamp, until: Timestamp | None
) -> Waiting:
    """What `row` shows. The same thing goes on being missing since it was missing first."""
    before = row.waiting
    same = before is not None and (before.code, before.step) == (failure.code, failure.step)
    since = before.since if before is not None and same else now
    return Waiting(
        code=failure.code, step=failure.step, text=failure.text, since=since, until=until
    )


def of_record(
    row: Execution,
    status: ExecutionStatus,
    record: Mapping[str, object],
    now: Timestamp,
    manual_deadline_s: float,
) -> Waiting | None:
    """What the engine's record says that `row` waits for; None when it gets on."""
    if status not in (ExecutionStatus.RUNNING, ExecutionStatus.SUSPENDED):
        return None
    action = failures.held(record)
    if action is not None:
        until = None
        if status is ExecutionStatus.SUSPENDED:
            since = seconds_of(row.suspended_since or now)
            until = timestamp(since + manual_deadline_s)
        return waiting_for(row, failures.of_giving_up(action), now, until)
    action = failures.unlaunched(record)
    began = row.start_time or row.created_at
    waited = seconds_of(now) - seconds_of(began)
    if action is None or status is not ExecutionStatus.RUNNING or waited < LAUNCH_S:
        return None
    text = "the engine has not handed the step to the cluster yet"
    failure = failures.failure(Code.STEP_WAITS, str(action.get("name") or "workflow"), text)
    found = waiting_for(row, failure, now, None)
    return found if row.waiting is not None else evolve(found, since=began)


class Story:
    """Writes waits into the clusters' stories, each kind once at a time.

    changes: how rows are written by `apply`. noticed: told of the cluster whenever an execution
    begins to wait for something of it.
    """

    def __init__(
        self,
        store: Store,
        clock: IReactorTime,
        changes: Changes,
        noticed: Callable[[ClusterId], None] = lambda _: None,
    ) -> None:
        self._noticed = noticed
        self._store = store
        self._clock = clock
        self._changes = changes
        self._told: dict[tuple[ClusterId, str], ExecutionId] = {}

    async def apply(
        self, id_: ExecutionId, change: Callable[[Execution], Execution]
    ) -> Execution | None:
        """As Changes.apply; the cluster's story is told what changed."""
        before: Execution | None = None

        def noted(row: Execution) -> Execution:
            nonlocal before
            before = row
            return change(row)

        after = await self._changes.apply(id_, noted)
        if before is not None:
            await self._changed(before, after)
        return after

    async def _changed(self, before: Execution, after: Execution | None) -> None:
        """Tell what began or ended between two states of an execution."""
        cluster_id = before.cluster_id
        if cluster_id is None:
            return
        old = before.waiting
        new = None if after is None else after.waiting
        if old is not None and new is not None and old.code == new.code:
            return
        if old is not None and self._told.get((cluster_id, old.code)) == before.id:
            del self._told[cluster_id, old.code]
            lasted = self._clock.seconds() - seconds_of(old.since)
            text = f"job execution {before.id} waits no longer, after {lasted:.0f} s"
            await self._tell(cluster_id, "done", "", text)
        if new is not None:
            self._noticed(cluster_id)
        if new is not None and not await self._is_told(cluster_id, new.code, before.id):
            while len(self._told) >= _MOST_TOLD:
                del self._told[next(iter(self._told))]
            self._told[cluster_id, new.code] = before.id
            limit = "" if new.until is None else f" (until {iso_seconds(new.until)})"
            text = f"job execution {before.id} waits{limit}: {new.text}"
            await self._tell(cluster_id, "retry", new.code, text)

    async def _is_told(self, cluster_id: ClusterId, code: str, id_: ExecutionId) -> bool:
        """Whether another one than `id_` was told of, and waits still.

        Another daemon may have written its row, and then nobody has told its end here.
        """
        teller = self._told.get((cluster_id, code))
        if teller is None or teller == id_:
            return False
        row = await self._store.read(lambda tx: tx.executions.find(teller))
        waits = row is not None and row.waiting is not None and row.waiting.code == code
        return waits or self._told.get((cluster_id, code)) != teller

    async def _tell(self, cluster_id: ClusterId, outcome: str, code: str, text: str) -> None:
        now = timestamp(self._clock.seconds())

        async def write(tx: Tx) -> None:
            cluster = await tx.clusters.find(cluster_id)
            if cluster is None:
                return
            event = ClusterEvent(
                at=now,
                generation=cluster.generation,
                step=_STEP,
                outcome=outcome,
                code=code,
                text=text,
            )
            await tx.clusters.add_events(cluster_id, [event])

        await self._store.tx(write)
