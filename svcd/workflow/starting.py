"""Brings a `Pending` execution to the engine: stage its files, write the definition, submit once.

Note: submitted exactly once. `submitting` is written before the submit call. The engine keeps our
execution id as its job's external id; so whenever the flag is found set, whatever happened in
between (time-out, lost answer, restart), nothing is sent again before `doubt` has settled what
became of the submit. It is given `DOUBT_S` to arrive before the engine is asked at all.

Every attempt is safe to repeat. A passing fault is retried with back-off until `submit_deadline_s`
after the cluster became Active, and shown as `waiting`; then the execution fails with the last
reason.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ExecutionId, Timestamp, seconds_of, timestamp
from svcd.model.job import (
    DataSource,
    Doubt,
    Execution,
    ExecutionStatus,
    Failure,
    Job,
    JobBinary,
    JobConfigs,
    JobType,
)
from svcd.model.redaction import shown_url
from svcd.model.secret import Secret
from svcd.model.template import Configs
from svcd.ports import CloudError, Engine, EngineError, Fault, FileSystem, Store, Tx
from svcd.settings import Workflow
from svcd.tasks import Backoff
from svcd.workflow import document, failures, lifecycle
from svcd.workflow.addresses import addresses_of
from svcd.workflow.binaries import Binaries, library_name
from svcd.workflow.changes import Changes
from svcd.workflow.doubt import WATCH_S, Doubts, StillOpen
from svcd.workflow.engines import Endpoints, Engines
from svcd.workflow.failures import Code
from svcd.workflow.masking import masked_text
from svcd.workflow.waiting import Story, waiting_for

log = Logger()

DOUBT_S: Final = 10.0
"""Time between a submit whose fate is unknown and the question whether it arrived."""

SLOW_DOUBT_S: Final = 60.0
"""The same after a submit that was not answered in its time: the engine is slow, not gone."""

_BACKOFF: Final = Backoff(first_s=1.0, most_s=30.0)
_IN_LIB: Final = frozenset({JobType.JAR, JobType.MAP_REDUCE, JobType.JAVA, JobType.PIG})


@frozen(kw_only=True)
class Material:
    """The rows an execution is made of."""

    job: Job
    mains: tuple[JobBinary, ...]
    libs: tuple[JobBinary, ...]
    input: DataSource | None
    output: DataSource | None


@frozen
class _Target:
    """Where an execution is staged. machines: see FileSystem.write."""

    endpoints: Endpoints
    machines: Mapping[str, str]
    folder: str


class _Broken(Exception):
    """The execution cannot be started, now or ever: args[0] is the Failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class _Later(Exception):
    """Not now: a passing fault. code: if the deadline passes. least_s: to wait at least."""

    def __init__(self, code: Code, step: str, text: str, least_s: float = 0.0) -> None:
        super().__init__(text)
        self.code = code
        self.step = step
        self.text = text
        self.least_s = least_s


class Starter:
    """Starts executions. `step` is called by one task per execution."""

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        binaries: Binaries,
        engines: Engines,
        clock: IReactorTime,
        settings: Workflow,
        access: document.ObjectStoreAccess | None,
        rng: random.Random,
        story: Story,
    ) -> None:
        self._store = store
        self._engine = engine
        self._files = files
        self._binaries = binaries
        self._engines = engines
        self._clock = clock
        self._settings = settings
        self._access = access
        self._rng = rng
        self._changes = Changes(store)
        self._doubts = Doubts(engine, files, self._changes, clock)
        self._story = story

    async def step(self, id_: ExecutionId) -> float | None:
        """Try to start; seconds until the next try, None when there is nothing to do now."""

        async def look(tx: Tx) -> tuple[Execution | None, Cluster | None]:
            row = await tx.executions.find(id_)
            if row is None or row.cluster_id is None:
                return row, None
            return row, await tx.clusters.find(row.cluster_id)

        row, cluster = await self._store.read(look)
        if row is None or row.workflow_job_id is not None:
            return None
        now = self._clock.seconds()
        if lifecycle.is_over(row):
            return await self._watch(row, cluster) if row.submitting else None
        if row.retry_at is not None and not row.cancel_requested:
            wait = seconds_of(row.retry_at) - now
            if wait > 0:
                return wait
        try:
            await self._try(row, cluster)
        except _Broken as broken:
            await self.fail(id_, broken.failure)
            return None
        except _Later as later:
            return await self._retry(row, cluster, later)
        return None

    async def _try(self, row: Execution, cluster: Cluster | None) -> None:
        """One attempt. Raises _Broken and _Later; other exceptions are bugs."""
        wanted = not (row.cancel_requested or row.delete_requested)
        if not row.submitting and not wanted:
            await self._end(row.id, ExecutionStatus.KILLED)
            return
        if cluster is None:
            text = "the cluster was deleted before the job could start"
            raise _Broken(failures.failure(Code.CLUSTER_GONE, "start", text))
        if cluster.status is ClusterStatus.DELETING:
            await self._end(row.id, ExecutionStatus.KILLED)
            return
        if cluster.status is ClusterStatus.ERROR and not row.submitting:
            told = f"cluster {cluster.name} is in Error: {cluster.status_description}"
            raise _Broken(failures.failure(Code.CLUSTER_FAILED, "start", told))
        if cluster.status is not ClusterStatus.ACTIVE and not row.submitting:
            return
        endpoints = self._engines.endpoints(cluster)
        if endpoints is None:
            text = f"cluster {cluster.name} has no workflow engine"
            raise _Broken(failures.failure(Code.NO_ENGINE, "start", text))
        if row.submitting:
            waits = row.retry_at is not None and seconds_of(row.retry_at) > self._clock.seconds()
            if not await self._settled(endpoints, row, asked_early=waits):
                return
            if not wanted:
                await self._end(row.id, ExecutionStatus.KILLED)
                return
            again = await self._changes.apply(row.id, _clear)
            if again is None or lifecycle.is_over(again):
                return
            row = again
        material = await self._store.read(lambda tx: gather_material(tx, row))
        folder = f"/user/{endpoints.user}/svcd/{row.id}"
        if row.submits:
            folder = f"{folder}-{row.submits + 1}"
        work = work_of(row, material, self._access, cluster)
        try:
            definition = document.workflow(work)
            properties = document.properties(work, endpoints, folder)
        except document.DocumentError as error:
            failure = failures.failure(Code.DOCUMENT_REFUSED, "definition", str(error))
            raise _Broken(failure) from None
        try:
            if not row.staged or row.workflow_dir != folder:
                await self._changes.apply(row.id, lambda r: evolve(r, workflow_dir=folder))
                target = _Target(endpoints, addresses_of(cluster, endpoints), folder)
                await self._stage(target, row, material, definition)
            await self._submit(endpoints, row.id, folder, properties)
        except _Broken as broken:
            text = masked_text(broken.failure.text, _secrets(row, material))
            raise _Broken(evolve(broken.failure, text=text)) from None
        except _Later as later:
            text = masked_text(later.text, _secrets(row, material))
            raise _Later(later.code, later.step, text, later.least_s) from None

    async def _settled(self, endpoints: Endpoints, row: Execution, *, asked_early: bool) -> bool:
        """True: there is no job and will be none. False: it was found, or it is too early to say.

        asked_early: the submit has its time still; a job that is there already is taken all the
        same. Raises _Later.
        """
        try:
            if asked_early:
                found = await self._engine.find(endpoints.engine, row.id)
                if found is None:
                    return False
            else:
                found = await self._doubts.settle(endpoints, row)
        except StillOpen as open_:
            text, least_s = open_.text, open_.least_s
            raise _Later(Code.ENGINE_UNREACHABLE, "submit", text, least_s) from None
        except EngineError as error:
            raise _Later(Code.ENGINE_UNREACHABLE, "submit", error.text) from None
        if found is None:
            return True
        if row.doubt is not None and row.doubt.fenced_at is not None:
            await self._kill(endpoints, found)
            text = f"the engine took the submit too late ({found}, killed: its files had gone)"
            raise _Broken(failures.failure(Code.ENGINE_UNREACHABLE, "submit", text))
        await self._started(row.id, found)
        return False

    async def _kill(self, endpoints: Endpoints, job_id: str) -> None:
        """Raises _Later."""
        try:
            await self._engine.kill(endpoints.engine, job_id)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise _Later(Code.ENGINE_UNREACHABLE, "submit", error.text) from None

    async def _watch(self, row: Execution, cluster: Cluster | None) -> float | None:
        """Kill what appears of an execution that was given up in doubt. Seconds until the next try.

        See the note of `doubt`.
        """
        now = self._clock.seconds()
        until = None if row.doubt is None else row.doubt.watch_until
        left = 0.0 if until is None else seconds_of(until) - now
        wait = 0.0 if row.retry_at is None else seconds_of(row.retry_at) - now
        if wait > 0:
            return wait
        endpoints = None if cluster is None else self._engines.endpoints(cluster)
        if cluster is None or cluster.status is ClusterStatus.DELETING or endpoints is None:
            await self._changes.apply(row.id, _clear)
            return None
        try:
            found = await self._doubts.settle(endpoints, row)
            if found is None:
                await self._changes.apply(row.id, _clear)
                return None
            await self._kill(endpoints, found)
            log.warn("Execution {id} had been given up, killed {job}", id=row.id, job=found)
            known = evolve(row, workflow_job_id=found)
        except (StillOpen, _Later) as open_:
            known = row
            if left > 0:
                attempts = row.attempts + 1
                delay = max(_BACKOFF.delay_s(attempts, self._rng), open_.least_s)
                again = timestamp(now + delay)
                await self._changes.apply(
                    row.id, lambda r: evolve(r, attempts=attempts, retry_at=again)
                )
                return delay
            log.error(
                "Execution {id} was given up, and its engine cannot be asked: a job of it may run"
                " there unwatched: {why}",
                id=row.id,
                why=open_.text,
            )
        await self._changes.apply(
            row.id,
            lambda r: evolve(
                r,
                workflow_job_id=known.workflow_job_id,
                submitting=False,
                doubt=None,
                retry_at=None,
            ),
        )
        return None

    async def _stage(
        self,
        target: _Target,
        row: Execution,
        material: Material,
        definition: bytes,
    ) -> None:
        """Write everything into the execution's folder, which only the HDFS user may read."""
        endpoints = target.endpoints
        try:
            await self._files.make_folders(endpoints.webhdfs, target.folder, endpoints.user, "700")
            in_lib = material.job.type in _IN_LIB
            jar = material.job.type in {JobType.JAR, JobType.MAP_REDUCE, JobType.JAVA}
            for binary in material.mains:
                await self._copy(target, row, binary, is_library=jar)
            for binary in material.libs:
                await self._copy(target, row, binary, is_library=in_lib)
            await self._write(target, "workflow.xml", _once(definition), len(definition))
        except EngineError as error:
            if error.passing:
                raise _Later(Code.STAGING_FAILED, "staging", error.text) from None
            raise _Broken(failures.failure(Code.STAGING_FAILED, "staging", error.text)) from None

    async def _copy(
        self, target: _Target, row: Execution, binary: JobBinary, *, is_library: bool
    ) -> None:
        try:
            size, pieces = await self._binaries.open(row.tenant_id, binary)
            name = binary.name
            if is_library:
                name, pieces = await library_name(name, pieces)
                name = f"lib/{name}"
            await self._write(target, name, pieces, size)
        except (CloudError, NotFound) as error:
            told = f"job binary {binary.name!r} ({shown_url(binary.url)}): {error}"
            if isinstance(error, CloudError) and error.passing:
                raise _Later(Code.BINARY_UNREADABLE, "staging", told) from None
            raise _Broken(failures.failure(Code.BINARY_UNREADABLE, "staging", told)) from None

    async def _write(
        self, target: _Target, name: str, content: AsyncIterator[bytes], size: int
    ) -> None:
        base, user = target.endpoints.webhdfs, target.endpoints.user
        path = f"{target.folder}/{name}"
        await self._files.write(base, path, user, content, size, target.machines)

    async def _submit(
        self,
        endpoints: Endpoints,
        id_: ExecutionId,
        folder: str,
        properties: Mapping[str, str],
    ) -> None:
        def announce(row: Execution) -> Execution:
            if lifecycle.is_over(row) or row.cancel_requested:
                return row
            doubt = timestamp(self._clock.seconds() + DOUBT_S)
            return evolve(
                row,
                submitting=True,
                staged=True,
                workflow_dir=folder,
                submits=row.submits + 1,
                retry_at=doubt,
                doubt=None,
            )

        row = await self._changes.apply(id_, announce)
        if row is None or not row.submitting or lifecycle.is_over(row):
            if row is not None and row.cancel_requested:
                await self._end(id_, ExecutionStatus.KILLED)
            return
        try:
            job_id = await self._engine.submit(endpoints.engine, properties)
        except EngineError as error:
            if error.kind is Fault.UNREACHABLE or error.kind is Fault.BUSY:
                await self._changes.apply(id_, _unsent)
                raise _Later(Code.ENGINE_UNREACHABLE, "submit", error.text) from None
            if error.passing:
                wait = SLOW_DOUBT_S if error.kind is Fault.TIMEOUT else DOUBT_S
                text = error.text
                raise _Later(Code.ENGINE_UNREACHABLE, "submit", text, wait) from None
            raise _Broken(failures.failure(Code.ENGINE_REFUSED, "submit", error.text)) from None
        await self._started(id_, job_id)

    async def _started(self, id_: ExecutionId, job_id: str) -> None:
        now = self._now()

        def change(row: Execution) -> Execution:
            row = evolve(row, workflow_job_id=job_id, submitting=False, attempts=0, retry_at=None)
            row = evolve(row, doubt=None, waiting=None)
            return lifecycle.advance(row, ExecutionStatus.PREP, now)

        await self._story.apply(id_, change)
        log.info("Execution {id} was submitted as {job}", id=id_, job=job_id)

    async def _retry(self, row: Execution, cluster: Cluster | None, later: _Later) -> float | None:
        now = self._clock.seconds()
        attempt = row.attempts + 1
        delay = max(later.least_s, _BACKOFF.delay_s(attempt, self._rng))
        since = seconds_of(row.created_at)
        if cluster is not None:
            since = max(since, seconds_of(cluster.status_since))
        if since > now:  # written by a clock that was set back
            since = now if row.waiting is None else min(now, seconds_of(row.waiting.since))
        log.warn(
            "Execution {id} could not be started, try {n}: {why}", id=row.id, n=attempt, why=later
        )
        until = since + self._settings.submit_deadline_s
        if now + delay > until:
            await self._give_up(row.id, later, attempt, now)
            return None
        failure = failures.failure(later.code, later.step, later.text)

        def change(current: Execution) -> Execution:
            if lifecycle.is_over(current):
                return current
            return evolve(
                current,
                attempts=attempt,
                retry_at=timestamp(now + delay),
                waiting=waiting_for(current, failure, timestamp(now), timestamp(until)),
            )

        await self._story.apply(row.id, change)
        return delay

    async def _give_up(self, id_: ExecutionId, later: _Later, tries: int, now: float) -> None:
        """`FAILED` with the last reason. While the submit is in doubt it is watched on."""
        watch_until = timestamp(now + WATCH_S)
        text = f"{later.text} ({tries} tries)"
        doubtful = f"{text}; the engine may still take it, and svcd kills what it takes"

        def change(row: Execution) -> Execution:
            if lifecycle.is_over(row):
                return row
            told = doubtful if row.submitting else text
            failure = failures.failure(later.code, later.step, told)
            if row.cancel_requested:
                over = lifecycle.advance(row, ExecutionStatus.KILLED, timestamp(now))
            else:
                status = ExecutionStatus.FAILED
                over = lifecycle.advance(row, status, timestamp(now), failure=failure)
            over = evolve(over, retry_at=None)
            if not row.submitting:
                return over
            doubt = evolve(row.doubt or Doubt(), watch_until=watch_until)
            return evolve(over, submitting=True, doubt=doubt, attempts=0)

        await self._story.apply(id_, change)
        log.info("Execution {id} failed to start: {code}", id=id_, code=later.code)

    async def fail(self, id_: ExecutionId, failure: Failure) -> None:
        """End it as `FAILED`, unless it has ended."""
        await self._end(id_, ExecutionStatus.FAILED, failure)
        log.info("Execution {id} failed to start: {code}", id=id_, code=failure.code)

    async def _end(
        self, id_: ExecutionId, status: ExecutionStatus, failure: Failure | None = None
    ) -> None:
        now = self._now()

        def change(row: Execution) -> Execution:
            return evolve(lifecycle.advance(row, status, now, failure=failure), retry_at=None)

        await self._story.apply(id_, change)

    def _now(self) -> Timestamp:
        return timestamp(self._clock.seconds())


def _unsent(row: Execution) -> Execution:
    """The submit did not leave, or was turned away: what is staged may be submitted as it is."""
    if row.workflow_job_id is not None or lifecycle.is_over(row):
        return row
    return evolve(row, submitting=False, submits=row.submits - 1, doubt=None)


def _clear(row: Execution) -> Execution:
    """No doubt any more: the submit has come to nothing, its folder has gone."""
    return evolve(row, submitting=False, staged=False, workflow_dir=None, doubt=None, retry_at=None)


async def gather_material(tx: Tx, row: Execution) -> Material:
    """Everything the execution refers to. Raises NotFound."""
    tenant = row.tenant_id
    job = await tx.jobs.get(tenant, row.job_id)
    return Material(
        job=job,
        mains=tuple([await tx.job_binaries.get(tenant, id_) for id_ in job.mains]),
        libs=tuple([await tx.job_binaries.get(tenant, id_) for id_ in job.libs]),
        input=await tx.data_sources.get(tenant, row.input_id) if row.input_id else None,
        output=await tx.data_sources.get(tenant, row.output_id) if row.output_id else None,
    )


def _secrets(row: Execution, material: Material) -> Sequence[Secret]:
    """What was sent to the engine and to HDFS, or may have been."""
    found = list(document.secrets_of([material.input, material.output], row.job_configs))
    binaries = (*material.mains, *material.libs)
    return found + [Secret(b.extra.password) for b in binaries if b.extra is not None]


def work_of(
    row: Execution,
    material: Material,
    access: document.ObjectStoreAccess | None,
    cluster: Cluster | None,
) -> document.Work:
    """The input of the definition. cluster: None while it is not known."""
    options: list[Configs] = []
    if cluster is not None:
        options = [cluster.cluster_configs, *(g.node_configs for g in cluster.node_groups)]
    return document.Work(
        execution_id=row.id,
        type=material.job.type,
        project=row.tenant_id,
        mains=tuple(binary.name for binary in material.mains),
        libs=tuple(binary.name for binary in material.libs),
        input=material.input,
        output=material.output,
        configs=row.job_configs or JobConfigs(),
        object_store=access,
        most_characters=None if cluster is None else document.most_characters(options),
    )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
