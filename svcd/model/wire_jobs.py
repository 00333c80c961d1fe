"""The answers that v1.1 adds; see `wire`. Pure.

Additive fields, beyond the interface: of an execution's info `failure` and, while the execution
waits for something that is missing, `waiting`.

Source: interface, "Resources and their fields"; behaviour, Part I 10, 16, 26.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self, cast

from msgspec import UNSET, convert

from svcd.model import job
from svcd.model.ids import JobBinaryId, Timestamp, http_date, iso_seconds
from svcd.model.redaction import MASK, shown_url
from svcd.model.template import ConfigValue
from svcd.model.wire import Absent, View


class Account(View, frozen=True, kw_only=True):
    """User and password of the object store; {} when none were given."""

    user: str | Absent = UNSET
    password: str | Absent = UNSET

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

    id: str
    name: str
    description: str
    type: str
    url: str
    credentials: Account
    tenant_id: str
    created_at: str
    updated_at: str | Absent | None = UNSET

    @classmethod
    def of(cls, record: job.DataSource, hide: bool = False, created: bool = False) -> Self:
        """hide: mask the credentials, also in the URL. created: the answer of its creation."""
        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            type=record.type,
            url=shown_url(record.url) if hide else record.url,
            credentials=Account.of(record.credentials, hide),
            tenant_id=record.tenant_id,
            created_at=record.created_at,
            updated_at=UNSET if created else record.updated_at,
        )


class JobBinaryInternal(View, frozen=True, kw_only=True):
    """A binary that svcd keeps, without its bytes."""

    id: str
    name: str
    tenant_id: str
    datasize: int
    created_at: str
    updated_at: str | None

    @classmethod
    def of(cls, record: job.JobBinaryInternal) -> Self:
        """The answer for `record`, which has the same fields."""
        return convert(record, cls, from_attributes=True)


class JobBinary(View, frozen=True, kw_only=True):
    """A link to a binary."""

    id: str
    name: str
    description: str
    file_name: str | Absent = UNSET
    url: str
    extra: Account
    tenant_id: str
    created_at: str
    updated_at: str | Absent | None = UNSET

    @classmethod
    def of(cls, record: job.JobBinary, hide: bool = False, created: bool = False) -> Self:
        """hide: mask the credentials, also in the URL. created: the answer of its creation."""
        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            file_name=UNSET if record.file_name is None else record.file_name,
            url=shown_url(record.url) if hide else record.url,
            extra=Account.of(record.extra, hide),
            tenant_id=record.tenant_id,
            created_at=record.created_at,
            updated_at=UNSET if created else record.updated_at,
        )


class Job(View, frozen=True, kw_only=True):
    """A job with its binaries as full objects."""

    id: str
    name: str
    description: str
    type: job.JobType
    mains: list[JobBinary]
    libs: list[JobBinary]
    tenant_id: str
    created_at: str
    updated_at: str | None

    @classmethod
    def of(
        cls, record: job.Job, binaries: Mapping[JobBinaryId, job.JobBinary], hide: bool = False
    ) -> Self:
        """`binaries` holds at least those that the job names. hide: mask their credentials."""

        def expanded(ids: tuple[JobBinaryId, ...]) -> list[JobBinary]:
            return [JobBinary.of(binaries[each], hide) for each in ids if each in binaries]

        return cls(
            id=record.id,
            name=record.name,
            description=record.description or "",
            type=record.type,
            mains=expanded(record.mains),
            libs=expanded(record.libs),
            tenant_id=record.tenant_id,
            created_at=record.created_at,
            updated_at=record.updated_at,
        )


class ExecutionFailure(View, frozen=True, kw_only=True):
    """Why an execution did not succeed."""

    code: str
    step: str
    text: str


class ExecutionWait(View, frozen=True, kw_only=True):
    """The missing thing that an execution waits for, since when and until when at most."""

    code: str
    step: str
    text: str
    since: str
    until: str | None


class ExecutionInfo(View, frozen=True, kw_only=True):
    """The engine's record, with svcd's word for the status."""

    status: job.ExecutionStatus
    failure: ExecutionFailure | Absent = UNSET
    waiting: ExecutionWait | Absent = UNSET

    @classmethod
    def of(cls, record: job.Execution) -> ExecutionInfo:
        """A mapping in truth: the engine's record has more fields than the class."""
        info: dict[str, object] = {**_complete(record), "status": record.status.value}
        if record.failure is not None:
            info["failure"] = convert(record.failure, ExecutionFailure, from_attributes=True)
        if record.waiting is not None:
            until = record.waiting.until
            info["waiting"] = ExecutionWait(
                code=record.waiting.code,
                step=record.waiting.step,
                text=record.waiting.text,
                since=iso_seconds(record.waiting.since),
                until=None if until is None else iso_seconds(until),
            )
        return cast("ExecutionInfo", info)


OPEN: Final = frozenset({ExecutionInfo.__name__})
"""Classes whose answers may hold more fields than described."""


class ExecutionConfigs(View, frozen=True, kw_only=True):
    """The configuration that the caller gave for an execution; {} for none."""

    configs: Mapping[str, ConfigValue] | Absent = UNSET
    args: Mapping[str, ConfigValue] | tuple[str, ...] | Absent = UNSET
    params: Mapping[str, ConfigValue] | Absent = UNSET

    @classmethod
    def of(cls, given: job.JobConfigs | None) -> Self:
        """The answer for `given`."""
        if given is None or not (given.configs or given.args or given.params):
            return cls()
        return cls(configs=given.configs, args=given.args, params=given.params)


class JobExecution(View, frozen=True, kw_only=True):
    """A job run on a cluster."""

    id: str
    job_id: str
    cluster_id: str | None
    input_id: str | None
    output_id: str | None
    job_configs: ExecutionConfigs
    info: ExecutionInfo
    workflow_job_id: str | None
    return_code: int | None
    progress: float | None
    tenant_id: str
    start_time: str | None
    end_time: str | None
    created_at: str
    updated_at: str | None

    @classmethod
    def of(cls, record: job.Execution) -> Self:
        """The answer for `record`."""
        return cls(
            id=record.id,
            job_id=record.job_id,
            cluster_id=record.cluster_id,
            input_id=record.input_id,
            output_id=record.output_id,
            job_configs=ExecutionConfigs.of(record.job_configs),
            info=ExecutionInfo.of(record),
            workflow_job_id=record.workflow_job_id,
            return_code=record.return_code,
            progress=record.progress,
            tenant_id=record.tenant_id,
            start_time=_seconds_or_none(record.start_time),
            end_time=_seconds_or_none(record.end_time),
            created_at=record.created_at,
            updated_at=record.updated_at,
        )


class ConfigHint(View, frozen=True, kw_only=True):
    """An option that a job may take."""

    name: str
    value: str
    description: str


class JobConfig(View, frozen=True, kw_only=True):
    """Hints of a job type."""

    configs: list[ConfigHint]
    args: dict[str, str]


def _complete(execution: job.Execution) -> dict[str, object]:
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
