"""Tells the story of a job execution: its present work, its failure, the engine's steps. Pure.

The story is made of the execution's row. It says nothing about the way to show it.
"""

from __future__ import annotations

from typing import Final

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.engine_record import Action, moment_of, parsed
from svcd.model.execution_outcome import outcome_of
from svcd.model.failures import explained
from svcd.model.ids import Timestamp, iso_seconds
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.model.wire_job_story import (
    EngineStep,
    ExecutionFault,
    ExecutionStory,
    ExecutionWork,
    WorkKind,
)
from svcd.model.wire_jobs import complete_record
from svcd.workflow.decide.lifecycle import is_over

_NONE: Final = "-"
"""The engine's word for an id or address that an action does not have."""


def story_of(execution: Execution, cluster: Cluster | None) -> ExecutionStory:
    """The story. cluster: that of the execution; None when it does not exist."""
    failure = execution.failure
    actions = parsed(complete_record(execution)).actions
    return ExecutionStory(
        status=execution.status,
        outcome=outcome_of(execution.status, None if failure is None else failure.code),
        work=None if is_over(execution) else _work(execution, cluster),
        failure=None if failure is None else _fault(failure),
        steps=[_step(action) for action in actions if not action.is_control],
    )


def _work(execution: Execution, cluster: Cluster | None) -> ExecutionWork:
    """What happens with an execution that has not ended."""
    waiting = execution.waiting
    is_pending = execution.status is ExecutionStatus.PENDING
    status, since = None, execution.start_time
    if waiting is not None:
        kind, since = WorkKind.WAIT, waiting.since
    elif is_pending and cluster is not None and cluster.status is not ClusterStatus.ACTIVE:
        kind, since, status = WorkKind.CLUSTER, execution.created_at, cluster.status
    elif is_pending and since is None:
        kind, since = WorkKind.SUBMIT, execution.created_at
    else:
        kind = WorkKind.RUN
    return ExecutionWork(
        kind=kind,
        since=_shown(since),
        until=None if waiting is None else _shown(waiting.until),
        progress=execution.progress,
        wait=None if waiting is None else _fault(waiting),
        cluster_status=status,
    )


def _fault(given: Failure | Waiting) -> ExecutionFault:
    return ExecutionFault(code=given.code, step=given.step, **explained(given.code, given.text))


def _step(action: Action) -> EngineStep:
    page = _given(action.console_url)
    return EngineStep(
        name=action.name,
        type=action.type,
        status=action.status,
        began=_shown(moment_of(action.started_on)),
        ended=_shown(moment_of(action.ended_on)),
        external_id=_given(action.external_id),
        external_status=action.external_status,
        error_code=action.error_code,
        error_text=action.error_message,
        page=page.replace("/proxy/job_", "/proxy/application_"),  # YARN's proxy takes these alone
    )


def _given(text: str) -> str:
    return "" if text == _NONE else text


def _shown(stamp: Timestamp | None) -> str | None:
    """A time in the form of those of the execution."""
    return None if stamp is None else iso_seconds(stamp)
