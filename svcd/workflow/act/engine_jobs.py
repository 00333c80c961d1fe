"""Executions at their engines: reads their status, and kills unwanted ones.

At each tick svcd sends one batch request per engine (200 ids a page), and reads the full record
only of executions that changed. One task per cluster asks the ResourceManager about steps that run
without a change, and about the progress of all steps; the tick never waits for this task.
`planner`, `stalls` and `progress` judge the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from attrs import evolve
from twisted.logger import Logger

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId, ExecutionId
from svcd.model.job import Execution, Failure
from svcd.ports.engine import Engine, EngineError, JobLine
from svcd.ports.faults import Fault
from svcd.runtime.tasks import DeadlineExceeded, KeyedTasks, Parked, gather, with_deadline
from svcd.workflow.act.endings import Endings
from svcd.workflow.act.rows import Place
from svcd.workflow.act.tasks import Means
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.decide import lifecycle, planner, stalls
from svcd.workflow.decide.masking import masked_text
from svcd.workflow.decide.planner import Memory
from svcd.workflow.decide.progress import progress_of, with_progress

log = Logger()

PAGE: Final = 200
"""Ids in one batch request."""
RECORDS_AT_ONCE: Final = 8
"""Whole records that svcd reads in parallel from one engine."""
STALLS_AT_ONCE: Final = 5
"""ResourceManagers that svcd asks about stalled steps in parallel."""

_UNLAUNCHED_A_TURN: Final = 20
"""Records that one tick reads because no machine has taken their step."""
_KILL_ALL_S: Final = 15.0
"""Time for killing all executions of a cluster before its delete."""


class EngineJobs:
    """Follows executions that their engines run. idle: see Controller."""

    def __init__(
        self,
        means: Means,
        endings: Endings,
        engine: Engine,
        manager: ResourceManager,
        idle: Callable[[], None],
    ) -> None:
        self._rows = means.rows
        self._performer = means.performer
        self._clock = means.clock
        self._settings = means.settings
        self._rng = means.rng
        self._endings = endings
        self._engine = engine
        self._manager = manager
        self._idle = idle
        self._memory: dict[ClusterId, Memory] = {}
        self._stalled: dict[ClusterId, tuple[Place, Sequence[Execution], Sequence[Execution]]] = {}
        self._stopping = False
        self._tasks: KeyedTasks[ClusterId] = KeyedTasks(
            means.clock,
            "stalled steps",
            self._ask,
            limit=STALLS_AT_ONCE,
            leases=means.leases,
            parked=self._drop_stalled,
        )

    async def stop(self) -> None:
        """Stop all tasks. The rows hold the remaining work."""
        self._stopping = True
        await self._tasks.stop()

    def retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Drop the memory of the engines of all other clusters."""
        for cluster_id in [each for each in self._memory if not wanted(each)]:
            del self._memory[cluster_id]
        for cluster_id in [each for each in self._stalled if not wanted(each)]:
            del self._stalled[cluster_id]

    # ---- a tick ----

    async def turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        """Ask an engine about all its executions, and write the changes."""
        cluster = await self._rows.cluster(cluster_id)
        if cluster is None:
            await self._orphan_all(rows, f"cluster {cluster_id} was deleted")
            return
        if cluster.status is ClusterStatus.DELETING:
            return  # its delete kills them, see kill_all_of
        place = self._rows.place_on(cluster)
        if place is None:
            await self._orphan_all(rows, "the cluster lost its workflow engine")
            return
        try:
            lines = await self._lines(place, rows)
        except EngineError as error:
            if not self._stopping:
                await self._outage(cluster_id, rows, error)
            return
        now = self._clock.seconds()
        memory = self._memory.get(cluster_id, Memory())
        if memory.unread:
            ids = {row.id for row in rows}
            unread = {id_: since for id_, since in memory.unread.items() if id_ in ids}
            memory = evolve(memory, unread=unread)
        steps, to_ask = stalls.consider(memory.steps, rows, now)
        steps, running = stalls.to_measure(steps, rows, now, bool(to_ask))
        memory = self._memory[cluster_id] = evolve(memory, silent_since=None, steps=steps)
        if running:
            self._stalled[cluster_id] = place, to_ask, running
            self._tasks.wake(cluster_id)
        most_s = self._settings.manual_deadline_s
        todo, others = [], []
        for row in rows:
            line = lines.get(row.workflow_job_id or "")
            if planner.needs_record(row, line, memory, now, most_s):
                todo.append(row)
            elif planner.is_unlaunched(row):
                others.append(row)
        # The list does not show the state of a step that no machine has taken: read some records.
        todo += self._rng.sample(others, min(len(others), _UNLAUNCHED_A_TURN))
        results = await gather([partial(self.follow, place, row) for row in todo], RECORDS_AT_ONCE)
        raise_first(results)

    async def _lines(self, place: Place, rows: Sequence[Execution]) -> dict[str, JobLine]:
        """The engine's list, by job id. Raises EngineError."""
        found: dict[str, JobLine] = {}
        ids = [row.workflow_job_id for row in rows if row.workflow_job_id]
        for at in range(0, len(ids), PAGE):
            for line in await self._engine.lines(place.engine, ids[at : at + PAGE]):
                found[line.id] = line
        return found

    async def _outage(
        self, cluster_id: ClusterId, rows: Sequence[Execution], error: EngineError
    ) -> None:
        """Show that the engine of `rows` has not answered; fail them after the deadline."""
        now = self._clock.seconds()
        memory = self._memory.get(cluster_id, Memory())
        found = planner.outage(memory, error.text, now, self._settings.unreachable_deadline_s)
        if memory.silent_since is None:
            log.warn("Engine of cluster {id} does not answer: {why}", id=cluster_id, why=error.text)
        self._memory[cluster_id] = evolve(memory, silent_since=found.since)
        for row in rows:
            if now >= found.until:
                await self._rows.change(
                    row.id, partial(planner.without_engine, found=found, now=now)
                )
            elif planner.shows_outage(row, found, now):
                waits = partial(planner.waits_for_engine, found=found, now=now)
                await self._rows.change(row.id, waits)
        if now >= found.until:
            for row in rows:
                self._endings.wake(row.id)

    # ---- one execution at its engine ----

    async def follow(self, place: Place, row: Execution) -> None:
        """Bring one execution up to date. After a fault of the engine the next tick tries again."""
        if self._stopping:
            return
        try:
            unwanted = row.cancel_requested or row.delete_requested
            after = await (self._end if unwanted else self._absorb)(place, row)
            failure = None if after is None else self._overdue(place.cluster, after)
            if after is not None and failure is not None:
                await self._condemn(place, after, failure)
        except EngineError as error:
            log.warn("Execution {id} could not be read: {why}", id=row.id, why=error.text)
            await self._unread(place.cluster.id, row, error)
        else:
            self._remember_unread(place.cluster.id, row.id, None)

    async def _unread(self, cluster_id: ClusterId, row: Execution, error: EngineError) -> None:
        """Show that the record of `row` cannot be read; fail `row` after the deadline."""
        now, memory = self._clock.seconds(), self._memory.get(cluster_id, Memory())
        deadline_s = self._settings.unreachable_deadline_s
        found = planner.unread(memory, row.id, error.text, now, deadline_s)
        self._remember_unread(cluster_id, row.id, found.since)
        if now >= found.until:
            await self._rows.change(row.id, partial(planner.without_engine, found=found, now=now))
            self._endings.wake(row.id)
        elif planner.shows_outage(row, found, now):
            await self._rows.change(row.id, partial(planner.waits_for_engine, found=found, now=now))

    def _remember_unread(
        self, cluster_id: ClusterId, id_: ExecutionId, since: float | None
    ) -> None:
        memory = self._memory.get(cluster_id, Memory())
        if memory.unread.get(id_) == since:
            return
        rest = {each: at for each, at in memory.unread.items() if each != id_}
        unread = rest if since is None else {**rest, id_: since}
        self._memory[cluster_id] = evolve(memory, unread=unread)

    def _overdue(self, cluster: Cluster, row: Execution) -> Failure | None:
        memory = self._memory.get(cluster.id, Memory())
        most_s = self._settings.manual_deadline_s
        return planner.overdue(row, memory, self._clock.seconds(), most_s)

    async def _condemn(self, place: Place, row: Execution, failure: Failure) -> None:
        """Write the reason to the row, then kill the job."""
        await self._rows.change(row.id, partial(planner.condemned, failure=failure))
        log.warn(
            "Execution {id} would never end, svcd kills it: {why}", id=row.id, why=failure.text
        )
        await self._end(place, row)

    async def _end(self, place: Place, row: Execution) -> Execution | None:
        """Kill a job and read its record. Raises EngineError, unless the job has ended in any case.

        Oozie kills a job, and answers with a fault when it then cannot remove a folder of the job.
        """
        try:
            await self._performer.kill(row.workflow_job_id, place)
        except EngineError:
            after = await self._absorb(place, row)
            if after is None or lifecycle.is_over(after):
                return after
            raise
        return await self._absorb(place, row)

    async def _absorb(self, place: Place, row: Execution) -> Execution | None:
        """Read the engine's record and write the changes. Raises EngineError."""
        if row.workflow_job_id is None:
            return row
        try:
            news = await self._performer.news(row, row.workflow_job_id, place)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            # the engine of another cluster knows no job of this one
            await self._performer.prove(place, place.endpoints.engine)
            self._endings.wake(row.id)
            return await self._rows.change(row.id, partial(planner.lost, now=self._clock.seconds()))
        if news is None:
            return row
        if news.status in lifecycle.TERMINAL:  # before the write, whose answer may be lost
            self._endings.wake(row.id)
        now, most_s = self._clock.seconds(), self._settings.manual_deadline_s
        absorbed = partial(planner.absorbed, news=news, now=now, manual_deadline_s=most_s)
        after = await self._rows.change(row.id, absorbed, known=row)
        if after is not None and after.status is not row.status:
            log.info("Execution {id} became {status}", id=row.id, status=after.status.value)
        if after is not None and lifecycle.is_over(after):
            self._endings.wake(row.id)
            if place.cluster.is_transient:
                self._idle()
        return after

    async def orphan(self, id_: ExecutionId, why: str) -> Execution | None:
        now = self._clock.seconds()
        return await self._rows.change(id_, partial(planner.orphaned, why=why, now=now))

    async def _orphan_all(self, rows: Sequence[Execution], why: str) -> None:
        for row in rows:
            await self.orphan(row.id, why)

    # ---- requests ----

    async def refresh(self, row: Execution) -> Execution:
        """Ask the engine about `row` now, and return the new row. Raises EngineError."""
        place = await self._rows.place(row)
        if place is None or lifecycle.is_over(row) or row.workflow_job_id is None:
            return row
        return self._endings.seen(await self._absorb(place, row) or row)

    async def kill(self, row: Execution) -> Execution:
        """Kill `row` at its engine, read the record, return the new row. Raises EngineError."""
        place = await self._rows.place(row)
        if place is None:
            return await self.orphan(row.id, "the cluster was deleted") or row
        return self._endings.seen(await self._end(place, row) or row)

    async def kill_all_of(self, cluster_id: ClusterId) -> None:
        """Before a cluster's delete: kill its executions at the engine, and write `KILLED`.

        Bounded: svcd writes `KILLED` also when the engine does not answer, because its machines
        are deleted.
        """
        rows = await self._rows.of_cluster(cluster_id)
        alive = [row for row in rows if not lifecycle.is_over(row)]
        until = self._clock.seconds() + _KILL_ALL_S

        async def one(row: Execution) -> None:
            left = until - self._clock.seconds()
            place = await self._rows.place(row)
            if place is None or left <= 0:
                return
            kill = self._performer.kill(row.workflow_job_id, place)
            try:
                await with_deadline(self._clock, left, "kill", kill)
            except (DeadlineExceeded, EngineError) as error:
                log.warn("Execution {id} was not killed at its engine: {e}", id=row.id, e=error)

        placed = [row for row in alive if row.workflow_job_id is not None]
        raise_first(await gather([partial(one, row) for row in placed], RECORDS_AT_ONCE))
        await self._orphan_all(alive, f"cluster {cluster_id} was deleted")

    # ---- steps that run without a change ----

    def _drop_stalled(self, cluster_id: ClusterId) -> None:
        self._stalled.pop(cluster_id, None)

    async def _ask(self, cluster_id: ClusterId) -> None:
        """Ask the ResourceManager, and write the waits that its answers show."""
        handed = self._stalled.pop(cluster_id, None)
        if handed is None:
            return
        place, rows, running = handed
        action = running[0].engine_record.launched
        console = "" if action is None else action.console_url
        metrics = await self._manager.metrics(place, console)
        writes: list[tuple[Execution, Callable[[Execution], Execution]]] = []
        for row in running:
            measured = with_progress(row, progress_of(row, metrics), metrics)
            if measured is not row and measured != row:
                change = partial(with_progress, found=measured.progress, metrics=metrics)
                writes.append((row, change))
        await self._rows.change_each(writes)
        if not rows:
            return
        memory = self._memory.get(cluster_id, Memory())
        steps = stalls.answered(memory.steps, metrics)
        self._memory[cluster_id] = evolve(memory, steps=steps)
        if not stalls.is_accepted(steps, metrics):
            return
        now = self._clock.seconds()
        for row in rows:
            known = row.engine_record
            found = stalls.verdict(metrics, known)
            if not stalls.is_news(row.waiting, found):
                continue
            if found.failure is not None:  # YARN may quote the programs of a job
                text = masked_text(found.failure.text, await self._rows.secrets(row))
                found = evolve(found, failure=evolve(found.failure, text=text))
            judged = partial(
                stalls.judged,
                asked=stalls.step_of(known),
                found=found,
                now=now,
                deadline_s=self._settings.unreachable_deadline_s,
            )
            await self._rows.change(row.id, judged)


def raise_first(results: Sequence[object]) -> None:
    """Raise the bug of one piece of work, after all others have ended."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Parked):
            raise result
