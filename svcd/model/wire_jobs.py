"""The answers that v1.1 adds; see `wire`. Pure.

Additive fields, beyond the interface: of an execution's info `failure` and, while the execution
waits for something that is missing, `waiting`.

Source: interface, "Resources and their fields"; behaviour, Part I 10, 16, 26.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Self, cast

from msgspec import UNSET

from svcd.model import fields, job
from svcd.model.fields import means
from svcd.model.ids import JobBinaryId, Timestamp, http_date, iso_seconds
from svcd.model.redaction import MASK, shown_url
from svcd.model.template import ConfigValue
from svcd.model.wire import Absent, View


class Account(View, frozen=True, kw_only=True):
    """User and password of the object store; {} when none were given."""

    user: fields.AccountUser | Absent = UNSET
    password: fields.AccountPassword | Absent = UNSET

    @classmethod
    def of(cls, given: job.Credentials | None, hide: bool) -> Self:
        """hide: mask both."""
        if given is None:
            return cls()
        if hide:
            return cls(user=MASK, password=MASK)
        return cls(user=given.user, password=given.password)


class DataSource(View, frozen=True, kw_only=True):
    """A location of input or output."""

    id: fields.Id
    name: fields.DataName
    description: fields.Text
    type: Annotated[str, fields.DATA_TYPE]
    url: fields.DataUrl
    credentials: Annotated[Account, fields.ACCOUNT]
    tenant_id: fields.Tenant
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | Absent | None = UNSET

    @classmethod
    def of(cls, record: job.DataSource, hide: bool = False, created: bool = False) -> Self:
        """hide: mask the credentials, also in the URL. created: the answer of its creation."""
        return cls.filled(
            record,
            description=record.description or "",
            url=shown_url(record.url) if hide else record.url,
            credentials=Account.of(record.credentials, hide),
            updated_at=UNSET if created else record.updated_at,
        )


class JobBinaryInternal(View, frozen=True, kw_only=True):
    """A binary that svcd keeps, without its bytes."""

    id: fields.Id
    name: fields.DataName
    tenant_id: fields.Tenant
    datasize: Annotated[int, means("size in bytes")]
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | None

    @classmethod
    def of(cls, record: job.JobBinaryInternal) -> Self:
        """The answer for `record`."""
        return cls.filled(record)


class JobBinary(View, frozen=True, kw_only=True):
    """A link to a binary."""

    id: fields.Id
    name: fields.DataName
    description: fields.Text
    file_name: fields.FileName | Absent = UNSET
    url: fields.BinaryUrl
    extra: Annotated[Account, fields.ACCOUNT]
    tenant_id: fields.Tenant
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | Absent | None = UNSET

    @classmethod
    def of(cls, record: job.JobBinary, hide: bool = False, created: bool = False) -> Self:
        """hide: mask the credentials, also in the URL. created: the answer of its creation."""
        return cls.filled(
            record,
            description=record.description or "",
            url=shown_url(record.url) if hide else record.url,
            extra=Account.of(record.extra, hide),
            updated_at=UNSET if created else record.updated_at,
        )


class Job(View, frozen=True, kw_only=True):
    """A job with its binaries as full objects."""

    id: fields.Id
    name: fields.DataName
    description: fields.Text
    type: Annotated[job.JobType, fields.JOB_TYPE]
    mains: Annotated[list[JobBinary], means("job binaries with the main program or script")]
    libs: Annotated[list[JobBinary], means("job binaries with libraries")]
    tenant_id: fields.Tenant
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | None

    @classmethod
    def of(
        cls, record: job.Job, binaries: Mapping[JobBinaryId, job.JobBinary], hide: bool = False
    ) -> Self:
        """`binaries` holds at least those that the job names. hide: mask their credentials."""

        def expanded(ids: tuple[JobBinaryId, ...]) -> list[JobBinary]:
            return [JobBinary.of(binaries[id_], hide) for id_ in ids if id_ in binaries]

        return cls.filled(
            record,
            description=record.description or "",
            mains=expanded(record.mains),
            libs=expanded(record.libs),
        )


class ExecutionFailure(View, frozen=True, kw_only=True):
    """Why an execution did not succeed."""

    code: fields.Code
    step: fields.Step
    text: fields.Words


class ExecutionWait(View, frozen=True, kw_only=True):
    """The missing thing that an execution waits for, since when and until when at most."""

    code: fields.Code
    step: fields.Step
    text: fields.Words
    since: Annotated[str, means("begin of the wait, UTC")]
    until: fields.Until | None


class ExecutionInfo(View, frozen=True, kw_only=True):
    """The engine's record, with svcd's word for the status."""

    status: Annotated[
        job.ExecutionStatus,
        means("status of the job execution; SUCCEEDED, KILLED and FAILED are final"),
    ]
    failure: Annotated[
        ExecutionFailure | Absent, means("why the job execution did not succeed")
    ] = UNSET
    waiting: Annotated[
        ExecutionWait | Absent, means("the missing thing for which the job execution waits")
    ] = UNSET

    @classmethod
    def of(cls, record: job.Execution) -> ExecutionInfo:
        """A mapping in truth: the engine's record has more fields than the class."""
        info: dict[str, object] = {**complete_record(record), "status": record.status.value}
        if record.failure is not None:
            info["failure"] = ExecutionFailure.filled(record.failure)
        if record.waiting is not None:
            waiting = record.waiting
            info["waiting"] = ExecutionWait.filled(
                waiting, since=iso_seconds(waiting.since), until=_seconds_or_none(waiting.until)
            )
        return cast("ExecutionInfo", info)


OPEN: Final = frozenset({ExecutionInfo.__name__})
"""Classes whose answers may hold more fields than described."""


class ExecutionConfigs(View, frozen=True, kw_only=True):
    """The configuration that the caller gave for an execution; {} for none."""

    configs: Annotated[
        Mapping[str, ConfigValue] | Absent, means("options of the job, for Hadoop")
    ] = UNSET
    args: Annotated[
        Mapping[str, ConfigValue] | tuple[str, ...] | Absent, means("arguments of the program")
    ] = UNSET
    params: Annotated[Mapping[str, ConfigValue] | Absent, means("parameters of a script")] = UNSET

    @classmethod
    def of(cls, given: job.JobConfigs | None) -> Self:
        """The answer for `given`."""
        if given is None or not (given.configs or given.args or given.params):
            return cls()
        return cls(configs=given.configs, args=given.args, params=given.params)


class JobExecution(View, frozen=True, kw_only=True):
    """A job run on a cluster."""

    id: fields.Id
    job_id: fields.JobRef
    cluster_id: Annotated[
        str | None, means("cluster on which the job runs; null when its cluster could not be made")
    ]
    input_id: fields.InputId | None
    output_id: fields.OutputId | None
    job_configs: Annotated[ExecutionConfigs, fields.JOB_CONFIGS]
    info: Annotated[
        ExecutionInfo, means("record of the workflow engine, with svcd's word for the status")
    ]
    workflow_job_id: Annotated[
        str | None, means("id at the workflow engine; null before the submit")
    ]
    return_code: Annotated[
        int | None, means("exit code of the main program; null when it is not known")
    ]
    progress: Annotated[
        float | None, means("part that is done, from 0.0 to 1.0; null when it is not known")
    ]
    tenant_id: fields.Tenant
    start_time: Annotated[
        str | None, means("begin of the run, UTC, as `YYYY-MM-DDTHH:MM:SS`; null before it")
    ]
    end_time: Annotated[
        str | None, means("end of the run, UTC, as `YYYY-MM-DDTHH:MM:SS`; null before it")
    ]
    created_at: fields.CreatedAt
    updated_at: fields.UpdatedAt | None

    @classmethod
    def of(cls, record: job.Execution) -> Self:
        """The answer for `record`."""
        return cls.filled(
            record,
            job_configs=ExecutionConfigs.of(record.job_configs),
            info=ExecutionInfo.of(record),
            start_time=_seconds_or_none(record.start_time),
            end_time=_seconds_or_none(record.end_time),
        )


class ConfigHint(View, frozen=True, kw_only=True):
    """An option that a job may take."""

    name: Annotated[str, means("name of the option, for `job_configs.configs`")]
    value: Annotated[str, means("default value")]
    description: fields.Prose


class JobConfig(View, frozen=True, kw_only=True):
    """Hints of a job type."""

    configs: Annotated[list[ConfigHint], means("options that a job of the type may take")]
    args: Annotated[dict[str, str], means("arguments of the program")]


def complete_record(execution: job.Execution) -> dict[str, object]:
    """The engine's record. Once the execution has ended, it holds no time that is null.

    The engine may be gone before it has written the end of the workflow and of its actions.
    """
    record = execution.record
    if execution.end_time is None:
        return dict(record)
    began, ended = execution.start_time or execution.end_time, execution.end_time
    actions = record.get("actions")
    result = _timed(record, began, ended)
    if isinstance(actions, list | tuple):
        result["actions"] = [
            _timed(action, ended, ended) if isinstance(action, Mapping) else action
            for action in actions
        ]
    return result


def _timed(part: Mapping[str, object], began: Timestamp, ended: Timestamp) -> dict[str, object]:
    """A copy of `part` of an engine's record. Its times that are null become `began` or `ended`."""
    times = {"startTime": began, "lastModTime": ended, "endTime": ended}
    missing = {key: http_date(at) for key, at in times.items() if part.get(key, "") is None}
    return {**part, **missing}


def _seconds_or_none(stamp: Timestamp | None) -> str | None:
    return None if stamp is None else iso_seconds(stamp)
