"""Carries out one step of an execution: performs it, and writes its outcome to the row.

The result says how the execution's task continues: an Execution: with this row; `Again`: it reads
the row anew; `Rest`: it waits; None: it ends, because the row is gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

from attrs import define, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.backoff import Backoff
from svcd.model.cluster import Cluster
from svcd.model.ids import ExecutionId
from svcd.model.job import Execution
from svcd.ports.engine import EngineError
from svcd.runtime.places import Owner, Places
from svcd.settings import Workflow
from svcd.workflow.act.observe import Observer
from svcd.workflow.act.perform import Answer, Performer
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.decide import lifecycle, planner, submission
from svcd.workflow.decide.planner import Look
from svcd.workflow.decide.steps import (
    Adopt,
    Again,
    Condemn,
    End,
    EngineStep,
    FindJob,
    Forget,
    KillJob,
    KillLate,
    Lost,
    MarkOutage,
    Outage,
    ReadRecord,
    RemoteStep,
    RemoveDefinition,
    Rest,
    Retry,
    Start,
    Step,
    TidyUp,
)

log = Logger()

AT_ONCE: Final = 60
"""Executions that svcd starts in parallel, and as many that it tidies up; of one cluster 20."""
_SHOWN_S: Final = 10.0
"""Seconds. The row shows a longer wait for a place among these."""
_BACKOFF: Final = Backoff(first_s=1.0, most_s=30.0)
_TIDY_AGAIN_S: Final = 30.0
"""Time between two tries to tidy up."""
_LATE_S: Final = 60.0
"""Seconds in which a write of an interrupted start may take effect, and make the folder again."""

After: TypeAlias = Execution | Again | Rest | None
"""How the task continues; see the module."""


@frozen(kw_only=True)
class Sight:
    """The input of a pass: a row, and the last look at its engine. is_read: see Observed."""

    row: Execution
    cluster: Cluster | None
    look: Look | None = None
    is_read: bool = False


@define(kw_only=True)
class State:
    """The memory of one execution while its task works; a restart may lose it.

    interrupted: a start was, and an old write into the folder may be under way: remove the folder
    twice. removed: it was removed once. incident: of a bug that has ended too many starts. sight:
    of the tick that has woken the task. unread_since: the first request in a row about its job
    without an answer.
    """

    sight: Sight | None = None
    interrupted: bool = False
    removed: bool = False
    incident: str = ""
    unread_since: float | None = None


class Passes:
    """Carries out steps."""

    def __init__(
        self,
        rows: Rows,
        performer: Performer,
        observer: Observer,
        clock: IReactorTime,
        settings: Workflow,
        rng: random.Random,
    ) -> None:
        self._rows = rows
        self._performer = performer
        self._observer = observer
        self._clock = clock
        self._settings = settings
        self._rng = rng
        later = partial(clock.callLater, 0.0)
        self._starts, self._ends = Places(AT_ONCE, later), Places(AT_ONCE, later)
        self._queued: dict[ExecutionId, float] = {}  # clock seconds, by the start that waits

    async def act(self, step: Step, sight: Sight, place: Place | None, state: State) -> After:
        """Carry out `step`, which was planned for the row."""
        row = sight.row
        state.interrupted = state.interrupted or planner.has_interrupted_start(row, step)
        match step:
            case TidyUp():
                async with self._ends.place(_owner(row), row.id) as waited:
                    if waited and await self._served(row) is None:
                        return Again()
                    return await self._tidy_up(row, place, state)
            case ReadRecord() | KillJob() | Condemn() if place is not None:
                async with self._observer.room(place.cluster.id):
                    return await self._at_engine(step, row, place, state)
            case MarkOutage(outage=outage):
                return await self._mark(row, outage)
            case Start() | FindJob() | RemoveDefinition() | KillLate() if place is not None:
                return await self._start_in_turn(step, row, place)
            case _:
                return await self._conclude(step, row, sight.cluster)

    # ---- the submit ----

    async def _start_in_turn(self, step: RemoteStep, row: Execution, place: Place) -> After:
        """Start, unless a request has changed `row` during the wait for a place."""
        self._queued[row.id] = self._clock.seconds()
        try:
            waited = await self._starts.take(_owner(row), row.id)
        finally:
            del self._queued[row.id]
        try:
            now = await self._served(row) if waited else row
            return Again() if now is None else await self._start(step, now, place)
        finally:
            self._starts.leave(_owner(row), row.id)

    async def _served(self, row: Execution) -> Execution | None:
        """The row after its wait for a place; None: a request has changed it meanwhile."""
        now = await self._rows.find(row.id)
        if now is None or not submission.is_as_planned(now, row):
            return None
        if submission.served(now) is now:
            return now
        return await self._rows.change(now.id, submission.served, known=now)

    async def show_queued(self, rows: Sequence[Execution]) -> None:
        """Show the long waits for a place among `rows`, and end those whose time is over."""
        now, deadline_s = self._clock.seconds(), self._settings.submit_deadline_s
        since = {id_: began for id_, began in self._queued.items() if began + _SHOWN_S <= now}
        waits = [row for row in rows if row.id in since]
        ids = dict.fromkeys(row.cluster_id for row in waits if row.cluster_id is not None)
        clusters = {id_: await self._rows.cluster(id_) for id_ in ids}
        changes: list[tuple[Execution, Callable[[Execution], Execution]]] = []
        for row in waits:
            cluster = None if row.cluster_id is None else clusters[row.cluster_id]
            until = submission.last_try(row, cluster, deadline_s, now)
            queued = partial(submission.queued, since=since[row.id], until=until, now=now)
            if queued(row) is not row:
                changes.append((row, queued))
        await self._rows.change_each(changes)

    async def _start(self, step: Step, row: Execution, place: Place) -> After:
        """Perform `step` and those that follow from its outcome."""
        while isinstance(step, RemoteStep):
            outcome = await self._performer.perform(step, row, place)
            now = self._clock.seconds()
            follows = submission.follow(row, step, outcome, now)
            if follows.move is not None:
                moved = partial(lifecycle.submit_move, move=follows.move, now=now)
                row = await self._rows.change(row.id, moved) or row
            step = follows.step
        return await self._conclude(step, row, place.cluster)

    async def _conclude(self, step: Step, row: Execution, cluster: Cluster | None) -> After:
        """Write the result of the steps of a submit."""
        now = self._clock.seconds()
        match step:
            case Rest() | Again():
                return step
            case Adopt(job_id=job_id):
                adopted = partial(submission.adopted, job_id=job_id, now=now)
                after = await self._rows.change(row.id, adopted)
                if lifecycle.is_over(row):
                    log.warn("Execution {id} had been given up, killed {j}", id=row.id, j=job_id)
                else:
                    log.info("Execution {id} was submitted as {job}", id=row.id, job=job_id)
                return after
            case Retry():
                return await self._retry(step, row, cluster)
            case End():
                if step.failure is not None:
                    log.info("Execution {id} failed: {code}", id=row.id, code=step.failure.code)
                return await self._rows.change(row.id, partial(submission.ended, end=step, now=now))
            case Forget():
                return await self._rows.change(row.id, partial(submission.forgotten, now=now))
            case _:
                raise AssertionError(f"{step} needs an engine, and there is none")

    async def _retry(self, retry: Retry, row: Execution, cluster: Cluster | None) -> After:
        """Write a passing fault, and wait until the next try."""
        now, tries = self._clock.seconds(), row.attempts + 1
        delay_s = max(retry.least_s, _BACKOFF.delay_s(tries, self._rng))
        until = submission.last_try(row, cluster, self._settings.submit_deadline_s, now)
        retried = partial(submission.retried, retry=retry, delay_s=delay_s, until=until, now=now)
        after = await self._rows.change(row.id, retried)
        tries_again = submission.tries_again(row, delay_s, until, now)
        if not lifecycle.is_over(row):
            log.warn(
                "Execution {id} could not be started, try {n}: {why}",
                id=row.id,
                n=tries,
                why=retry.text,
            )
            if not tries_again:
                log.info("Execution {id} failed: {code}", id=row.id, code=retry.code)
        elif not tries_again:
            log.error(
                "Execution {id} was given up, and its engine cannot be asked: a job of it may run"
                " there unwatched: {why}",
                id=row.id,
                why=retry.text,
            )
        return Rest(wait_s=delay_s) if tries_again else after

    # ---- at the engine ----

    async def _at_engine(
        self, step: EngineStep, row: Execution, place: Place, state: State
    ) -> After:
        """Read or kill the job. After a fault of the engine the next tick tries again."""
        try:
            if isinstance(step, Condemn):
                await self._rows.change(row.id, partial(planner.condemned, failure=step.failure))
                why = step.failure.text
                log.warn("Execution {id} would never end, svcd kills it: {why}", id=row.id, why=why)
            is_read = isinstance(step, ReadRecord)
            work = self._performer.read if is_read else self._performer.end
            after = await self.absorb(row, place, await work(row, place))
        except EngineError as error:
            log.warn("Execution {id} could not be read: {why}", id=row.id, why=error.text)
            now, deadline_s = self._clock.seconds(), self._settings.unreachable_deadline_s
            outage = planner.unread(state.unread_since, error.text, now, deadline_s)
            state.unread_since = outage.since
            is_due = planner.shows_outage(row, outage, now)
            return await self._mark(row, outage) if is_due else Rest()
        state.unread_since = None
        return after if is_read or after is None or lifecycle.is_over(after) else Rest()

    async def absorb(self, row: Execution, place: Place, answer: Answer) -> Execution | None:
        """Write the engine's answer, and return the row."""
        now, most_s = self._clock.seconds(), self._settings.manual_deadline_s
        if answer is None:
            return row
        if isinstance(answer, Lost):
            return await self._rows.change(row.id, partial(planner.lost, now=now))
        absorbed = partial(planner.absorbed, news=answer, now=now, manual_deadline_s=most_s)
        after = await self._rows.change(row.id, absorbed, known=row)
        if after is not None and after.status is not row.status:
            log.info("Execution {id} became {status}", id=row.id, status=after.status.value)
        return after

    async def _mark(self, row: Execution, outage: Outage) -> After:
        """Write an outage of the engine to the row."""
        marked = partial(planner.marked, outage=outage, now=self._clock.seconds())
        after = await self._rows.change(row.id, marked, known=row)
        return after if after is None or lifecycle.is_over(after) else Rest()

    # ---- after an end ----

    async def _tidy_up(self, row: Execution, place: Place | None, state: State) -> After:
        if not await self._performer.tidy_up(row, place):
            return Rest(wait_s=_TIDY_AGAIN_S)
        if state.interrupted and not state.removed:
            state.removed = True
            return Rest(wait_s=_LATE_S)
        await self._rows.change(row.id, planner.tidied)
        return None


def _owner(row: Execution) -> Owner:
    """The owner of a place for `row`."""
    return row.tenant_id, row.cluster_id or ""
