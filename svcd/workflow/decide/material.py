"""The rows that an execution refers to, and the input of its definition. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from svcd.model.cluster import Cluster
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobConfigs
from svcd.model.secret import Secret
from svcd.model.template import Configs
from svcd.workflow.decide import document
from svcd.workflow.decide.job_credentials import Logins
from svcd.workflow.decide.object_store import ObjectStoreAccess


@frozen(kw_only=True)
class Material:
    """The rows that an execution refers to."""

    job: Job
    mains: tuple[JobBinary, ...]
    libs: tuple[JobBinary, ...]
    input: DataSource | None
    output: DataSource | None

    @property
    def passwords(self) -> Sequence[Secret]:
        """The passwords of the accounts by which svcd reads the binaries."""
        accounts = (binary.extra for binary in (*self.mains, *self.libs))
        return [Secret(account.password) for account in accounts if account is not None]


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
