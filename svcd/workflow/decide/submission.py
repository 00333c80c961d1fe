"""Plans how a `Pending` execution gets to the engine. Pure, level-triggered.

Note: submitted exactly once. svcd writes `Move.SEND` before the submit call. The engine keeps
svcd's execution id as its job's external id. So when svcd finds a submit under way after a
time-out, a lost answer or a restart, it sends no other submit before the procedure below has
settled the first one. A submit has `ARRIVES_S` to arrive before svcd asks the engine for the job.

Note: never twice, never unwatched. A submit may still be inside the engine (or in its queue) long
after svcd gave up the connection, while the engine answers that it knows no such job. So svcd does
not trust this "no", at any age of the submit, until the submit can do no harm any more:

1. The engine answers "no" for `QUIET_S`, without a lost answer in between.
2. Then svcd removes the execution's folder from HDFS. The engine reads the definition from there
   when it takes a job, and refuses a job without a definition (E0307). A job whose definition it
   read just before cannot run, because the script and the libraries were in the same folder. Each
   submit has its own folder, so the next submit is not affected.
3. The engine answers "no" for another `QUIET_S`. In this time a job appears whose definition the
   engine read just before.

Only then svcd stages and submits the execution anew, or ends it as the caller requested. svcd kills
a job that appears after its folder has gone, and the execution fails with that reason.

An execution whose time is over during this procedure ends as `FAILED`. svcd continues the same
steps for at most `WATCH_S`, also after a restart, and kills a job that appears. After that time
svcd can do nothing more; the failure says so from the beginning.

Every attempt is safe to repeat. svcd retries a passing fault with back-off until
`submit_deadline_s` after the cluster became Active, and shows it as `waiting`. Then the execution
fails with the last reason. An execution may also wait for a place at svcd itself, which starts only
some executions in parallel; the same deadline holds.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, frozen

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.failures import Code
from svcd.model.ids import seconds_of, timestamp
from svcd.model.job import Doubt, Execution, ExecutionStatus
from svcd.workflow.decide import failures, lifecycle
from svcd.workflow.decide.lifecycle import Move, Submit, submit_of, waiting_for
from svcd.workflow.decide.steps import (
    Adopt,
    Again,
    Denied,
    End,
    Fail,
    FindJob,
    Forget,
    Found,
    KillLate,
    Outcome,
    RemoteStep,
    RemoveDefinition,
    Rest,
    Retry,
    Start,
    Step,
)

ARRIVES_S: Final = 10.0
"""Time from a submit with an unknown result to the first question whether it arrived."""

SLOW_ARRIVES_S: Final = 60.0
"""The same after a submit without an answer in time: the engine is slow, not gone."""

QUIET_S: Final = 10.0
"""The engine must deny the job for this time, before and again after its folder is removed."""

TURN_S: Final = 60.0
"""An execution whose deadline passed before, for example while svcd was down, waits so long for a
place."""

WATCH_S: Final = 3600.0
"""svcd searches for the job of an execution that it gave up for this time."""

_QUEUED: Final = (
    "svcd starts only some executions of a cluster and of a tenant in parallel, and this one waits"
    " for its turn"
)
_UNKNOWN: Final = "the engine does not know the job yet"


@frozen(kw_only=True)
class Seen:
    """The input of a plan beside the row. user: of HDFS; None: the cluster has no engine."""

    cluster: Cluster | None
    user: str | None = None


@frozen(kw_only=True)
class Follow:
    """The reaction to an outcome. move: of the submit, to write first, or None. step: the next."""

    move: Move | None = None
    step: Step


def plan(row: Execution, seen: Seen, now: float) -> Step:
    """The next step of an execution that the engine does not run yet."""
    if row.workflow_job_id is not None:
        return Rest()
    if lifecycle.is_over(row) and not row.submitting:
        return Rest()
    wait_s = 0.0 if row.retry_at is None else seconds_of(row.retry_at) - now
    if lifecycle.is_over(row):
        return _watch(seen, wait_s)
    if wait_s > 0 and not row.cancel_requested:
        return Rest(wait_s=wait_s)
    unwanted = row.cancel_requested or row.delete_requested
    if not row.submitting and unwanted:
        return End(status=ExecutionStatus.KILLED)
    cluster = seen.cluster
    if cluster is None:
        return _failed(Code.CLUSTER_GONE, "the cluster was deleted before the job could start")
    if cluster.status is ClusterStatus.DELETING:
        return End(status=ExecutionStatus.KILLED)
    if not row.submitting:
        if cluster.status is ClusterStatus.ERROR:
            text = f"cluster {cluster.name} is in Error: {cluster.status_description}"
            return _failed(Code.CLUSTER_FAILED, text)
        if cluster.status is not ClusterStatus.ACTIVE:
            return Rest()
    if seen.user is None:
        return _failed(Code.NO_ENGINE, f"cluster {cluster.name} has no workflow engine")
    if row.submitting:
        return FindJob(early=wait_s > 0)
    folder = f"/user/{seen.user}/svcd/{row.id}"
    if row.submits:
        folder = f"{folder}-{row.submits + 1}"
    return Start(folder=folder, stage=not row.staged or row.workflow_dir != folder)


def _watch(seen: Seen, wait_s: float) -> Step:
    """The next step of an execution that svcd gave up while its submit was under way."""
    if wait_s > 0:
        return Rest(wait_s=wait_s)
    cluster = seen.cluster
    if cluster is None or cluster.status is ClusterStatus.DELETING or seen.user is None:
        return Forget()
    return FindJob()


def _failed(code: Code, text: str) -> End:
    return End(status=ExecutionStatus.FAILED, failure=failures.failure(code, "start", text))


def follow(row: Execution, step: RemoteStep, outcome: Outcome, now: float) -> Follow:
    """The reaction to the outcome of a step that was planned for `row`."""
    match step, outcome:
        case _, Retry() if not isinstance(step, FindJob):
            return Follow(step=outcome)
        case _, Fail(failure=failure):
            return Follow(step=End(status=ExecutionStatus.FAILED, failure=failure))
        case Start(), Found(job_id=job_id):
            return Follow(step=Adopt(job_id=job_id))
        case FindJob(), Found() | Denied() | Retry():
            return _recover(row, step, outcome, now)
        case RemoveDefinition(), _:
            return Follow(move=Move.FENCE, step=_unknown(QUIET_S))
        case KillLate(job_id=job_id), _:
            if lifecycle.is_over(row):
                return Follow(step=Adopt(job_id=job_id))
            text = f"the engine took the submit too late ({job_id}, killed: its files had gone)"
            failure = failures.failure(Code.ENGINE_UNREACHABLE, "submit", text)
            return Follow(step=End(status=ExecutionStatus.FAILED, failure=failure))
        case _:
            return Follow(step=Again())


def _recover(row: Execution, step: FindJob, answer: Found | Denied | Retry, now: float) -> Follow:
    """The reaction to the engine's answer whether it has the job. See the notes."""
    doubt = row.doubt or Doubt()
    if isinstance(answer, Found):
        late = doubt.fenced_at is not None or lifecycle.is_over(row)
        job_id = answer.job_id
        return Follow(step=KillLate(job_id=job_id) if late else Adopt(job_id=job_id))
    if isinstance(answer, Retry):
        denied = submit_of(row) in (Submit.DENIED, Submit.FENCED)
        return Follow(move=Move.SILENCE if denied and not step.early else None, step=answer)
    if step.early:
        return Follow(step=Rest())
    if doubt.denied_at is None:
        return Follow(move=Move.DENY, step=_unknown(QUIET_S))
    quiet_since = seconds_of(doubt.denied_at)
    if doubt.fenced_at is not None:
        quiet_since = max(quiet_since, seconds_of(doubt.fenced_at))
    if now < quiet_since + QUIET_S:
        return Follow(step=_unknown(quiet_since + QUIET_S - now))
    if doubt.fenced_at is None:
        return Follow(step=RemoveDefinition(folder=row.workflow_dir))
    return Follow(move=Move.CLEAR, step=Again())


def _unknown(least_s: float) -> Retry:
    return Retry(code=Code.ENGINE_UNREACHABLE, step="submit", text=_UNKNOWN, least_s=least_s)


# ---- changes of the row; each gets its latest state at the time of the write --------------------


def is_wanted(row: Execution) -> bool:
    """Whether the execution shall still start."""
    return not (lifecycle.is_over(row) or row.cancel_requested)


def staging(row: Execution, folder: str) -> Execution:
    """`row` before svcd writes into `folder`; unchanged when it shall not start any more."""
    if not is_wanted(row):
        return row
    return evolve(row, workflow_dir=folder)


def sent(row: Execution, folder: str, now: float) -> Execution:
    """`row` before the submit call; unchanged when the caller no longer wants the execution."""
    if not is_wanted(row):
        return row
    return lifecycle.submit_move(
        row,
        Move.SEND,
        now,
        staged=True,
        workflow_dir=folder,
        submits=row.submits + 1,
        retry_at=timestamp(now + ARRIVES_S),
    )


def adopted(row: Execution, job_id: str, now: float) -> Execution:
    """`row` with the engine's job; the execution begins unless it has ended meanwhile."""
    row = lifecycle.submit_move(
        row, Move.TAKE, now, workflow_job_id=job_id, attempts=0, retry_at=None, waiting=None
    )
    return lifecycle.advance(row, ExecutionStatus.PREP, timestamp(now))


def forgotten(row: Execution, now: float) -> Execution:
    """`row` when no engine is left that could run its submit, and no folder to remove."""
    nothing: dict[str, Any] = {"staged": False, "workflow_dir": None, "retry_at": None}
    return lifecycle.submit_move(row, Move.END, now, **nothing)


def last_try(row: Execution, cluster: Cluster | None, deadline_s: float, now: float) -> float:
    """The time when svcd gives up `row`, in epoch seconds. deadline_s: for a start."""
    if lifecycle.is_over(row):
        until = None if row.doubt is None else row.doubt.watch_until
        return now if until is None else seconds_of(until)
    since = seconds_of(row.created_at)
    if cluster is not None:
        since = max(since, seconds_of(cluster.status_since))
    if since > now:  # written by a clock that was set back
        since = now if row.waiting is None else min(now, seconds_of(row.waiting.since))
    return since + deadline_s


def tries_again(row: Execution, delay_s: float, until: float, now: float) -> bool:
    """Whether svcd tries again after a passing fault. until: see `last_try`."""
    return now < until if lifecycle.is_over(row) else now + delay_s <= until


def retried(row: Execution, retry: Retry, delay_s: float, until: float, now: float) -> Execution:
    """`row` after a passing fault: svcd tries again after `delay_s`, or gives up."""
    if lifecycle.is_over(row) and not row.submitting:
        return row
    if retry.unsent:  # the staged files can be submitted unchanged
        row = lifecycle.submit_move(row, Move.TURN_AWAY, now, submits=row.submits - 1)
    again = evolve(row, attempts=row.attempts + 1, retry_at=timestamp(now + delay_s))
    another = tries_again(row, delay_s, until, now)
    if lifecycle.is_over(row):
        return again if another else lifecycle.submit_move(row, Move.END, now, retry_at=None)
    if not another:
        return _given_up(row, retry, row.attempts + 1, now)
    failure = failures.failure(retry.code, retry.step, retry.text)
    waiting = waiting_for(row, failure, timestamp(now), timestamp(until))
    return evolve(again, waiting=waiting)


def queued(row: Execution, since: float, until: float, now: float) -> Execution:
    """`row`, which waits for a place since that time: svcd shows the wait, or gives the row up.

    until: see `last_try`. A wait that the row shows already says more, and stays.
    """
    if not is_wanted(row):
        return row
    if until <= since:
        until = since + TURN_S
    if now > until:
        return _given_up(row, _reason(row), row.attempts, now)
    if row.waiting is not None:
        return row
    failure = failures.failure(Code.START_WAITS, "start", _QUEUED)
    return evolve(row, waiting=waiting_for(row, failure, timestamp(since), timestamp(until)))


def _reason(row: Execution) -> Retry:
    """The reason for which `row`, which waits for a place, is given up."""
    waiting = row.waiting
    if waiting is None:
        return Retry(code=Code.START_WAITS, step="start", text=_QUEUED)
    code = Code(waiting.code)
    return Retry(code=code, step=waiting.step, text=code.without_advice(waiting.text))


def is_as_planned(row: Execution, before: Execution) -> bool:
    """Whether `row` differs from `before` by no more than the wait that it shows."""
    return evolve(row, waiting=before.waiting, version=before.version) == before


def served(row: Execution) -> Execution:
    """`row` with a place at svcd."""
    waits = row.waiting is not None and row.waiting.code == Code.START_WAITS
    return evolve(row, waiting=None) if waits else row


def _given_up(row: Execution, retry: Retry, tries: int, now: float) -> Execution:
    """`row` after svcd gave up. See the second note."""
    text = f"{retry.text} ({tries} tries)"
    if row.submitting:
        text = f"{text}; the engine may still take it, and svcd then kills the job"
    failure = failures.failure(retry.code, retry.step, text)
    return lifecycle.give_up(row, failure, timestamp(now), timestamp(now + WATCH_S))


def ended(row: Execution, end: End, now: float) -> Execution:
    """`row` after the end, unless it has ended before."""
    over = lifecycle.advance(row, end.status, timestamp(now), failure=end.failure)
    return evolve(over, retry_at=None)
