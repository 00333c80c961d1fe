"""Checks the rows that a request refers to, in the transaction that writes the new one.

`decide.rules` has the rules. An answer reports all faults of one kind.
"""

from __future__ import annotations

from collections.abc import Sequence

from svcd.errors import InvalidData, InvalidReference, NotFound
from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import TenantId
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobConfigs
from svcd.ports.engine import Engines
from svcd.ports.store import I_contra, R, Rows, Tx
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.staging import with_binaries
from svcd.workflow.binaries import Internal, location
from svcd.workflow.decide import arguments, document, job_configs, rules
from svcd.workflow.decide.job_configs import shown
from svcd.workflow.decide.material import Material, work_of
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.preview import Checked


class References:
    """Reads the rows of a tenant. faults: references to rows that do not exist, by JSON path."""

    def __init__(self, tenant: TenantId) -> None:
        self._tenant = tenant
        self.faults: list[str] = []

    async def find(self, rows: Rows[R, I_contra], id_: I_contra, where: str, what: str) -> R | None:
        """The row with the id; a missing row is a fault at the JSON path `where`."""
        try:
            return await rows.get(self._tenant, id_)
        except NotFound:
            self.faults.append(f"{where}: {what} {str(id_)!r} not found")
            return None

    def require(self) -> None:
        """Raises InvalidReference when there are faults."""
        if self.faults:
            raise InvalidReference("\n".join(self.faults))


async def check_job(tx: Tx, job: Job) -> Sequence[JobBinary]:
    """The binaries of a new job. Raises InvalidReference and InvalidData (rules of the type)."""
    references, lists = References(job.tenant_id), list[list[JobBinary]]()
    for name, ids in (("mains", job.mains), ("libs", job.libs)):
        lists.append([])
        for index, id_ in enumerate(ids):
            where = f"$.{name}[{index}]"
            binary = await references.find(tx.job_binaries, id_, where, "job binary")
            lists[-1] += [] if binary is None else [binary]
    references.require()
    mains, libs = lists
    faults = [
        *rules.job_faults(job.type, job.mains, job.libs),
        *rules.file_faults(job.type, mains, libs),
    ]
    if faults:
        raise InvalidData("\n".join(faults))
    return [*mains, *libs]


class Checks:
    """Checks executions. access: see Controller."""

    def __init__(
        self, engines: Engines, credentials: JobCredentials, access: ObjectStoreAccess | None
    ) -> None:
        self._engines = engines
        self._credentials = credentials
        self._access = access

    async def check(self, tx: Tx, row: Execution, cluster: Cluster | None = None) -> Checked:
        """Check the references and rules of an execution, and its cluster if that exists already.

        cluster: a new one, which is not stored yet. Raises NotFound (the job), InvalidReference and
        InvalidData.
        """
        job = await tx.jobs.get(row.tenant_id, row.job_id)
        references = References(row.tenant_id)
        if row.cluster_id is not None:
            cluster = await references.find(tx.clusters, row.cluster_id, "$.cluster_id", "cluster")
        sources: dict[str, DataSource | None] = {}
        for name, id_ in (("input_id", row.input_id), ("output_id", row.output_id)):
            sources[name] = None
            if id_ is not None:
                source = await references.find(tx.data_sources, id_, f"$.{name}", "data source")
                sources[name] = source
        if cluster is not None:
            types, has_engine = self._engines.job_types(cluster), self._engines.has_engine(cluster)
            references.faults += rules.cluster_faults(job.type, cluster, types, has_engine)
        references.require()
        configs, limits = row.job_configs or JobConfigs(), None
        if cluster is not None and cluster.status is ClusterStatus.ACTIVE:
            endpoints = self._engines.endpoints(cluster)
            limits = None if endpoints is None else endpoints.launcher_limits
        faults = list(rules.execution_faults(job.type, sources, configs, limits))
        if faults:
            raise InvalidData("\n".join(faults[: job_configs.MOST_FAULTS]))
        material = await with_binaries(tx, job, sources["input_id"], sources["output_id"])
        faults = await _script_faults(tx, material, configs)
        if faults:
            raise InvalidData("\n".join(faults))
        logins = self._credentials.samples(material)
        try:
            text = document.workflow(work_of(row, material, self._access, cluster, logins))
        except document.DocumentError as error:
            raise InvalidData(str(error)) from None
        return Checked(material=material, workflow=text, logins=logins)


async def _script_faults(tx: Tx, material: Material, configs: JobConfigs) -> list[str]:
    """Faults of the job's scripts that svcd keeps; staging finds those of the object store."""
    faults, job_type = [], material.job.type
    for key, binaries in (("mains", material.mains), ("libs", material.libs)):
        for index, binary in enumerate(binaries):
            place = location(binary.url)
            started = job_configs.starts(job_type, configs.configs, binary.file)
            if started and isinstance(place, Internal):
                head = await tx.internals.piece(place.id, 0) or b""
                wrong = arguments.script_fault(job_type, head, key == "mains")
                if wrong:
                    faults.append(f"$.{key}[{index}] of the job, {shown(binary.file)}: {wrong}")
    return faults
