"""Looks at engines: one batch of requests for each engine and tick, shared by its executions.

A look asks the engine for the status of all its executions (200 ids in one request). Beside it one
task per cluster asks the ResourceManager about steps that run without a change, and about the
progress of all steps; no look waits for this task. The outage of an engine is seen once, here.
Decides nothing: see `planner`, `stalls` and `progress`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from attrs import define, evolve, field
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.ids import ClusterId
from svcd.model.job import Execution
from svcd.ports.engine import Engine, EngineError, JobLine
from svcd.ports.lease import Lease
from svcd.runtime.tasks import KeyedTasks
from svcd.runtime.waits import Gate
from svcd.settings import Workflow
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.decide import planner, stalls
from svcd.workflow.decide.masking import masked_text
from svcd.workflow.decide.planner import Look, Memory
from svcd.workflow.decide.progress import progress_of, with_progress
from svcd.workflow.decide.stalls import ClusterMetrics

log = Logger()

PAGE: Final = 200
"""Ids in one batch request."""
RECORDS_AT_ONCE: Final = 8
"""Whole records that svcd reads in parallel from one engine."""
STALLS_AT_ONCE: Final = 5
"""ResourceManagers that svcd asks about stalled steps in parallel."""
_SAMPLE: Final = 20
"""Records that one tick reads because no machine has taken their step."""


@define(kw_only=True)
class _EngineState:
    """The memory of one engine; a restart may lose it.

    question: what the ResourceManager is to be asked: the place, the rows with a quiet step, and
    all running rows. room: for reading whole records.
    """

    memory: Memory = field(factory=Memory)
    question: tuple[Place, Sequence[Execution], Sequence[Execution]] | None = None
    room: Gate = field(factory=lambda: Gate(RECORDS_AT_ONCE))


class Observer:
    """Looks at the engines and resource managers of clusters."""

    def __init__(
        self,
        rows: Rows,
        engine: Engine,
        manager: ResourceManager,
        clock: IReactorTime,
        settings: Workflow,
        rng: random.Random,
        lease: Lease,
    ) -> None:
        self._rows = rows
        self._engine = engine
        self._manager = manager
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._engines: dict[ClusterId, _EngineState] = {}
        self._stopping = False
        self._rounds: KeyedTasks[ClusterId] = KeyedTasks(
            clock,
            "stalled steps",
            self._ask_manager,
            limit=STALLS_AT_ONCE,
            lease=lease,
            parked=self._drop_question,
        )

    async def stop(self) -> None:
        """Stop all tasks."""
        self._stopping = True
        await self._rounds.stop()

    def retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Drop the memory of the engines of all other clusters."""
        for cluster_id in [id_ for id_ in self._engines if not wanted(id_)]:
            del self._engines[cluster_id]

    def room(self, cluster_id: ClusterId) -> Gate:
        """The room for reading whole records from an engine."""
        return self._state(cluster_id).room

    # ---- the engine ----

    async def look(self, place: Place, rows: Sequence[Execution]) -> Look:
        """Ask an engine about all its executions."""
        cluster_id = place.cluster.id
        try:
            lines = await self._lines(place, rows)
        except EngineError as error:
            if self._stopping:
                return Look()
            return self._silent(cluster_id, error)
        now, state = self._clock.seconds(), self._state(cluster_id)
        steps, quiet = stalls.consider(state.memory.steps, rows, now)
        steps, running = stalls.to_measure(steps, rows, now, bool(quiet))
        state.memory = evolve(state.memory, silent_since=None, steps=steps)
        if running:
            state.question = place, quiet, running
            self._rounds.wake(cluster_id)
        # The list does not show the state of a step that no machine has taken: read some records.
        held = [row.id for row in rows if planner.is_unlaunched(row)]
        samples = frozenset(self._rng.sample(held, min(len(held), _SAMPLE)))
        return Look(lines=lines, memory=state.memory, samples=samples)

    async def _lines(self, place: Place, rows: Sequence[Execution]) -> dict[str, JobLine]:
        """The engine's list, by job id. Raises EngineError."""
        lines: dict[str, JobLine] = {}
        ids = [row.workflow_job_id for row in rows if row.workflow_job_id]
        for at in range(0, len(ids), PAGE):
            for line in await self._engine.lines(place.engine, ids[at : at + PAGE]):
                lines[line.id] = line
        return lines

    def _silent(self, cluster_id: ClusterId, error: EngineError) -> Look:
        """The look at an engine that has not answered."""
        state, deadline_s = self._state(cluster_id), self._settings.unreachable_deadline_s
        outage = planner.outage(state.memory, error.text, self._clock.seconds(), deadline_s)
        if state.memory.silent_since is None:
            log.warn("Engine of cluster {id} does not answer: {why}", id=cluster_id, why=error.text)
        state.memory = evolve(state.memory, silent_since=outage.since)
        return Look(outage=outage, memory=state.memory)

    def _state(self, cluster_id: ClusterId) -> _EngineState:
        return self._engines.setdefault(cluster_id, _EngineState())

    # ---- steps that run without a change ----

    def _drop_question(self, cluster_id: ClusterId) -> None:
        if cluster_id in self._engines:
            self._engines[cluster_id].question = None

    async def _ask_manager(self, cluster_id: ClusterId) -> None:
        """Ask the ResourceManager, and write the progress and the waits that its answers show."""
        state = self._engines.get(cluster_id)
        if state is None or state.question is None:
            return
        (place, quiet, running), state.question = state.question, None
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
        if not quiet:
            return
        steps = stalls.answered(state.memory.steps, metrics)
        state.memory = evolve(state.memory, steps=steps)
        if stalls.is_accepted(steps, metrics):
            for row in quiet:
                await self._judge(row, metrics)

    async def _judge(self, row: Execution, metrics: ClusterMetrics) -> None:
        """Write the wait of a quiet step, if it is another one than before."""
        known = row.engine_record
        verdict = stalls.verdict(metrics, known)
        if not stalls.is_news(row.waiting, verdict):
            return
        if verdict.failure is not None:  # YARN may quote the programs of a job
            text = masked_text(verdict.failure.text, await self._rows.secrets(row))
            verdict = evolve(verdict, failure=evolve(verdict.failure, text=text))
        judged = partial(
            stalls.judged,
            asked=known.running,
            verdict=verdict,
            now=self._clock.seconds(),
            deadline_s=self._settings.unreachable_deadline_s,
        )
        await self._rows.change(row.id, judged)
