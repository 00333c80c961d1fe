"""Plans the next step of an execution, in each phase of its life. Pure, level-triggered.

    no job at the engine          `submission.plan`: start, find, or give up the submit
    a job at the engine           read its record, kill it, or show that the engine is silent
    over, and no submit in doubt  tidy up

`stalls` judges steps that run without a change. Functions that change a row get its latest state at
the time of the write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.engine_record import Record
from svcd.model.failures import Code
from svcd.model.ids import ClusterId, ExecutionId, Timestamp, seconds_of, timestamp
from svcd.model.job import Execution, ExecutionStatus, Failure, Waiting
from svcd.ports.engine import JobLine
from svcd.workflow.decide import causes, failures, lifecycle, stalls, submission
from svcd.workflow.decide.lifecycle import waiting_for
from svcd.workflow.decide.steps import (
    Condemn,
    End,
    KillJob,
    MarkOutage,
    Outage,
    ReadRecord,
    Rest,
    Step,
    TidyUp,
)

LAUNCH_S: Final = 45.0
"""The engine may take this long to hand a step to the cluster before svcd shows it as waiting."""

SETTLE_S: Final = 3.0
"""After an end the engine completes its record within this time; svcd reads it once more then."""

_DAY_S: Final = 86_400.0
_TIDY_S: Final = 900.0
"""Time after an end; then svcd no longer tries to remove the folder."""

_LOG_S: Final = 60.0
"""Time after an end; then a transient cluster no longer waits for the log."""

_S = ExecutionStatus


@frozen(kw_only=True)
class Memory:
    """The memory of one daemon about one cluster's engine; a restart may lose it.

    silent_since: the time of the first request in a row without an answer. steps: see `stalls`.
    """

    silent_since: float | None = None
    steps: stalls.Memory = field(factory=stalls.Memory)


@frozen(kw_only=True)
class Look:
    """One look at an engine, for all its executions.

    lines: of the engine's list, by job id. outage: the engine does not answer. memory: of this
    daemon about the engine. samples: executions whose record svcd reads whatever their line says.
    """

    lines: Mapping[str, JobLine] = field(factory=dict)
    outage: Outage | None = None
    memory: Memory = field(factory=Memory)
    samples: frozenset[ExecutionId] = frozenset()


@frozen(kw_only=True)
class Observed:
    """The input of a plan beside the row.

    cluster: None when it is gone. user: of HDFS; None: the cluster has no engine. look: the last
    one at the engine; None: none since the last run of the execution's task. is_read: the row is
    as new as the engine's record. manual_deadline_s: a job may wait so long for a person.
    """

    cluster: Cluster | None
    user: str | None = None
    look: Look | None = None
    is_read: bool = False
    manual_deadline_s: float


# ---- the plan -----------------------------------------------------------------------------------


def plan(row: Execution, observed: Observed, now: float) -> Step:
    """The next step of an execution."""
    if is_to_tidy(row):
        return _after_end(row, now)
    if row.workflow_job_id is not None and not lifecycle.is_over(row):
        return _at_engine(row, observed, now)
    seen = submission.Seen(cluster=observed.cluster, user=observed.user)
    return submission.plan(row, seen, now)


def has_interrupted_start(row: Execution, step: Step) -> bool:
    """Whether a start of `row` ended without a job, so that a write of it may still take effect.

    step: the next one. A cancel may have ended the row since.
    """
    if row.workflow_dir is None or row.workflow_job_id is not None:
        return False
    return row.attempts > 0 or not isinstance(step, TidyUp)


def broken(row: Execution, incident: str) -> End | None:
    """The end of an execution whose start has ended in a bug too often."""
    if not incident or row.workflow_job_id is not None or lifecycle.is_over(row):
        return None
    text = f"svcd could not start the job, incident {incident}"
    return End(status=_S.FAILED, failure=failures.failure(Code.INTERNAL, "start", text))


def _at_engine(row: Execution, observed: Observed, now: float) -> Step:
    """The next step of an execution that its engine runs."""
    cluster, look = observed.cluster, observed.look
    if cluster is None:
        return _orphaned(row, f"cluster {row.cluster_id} was deleted")
    if cluster.status is ClusterStatus.DELETING:
        return Rest()  # its delete kills them
    if observed.user is None:
        return _orphaned(row, "the cluster lost its workflow engine")
    most_s = observed.manual_deadline_s
    if observed.is_read:
        failure = overdue(row, Memory() if look is None else look.memory, now, most_s)
        return Rest() if failure is None else Condemn(failure=failure)
    if look is not None and look.outage is not None:
        is_due = shows_outage(row, look.outage, now)
        return MarkOutage(outage=look.outage) if is_due else Rest()
    if row.cancel_requested or row.delete_requested:
        return KillJob()
    if not row.record or (look is not None and row.id in look.samples):
        return ReadRecord()
    if look is None:
        return Rest()
    line = look.lines.get(row.workflow_job_id or "")
    return ReadRecord() if needs_record(row, line, look.memory, now, most_s) else Rest()


def orphan(row: Execution, why: str, now: float) -> Execution:
    """`row` after its cluster has gone."""
    return submission.ended(row, _orphaned(row, why), now)


def _orphaned(row: Execution, why: str) -> End:
    """The end of an execution whose cluster has gone."""
    failure = failures.failure(Code.CLUSTER_GONE, "cluster", why)
    return End(status=_S.KILLED, failure=None if row.cancel_requested else failure)


def _after_end(row: Execution, now: float) -> Rest | TidyUp:
    """The work after an end. The programs get time to end; a delete does not wait."""
    wait_s = SETTLE_S - (now - seconds_of(row.updated_at or row.created_at))
    is_early = 0.0 < wait_s <= SETTLE_S and not row.delete_requested
    return Rest(wait_s=wait_s) if is_early else TidyUp()


# ---- a tick -------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Due:
    """The rows of a tick, by the work that they need.

    ended: svcd has to tidy up after them.
    """

    ended: Sequence[ExecutionId]
    starts: Sequence[ExecutionId]
    at_engines: Mapping[ClusterId, Sequence[Execution]]


def due(rows: Sequence[Execution], now: float) -> Due:
    """The work of unfinished executions now; one that waits for its next try has none."""
    ended, starts = [], []
    at_engines: dict[ClusterId, list[Execution]] = {}
    for row in rows:
        if is_to_tidy(row):
            ended.append(row.id)
        elif row.workflow_job_id is None or row.cluster_id is None:
            is_due = row.retry_at is None or seconds_of(row.retry_at) <= now
            if is_due or row.cancel_requested:
                starts.append(row.id)
        else:
            at_engines.setdefault(row.cluster_id, []).append(row)
    return Due(ended=ended, starts=starts, at_engines=at_engines)


def needs_record(
    row: Execution, line: JobLine | None, memory: Memory, now: float, manual_deadline_s: float
) -> bool:
    """Whether svcd reads the engine's whole record of `row`. line: of the engine's list."""
    if line is None or row.cancel_requested or row.delete_requested:
        return True
    if overdue(row, memory, now, manual_deadline_s) is not None:
        return True
    if row.waiting is not None and not is_unlaunched(row) and not stalls.is_ours(row):
        return True  # the record may end the wait
    known = row.engine_record
    return (line.status, line.last_modified) != (known.status, known.modified)


def is_unlaunched(row: Execution) -> bool:
    """Whether a step waits for the cluster, by the engine's last answer."""
    silent = row.waiting is not None and row.waiting.code == Code.ENGINE_UNREACHABLE
    if row.status is not _S.RUNNING or silent:
        return False
    return row.engine_record.unlaunched is not None


@frozen(kw_only=True)
class News:
    """The engine's answer on one job. failure, return_code: if the job failed."""

    status: ExecutionStatus
    record: Record
    failure: Failure | None = None
    return_code: int | None = None


def absorbed(row: Execution, news: News, now: float, manual_deadline_s: float) -> Execution:
    """`row` after an answer of the engine. A job that a cancel has killed has no failure."""
    record = news.record
    cancelled = news.status is _S.KILLED and row.cancel_requested
    after = lifecycle.advance(
        row,
        news.status,
        timestamp(now),
        record=record.tree,
        started=record.started,
        ended=record.ended,
        failure=row.failure or (None if cancelled else news.failure),
        return_code=news.return_code,
    )
    if lifecycle.is_over(after):
        return after
    if news.status is _S.SUSPENDED and record.gave_up is not None:
        after = evolve(after, suspended_since=after.suspended_since or timestamp(now))
    waiting = _waiting(after, record, now, manual_deadline_s)
    return evolve(after, waiting=waiting or stalls.kept(row, record))


def _waiting(
    row: Execution, record: Record, now: float, manual_deadline_s: float
) -> Waiting | None:
    """The wait of `row` that `record` shows; None when the job makes progress."""
    if row.status not in (_S.RUNNING, _S.SUSPENDED):
        return None
    moment = timestamp(now)
    action = record.held
    if action is not None:
        until = None
        if row.status is _S.SUSPENDED:
            since = seconds_of(row.suspended_since or moment)
            until = timestamp(since + manual_deadline_s)
        return waiting_for(row, causes.of_giving_up(action, causes.configs_of(row)), moment, until)
    action = record.unlaunched
    began = row.start_time or row.created_at
    if action is None or row.status is not _S.RUNNING or now - seconds_of(began) < LAUNCH_S:
        return None
    text = "the engine has not handed the step to the cluster yet"
    failure = failures.failure(Code.STEP_WAITS, action.step, text)
    waiting = waiting_for(row, failure, moment, None)
    return waiting if row.waiting is not None else evolve(waiting, since=began)


def lost(row: Execution, now: float) -> Execution:
    """`row` after the engine has answered that it does not know the job."""
    text = f"the engine does not know workflow {row.workflow_job_id} any more"
    failure = failures.failure(Code.ENGINE_LOST_JOB, "workflow", text)
    return lifecycle.failed(row, failure, timestamp(now))


def overdue(row: Execution, memory: Memory, now: float, manual_deadline_s: float) -> Failure | None:
    """The reason why `row` would last for ever, once it has lasted for long enough.

    The engine waits for a person, or died after it took the job and before it began it, or no node
    can run the job.
    """
    record = row.engine_record
    if row.status is _S.SUSPENDED and row.suspended_since is not None:
        action = record.gave_up
        if action is not None and now - seconds_of(row.suspended_since) >= manual_deadline_s:
            return causes.of_giving_up(action, causes.configs_of(row))
    if row.status is _S.PREP:
        created = record.created
        # The engine's clock may differ: the job exists since `created_at` at the earliest.
        waited = 0.0 if created is None else now - seconds_of(max(created, row.created_at))
        if waited >= manual_deadline_s:
            text = "the engine took the job and never began it"
            return failures.failure(Code.START_GAVE_UP, "workflow", text)
    return stalls.outlasted(row, memory.steps, now)


def condemned(row: Execution, failure: Failure) -> Execution:
    """`row` with the reason for which svcd is about to kill it."""
    return row if lifecycle.is_over(row) else evolve(row, failure=failure)


def outage(memory: Memory, text: str, now: float, deadline_s: float) -> Outage:
    """The outage after a request without an answer. text: the reason of the last one."""
    return unread(memory.silent_since, text, now, deadline_s)


def unread(since: float | None, text: str, now: float, deadline_s: float) -> Outage:
    """The same for one execution, whose record cannot be read.

    since: the first read in a row that this daemon saw fail; None: this one. The row's own wait may
    be of an outage that is over, or of a time in which no svcd ran.
    """
    since = now if since is None else since
    return Outage(since=since, until=since + deadline_s, text=text)


def shows_outage(row: Execution, outage: Outage, now: float) -> bool:
    """Whether svcd writes the outage to `row`: from the second lost answer on, and at its end."""
    waits = row.waiting is not None and row.waiting.code == Code.ENGINE_UNREACHABLE
    return now >= outage.until or (outage.since < now and not waits)


def waits_for_engine(row: Execution, outage: Outage, now: float) -> Execution:
    """`row` during an outage."""
    if lifecycle.is_over(row):
        return row
    failure = failures.failure(Code.ENGINE_UNREACHABLE, "workflow", outage.text)
    waiting = waiting_for(row, failure, timestamp(now), timestamp(outage.until))
    return evolve(row, waiting=waiting)


def marked(row: Execution, outage: Outage, now: float) -> Execution:
    """`row` during an outage, or after one that lasted too long."""
    return (without_engine if now >= outage.until else waits_for_engine)(row, outage, now)


def without_engine(row: Execution, outage: Outage, now: float) -> Execution:
    """`row` after an outage that lasted too long."""
    text = f"no answer for {now - outage.since:.0f} s: {outage.text}"
    failure = failures.failure(Code.ENGINE_UNREACHABLE, "workflow", text)
    return lifecycle.failed(row, failure, timestamp(now))


# ---- after an end -------------------------------------------------------------------------------


def is_to_tidy(row: Execution) -> bool:
    """Whether svcd has to tidy up: the execution has ended, and no submit of it is in doubt."""
    return lifecycle.is_over(row) and not row.submitting


def needs_last_record(row: Execution) -> bool:
    """Whether the stored record is from before the engine completed it."""
    if row.workflow_job_id is None or row.delete_requested:
        return False
    return not row.engine_record.is_settled


def completed(row: Execution, record: Record) -> Execution:
    """`row` with the engine's completed record, if it shows the same end."""
    same = record.status == row.engine_record.status
    return evolve(row, record=record.tree) if same else row


def waits_for_log(row: Execution, now: float) -> bool:
    """Whether the execution's transient cluster waits until svcd has read the log."""
    if not is_to_tidy(row) or row.workflow_job_id is None or row.delete_requested:
        return False
    return row.end_time is not None and abs(now - seconds_of(row.end_time)) < _LOG_S


def leaves_folder(row: Execution, now: float) -> bool:
    """Whether svcd has tried for long enough to remove the folder."""
    ended = now if row.end_time is None else seconds_of(row.end_time)
    return abs(now - ended) >= _TIDY_S


def tidied(row: Execution) -> Execution:
    """`row` without a folder that svcd would still remove from HDFS."""
    return evolve(row, workflow_dir=None)


def kept_since(now: float, keep_days: int) -> float:
    """The time from which ended executions are kept, in seconds since the epoch."""
    return max(0.0, now - keep_days * _DAY_S)


def is_to_prune(row: Execution, before: Timestamp) -> bool:
    """Whether the execution ended before that time, and no submit of it is in doubt."""
    return row.end_time is not None and row.end_time < before and not row.submitting
