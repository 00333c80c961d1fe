"""The plan that a dry run of an execute request shows. Pure."""

from __future__ import annotations

from attrs import field, frozen

from svcd.model.job import DataSource, Execution
from svcd.model.redaction import DEFINITION, masked_document, shown_url
from svcd.model.wire_plans import ClusterPlan, ExecutionPlan, PlannedBinary, PlannedData
from svcd.workflow.decide import document
from svcd.workflow.decide.job_credentials import Logins
from svcd.workflow.decide.material import Material


@frozen(kw_only=True)
class Checked:
    """An execution without faults. workflow: its definition. logins: samples of its logins."""

    material: Material
    workflow: bytes = field(repr=False)
    logins: Logins = field(repr=False)


def execution_plan(row: Execution, checked: Checked, cluster: ClusterPlan | None) -> ExecutionPlan:
    """cluster: the plan of its new transient cluster."""
    material = checked.material
    job = material.job
    secrets = document.secrets_of([material.input, material.output], row.job_configs)
    return ExecutionPlan(
        job_id=job.id,
        job_type=job.type.value,
        cluster_id=row.cluster_id,
        cluster=cluster,
        staged=[
            PlannedBinary(name=binary.name, role=role, url=shown_url(binary.url))
            for role, binaries in (("main", material.mains), ("lib", material.libs))
            for binary in binaries
        ],
        input=_shown(material.input),
        output=_shown(material.output),
        workflow=masked_document(checked.workflow.decode(), secrets, *DEFINITION),
        job_credentials=len(checked.logins),
    )


def _shown(source: DataSource | None) -> PlannedData | None:
    if source is None:
        return None
    return PlannedData(id=source.id, name=source.name, type=source.type, url=shown_url(source.url))
