"""One task per execution: row -> observe -> plan -> perform -> compare-and-set.

The tick reads the unfinished rows, and lets the task of each engine look once at it. The look wakes
the task of each row for which `planner.plan` has a step, and the task then plans and performs until
no step is left. An engine has one look in flight, which delays no other engine's, nor the next
tick. Only the rows hold state: after a restart the first tick finds all unfinished executions.

Note: requests. A refresh and a cancel read or kill the job at once, on any daemon, and outside of
the task. Both sides write by compare-and-set, and no execution leaves an end state.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, ServiceUnavailable
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId, ExecutionId
from svcd.model.job import Execution
from svcd.ports.cloud import ApplicationCredentials, ObjectStore
from svcd.ports.engine import Engine, Engines, FileSystem
from svcd.ports.lease import Lease
from svcd.ports.machines import Probe
from svcd.ports.store import Sealer, Store
from svcd.runtime.fencing import Alone
from svcd.runtime.places import Places
from svcd.runtime.tasks import KeyedTasks, Loop, sleep
from svcd.runtime.work_metrics import WorkMetrics
from svcd.settings import Workflow
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.identities import Identities
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.kept_logs import KeptLogs
from svcd.workflow.act.logs import Logs
from svcd.workflow.act.observe import Observer
from svcd.workflow.act.passes import AT_ONCE, Passes, Sight, State
from svcd.workflow.act.perform import Answer, Performer
from svcd.workflow.act.pruning import Pruning
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.binaries import Binaries
from svcd.workflow.decide import lifecycle, planner
from svcd.workflow.decide.clock_skew import Bounds
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.planner import Look, Observed
from svcd.workflow.decide.steps import Again, ReadRecord, Rest, Step

log = Logger()

LOOKS_AT_ONCE: Final = 200
"""Engines that svcd asks in parallel, those of one tenant at most half of them."""
CRASHES: Final = 8
"""Starts in a row that end in a bug before the execution is given up."""
_MOMENT_S: Final = 0.2
"""A cancel waits this long for the end of a start that is under way."""


class Controller:
    """Drives all executions.

    noticed: see Rows. credentials: makes the application credentials of jobs; None: jobs get the
    passwords of their accounts. access: the object store as the clusters' machines reach it. lease:
    svcd drives executions only while it is held.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        object_store: ObjectStore,
        credentials: ApplicationCredentials | None,
        engines: Engines,
        probe: Probe,
        sealer: Sealer,
        clock: IReactorTime,
        settings: Workflow,
        access: ObjectStoreAccess | None,
        rng: random.Random,
        installation: str = "",
        lease: Lease | None = None,
        noticed: Callable[[ClusterId], None] = lambda _: None,
        metrics: WorkMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._settings = settings
        self._lease: Lease = lease or Alone()
        self.rows = Rows(store, engines, clock, self._lease, sealer, noticed, metrics)
        self.credentials = JobCredentials(
            store=store,
            rows=self.rows,
            cloud=credentials,
            clock=clock,
            lease=self._lease,
            installation=installation,
            life_s=settings.job_credential_s,
        )
        containers, manager = Containers(probe, clock), ResourceManager(probe, clock)
        self.logs = Logs(engine, containers, settings.log_bytes)
        self.kept_logs = KeptLogs(store, self.rows, self.logs, clock)
        self._performer = Performer(
            store=store,
            rows=self.rows,
            engine=engine,
            files=files,
            identities=Identities(self.rows, probe, clock),
            binaries=Binaries(store, object_store),
            credentials=self.credentials,
            containers=containers,
            manager=manager,
            kept_logs=self.kept_logs,
            clock=clock,
            access=access,
        )
        self._observer = Observer(self.rows, engine, manager, clock, settings, rng, self._lease)
        self._at_engines: Mapping[ClusterId, Sequence[Execution]] = {}  # of the last tick
        self._looks: KeyedTasks[ClusterId] = KeyedTasks(
            clock, "look at the engine", self._look, limit=sys.maxsize, rng=rng, lease=self._lease
        )
        self._look_places = Places(LOOKS_AT_ONCE, partial(clock.callLater, 0.0))
        self._states: dict[ExecutionId, State] = {}
        self._passes = Passes(self.rows, self._performer, self._observer, clock, settings, rng)
        self._tasks: KeyedTasks[ExecutionId] = KeyedTasks(
            clock,
            "execution",
            self._drive,
            limit=sys.maxsize,  # each kind of step has a limit of its own
            rng=rng,
            failed=self._crashed,
            lease=self._lease,
            parked=self._forget,
        )
        self._ticks = Loop(clock, "execution status", settings.poll_s, self.tick, self._lease)
        self._pruning = Pruning(store, clock, self._lease, settings.keep_days)

    # ---- owner's side ----

    def start(self) -> None:
        """Begin with a tick at once; the starts of many executions are spread."""
        self._ticks.start()
        self.credentials.start()
        self._pruning.start()

    async def stop(self) -> None:
        """Stop all tasks. The rows hold the remaining work."""
        await self._ticks.stop()
        await self._looks.stop()
        await self._pruning.stop()
        await self._observer.stop()
        await self._tasks.stop()
        await self.credentials.stop()

    def wake(self, id_: ExecutionId | None = None) -> None:
        """Read one execution soon, or all of them."""
        if id_ is None:
            self._ticks.wake()
        else:
            self._tasks.wake(id_)

    def notified(self, id_: ExecutionId) -> None:
        """Read the row soon, because another daemon has written it."""
        if self._lease.held:
            self._tasks.wake(id_)
            self._ticks.wake()

    def gained(self) -> None:
        """Read all unfinished executions as after a start: this daemon has got the lease."""
        self._ticks.wake()
        self.credentials.wake()

    def forget(self) -> None:
        """Drop the memory of executions and engines, because this daemon has lost the lease."""
        self._observer.retain(lambda _: False)
        self.rows.retain(lambda _: False)
        self._at_engines = {}
        self._states.clear()

    def active(self) -> int:
        """The number of executions with a task that works or has a timer."""
        return len(self._tasks.active())

    # ---- the tick ----

    async def tick(self) -> None:
        """Wake the tasks of all rows that may need a step, and those that look at the engines."""
        rows = await self._corrected(await self.rows.unfinished())
        due = planner.due(rows, self._clock.seconds())
        busy = set(self._tasks.active())
        for id_ in due.ended:
            if id_ not in busy:  # else its task waits for its time
                self._tasks.wake(id_)
        for index, id_ in enumerate(due.starts):
            self._tasks.wake(id_, self._rng.random() if index >= AT_ONCE else 0.0)
        await self._passes.show_queued(rows)
        self._observer.retain(due.at_engines.__contains__)
        self.rows.retain(due.at_engines.__contains__)
        self._at_engines = due.at_engines
        for cluster_id in due.at_engines:
            self._looks.wake(cluster_id)

    async def _corrected(self, rows: Sequence[Execution]) -> Sequence[Execution]:
        """`rows` with impossible times corrected, in the database too: see `clock_skew`."""
        bounds = Bounds(self._clock.seconds())
        sound_rows: list[Execution] = []
        for row in rows:
            if bounds.corrected(row) is row:
                sound_rows.append(row)
                continue
            sound = await self.rows.change(row.id, bounds.corrected)
            if sound is not None:
                sound_rows.append(sound)
        return sound_rows

    async def _look(self, cluster_id: ClusterId) -> None:
        """Look at one engine, and wake the tasks of its executions that need a step."""
        rows = self._at_engines.get(cluster_id)
        if rows is None:
            return
        async with self._look_places.place((rows[0].tenant_id,), cluster_id):
            rows = self._at_engines.get(cluster_id, ())  # a tick may have read them anew
            cluster = await self.rows.cluster(cluster_id)
            place, look = self._place(cluster), None
            if place is not None and place.cluster.status is not ClusterStatus.DELETING:
                look = await self._observer.look(place, rows)
        observed = self._observed(cluster, place, look)
        now = self._clock.seconds()
        for row in rows:
            if not isinstance(planner.plan(row, observed, now), Rest):
                sight = Sight(row=row, cluster=cluster, look=look)
                self._states.setdefault(row.id, State()).sight = sight
                self._tasks.wake(row.id)
            elif look is not None and look.outage is None:
                self._was_read(row.id)  # by any daemon: the engine's list shows the same

    def _was_read(self, id_: ExecutionId) -> None:
        if id_ in self._states:
            self._states[id_].unread_since = None

    def _place(self, cluster: Cluster | None) -> Place | None:
        return None if cluster is None else self.rows.place_on(cluster)

    def _observed(
        self,
        cluster: Cluster | None,
        place: Place | None,
        look: Look | None,
        is_read: bool = False,
    ) -> Observed:
        return Observed(
            cluster=cluster,
            user=None if place is None else place.endpoints.user,
            look=look,
            is_read=is_read,
            manual_deadline_s=self._settings.manual_deadline_s,
        )

    # ---- one execution ----

    def _crashed(self, id_: ExecutionId, count: int, incident: str, error: Exception) -> None:
        """Count failures: a bug must not keep an execution `Pending` for ever, a lost store may."""
        if count >= CRASHES and not isinstance(error, ServiceUnavailable):
            self._states.setdefault(id_, State()).incident = incident

    def _forget(self, id_: ExecutionId) -> None:
        self._states.pop(id_, None)

    async def _drive(self, id_: ExecutionId) -> float | None:
        """Do passes until the execution rests (None), or until it only waits (seconds)."""
        state = self._states.setdefault(id_, State())
        sight, state.sight = state.sight, None
        sight = sight or await self._sight(id_)
        while sight is not None:
            row, place = sight.row, None
            step: Step | None = planner.broken(row, state.incident)
            state.incident = ""
            if step is None:
                place = self._place(sight.cluster)
                observed = self._observed(sight.cluster, place, sight.look, sight.is_read)
                step = planner.plan(row, observed, self._clock.seconds())
            after = await self._passes.act(step, sight, place, state)
            match after:
                case Rest(wait_s=wait_s):
                    return self._rested(id_, wait_s)
                case Again():
                    sight = await self._sight(id_)
                case None:
                    break
                case _:
                    sight = evolve(sight, row=after, is_read=isinstance(step, ReadRecord))
        self._forget(id_)
        return None

    async def _sight(self, id_: ExecutionId) -> Sight | None:
        row, cluster = await self.rows.with_cluster(id_)
        return None if row is None else Sight(row=row, cluster=cluster)

    def _rested(self, id_: ExecutionId, wait_s: float | None) -> float | None:
        """Drop the memory of an execution when it holds nothing."""
        if self._states.get(id_) == State():
            self._forget(id_)
        return wait_s

    # ---- requests ----

    async def refresh(self, row: Execution) -> Execution:
        """Ask the engine about `row` now, and return the new row. Raises EngineError."""
        place = await self.rows.place(row)
        if place is None or lifecycle.is_over(row) or row.workflow_job_id is None:
            return row
        return await self._answered(row, place, self._performer.read(row, place))

    async def kill(self, row: Execution) -> Execution:
        """Kill `row` at its engine, read the record, return the new row. Raises EngineError.

        It waits while svcd submits the row; the caller limits the time.
        """
        while row.workflow_job_id is None and not lifecycle.is_over(row):
            self._tasks.wake(row.id)
            await sleep(self._clock, _MOMENT_S)
            now = await self.rows.find(row.id)
            if now is None:
                raise NotFound.of("job execution", row.id)
            row = now
        if lifecycle.is_over(row):
            return row
        place = await self.rows.place(row)
        if place is None:
            return await self._orphan(row, "the cluster was deleted") or row
        return await self._answered(row, place, self._performer.end(row, place))

    async def _answered(
        self, row: Execution, place: Place, answering: Coroutine[Any, Any, Answer]
    ) -> Execution:
        """Write the engine's answer. After an end the task tidies up.

        The answer of the write may be lost, so the task is woken in any case.
        """
        answer = await answering
        self._was_read(row.id)
        try:
            return await self._passes.absorb(row, place, answer) or row
        finally:
            self._tasks.wake(row.id)

    async def kill_all_of(self, cluster_id: ClusterId, how: str = "deleted") -> None:
        """Before a cluster's delete: kill its executions at the engine, and write `KILLED`.

        Bounded: svcd writes `KILLED` also when the engine does not answer, because its machines
        are deleted. how: "deleted", or the whole reason.
        """
        rows = await self.rows.of_cluster(cluster_id)
        alive = [row for row in rows if not lifecycle.is_over(row)]
        await self._performer.kill_all(alive)
        for row in alive:
            await self._orphan(row, f"cluster {cluster_id} was {how}")

    async def _orphan(self, row: Execution, why: str) -> Execution | None:
        """End `row`, whose cluster goes."""
        now = self._clock.seconds()
        return await self.rows.change(row.id, partial(planner.orphan, why=why, now=now))
