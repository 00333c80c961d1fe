"""Rules of jobs and executions that a request can break. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.failures import Code
from svcd.model.job import Credentials, DataSource, JobBinary, JobConfigs, JobType
from svcd.workflow.decide import arguments, data_urls, job_configs, pig_job, spark_job
from svcd.workflow.decide.job_types import TYPES, traits_of
from svcd.workflow.decide.object_store import container_of

if TYPE_CHECKING:
    from svcd.ports.engine import LauncherLimits  # the commands, too, import this module

_UNUSABLE: Final = frozenset({ClusterStatus.DELETING, ClusterStatus.ERROR})


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


def data_source_faults(url: str, account: Credentials | None) -> Sequence[str]:
    """The texts of a new data source that no definition can hold, with their JSON paths."""
    places = {"url": url}
    if account is not None:
        places |= {"credentials.user": account.user, "credentials.password": account.password}
    wrong = {place: job_configs.xml_fault(text) for place, text in places.items()}
    return [f"$.{place}: {fault}" for place, fault in wrong.items() if fault]


def config_faults(job_type: JobType, mains: Sequence[str], configs: JobConfigs) -> Iterator[str]:
    """The values of `job_configs` that have no way to the program, with their JSON paths.

    mains: the names of the files.
    """
    yield from job_configs.faults_of(job_type, mains[0] if mains else "", configs)
    if job_type is JobType.PIG:
        yield from pig_job.config_faults(configs)
    if job_type is JobType.SPARK:
        yield from spark_job.config_faults(mains, configs)


def file_faults(
    job_type: JobType, mains: Sequence[JobBinary], libs: Sequence[JobBinary]
) -> Iterator[str]:
    """Faults of the names of a job's files, with their JSON paths."""
    yield from arguments.file_faults(job_type, mains, libs)
    if job_type is JobType.SPARK:
        yield from spark_job.main_faults([binary.file for binary in mains])


def cluster_faults(
    job_type: JobType, cluster: Cluster, types: Sequence[JobType], has_engine: bool
) -> Sequence[str]:
    """The reason why a cluster runs no jobs of the type, with its JSON path.

    types: those that its distribution runs. has_engine: see `Engines`.
    """
    named, place = f"cluster {cluster.name}", "$.cluster_id:"
    can = [type_ for type_ in types if type_ in TYPES]  # svcd can write a definition
    if cluster.status in _UNUSABLE:
        status = cluster.status.value
        return [f"{place} {named} is {status} and runs no jobs; use another one"]
    if job_type not in can:
        runs = ", ".join(type_.value for type_ in can) or "no jobs"
        kind = f"({cluster.plugin_name}) cannot run {job_type.value} jobs"
        return [f"{place} {named} {kind}; it runs {runs}"]
    if job_type is JobType.SPARK and (lacks := spark_job.image_fault(cluster)):
        return [f"{place} {named} cannot run Spark jobs: {lacks}"]
    if not has_engine:
        advice = Code.NO_ENGINE.advice
        return [f"{place} {named} has no workflow engine and runs no jobs; {advice}"]
    return []


def execution_faults(
    job_type: JobType,
    sources: Mapping[str, DataSource | None],
    configs: JobConfigs,
    limits: LauncherLimits | None,
) -> Iterator[str]:
    """Faults of an execution's data sources and values, with their JSON paths.

    sources: by the field of the request that names them. limits: of its cluster, once that is
    Active.
    """
    for name, source in sources.items():
        if source is None and traits_of(job_type).needs_data:
            yield f"$.{name}: missing; a {job_type.value} job needs this data source"
    if same_place(sources["input_id"], sources["output_id"]):
        yield (
            "$.output_id: input and output are the same folder, and a job must not write to "
            "its input; use another data source"
        )
    yield from data_urls.faults_of(job_type, sources, configs.configs)
    yield from job_configs.unusable(job_type, configs)
    if limits is not None:
        yield from job_configs.launcher_faults(job_type, configs.configs, limits)


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
