"""Performs the steps of the planners, at the engine and in HDFS, and returns their outcomes.

Decides nothing. Every step is safe to repeat. A fault of a peer is an outcome when a planner can
react to it; other faults are raised as `EngineError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, assert_never

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.model.cluster import ClusterStatus
from svcd.model.engine_record import Record
from svcd.model.failures import Code
from svcd.model.job import Execution, ExecutionStatus
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.engine import Engine, EngineError, FileSystem
from svcd.ports.faults import Fault
from svcd.ports.store import Store
from svcd.runtime.slices import Slices
from svcd.runtime.tasks import DeadlineExceeded, Parked, gather, with_deadline
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.identities import Identities
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.kept_logs import KeptLogs
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.act.staging import Staging, Stop, gather_material
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.binaries import Binaries
from svcd.workflow.decide import causes, document, failures, lifecycle, planner, submission
from svcd.workflow.decide.job_configs import launcher_faults
from svcd.workflow.decide.launchers import Family, suspect
from svcd.workflow.decide.masking import masked_text, reading
from svcd.workflow.decide.material import Material, work_of
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.planner import News
from svcd.workflow.decide.progress import (
    return_code,
    submitter,
    with_children,
    with_known_children,
)
from svcd.workflow.decide.steps import (
    Denied,
    Done,
    Fail,
    FindJob,
    Found,
    KillLate,
    Lost,
    Outcome,
    RemoteStep,
    RemoveDefinition,
    Retry,
    Start,
)

log = Logger()

Answer: TypeAlias = News | Lost | None
"""The engine's answer on a job; None: it has an unknown status."""

_FAILED: Final = frozenset({ExecutionStatus.KILLED, ExecutionStatus.FAILED})
_PROVEN_S: Final = 2.0
"""Seconds. After a longer staging svcd asks for the identities again, before it submits."""
_DIAGNOSIS_S: Final = 15.0
"""Time for reading the diagnosis of a failed job."""
KILLS_AT_ONCE: Final = 8
"""Jobs of one cluster that svcd kills in parallel before the cluster's delete."""
_KILL_ALL_S: Final = 15.0
"""Time for killing all of them."""
_TIDY_S: Final = 20.0
"""Time for one try to tidy up."""


class Performer:
    """Performs steps. access: see Controller."""

    def __init__(
        self,
        *,
        store: Store,
        rows: Rows,
        engine: Engine,
        files: FileSystem,
        identities: Identities,
        binaries: Binaries,
        credentials: JobCredentials,
        containers: Containers,
        manager: ResourceManager,
        kept_logs: KeptLogs,
        clock: IReactorTime,
        access: ObjectStoreAccess | None,
    ) -> None:
        self._store = store
        self._rows = rows
        self._engine = engine
        self._files = files
        self._identities = identities
        self._binaries = binaries
        self._credentials = credentials
        self._containers = containers
        self._manager = manager
        self._kept_logs = kept_logs
        self._clock = clock
        self._access = access

    async def perform(self, step: RemoteStep, row: Execution, place: Place) -> Outcome:
        """Perform `step`, which was planned for `row`, and return its outcome."""
        match step:
            case Start():
                return await self._start(step, row, place)
            case FindJob():
                return await self._find_job(row, place)
            case RemoveDefinition():
                return await self._remove_definition(step, place)
            case KillLate():
                return await self._kill_late(step, place)
            case _:
                assert_never(step)

    # ---- starting ----

    async def _start(self, step: Start, row: Execution, place: Place) -> Outcome:
        """Stage if `step` says so, then submit. Found: the engine has the job; Done: not wanted."""
        unproven = await self._identities.unproven(place)
        if unproven is not None:
            return unproven
        began = self._clock.seconds()
        material = await self._store.read(lambda tx: gather_material(tx, row))
        logins = self._credentials.samples(material)
        if step.stage:
            try:
                obtained = await self._credentials.obtain(row, material)
            except CloudError as error:
                return await self._hidden(_no_credential(error), row, material)
            if obtained is None:
                return Done()
            logins = obtained
        work = work_of(row, material, self._access, place.cluster, logins)
        limits = place.endpoints.launcher_limits
        try:
            for fault in launcher_faults(work.type, work.configs.configs, limits):
                # the cluster became Active meanwhile: its limits count now
                raise document.DocumentError(fault)
            definition = document.workflow(work)
            properties = document.properties(work, place.endpoints, step.folder)
        except document.DocumentError as error:
            failure = failures.failure(Code.DOCUMENT_REFUSED, "definition", str(error))
            return Fail(failure=failure)
        try:
            if step.stage:
                staging = partial(submission.staging, folder=step.folder)
                after = await self._rows.change(row.id, staging, known=row)
                if after is None or not submission.is_wanted(after):
                    return Done()  # a row that is gone does not name its folder for the removal
                row = after
                further = {**document.further_files(work), "workflow.xml": definition}
                await Staging(self._files, self._binaries, place, step.folder).all_of(
                    row, material, further
                )
                if self._clock.seconds() - began > _PROVEN_S:
                    unproven = await self._identities.unproven(place)
                    if unproven is not None:
                        return unproven
            return await self._submit(step, row, place, properties)
        except Stop as stop:
            return await self._hidden(stop.outcome, row, material)

    async def _hidden(
        self, outcome: Retry | Fail, row: Execution, material: Material
    ) -> Retry | Fail:
        """`outcome` without secrets that svcd sent to the engine, to HDFS and the object store."""
        secrets = [*await self._rows.secrets(row), *material.passwords]
        if isinstance(outcome, Retry):
            return evolve(outcome, text=masked_text(outcome.text, secrets))
        failure = outcome.failure
        return Fail(failure=evolve(failure, text=masked_text(failure.text, secrets)))

    async def _submit(
        self, step: Start, row: Execution, place: Place, properties: Mapping[str, str]
    ) -> Outcome:
        """Write `Move.SEND`, then submit the job."""
        now = self._clock.seconds()
        sent = partial(submission.sent, folder=step.folder, now=now)
        after = await self._rows.change(row.id, sent, known=row)
        if after is None or after.submits == row.submits or lifecycle.is_over(after):
            return Done()
        try:
            job_id = await self._engine.submit(place.engine, properties)
        except EngineError as error:
            if not error.passing:
                failure = failures.failure(Code.ENGINE_REFUSED, "submit", error.text)
                raise Stop(Fail(failure=failure)) from None
            slow = error.kind is Fault.TIMEOUT
            retry = _retry(error, submission.SLOW_ARRIVES_S if slow else submission.ARRIVES_S)
            if error.kind in (Fault.UNREACHABLE, Fault.BUSY):
                retry = evolve(retry, least_s=0.0, unsent=True)
            raise Stop(retry) from None
        return Found(job_id=job_id)

    # ---- submit recovery ----

    async def _find_job(self, row: Execution, place: Place) -> Found | Denied | Retry:
        """Ask the engine for the job of this execution."""
        try:
            job_id = await self._engine.find(place.engine, row.id)
        except EngineError as error:
            return _retry(error)
        return Denied() if job_id is None else Found(job_id=job_id)

    async def _remove_definition(self, step: RemoveDefinition, place: Place) -> Done | Retry:
        """Remove the folder of a submit; the reason is in `submission`."""
        if step.folder is not None:
            try:
                await self._identities.prove(place, place.endpoints.webhdfs)
                await self._remove(step.folder, place)
            except EngineError as error:
                text = f"the definition of the submit cannot be removed: {error.text}"
                return evolve(_retry(error), text=text)
        return Done()

    async def _kill_late(self, step: KillLate, place: Place) -> Done | Retry:
        """Kill a job that svcd does not follow."""
        try:
            await self.kill(step.job_id, place)
        except EngineError as error:
            return _retry(error)
        return Done()

    # ---- at the engine ----

    async def kill(self, job_id: str | None, place: Place) -> None:
        """Kill a job. A job that the engine does not know is no fault. Raises EngineError."""
        if job_id is None:
            return
        try:
            await self._engine.kill(place.engine, job_id)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise

    async def kill_all(self, rows: Sequence[Execution]) -> None:
        """Kill the jobs of executions, in a bounded time. A job that cannot be killed is logged."""
        until = self._clock.seconds() + _KILL_ALL_S

        async def kill(row: Execution) -> None:
            left_s = until - self._clock.seconds()
            place = await self._rows.place(row)
            if place is None or left_s <= 0:
                return
            work = self.kill(row.workflow_job_id, place)
            try:
                await with_deadline(self._clock, left_s, "kill", work)
            except (DeadlineExceeded, EngineError) as error:
                log.warn("Execution {id} was not killed at its engine: {e}", id=row.id, e=error)

        placed = [row for row in rows if row.workflow_job_id is not None]
        raise_first(await gather([partial(kill, row) for row in placed], KILLS_AT_ONCE))

    async def end(self, row: Execution, place: Place) -> Answer:
        """Kill a job and read its record. Raises EngineError, unless the job has ended in any case.

        Oozie kills a job, and answers with a fault when it then cannot remove a folder of the job.
        """
        try:
            await self.kill(row.workflow_job_id, place)
        except EngineError:
            answer = await self.read(row, place)
            if isinstance(answer, Lost) or (answer and answer.status in lifecycle.TERMINAL):
                return answer
            raise
        return await self.read(row, place)

    async def read(self, row: Execution, place: Place) -> Answer:
        """The engine's answer on a job; None for an unknown status. Raises EngineError."""
        if row.workflow_job_id is None:
            return None
        try:
            return await self._news(row, row.workflow_job_id, place)
        except EngineError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
        # the engine of another cluster knows no job of this one
        await self._identities.prove(place, place.endpoints.engine)
        return Lost()

    async def _news(self, row: Execution, job_id: str, place: Place) -> News | None:
        raw = await self._engine.record(place.engine, job_id)
        status = lifecycle.status_of(raw.get("status"))
        if status is None:
            log.warn("Engine answered status {s} for {id}", s=raw.get("status"), id=row.id)
            return None
        secrets = await self._rows.secrets(row)
        read = await read_record(self._clock, raw, secrets)
        read = with_known_children(read, row.engine_record)
        # a cancel must be quick: it reads no evidence, and seldom asks for the launcher
        failed = suspect(read) if row.cancel_requested else read.failed
        action = failed if status in _FAILED else None
        if action is None:
            children = await self._manager.children(place, submitter(read))
            family = Family(children=children or ())
        else:
            family = await self._manager.family(place, action)
        read = with_children(read, family.children)
        if status not in _FAILED:
            return News(status=status, record=read)
        lost = await self._manager.settle(place, read, family)
        if lost is not None:
            lost = evolve(lost, text=masked_text(lost.text, secrets))
            return News(status=status, record=read, failure=lost)
        evidence = causes.NOTHING
        if not row.cancel_requested:
            evidence = await self._containers.evidence(place, read, family, _DIAGNOSIS_S)
        steps = causes.judging(read, evidence, secrets, causes.configs_of(row))
        failure = await Slices(self._clock).run(steps)
        return News(
            status=status,
            record=read,
            failure=failure,
            return_code=return_code(read, evidence),
        )

    # ---- after an end ----

    async def tidy_up(self, row: Execution, place: Place | None) -> bool:
        """Keep the log and the record, delete the folder and the login. False: try again later."""
        is_kept = row.delete_requested or await self._kept_logs.complete(row)
        is_clean = place is None or await self._clean(row, place)
        await self._credentials.give_back(row.id)
        return is_kept and is_clean

    async def _clean(self, row: Execution, place: Place) -> bool:
        """Whether the cluster has nothing of the execution any more, or svcd leaves it there."""
        if place.cluster.status is ClusterStatus.DELETING:
            return True
        try:
            await with_deadline(self._clock, _TIDY_S, "cleanup", self._remove_all(row, place))
        except (DeadlineExceeded, EngineError) as error:
            if not planner.leaves_folder(row, self._clock.seconds()):
                return False
            log.warn("Folder of execution {id} was not removed: {why}", id=row.id, why=error)
        return True

    async def _remove_all(self, row: Execution, place: Place) -> None:
        """Keep the engine's completed record, remove the folder. Raises EngineError.

        It also raises when a stranger answers: svcd removes nothing from a stranger.
        """
        await self._identities.prove(place, place.endpoints.webhdfs)
        if row.workflow_job_id is not None and planner.needs_last_record(row):
            raw = await self._engine.record(place.engine, row.workflow_job_id)
            last = await read_record(self._clock, raw, await self._rows.secrets(row))
            last = with_known_children(last, row.engine_record)
            await self._rows.change(row.id, partial(planner.completed, record=last))
        if row.workflow_dir is not None:
            await self._remove(row.workflow_dir, place)
        # else the submitter of the program has removed it
        if row.status is not ExecutionStatus.SUCCEEDED:
            for id_ in await self._manager.end_children(place, row.engine_record):
                await self._remove(f"/user/{place.endpoints.user}/.sparkStaging/{id_}", place)

    async def _remove(self, folder: str, place: Place) -> None:
        await self._files.delete(place.webhdfs, folder, place.endpoints.user)


def _no_credential(error: CloudError) -> Retry | Fail:
    code, step = Code.JOB_CREDENTIAL, "credential"
    if error.passing:
        return Retry(code=code, step=step, text=error.text)
    return Fail(failure=failures.failure(code, step, error.text))


def _retry(error: EngineError, least_s: float = 0.0) -> Retry:
    return Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=error.text, least_s=least_s)


async def read_record(
    clock: IReactorTime, raw: Mapping[str, object], secrets: Sequence[Secret]
) -> Record:
    """The engine's answer, masked; a large one in slices."""
    return await Slices(clock).run(reading(raw, secrets))


def raise_first(results: Sequence[object]) -> None:
    """Raise the first exception among the results of `gather`, whose other work has ended."""
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, Parked):
            raise result
