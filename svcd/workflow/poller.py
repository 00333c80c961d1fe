"""Follows executions from `Pending` to their end, and carries out cancels and deletes.

One task per execution that is not at the engine yet (`starting`), one loop for all that are: at
each tick one batch request per engine (200 ids a page), the full record only of those that changed.
State is in the rows alone: after a restart the first tick finds everything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.fencing import Alone
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId, ExecutionId, Timestamp, seconds_of, timestamp
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
    Tx,
    lease_key,
)
from svcd.settings import Workflow
from svcd.tasks import DeadlineExceeded, KeyedTasks, Loop, Parked, gather, sleep, with_deadline
from svcd.workflow import document, failures, lifecycle, quiet
from svcd.workflow.binaries import Binaries
from svcd.workflow.changes import Changes
from svcd.workflow.containers import Containers
from svcd.workflow.endings import Endings
from svcd.workflow.engines import Endpoints, Engines
from svcd.workflow.failures import Code
from svcd.workflow.launchers import Launchers
from svcd.workflow.masking import masked, masked_text
from svcd.workflow.quiet import Quiet
from svcd.workflow.silence import Silence
from svcd.workflow.stamps import Bounds
from svcd.workflow.starting import Starter
from svcd.workflow.stuck import failure_of_stuck, stamp_of
from svcd.workflow.waiting import Story, of_record
from svcd.workflow.whereabouts import Whereabouts

log = Logger()

PAGE: Final = 200
ENGINES_AT_ONCE: Final = 10
RECORDS_AT_ONCE: Final = 8
STARTS_AT_ONCE: Final = 20
CRASHES: Final = 8
"""Starts in a row that end in a bug before the execution is given up."""
_DIAGNOSIS_S: Final = 15.0
_UNLAUNCHED_A_TICK: Final = 20
_MOMENT_S: Final = 0.2
_KILL_ALL_S: Final = 15.0


class Poller:
    """The running part of the workflow room.

    idle: told when an execution of a transient cluster has ended. noticed: told of a cluster when
    an execution begins to wait for something of it. access: the object store as the
    clusters' machines reach it. leases: only what they hold is worked on; what a request asks for
    (refresh, kill) is done all the same, and told to the daemon that works on it.
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
        self._store = store
        self._engine = engine
        self._engines = engines
        self._clock = clock
        self._settings = settings
        self._idle = idle
        self._rng = rng
        self.binaries = Binaries(store, object_store)
        self.containers = Containers(probe, clock)
        self._launchers = Launchers(probe, clock)
        self._leases: Leases = leases or Alone()
        self._changes = Changes(store, self.announce)
        self._whereabouts = Whereabouts(store, engines)
        self._incidents: dict[ExecutionId, str] = {}
        self._begun: set[ExecutionId] = set()
        self._stopping = False
        self._tidied = False
        self._story = Story(store, clock, self._changes, noticed)
        self._silence = Silence(clock, self._story, settings.unreachable_deadline_s)
        self._quiet = Quiet(
            probe=probe,
            clock=clock,
            story=self._story,
            whereabouts=self._whereabouts,
            leases=self._leases,
            deadline_s=settings.unreachable_deadline_s,
        )
        starter = Starter(
            store=store,
            engine=engine,
            files=files,
            binaries=self.binaries,
            engines=engines,
            clock=clock,
            settings=settings,
            access=access,
            rng=rng,
            story=self._story,
        )
        self._starter = starter
        self._starts: KeyedTasks[ExecutionId] = KeyedTasks(
            clock,
            "execution start",
            self._start,
            limit=STARTS_AT_ONCE,
            rng=rng,
            failed=self._crashed,
        )
        self._endings = Endings(
            store=store,
            engine=engine,
            files=files,
            whereabouts=self._whereabouts,
            changes=self._changes,
            clock=clock,
            rng=rng,
            leases=self._leases,
            starting=self._begun,
        )
        self._ticks = Loop(clock, "execution status", settings.poll_s, self.tick)

    def start(self) -> None:
        """Begin; the first tick comes at once, starts of many executions are spread."""
        self._ticks.start()

    async def stop(self) -> None:
        """Park everything; nothing is lost."""
        self._stopping = True
        await self._ticks.stop()
        await self._quiet.stop()
        await self._starts.stop()
        await self._endings.stop()

    def wake(self, id_: ExecutionId | None = None) -> None:
        """Look at an execution soon, or at all of them."""
        if id_ is None:
            self._ticks.poke()
        else:
            self._starts.wake(id_)

    async def announce(self, tx: Tx, row: Execution) -> None:
        """In the transaction that writes `row`: the daemon that works on it will look at it."""
        key = lease_key(row)
        if not self._leases.holds(key):
            await tx.tell(f"execution {row.id} {key}")

    def told(self, id_: ExecutionId, key: str) -> None:
        """Another daemon has written the row."""
        if self._leases.holds(key):
            self._starts.wake(id_)
            self._ticks.poke()

    def gained(self) -> None:
        """Leases were got: look at all that they are for, as after a start."""
        self._tidied = False
        self._ticks.poke()

    def forget(self) -> None:
        """Leases were lost: what is remembered of what they are for counts no more."""
        for known in (self._silence, self._quiet):
            known.retain(self._leases.holds)

    def active(self) -> int:
        """Executions that are being started or tidied up; those that only run do not count."""
        return len({*self._starts.active(), *self._endings.active()})

    async def settled(self, id_: ExecutionId) -> None:
        """A moment later: gives a start that is under way the time to end."""
        self._starts.wake(id_)
        await sleep(self._clock, _MOMENT_S)

    # ---- the tick ----

    async def tick(self) -> None:
        """Start what is pending, read the status of what runs."""
        if not self._tidied:
            await self._find_untidy()
        mine = self._leases.holds
        found = await self._store.read(lambda tx: tx.executions.unfinished(mine))
        now = self._clock.seconds()
        rows = await self._believable(found, Bounds(now))
        at_engines: dict[ClusterId, list[Execution]] = {}
        pending = 0
        for row in rows:
            if lifecycle.is_over(row) and not row.submitting:
                self._endings.wake(row.id, 0.0)  # its folder, then it is dropped
            elif row.workflow_job_id is None:
                due = row.retry_at is None or seconds_of(row.retry_at) <= now
                if due or row.cancel_requested:
                    pending += 1
                    spread = self._rng.random() if pending > STARTS_AT_ONCE else 0.0
                    self._starts.wake(row.id, spread)
            elif row.cluster_id is None:
                await self._leases.drive(row.id, self._gone(row.id, "the cluster was deleted"))
            else:
                at_engines.setdefault(row.cluster_id, []).append(row)
        for known in (self._silence, self._quiet):
            known.retain(at_engines.__contains__)
        results = await gather(
            [
                partial(self._driven_turn, cluster_id, placed)
                for cluster_id, placed in at_engines.items()
            ],
            ENGINES_AT_ONCE,
        )
        _raise_first(results)

    async def _believable(self, found: Sequence[Execution], bounds: Bounds) -> Sequence[Execution]:
        """`found`, and those with times that cannot be are written anew; see `stamps`."""
        if all(bounds.believable(row) is row for row in found):
            return found
        rows: list[Execution] = []
        for row in found:
            if bounds.believable(row) is row:
                rows.append(row)
                continue
            sound = await self._changes.apply(row.id, bounds.believable)
            if sound is not None:
                rows.append(sound)
        return rows

    async def _find_untidy(self) -> None:
        """Folders of those that a former daemon may have seen end: what runs does not wait for it.

        Of very many rows it can take longer than a statement may.
        """
        self._tidied = True
        try:
            found = await self._store.read(lambda tx: tx.executions.untidy())
        except ServiceUnavailable as error:
            self._tidied = False
            log.warn("Folders that are left could not be looked for: {why}", why=error.message)
            return
        except BaseException:
            self._tidied = False
            raise
        for id_ in found:
            self._endings.wake(id_)

    async def _driven_turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        await self._leases.drive(cluster_id, self._engine_turn(cluster_id, rows))

    async def _engine_turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        cluster = await self._store.read(lambda tx: tx.clusters.find(cluster_id))
        if cluster is None:
            for row in rows:
                await self._gone(row.id, f"cluster {cluster_id} was deleted")
            return
        if cluster.status is ClusterStatus.DELETING:
            return  # its delete kills them, see kill_all_of
        endpoints = self._engines.endpoints(cluster)
        if endpoints is None:
            for row in rows:
                await self._gone(row.id, "the cluster lost its workflow engine")
            return
        try:
            lines: dict[str, JobLine] = {}
            ids = [row.workflow_job_id for row in rows if row.workflow_job_id]
            for at in range(0, len(ids), PAGE):
                for line in await self._engine.lines(endpoints.engine, ids[at : at + PAGE]):
                    lines[line.id] = line
        except EngineError as error:
            if not self._stopping:
                for row in await self._silence.heard(cluster_id, rows, error):
                    self._endings.wake(row.id)
            return
        self._silence.broken(cluster_id)
        self._quiet.consider(cluster, endpoints, rows)
        todo = [row for row in rows if self._needs_look(row, lines.get(row.workflow_job_id or ""))]
        todo += self._unlaunched([row for row in rows if row not in todo])
        results = await gather(
            [partial(self._look, cluster, endpoints, row) for row in todo], RECORDS_AT_ONCE
        )
        _raise_first(results)

    def _needs_look(self, row: Execution, line: JobLine | None) -> bool:
        if line is None or row.cancel_requested or row.delete_requested:
            return True
        if self._stuck(row) is not None or _needs_word(row):
            return True
        known = row.record.get("status"), row.record.get("lastModTime")
        return (line.status, line.last_modified) != known

    def _unlaunched(self, rows: Sequence[Execution]) -> Sequence[Execution]:
        """Some of those whose step no machine has taken: the list does not tell how that goes."""
        found = [row for row in rows if _held_up(row)]
        return self._rng.sample(found, min(len(found), _UNLAUNCHED_A_TICK))

    async def _look(self, cluster: Cluster, endpoints: Endpoints, row: Execution) -> None:
        """Bring one execution up to date; faults of the engine are left to the next tick."""
        if self._stopping:
            return
        try:
            wanted = not (row.cancel_requested or row.delete_requested)
            work = self._absorb if wanted else self._end
            after = await work(cluster, endpoints, row)
            failure = None if after is None else self._stuck(after)
            if after is not None and failure is not None:
                await self._give_up(cluster, endpoints, after, failure)
        except EngineError as error:
            log.warn("Execution {id} could not be read: {why}", id=row.id, why=error.text)

    # ---- one execution ----

    async def refresh(self, row: Execution) -> Execution:
        """`row` after asking the engine now. Raises EngineError."""
        place = await self._whereabouts.of(row)
        if place is None or lifecycle.is_over(row) or row.workflow_job_id is None:
            return row
        cluster, endpoints = place
        return self._seen(await self._absorb(cluster, endpoints, row) or row)

    async def kill(self, row: Execution) -> Execution:
        """`row` after a kill at its engine and a look at what came of it. Raises EngineError."""
        place = await self._whereabouts.of(row)
        if place is None:
            return await self._gone(row.id, "the cluster was deleted") or row
        cluster, endpoints = place
        return self._seen(await self._end(cluster, endpoints, row) or row)

    def _seen(self, row: Execution) -> Execution:
        """For a request. Who sees the end of an execution tidies up after it."""
        if lifecycle.is_over(row) and not self._leases.holds(lease_key(row)):
            self._endings.seen(row.id)
        return row

    async def kill_all_of(self, cluster_id: ClusterId) -> None:
        """Before a cluster's delete: kill its executions at the engine, mark them `KILLED`.

        Bounded: what does not answer is marked all the same, its machines go away.
        """
        rows = await self._store.read(lambda tx: tx.executions.of_cluster(cluster_id))
        alive = [row for row in rows if not lifecycle.is_over(row)]
        placed = [row for row in alive if row.workflow_job_id is not None]

        until = self._clock.seconds() + _KILL_ALL_S

        async def one(row: Execution) -> None:
            left = until - self._clock.seconds()
            place = await self._whereabouts.of(row)
            if place is None or left <= 0:
                return
            try:
                await with_deadline(self._clock, left, "kill", self._kill(place[1], row))
            except (DeadlineExceeded, EngineError) as error:
                log.warn("Execution {id} was not killed at its engine: {e}", id=row.id, e=error)

        _raise_first(await gather([partial(one, row) for row in placed], RECORDS_AT_ONCE))
        for row in alive:
            await self._gone(row.id, f"cluster {row.cluster_id} was deleted")

    async def _end(
        self, cluster: Cluster, endpoints: Endpoints, row: Execution
    ) -> Execution | None:
        """Kill it and read what came of that. Raises EngineError, unless it has ended all the same:

        Oozie kills a job and answers with a fault when it cannot remove a folder of it then.
        """
        try:
            await self._kill(endpoints, row)
        except EngineError:
            after = await self._absorb(cluster, endpoints, row)
            if after is None or lifecycle.is_over(after):
                return after
            raise
        return await self._absorb(cluster, endpoints, row)

    async def _kill(self, endpoints: Endpoints, row: Execution) -> None:
        """Safe to repeat; a job the engine does not know is no fault."""
        if row.workflow_job_id is None:
            return
        try:
            await self._engine.kill(endpoints.engine, row.workflow_job_id)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise

    async def _absorb(
        self, cluster: Cluster, endpoints: Endpoints, row: Execution
    ) -> Execution | None:
        """Read the engine's record and write what it says. Raises EngineError."""
        if row.workflow_job_id is None:
            return row
        try:
            raw = await self._engine.record(endpoints.engine, row.workflow_job_id)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            return await self._lost(row)
        status = lifecycle.status_of(raw.get("status"))
        if status is None:
            log.warn("Engine answered status {s} for {id}", s=raw.get("status"), id=row.id)
            return row
        diagnosis = ""
        bad = status in (ExecutionStatus.KILLED, ExecutionStatus.FAILED)
        lost = await self._launchers.settle(cluster, endpoints, raw) if bad else None
        if bad and lost is None and not row.cancel_requested and failures.is_silent(raw):
            diagnosis = await self._diagnosis(cluster, endpoints, raw)
        secrets = await self._whereabouts.secrets(row)
        record, diagnosis = masked(raw, secrets), masked_text(diagnosis, secrets)
        now = self._now()
        failure = failures.of_record(record, diagnosis) if bad else None
        if lost is not None:
            failure = evolve(lost, text=masked_text(lost.text, secrets))

        def change(current: Execution) -> Execution:
            cancelled = status is ExecutionStatus.KILLED and current.cancel_requested
            told = current.failure or (None if cancelled else failure)
            after = lifecycle.advance(
                current,
                status,
                now,
                record=record,
                started=stamp_of(record.get("startTime")),
                ended=stamp_of(record.get("endTime")),
                failure=told,
            )
            if lifecycle.is_over(after):
                return after
            if status is ExecutionStatus.SUSPENDED and failures.gave_up(record) is not None:
                after = evolve(after, suspended_since=after.suspended_since or now)
            most = self._settings.manual_deadline_s
            waiting = of_record(after, after.status, record, now, most)
            return evolve(after, waiting=waiting or quiet.kept(current, record))

        if status in lifecycle.TERMINAL:  # before the write, whose answer may be lost
            self._endings.wake(row.id)
        after = await self._story.apply(row.id, change)
        if after is not None and after.status is not row.status:
            log.info("Execution {id} became {status}", id=row.id, status=after.status.value)
        if after is not None and lifecycle.is_over(after):
            self._endings.wake(row.id)
            if cluster.is_transient:
                self._idle()
        return after

    async def _diagnosis(
        self, cluster: Cluster, endpoints: Endpoints, record: Mapping[str, object]
    ) -> str:
        return await self.containers.diagnosis(cluster, endpoints, record, _DIAGNOSIS_S)

    async def _lost(self, row: Execution) -> Execution | None:
        """The engine answers, and does not know the job."""
        now = self._now()
        text = f"the engine does not know workflow {row.workflow_job_id} any more"
        failure = failures.failure(Code.ENGINE_LOST_JOB, "workflow", text)

        def change(current: Execution) -> Execution:
            if current.cancel_requested:
                return lifecycle.advance(current, ExecutionStatus.KILLED, now)
            return lifecycle.advance(current, ExecutionStatus.FAILED, now, failure=failure)

        self._endings.wake(row.id)
        return await self._story.apply(row.id, change)

    async def _gone(self, id_: ExecutionId, why: str) -> Execution | None:
        """The cluster went away under the execution: `KILLED`, with the reason."""
        now = self._now()
        failure = failures.failure(Code.CLUSTER_GONE, "cluster", why)

        def change(current: Execution) -> Execution:
            told = None if current.cancel_requested else failure
            return lifecycle.advance(current, ExecutionStatus.KILLED, now, failure=told)

        return await self._story.apply(id_, change)

    def _stuck(self, row: Execution) -> Failure | None:
        """Why the execution would last for ever, once it has done so for long enough."""
        now, most = self._clock.seconds(), self._settings.manual_deadline_s
        return failure_of_stuck(row, now, most) or self._quiet.outlasted(row)

    async def _give_up(
        self, cluster: Cluster, endpoints: Endpoints, row: Execution, failure: Failure
    ) -> None:
        """Kill it, with the reason written down first."""

        def change(current: Execution) -> Execution:
            return current if lifecycle.is_over(current) else evolve(current, failure=failure)

        await self._changes.apply(row.id, change)
        log.warn("Execution {id} is stuck, killing it: {why}", id=row.id, why=failure.text)
        await self._end(cluster, endpoints, row)

    # ---- background work of single executions ----

    def _crashed(self, id_: ExecutionId, count: int, incident: str, error: Exception) -> None:
        """A bug must not keep an execution `Pending` for ever; a store that is away does."""
        if count >= CRASHES and not isinstance(error, ServiceUnavailable):
            self._incidents[id_] = incident

    async def _start(self, id_: ExecutionId) -> float | None:
        row = await self._store.read(lambda tx: tx.executions.find(id_))
        if row is None or not self._leases.holds(lease_key(row)):
            self._incidents.pop(id_, None)
            return None
        return await self._leases.drive(lease_key(row), self._begin(id_))

    async def _begin(self, id_: ExecutionId) -> float | None:
        incident = self._incidents.pop(id_, None)
        if incident is not None:
            text = f"svcd could not start the job, incident {incident}"
            await self._starter.fail(id_, failures.failure(Code.INTERNAL, "start", text))
            return None
        self._begun.add(id_)
        try:
            again = await self._starter.step(id_)
        finally:
            self._begun.discard(id_)
        row = await self._store.read(lambda tx: tx.executions.find(id_))
        if row is not None and lifecycle.is_over(row) and not row.submitting:
            self._endings.wake(id_)
        elif row is not None and row.workflow_job_id is not None and not lifecycle.is_over(row):
            place = await self._whereabouts.of(row)
            if place is not None:
                await self._look(*place, row)
        return again

    def _now(self) -> Timestamp:
        return timestamp(self._clock.seconds())


def _held_up(row: Execution) -> bool:
    """Whether a step waits for the cluster, as the engine has told when it could be asked."""
    silent = row.waiting is not None and row.waiting.code == Code.ENGINE_UNREACHABLE
    running = row.status is ExecutionStatus.RUNNING and not silent
    return running and failures.unlaunched(row.record) is not None


def _needs_word(row: Execution) -> bool:
    """Whether the engine's record may end what the row waits for."""
    return row.waiting is not None and not _held_up(row) and not quiet.is_told(row)


def _raise_first(results: Sequence[object]) -> None:
    """A bug in one piece of work is told after all others were done."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Parked):
            raise result
