"""Rules of jobs and executions that a request can break. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from svcd.model.job import DataSource, JobConfigs, JobType
from svcd.workflow.decide import job_configs, pig_job, spark_job
from svcd.workflow.decide.job_types import TYPES
from svcd.workflow.decide.object_store import container_of


def job_faults(job_type: JobType, mains: Sequence[str], libs: Sequence[str]) -> Sequence[str]:
    """Faults of the binaries of a job, with their JSON paths. Source: behaviour II 4.1."""
    traits = TYPES.get(job_type)
    if traits is None:
        return [spark_job.HIVE]
    faults = []
    if len(mains) < traits.mains:
        faults.append(f"$.mains: a {job_type.value} job needs at least one main binary")
    if len(libs) < traits.libs:
        faults.append(f"$.libs: a {job_type.value} job needs at least one library binary")
    if mains and not traits.takes_mains:
        faults.append(f"$.mains: a {job_type.value} job takes no main binaries; give them in libs")
    if traits.either and not mains and not libs:
        faults.append(f"$.libs: a {job_type.value} job needs a binary in mains or in libs")
    for name, ids in (("mains", mains), ("libs", libs)):
        twice = sorted({id_ for id_ in ids if ids.count(id_) > 1})
        if twice:
            faults.append(f"$.{name}: given more than once: {', '.join(twice)}")
    return faults


def config_faults(job_type: JobType, mains: Sequence[str], configs: JobConfigs) -> Iterator[str]:
    """The values of `job_configs` that have no way to the program, with their JSON paths.

    mains: the names of the files.
    """
    yield from job_configs.faults_of(job_type, mains[0] if mains else "", configs)
    if job_type is JobType.PIG:
        yield from pig_job.config_faults(configs)
    if job_type is JobType.SPARK:
        yield from spark_job.config_faults(mains, configs)


def same_place(one: DataSource | None, other: DataSource | None) -> bool:
    """Whether two data sources name the same folder."""
    if one is None or other is None:
        return False
    return one.id == other.id or (one.type, _folder(one.url)) == (other.type, _folder(other.url))


def _folder(url: str) -> str:
    """One form for all URLs of the same folder."""
    if not url.startswith("objstore://"):
        return url.rstrip("/")
    path = url.partition("://")[2].partition("/")[2]
    return f"objstore://{container_of(url)}/{path}".rstrip("/")
