"""Performs the steps of the planners, at the engine and in HDFS, and returns their outcomes.

Decides nothing. Every step is safe to repeat. A fault of a peer is an outcome when a planner can
react to it; other faults are raised as `EngineError`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import Final, assert_never
from urllib.parse import urlsplit

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound
from svcd.model.engine_record import Record
from svcd.model.job import (
    Execution,
    ExecutionStatus,
    JobBinary,
    JobConfigs,
    JobType,
)
from svcd.model.redaction import shown_url
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.engine import Engine, EngineError, FileSystem, Identity
from svcd.ports.faults import Fault
from svcd.ports.machines import Location, Probe, ProbeError
from svcd.ports.store import Store, Tx
from svcd.runtime.slices import Slices
from svcd.runtime.tasks import gather, sleep
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.launchers import Launchers
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.binaries import Binaries, begun, library_name
from svcd.workflow.decide import arguments, document, failures, lifecycle, planner, submission
from svcd.workflow.decide.failures import Code
from svcd.workflow.decide.job_configs import launcher_faults, starts
from svcd.workflow.decide.masking import masked_text, reading
from svcd.workflow.decide.material import Material, secrets_of, work_of
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.planner import News
from svcd.workflow.decide.progress import return_code, with_children, with_known_children
from svcd.workflow.decide.steps import (
    Denied,
    Done,
    Fail,
    FindJob,
    Found,
    KillLate,
    Outcome,
    RemoteStep,
    RemoveDefinition,
    Retry,
    Start,
)

log = Logger()

_IDENTITY_S: Final = 5.0
"""Time-out of the request for a daemon's identity."""
_STRANGER_S: Final = 1.0
"""Time between the two looks that prove a stranger."""
_PROVEN_S: Final = 2.0
"""After a longer staging svcd asks for the identities again, before it submits."""
_DIAGNOSIS_S: Final = 15.0
"""Time for reading the diagnosis of a failed job."""


class _Stop(Exception):
    """Ends a step early. args[0]: the outcome of the step."""

    def __init__(self, outcome: Retry | Fail) -> None:
        super().__init__(outcome)
        self.outcome = outcome


@frozen
class _Look:
    """The answer of a daemon that was asked for its identity; both empty: it is the cluster's own.

    stranger: another program has answered. silence: the daemon does not show its cluster.
    """

    stranger: str = ""
    silence: str = ""


class Performer:
    """Performs steps. access: the object store as the clusters' machines reach it."""

    def __init__(
        self,
        *,
        store: Store,
        rows: Rows,
        engine: Engine,
        files: FileSystem,
        probe: Probe,
        binaries: Binaries,
        credentials: JobCredentials,
        containers: Containers,
        launchers: Launchers,
        clock: IReactorTime,
        access: ObjectStoreAccess | None,
    ) -> None:
        self._store = store
        self._rows = rows
        self._engine = engine
        self._files = files
        self._probe = probe
        self._binaries = binaries
        self._credentials = credentials
        self._containers = containers
        self._launchers = launchers
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
        unproven = await self._unproven(place)
        if unproven is not None:
            return unproven
        began = self._clock.seconds()
        material = await self._store.read(lambda tx: gather_material(tx, row))
        logins = self._credentials.samples(material)
        if step.stage:
            try:
                obtained = await self._credentials.obtain(row, material)
            except CloudError as error:
                return _hidden(_no_credential(error), secrets_of(row, material, {}))
            if obtained is None:
                return Done()
            logins = obtained
        work = work_of(row, material, self._access, place.cluster, logins)
        limits = place.endpoints.launcher_limits
        try:
            for fault in launcher_faults(work.type, work.configs.configs, limits):
                raise document.DocumentError(fault)  # of a cluster that became Active meanwhile
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
                await _Staging(self._files, self._binaries, place, step.folder).all_of(
                    row, material, further
                )
                if self._clock.seconds() - began > _PROVEN_S:
                    unproven = await self._unproven(place)
                    if unproven is not None:
                        return unproven
            return await self._submit(step, row, place, properties)
        except _Stop as stop:
            stored = await self._rows.secrets(row)  # without staging `logins` are samples
            return _hidden(stop.outcome, [*secrets_of(row, material, logins), *stored])

    # ---- strangers ----

    async def prove(self, place: Place, endpoint: str) -> None:
        """Make sure that the cluster's own daemon answers at a URL. Raises EngineError."""
        own = [i for i in place.endpoints.identities if _same_place(i.url, endpoint)]
        for look in await self._looks(place, own):
            if look.stranger or look.silence:
                raise EngineError(Fault.UNREACHABLE, look.stranger or look.silence)

    async def _unproven(self, place: Place) -> Fail | Retry | None:
        """Ask the daemons that a job uses for their identity; None when the job may start.

        The engine and the name node must show it. Of the others a silent one is not a stranger.
        """
        endpoints, waits = place.endpoints, None
        looks = await self._looks(place, endpoints.identities)
        for identity, look in zip(endpoints.identities, looks, strict=True):
            if look.stranger:
                failure = failures.failure(Code.FOREIGN_DAEMON, "start", look.stranger)
                return Fail(failure=failure)
            if look.silence and _same_place(identity.url, endpoints.engine):
                waits = Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=look.silence)
            elif look.silence and _same_place(identity.url, endpoints.webhdfs):
                waits = Retry(code=Code.STAGING_FAILED, step="staging", text=look.silence)
        return waits

    async def _looks(self, place: Place, identities: Sequence[Identity]) -> Sequence[_Look]:
        """Look at each daemon; look again when a stranger answers: one answer may be broken."""
        looks = await self._looks_once(place, identities)
        if any(look.stranger for look in looks):
            await sleep(self._clock, _STRANGER_S)
            looks = await self._looks_once(place, identities)
        return looks

    async def _looks_once(self, place: Place, identities: Sequence[Identity]) -> Sequence[_Look]:
        asked = [partial(self._look, identity, place) for identity in identities]
        looks: list[_Look] = []
        for look in await gather(asked, max(1, len(asked))):
            if isinstance(look, BaseException):
                raise look
            looks.append(look)
        if any(look.stranger for look in looks):
            self._rows.notice(place.cluster.id)
        return looks

    async def _look(self, identity: Identity, place: Place) -> _Look:
        at = place.at(identity.url) or Location(identity.url)
        try:
            answer = await self._probe.get(at, _IDENTITY_S)
        except ProbeError as error:
            return _Look(silence=f"{identity.what}: {error.text}")
        missing = identity.missing(*answer)
        stranger = "" if missing else identity.stranger(*answer)
        return _Look(
            stranger=f"{identity.what}: {stranger}" if stranger else "",
            silence=f"{identity.what}: {missing}" if missing else "",
        )

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
                raise _Stop(Fail(failure=failure)) from None
            slow = error.kind is Fault.TIMEOUT
            retry = _retry(error, submission.SLOW_ARRIVES_S if slow else submission.ARRIVES_S)
            if error.kind in (Fault.UNREACHABLE, Fault.BUSY):
                retry = evolve(retry, least_s=0.0, unsent=True)
            raise _Stop(retry) from None
        return Found(job_id=job_id)

    # ---- submit recovery ----

    async def _find_job(self, row: Execution, place: Place) -> Found | Denied | Retry:
        """Ask the engine for the job of this execution."""
        try:
            found = await self._engine.find(place.engine, row.id)
        except EngineError as error:
            return _retry(error)
        return Denied() if found is None else Found(job_id=found)

    async def _remove_definition(self, step: RemoveDefinition, place: Place) -> Done | Retry:
        """Remove the folder of a submit; the reason is in `submission`."""
        if step.folder is not None:
            try:
                await self.prove(place, place.endpoints.webhdfs)
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

    async def news(self, row: Execution, job_id: str, place: Place) -> News | None:
        """The engine's answer on a job; None for an unknown status. Raises EngineError."""
        raw = await self._engine.record(place.engine, job_id)
        status = lifecycle.status_of(raw.get("status"))
        if status is None:
            log.warn("Engine answered status {s} for {id}", s=raw.get("status"), id=row.id)
            return None
        secrets = await self._rows.secrets(row)
        read = await read_record(self._clock, raw, secrets)
        children = await self._launchers.children(place, read)
        read = with_children(with_known_children(read, row.engine_record), children or ())
        if status not in (ExecutionStatus.KILLED, ExecutionStatus.FAILED):
            return News(status=status, record=read)
        lost = await self._launchers.settle(place, read)
        if lost is not None:
            lost = evolve(lost, text=masked_text(lost.text, secrets))
            return News(status=status, record=read, failure=lost)
        evidence = failures.NOTHING
        if not row.cancel_requested:
            evidence = await self._containers.evidence(place, read, _DIAGNOSIS_S)
        steps = failures.judging(read, evidence, secrets, failures.configs_of(row))
        failure = await Slices(self._clock).run(steps)
        return News(
            status=status,
            record=read,
            failure=failure,
            return_code=return_code(read, evidence),
        )

    # ---- after an end ----

    async def tidy(self, row: Execution, place: Place) -> None:
        """Keep the engine's completed record, remove the folder. Raises EngineError.

        It raises also when a stranger answers: nothing of it is removed.
        """
        await self.prove(place, place.endpoints.webhdfs)
        if row.workflow_job_id is not None and planner.needs_last_record(row):
            raw = await self._engine.record(place.engine, row.workflow_job_id)
            last = await read_record(self._clock, raw, await self._rows.secrets(row))
            last = with_known_children(last, row.engine_record)
            await self._rows.change(row.id, partial(planner.completed, record=last))
        if row.workflow_dir is not None:
            await self._remove(row.workflow_dir, place)
        if row.status is not ExecutionStatus.SUCCEEDED:  # else the program's submitter did it
            for id_ in await self._launchers.end_children(place, row.engine_record):
                await self._remove(f"/user/{place.endpoints.user}/.sparkStaging/{id_}", place)

    async def _remove(self, folder: str, place: Place) -> None:
        await self._files.delete(place.webhdfs, folder, place.endpoints.user)


class _Staging:
    """Writes everything into an execution's folder, which only the HDFS user may read."""

    def __init__(self, files: FileSystem, binaries: Binaries, place: Place, folder: str) -> None:
        self._files = files
        self._binaries = binaries
        self._place = place
        self._folder = folder

    async def all_of(
        self, row: Execution, material: Material, further: Mapping[str, bytes]
    ) -> None:
        """Write the binaries, then the further files, into the folder. Raises _Stop."""
        base, user = self._place.webhdfs, self._place.endpoints.user
        try:
            await self._files.make_folders(base, self._folder, user, "700")
            binaries = (*material.mains, *material.libs)
            names = {each.file for each in binaries}
            for number, binary in enumerate(binaries):
                main = number < len(material.mains)
                path = arguments.path(material.job.type, binary.file, number, main)
                first = await self._copy(row, binary, path, material.job.type, main)
                jar = library_name(binary.file, first)
                if path == f"{arguments.LIB}{binary.file}" and jar not in names:
                    await self._copy(row, binary, f"{arguments.LIB}{jar}", material.job.type, main)
            for name, content in further.items():
                await self._write(name, _once(content), len(content))
        except EngineError as error:
            raise _stop(error, Code.STAGING_FAILED, error.text) from None

    async def _copy(
        self, row: Execution, binary: JobBinary, path: str, job_type: JobType, main: bool
    ) -> bytes:
        """Write a binary, and return its first bytes."""
        try:
            size, pieces = await self._binaries.open(row.tenant_id, binary)
            first, pieces = await begun(pieces, arguments.HEAD)
            configs = (row.job_configs or JobConfigs()).configs
            started = starts(job_type, configs, binary.file)
            if started and (wrong := arguments.script_fault(job_type, first, main)):
                text = f"job binary {binary.name!r}: {wrong}"
                raise _Stop(Fail(failure=failures.failure(Code.SYNTAX_ERROR, "staging", text)))
            await self._write(path, pieces, size)
            return first
        except (CloudError, NotFound) as error:
            text = f"job binary {binary.name!r} ({shown_url(binary.url)}): {error}"
            raise _stop(error, Code.BINARY_UNREADABLE, text) from None

    async def _write(self, name: str, content: AsyncIterator[bytes], size: int) -> None:
        base, user = self._place.webhdfs, self._place.endpoints.user
        path = f"{self._folder}/{name}"
        await self._files.write(base, path, user, content, size, self._place.ways)


def _stop(error: EngineError | CloudError | NotFound, code: Code, text: str) -> _Stop:
    if not isinstance(error, NotFound) and error.passing:
        return _Stop(Retry(code=code, step="staging", text=text))
    return _Stop(Fail(failure=failures.failure(code, "staging", text)))


def _same_place(url: str, other: str) -> bool:
    """Whether two URLs have the same host and port."""
    return urlsplit(url).netloc == urlsplit(other).netloc


def _no_credential(error: CloudError) -> Retry | Fail:
    code, step = Code.JOB_CREDENTIAL, "credential"
    if error.passing:
        return Retry(code=code, step=step, text=error.text)
    return Fail(failure=failures.failure(code, step, error.text))


def _retry(error: EngineError, least_s: float = 0.0) -> Retry:
    return Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=error.text, least_s=least_s)


def _hidden(outcome: Retry | Fail, secrets: Sequence[Secret]) -> Outcome:
    """`outcome` without secrets that svcd sent to the engine and to HDFS."""
    if isinstance(outcome, Retry):
        return evolve(outcome, text=masked_text(outcome.text, secrets))
    failure = outcome.failure
    return Fail(failure=evolve(failure, text=masked_text(failure.text, secrets)))


async def read_record(
    clock: IReactorTime, raw: Mapping[str, object], secrets: Sequence[Secret]
) -> Record:
    """The engine's answer, masked; a large one in slices."""
    return await Slices(clock).run(reading(raw, secrets))


async def gather_material(tx: Tx, row: Execution) -> Material:
    """Read all rows that the execution refers to. Raises NotFound."""
    tenant = row.tenant_id
    job = await tx.jobs.get(tenant, row.job_id)
    return Material(
        job=job,
        mains=tuple([await tx.job_binaries.get(tenant, id_) for id_ in job.mains]),
        libs=tuple([await tx.job_binaries.get(tenant, id_) for id_ in job.libs]),
        input=await tx.data_sources.get(tenant, row.input_id) if row.input_id else None,
        output=await tx.data_sources.get(tenant, row.output_id) if row.output_id else None,
    )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
