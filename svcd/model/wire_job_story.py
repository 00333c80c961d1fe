"""The story of a job execution, as the API tells it: the present work, the failure, the steps.

It is additive (v1.1).
"""

from __future__ import annotations

import enum
from typing import Annotated

from svcd.model import cluster, fields, job
from svcd.model.execution_outcome import ExecutionOutcome
from svcd.model.fields import means
from svcd.model.wire import View


class WorkKind(enum.StrEnum):
    """What an execution that has not ended does."""

    WAIT = "wait"  # it waits for a missing thing
    CLUSTER = "cluster"  # it waits for its cluster to become Active
    SUBMIT = "submit"  # svcd submits it to the workflow engine
    RUN = "run"  # the workflow engine has it


class ExecutionFault(View, frozen=True, kw_only=True):
    """Why an execution did not succeed, or what it waits for."""

    code: fields.Code
    step: fields.Step
    text: fields.Words
    meaning: Annotated[str, means("meaning of the code; empty for an unknown code")]
    advice: Annotated[str, means("remedy; empty when svcd knows none")]


class ExecutionWork(View, frozen=True, kw_only=True):
    """What happens with an execution now."""

    kind: Annotated[WorkKind, means("kind of the work")]
    since: Annotated[str | None, means("begin of the work, UTC; null when it is not known")]
    until: fields.Until | None
    progress: Annotated[
        float | None, means("part that is done, from 0.0 to 1.0; null when it is not known")
    ]
    wait: Annotated[
        ExecutionFault | None, means("the missing thing; null for another kind than `wait`")
    ]
    cluster_status: Annotated[
        cluster.ClusterStatus | None,
        means("status of the cluster; null for another kind than `cluster`"),
    ]


class EngineStep(View, frozen=True, kw_only=True):
    """An action of the workflow engine that does work."""

    name: Annotated[str, means("name of the action")]
    type: Annotated[str, means("type of the action, such as `pig`")]
    status: Annotated[str, means("the engine's word for the state of the action")]
    began: Annotated[str | None, means("begin of the action, UTC; null before it")]
    ended: Annotated[str | None, means("end of the action, UTC; null before it")]
    external_id: Annotated[str, means("id of its YARN application; empty before its start")]
    external_status: Annotated[str, means("YARN's word for its state; empty when not known")]
    error_code: Annotated[str, means("the engine's code of an error; empty without one")]
    error_text: Annotated[str, means("the engine's text of an error; empty without one")]
    page: Annotated[str, means("address of the application at YARN; empty when not known")]


class ExecutionStory(View, frozen=True, kw_only=True):
    """The story of a job execution (additive)."""

    status: Annotated[job.ExecutionStatus, means("status of the job execution")]
    outcome: Annotated[
        ExecutionOutcome, means("how the job execution ended; `going on` before its end")
    ]
    work: Annotated[ExecutionWork | None, means("the present work; null after the end")]
    failure: Annotated[ExecutionFault | None, means("why it did not succeed; null without one")]
    steps: Annotated[list[EngineStep], means("actions of the workflow engine, in its order")]
