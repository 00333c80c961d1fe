"""Writes everything that a job needs into its execution's folder in HDFS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from svcd.errors import NotFound
from svcd.model.failures import Code
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobConfigs, JobType
from svcd.model.redaction import shown_url
from svcd.ports.cloud import CloudError
from svcd.ports.engine import EngineError, FileSystem
from svcd.ports.store import Tx
from svcd.workflow.act.rows import Place
from svcd.workflow.binaries import Binaries, begun, library_name
from svcd.workflow.decide import arguments, failures
from svcd.workflow.decide.job_configs import starts
from svcd.workflow.decide.material import Material
from svcd.workflow.decide.steps import Fail, Retry


class Stop(Exception):
    """Ends a step early. args[0]: the outcome of the step."""

    def __init__(self, outcome: Retry | Fail) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Staging:
    """Writes everything into an execution's folder, which only the HDFS user may read."""

    def __init__(self, files: FileSystem, binaries: Binaries, place: Place, folder: str) -> None:
        self._files = files
        self._binaries = binaries
        self._place = place
        self._folder = folder

    async def all_of(
        self, row: Execution, material: Material, further: Mapping[str, bytes]
    ) -> None:
        """Write the binaries, then the further files, into the folder. Raises Stop."""
        base, user = self._place.webhdfs, self._place.endpoints.user
        try:
            await self._files.make_folders(base, self._folder, user, "700")
            binaries = (*material.mains, *material.libs)
            names = {binary.file for binary in binaries}
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
                raise Stop(Fail(failure=failures.failure(Code.SYNTAX_ERROR, "staging", text)))
            await self._write(path, pieces, size)
            return first
        except (CloudError, NotFound) as error:
            text = f"job binary {binary.name!r} ({shown_url(binary.url)}): {error}"
            raise _stop(error, Code.BINARY_UNREADABLE, text) from None

    async def _write(self, name: str, content: AsyncIterator[bytes], size: int) -> None:
        base, user = self._place.webhdfs, self._place.endpoints.user
        path = f"{self._folder}/{name}"
        await self._files.write(base, path, user, content, size, self._place.ways)


def _stop(error: EngineError | CloudError | NotFound, code: Code, text: str) -> Stop:
    if not isinstance(error, NotFound) and error.passing:
        return Stop(Retry(code=code, step="staging", text=text))
    return Stop(Fail(failure=failures.failure(code, "staging", text)))


async def gather_material(tx: Tx, row: Execution) -> Material:
    """Read all rows that the execution refers to. Raises NotFound."""
    tenant, ids = row.tenant_id, (row.input_id, row.output_id)
    job = await tx.jobs.get(tenant, row.job_id)
    sources = [None if id_ is None else await tx.data_sources.get(tenant, id_) for id_ in ids]
    return await with_binaries(tx, job, *sources)


async def with_binaries(
    tx: Tx, job: Job, source: DataSource | None, target: DataSource | None
) -> Material:
    """The material of an execution whose job, input and output were read. Raises NotFound."""
    return Material(
        job=job,
        mains=tuple([await tx.job_binaries.get(job.tenant_id, id_) for id_ in job.mains]),
        libs=tuple([await tx.job_binaries.get(job.tenant_id, id_) for id_ in job.libs]),
        input=source,
        output=target,
    )


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content
