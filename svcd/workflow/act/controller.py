"""Follows executions from `Pending` to their end: row -> observe -> plan -> perform -> row.

One task per execution that is not at its engine yet, one loop for all that are: at each tick one
batch request per engine (200 ids a page), the full record only of those that changed. One task per
cluster asks the ResourceManager about steps of which nothing is heard; the tick never waits for it.
One task per ended execution tidies up. It decides nothing: see `svcd.workflow.decide`.

State is in the rows alone: after a restart the first tick finds everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.fencing import Alone, if_held
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId, ExecutionId
from svcd.model.job import Execution, ExecutionStatus, Failure
from svcd.ports import (
    Engine,
    EngineError,
    Fault,
    FileSystem,
    JobLine,
    Leases,
    ObjectStore,
    Probe,
    Store,
)
from svcd.settings import Workflow
from svcd.tasks import (
    Backoff,
    DeadlineExceeded,
    KeyedTasks,
    Loop,
    Parked,
    gather,
    sleep,
    with_deadline,
)
from svcd.workflow import document, failures
from svcd.workflow.act.launchers import Launchers
from svcd.workflow.act.perform import Performer
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.binaries import Binaries
from svcd.workflow.containers import Containers
from svcd.workflow.decide import lifecycle, planner, stalls, submission
from svcd.workflow.decide import record as records
from svcd.workflow.decide.clock_skew import Bounds
from svcd.workflow.decide.planner import Memory
from svcd.workflow.decide.steps import (
    Adopt,
    Again,
    End,
    Forget,
    RemoteStep,
    Rest,
    Retry,
    Step,
)
from svcd.workflow.engines import Engines
from svcd.workflow.failures import Code
from svcd.workflow.masking import masked_text

log = Logger()

PAGE: Final = 200
ENGINES_AT_ONCE: Final = 10
RECORDS_AT_ONCE: Final = 8
STARTS_AT_ONCE: Final = 20
ENDS_AT_ONCE: Final = 20
STALLS_AT_ONCE: Final = 5
CRASHES: Final = 8
"""Starts in a row that end in a bug before the execution is given up."""
SETTLE_S: Final = 3.0
"""After a kill the engine completes its record within this time; it is read once more then."""

_BACKOFF: Final = Backoff(first_s=1.0, most_s=30.0)
_UNLAUNCHED_A_TICK: Final = 20
_MOMENT_S: Final = 0.2
_KILL_ALL_S: Final = 15.0
_TIDY_S: Final = 20.0
_TIDY_AGAIN_S: Final = 30.0


class Controller:
    """Drives all executions.

    idle: called when an execution of a transient cluster has ended. noticed: called with a cluster
    when an execution begins to wait for something of it. access: the object store as the clusters'
    machines reach it. leases: svcd works only on what they hold; what a request asks for (refresh,
    kill) is done all the same, and the daemon that drives the execution is notified.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        object_store: ObjectStore,
        engines: Engines,
        probe: Probe,
        clock: IReactorTime,
        settings: Workflow,
        access: document.ObjectStoreAccess | None,
        idle: Callable[[], None],
        rng: random.Random,
        leases: Leases | None = None,
        noticed: Callable[[ClusterId], None] = lambda _: None,
    ) -> None:
        self._engine = engine
        self._engines = engines
        self._clock = clock
        self._settings = settings
        self._idle = idle
        self._rng = rng
        self._leases: Leases = leases or Alone()
        self.binaries = Binaries(store, object_store)
        self.containers = Containers(probe, clock)
        self.rows = Rows(store, engines, clock, self._leases, noticed)
        self._manager = ResourceManager(probe)
        self._performer = Performer(
            store=store,
            rows=self.rows,
            engine=engine,
            files=files,
            binaries=self.binaries,
            containers=self.containers,
            launchers=Launchers(probe, clock),
            clock=clock,
            access=access,
        )
        self._memory: dict[ClusterId, Memory] = {}
        self._stalled: dict[ClusterId, tuple[Place, Sequence[Execution]]] = {}
        self._incidents: dict[ExecutionId, str] = {}
        self._starting: set[ExecutionId] = set()  # they still write into their folders
        self._strangers: set[ExecutionId] = set()  # of other daemons, whose end was seen here
        self._stopping = False
        self._tidied = False
        self._ticks = Loop(clock, "execution status", settings.poll_s, self.tick)
        self._starts: KeyedTasks[ExecutionId] = KeyedTasks(
            clock,
            "execution start",
            self._start,
            limit=STARTS_AT_ONCE,
            rng=rng,
            failed=self._crashed,
            leases=self._leases,
            lease_key=self.rows.lease_of,
            parked=self._drop_incident,
        )
        self._ends: KeyedTasks[ExecutionId] = KeyedTasks(
            clock,
            "execution end",
            self._tidy,
            limit=ENDS_AT_ONCE,
            rng=rng,
            leases=self._leases,
            lease_key=self._lease_of_end,
            parked=self._strangers.discard,
        )
        self._stalls: KeyedTasks[ClusterId] = KeyedTasks(
            clock,
            "stalled steps",
            self._ask,
            limit=STALLS_AT_ONCE,
            leases=self._leases,
            parked=self._drop_stalled,
        )

    # ---- owner's side ----

    def start(self) -> None:
        """Begin; the first tick comes at once, starts of many executions are spread."""
        self._ticks.start()

    async def stop(self) -> None:
        """Park everything; nothing is lost."""
        self._stopping = True
        await self._ticks.stop()
        await self._stalls.stop()
        await self._starts.stop()
        await self._ends.stop()

    def wake(self, id_: ExecutionId | None = None) -> None:
        """Look at an execution soon, or at all of them."""
        if id_ is None:
            self._ticks.poke()
        else:
            self._starts.wake(id_)

    def notified(self, id_: ExecutionId, key: str) -> None:
        """Another daemon has written the row."""
        if self._leases.holds(key):
            self._starts.wake(id_)
            self._ticks.poke()

    def gained(self) -> None:
        """Leases were got: look at all that they are for, as after a start."""
        self._tidied = False
        self._ticks.poke()

    def forget(self) -> None:
        """Leases were lost: forget what is known of what they are for."""
        self._retain(self._leases.holds)

    def active(self) -> int:
        """Executions that are being started or tidied up; those that only run do not count."""
        return len({*self._starts.active(), *self._ends.active()})

    async def settled(self, id_: ExecutionId) -> None:
        """A moment later: gives a start that is under way the time to end."""
        self._starts.wake(id_)
        await sleep(self._clock, _MOMENT_S)

    # ---- the tick ----

    async def tick(self) -> None:
        """Start what is pending, read the status of what runs."""
        if not self._tidied:
            await self._find_untidy()
        rows = await self._believable(await self.rows.unfinished())
        due = planner.due(rows, self._clock.seconds())
        for id_ in due.ended:
            self._ends.wake(id_)  # its folder, then it is dropped
        for index, id_ in enumerate(due.starts):
            self._starts.wake(id_, self._rng.random() if index >= STARTS_AT_ONCE else 0.0)
        for id_ in due.orphans:
            await if_held(self._leases, id_, partial(self._orphan, id_, "the cluster was deleted"))
        self._retain(due.at_engines.__contains__)
        results = await gather(
            [partial(self._turn, each, rows) for each, rows in due.at_engines.items()],
            ENGINES_AT_ONCE,
        )
        _raise_first(results)

    def _retain(self, wanted: Callable[[ClusterId], bool]) -> None:
        """Forget all other clusters."""
        for cluster_id in [each for each in self._memory if not wanted(each)]:
            del self._memory[cluster_id]
        for cluster_id in [each for each in self._stalled if not wanted(each)]:
            del self._stalled[cluster_id]

    async def _believable(self, found: Sequence[Execution]) -> Sequence[Execution]:
        """`found`; those with times that cannot be are written anew: see `clock_skew`."""
        bounds = Bounds(self._clock.seconds())
        rows: list[Execution] = []
        for row in found:
            if bounds.believable(row) is row:
                rows.append(row)
                continue
            sound = await self.rows.change(row.id, bounds.believable)
            if sound is not None:
                rows.append(sound)
        return rows

    async def _find_untidy(self) -> None:
        """Folders of those that a former daemon may have seen end: what runs does not wait for it.

        With very many rows this can take longer than a statement may.
        """
        self._tidied = True
        try:
            found = await self.rows.untidy()
        except ServiceUnavailable as error:
            self._tidied = False
            log.warn("Folders that are left could not be looked for: {why}", why=error.message)
            return
        except BaseException:
            self._tidied = False
            raise
        for id_ in found:
            self._ends.wake(id_, SETTLE_S)

    async def _turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        await if_held(self._leases, cluster_id, partial(self._engine_turn, cluster_id, rows))

    async def _engine_turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        """One batch of questions to an engine, and what follows from its answers."""
        cluster = await self.rows.cluster(cluster_id)
        if cluster is None:
            await self._orphan_all(rows, f"cluster {cluster_id} was deleted")
            return
        if cluster.status is ClusterStatus.DELETING:
            return  # its delete kills them, see kill_all_of
        place = self.rows.place_on(cluster)
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
        memory = evolve(self._memory.get(cluster_id, Memory()), silent_since=None)
        steps, to_ask = stalls.consider(memory.steps, rows, now)
        memory = self._memory[cluster_id] = evolve(memory, steps=steps)
        if to_ask:
            self._stalled[cluster_id] = place, to_ask
            self._stalls.wake(cluster_id)
        most_s = self._settings.manual_deadline_s
        todo, others = [], []
        for row in rows:
            line = lines.get(row.workflow_job_id or "")
            if planner.needs_record(row, line, memory, now, most_s):
                todo.append(row)
            elif planner.is_unlaunched(row):
                others.append(row)
        # The list does not show how a step gets on that no machine has taken: read some records.
        todo += self._rng.sample(others, min(len(others), _UNLAUNCHED_A_TICK))
        results = await gather([partial(self._look, place, row) for row in todo], RECORDS_AT_ONCE)
        _raise_first(results)

    async def _lines(self, place: Place, rows: Sequence[Execution]) -> dict[str, JobLine]:
        """By the engine's job id. Raises EngineError."""
        found: dict[str, JobLine] = {}
        ids = [row.workflow_job_id for row in rows if row.workflow_job_id]
        for at in range(0, len(ids), PAGE):
            for line in await self._engine.lines(place.endpoints.engine, ids[at : at + PAGE]):
                found[line.id] = line
        return found

    async def _outage(
        self, cluster_id: ClusterId, rows: Sequence[Execution], error: EngineError
    ) -> None:
        """The engine of `rows` has not answered."""
        now = self._clock.seconds()
        memory = self._memory.get(cluster_id, Memory())
        found = planner.outage(memory, error.text, now, self._settings.unreachable_deadline_s)
        if memory.silent_since is None:
            log.warn("Engine of cluster {id} is silent: {why}", id=cluster_id, why=error.text)
        self._memory[cluster_id] = evolve(memory, silent_since=found.since)
        for row in rows:
            if now >= found.until:
                await self.rows.change(
                    row.id, partial(planner.without_engine, found=found, now=now)
                )
            elif planner.shows_outage(row, found, now):
                waits = partial(planner.waits_for_engine, found=found, now=now)
                await self.rows.change(row.id, waits)
        if now >= found.until:
            for row in rows:
                self._ends.wake(row.id, SETTLE_S)

    # ---- one execution at its engine ----

    async def _look(self, place: Place, row: Execution) -> None:
        """Bring one execution up to date; faults of the engine are left to the next tick."""
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

    def _overdue(self, cluster: Cluster, row: Execution) -> Failure | None:
        memory = self._memory.get(cluster.id, Memory())
        most_s = self._settings.manual_deadline_s
        return planner.overdue(row, memory, self._clock.seconds(), most_s)

    async def _condemn(self, place: Place, row: Execution, failure: Failure) -> None:
        """Kill it, with the reason written down first."""
        await self.rows.change(row.id, partial(planner.condemned, failure=failure))
        log.warn("Execution {id} is stuck, killing it: {why}", id=row.id, why=failure.text)
        await self._end(place, row)

    async def _end(self, place: Place, row: Execution) -> Execution | None:
        """Kill it and read what came of that. Raises EngineError, unless it has ended all the same:

        Oozie kills a job and answers with a fault when it cannot remove a folder of it then.
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
        """Read the engine's record and write what it says. Raises EngineError."""
        if row.workflow_job_id is None:
            return row
        try:
            news = await self._performer.news(row, row.workflow_job_id, place)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            self._ends.wake(row.id, SETTLE_S)
            return await self.rows.change(row.id, partial(planner.lost, now=self._clock.seconds()))
        if news is None:
            return row
        if news.status in lifecycle.TERMINAL:  # before the write, whose answer may be lost
            self._ends.wake(row.id, SETTLE_S)
        now, most_s = self._clock.seconds(), self._settings.manual_deadline_s
        absorbed = partial(planner.absorbed, news=news, now=now, manual_deadline_s=most_s)
        after = await self.rows.change(row.id, absorbed)
        if after is not None and after.status is not row.status:
            log.info("Execution {id} became {status}", id=row.id, status=after.status.value)
        if after is not None and lifecycle.is_over(after):
            self._ends.wake(row.id, SETTLE_S)
            if place.cluster.is_transient:
                self._idle()
        return after

    async def _orphan(self, id_: ExecutionId, why: str) -> Execution | None:
        now = self._clock.seconds()
        return await self.rows.change(id_, partial(planner.orphaned, why=why, now=now))

    async def _orphan_all(self, rows: Sequence[Execution], why: str) -> None:
        for row in rows:
            await self._orphan(row.id, why)

    # ---- requests ----

    async def refresh(self, row: Execution) -> Execution:
        """`row` after asking the engine now. Raises EngineError."""
        place = await self.rows.place(row)
        if place is None or lifecycle.is_over(row) or row.workflow_job_id is None:
            return row
        return self._seen(await self._absorb(place, row) or row)

    async def kill(self, row: Execution) -> Execution:
        """`row` after a kill at its engine and a look at what came of it. Raises EngineError."""
        place = await self.rows.place(row)
        if place is None:
            return await self._orphan(row.id, "the cluster was deleted") or row
        return self._seen(await self._end(place, row) or row)

    def _seen(self, row: Execution) -> Execution:
        """For a request. The daemon that sees the end of an execution tidies up after it."""
        if lifecycle.is_over(row) and not self.rows.is_ours(row):
            self._strangers.add(row.id)
            self._ends.wake(row.id, SETTLE_S)
        return row

    async def kill_all_of(self, cluster_id: ClusterId) -> None:
        """Before a cluster's delete: kill its executions at the engine, mark them `KILLED`.

        Bounded: what does not answer is marked all the same, its machines go away.
        """
        rows = await self.rows.of_cluster(cluster_id)
        alive = [row for row in rows if not lifecycle.is_over(row)]
        until = self._clock.seconds() + _KILL_ALL_S

        async def one(row: Execution) -> None:
            left = until - self._clock.seconds()
            place = await self.rows.place(row)
            if place is None or left <= 0:
                return
            kill = self._performer.kill(row.workflow_job_id, place)
            try:
                await with_deadline(self._clock, left, "kill", kill)
            except (DeadlineExceeded, EngineError) as error:
                log.warn("Execution {id} was not killed at its engine: {e}", id=row.id, e=error)

        placed = [row for row in alive if row.workflow_job_id is not None]
        _raise_first(await gather([partial(one, row) for row in placed], RECORDS_AT_ONCE))
        await self._orphan_all(alive, f"cluster {cluster_id} was deleted")

    # ---- one execution on its way to the engine ----

    def _crashed(self, id_: ExecutionId, count: int, incident: str, error: Exception) -> None:
        """A bug must not keep an execution `Pending` for ever; a store that is away does."""
        if count >= CRASHES and not isinstance(error, ServiceUnavailable):
            self._incidents[id_] = incident

    async def _start(self, id_: ExecutionId) -> float | None:
        incident = self._incidents.pop(id_, None)
        if incident is not None:
            text = f"svcd could not start the job, incident {incident}"
            failure = failures.failure(Code.INTERNAL, "start", text)
            now = self._clock.seconds()
            end = End(status=ExecutionStatus.FAILED, failure=failure)
            await self.rows.change(id_, partial(submission.ended, end=end, now=now))
            return None
        self._starting.add(id_)
        try:
            again = await self._passes(id_)
        finally:
            self._starting.discard(id_)
        row = await self.rows.find(id_)
        if row is not None and planner.is_to_tidy(row):
            self._ends.wake(id_, SETTLE_S)
        elif row is not None and row.workflow_job_id is not None and not lifecycle.is_over(row):
            place = await self.rows.place(row)
            if place is not None:
                await self._look(place, row)
        return again

    async def _passes(self, id_: ExecutionId) -> float | None:
        """Plan and perform until there is nothing to do (None) or only to wait (seconds)."""
        while True:
            row, cluster = await self.rows.with_cluster(id_)
            if row is None:
                return None
            place = None if cluster is None else self.rows.place_on(cluster)
            user = None if place is None else place.endpoints.user
            seen = submission.Seen(cluster=cluster, user=user)
            step = submission.plan(row, seen, self._clock.seconds())
            while place is not None and isinstance(step, RemoteStep):
                outcome = await self._performer.perform(step, row, place)
                now = self._clock.seconds()
                follows = submission.follow(row, step, outcome, now)
                if follows.move is not None:
                    moved = partial(lifecycle.submit_move, move=follows.move, now=now)
                    row = await self.rows.change(id_, moved) or row
                step = follows.step
            if not isinstance(step, Again):
                return await self._conclude(step, row, cluster)

    async def _conclude(self, step: Step, row: Execution, cluster: Cluster | None) -> float | None:
        """Write what a pass came to; seconds until the next one."""
        now = self._clock.seconds()
        match step:
            case Rest(wait_s=wait_s):
                return wait_s
            case Retry():
                return await self._retry(step, row, cluster)
            case End():
                await self.rows.change(row.id, partial(submission.ended, end=step, now=now))
                if step.failure is not None:
                    code = step.failure.code
                    log.info("Execution {id} failed to start: {code}", id=row.id, code=code)
            case Adopt(job_id=job_id):
                adopted = partial(submission.adopted, job_id=job_id, now=now)
                await self.rows.change(row.id, adopted)
                if lifecycle.is_over(row):
                    log.warn(
                        "Execution {id} had been given up, killed {job}", id=row.id, job=job_id
                    )
                else:
                    log.info("Execution {id} was submitted as {job}", id=row.id, job=job_id)
            case Forget():
                await self.rows.change(row.id, partial(submission.forgotten, now=now))
            case _:
                raise AssertionError(f"{step} needs an engine, and there is none")
        return None

    async def _retry(self, retry: Retry, row: Execution, cluster: Cluster | None) -> float | None:
        """After a passing fault; seconds until the next try."""
        now, tries = self._clock.seconds(), row.attempts + 1
        delay_s = max(retry.least_s, _BACKOFF.delay_s(tries, self._rng))
        until = submission.last_try(row, cluster, self._settings.submit_deadline_s, now)
        retried = partial(submission.retried, retry=retry, delay_s=delay_s, until=until, now=now)
        await self.rows.change(row.id, retried)
        goes_on = submission.goes_on(row, delay_s, until, now)
        if not lifecycle.is_over(row):
            log.warn(
                "Execution {id} could not be started, try {n}: {why}",
                id=row.id,
                n=tries,
                why=retry.text,
            )
            if not goes_on:
                log.info("Execution {id} failed to start: {code}", id=row.id, code=retry.code)
        elif not goes_on:
            log.error(
                "Execution {id} was given up, and its engine cannot be asked: a job of it may run"
                " there unwatched: {why}",
                id=row.id,
                why=retry.text,
            )
        return delay_s if goes_on else None

    def _drop_incident(self, id_: ExecutionId) -> None:
        self._incidents.pop(id_, None)

    # ---- steps of which nothing is heard ----

    def _drop_stalled(self, cluster_id: ClusterId) -> None:
        self._stalled.pop(cluster_id, None)

    async def _ask(self, cluster_id: ClusterId) -> None:
        """Ask the ResourceManager, and write what that means for each row."""
        handed = self._stalled.pop(cluster_id, None)
        if handed is None:
            return
        place, rows = handed
        action = stalls.launched(records.stored(rows[0].record))
        console = "" if action is None else action.console_url
        metrics = await self._manager.metrics(place.cluster, place.endpoints, console)
        memory = self._memory.get(cluster_id, Memory())
        steps = stalls.answered(memory.steps, metrics)
        self._memory[cluster_id] = evolve(memory, steps=steps)
        if not stalls.is_believed(steps, metrics):
            return
        now = self._clock.seconds()
        for row in rows:
            known = records.stored(row.record)
            found = stalls.verdict(metrics, known)
            if not stalls.is_news(row.waiting, found):
                continue
            if found.failure is not None:  # YARN may quote the programs of a job
                text = masked_text(found.failure.text, await self.rows.secrets(row))
                found = evolve(found, failure=evolve(found.failure, text=text))
            judged = partial(
                stalls.judged,
                asked=stalls.step_of(known),
                found=found,
                now=now,
                deadline_s=self._settings.unreachable_deadline_s,
            )
            await self.rows.change(row.id, judged)

    # ---- after an end ----

    async def _lease_of_end(self, id_: ExecutionId) -> str | None:
        """None: the end was seen here for a request, and needs no lease."""
        key = await self.rows.lease_of(id_)
        if key is not None and id_ in self._strangers and not self._leases.holds(key):
            return None
        return key

    async def _tidy(self, id_: ExecutionId) -> float | None:
        """The engine's last word on it is kept, and its folder removed; safe to repeat."""
        row = await self.rows.find(id_)
        stranger = id_ in self._strangers
        self._strangers.discard(id_)
        if row is None or not planner.is_to_tidy(row) or id_ in self._starting:
            return None
        place = await self.rows.place(row)
        if place is not None and place.cluster.status is not ClusterStatus.DELETING:
            tidy = self._performer.tidy(row, place)
            try:
                await with_deadline(self._clock, _TIDY_S, "cleanup", tidy)
            except (DeadlineExceeded, EngineError) as error:
                if not planner.leaves_folder(row, self._clock.seconds()):
                    if stranger:
                        self._strangers.add(id_)
                    return _TIDY_AGAIN_S
                log.warn("Folder of execution {id} was not removed: {why}", id=id_, why=error)
        await self.rows.change(id_, planner.tidied)
        return None


def _raise_first(results: Sequence[object]) -> None:
    """A bug in one piece of work is raised after all others were done."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Parked):
            raise result
