"""The rows that an execution refers to, and the input of its definition. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from svcd.model.cluster import Cluster
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobConfigs
from svcd.model.secret import Secret
from svcd.model.template import Configs
from svcd.workflow.decide import document
from svcd.workflow.decide.job_credentials import Login, Logins
from svcd.workflow.decide.object_store import ObjectStoreAccess


@frozen(kw_only=True)
class Material:
    """The rows that an execution refers to."""

    job: Job
    mains: tuple[JobBinary, ...]
    libs: tuple[JobBinary, ...]
    input: DataSource | None
    output: DataSource | None


def secrets_of(row: Execution, material: Material, logins: Logins) -> Sequence[Secret]:
    """The secrets that svcd sends to the engine and to HDFS, and the passwords of accounts."""
    found = [each.credential.secret for each in logins.values() if isinstance(each, Login)]
    found += document.secrets_of([material.input, material.output], row.job_configs)
    binaries = (*material.mains, *material.libs)
    return found + [Secret(b.extra.password) for b in binaries if b.extra is not None]


def work_of(
    row: Execution,
    material: Material,
    access: ObjectStoreAccess | None,
    cluster: Cluster | None,
    logins: Logins,
) -> document.Work:
    """The input of the definition. cluster: None while it is not known."""
    options: list[Configs] = []
    if cluster is not None:
        options = [cluster.cluster_configs, *(g.node_configs for g in cluster.node_groups)]
    return document.Work(
        execution_id=row.id,
        type=material.job.type,
        project=row.tenant_id,
        mains=tuple(binary.file for binary in material.mains),
        libs=tuple(binary.file for binary in material.libs),
        input=material.input,
        output=material.output,
        configs=row.job_configs or JobConfigs(),
        object_store=access,
        logins=logins,
        most_characters=None if cluster is None else document.most_characters(options),
    )
