"""Data processing: data sources, binaries, jobs and executions."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Final, TypeAlias

from attrs import field, frozen

from svcd.model import engine_record
from svcd.model.ids import (
    ClusterId,
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    TenantId,
    Timestamp,
)
from svcd.model.redaction import url_repr
from svcd.model.secret import watch
from svcd.model.template import ConfigValue

GIVEN: Final = "given"
GivenText: TypeAlias = Annotated[str, GIVEN]
"""A text for a program: it may hold any character but U+0000, see svcd.model.shapes."""
GivenValue: TypeAlias = GivenText | int | bool

INTERNAL_URL = "internaldb://"
"""The beginning of the url of a binary that svcd keeps; its id follows."""
MAX_JOB_VALUES = 10_000
"""Most configs, args or params of a job: a workflow definition of the usual limit holds fewer."""


@frozen(kw_only=True)
class Credentials:
    """User and password of an object store account. Sealed at rest by the store."""

    user: str = field(repr=False)
    password: str = field(repr=False)

    def __attrs_post_init__(self) -> None:
        watch(self)

    def reveal(self) -> str:
        """The password, which the log removes from tracebacks (see model.secret)."""
        return self.password


@frozen(kw_only=True)
class DataSource:
    """A location of job input or output. credentials: None when none were given."""

    id: DataSourceId
    tenant_id: TenantId
    name: str
    description: str | None = None
    type: str
    url: str = field(repr=url_repr)
    credentials: Credentials | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class JobBinaryInternal:
    """Raw data kept by svcd. datasize in bytes; digest is the SHA-256 in hex."""

    id: JobBinaryInternalId
    tenant_id: TenantId
    name: str
    datasize: int
    digest: str
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class JobBinary:
    """A link to a binary, `internaldb://<id>` or `objstore-internal://<container>/<object>`.

    file_name: for its program; None: that of the record. extra: user and password for the object
    store; None when unused (answered as {}).
    """

    id: JobBinaryId
    tenant_id: TenantId
    name: str
    description: str | None = None
    file_name: str | None = None
    url: str = field(repr=url_repr)
    extra: Credentials | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None

    @property
    def file(self) -> str:
        """The name that the file has for a program."""
        return self.name if self.file_name is None else self.file_name


class JobType(enum.StrEnum):
    """The types of jobs. The distribution of a cluster decides which types it can run."""

    PIG = "Pig"
    JAR = "Jar"
    MAP_REDUCE = "MapReduce"
    JAVA = "Java"
    SHELL = "Shell"
    SPARK = "Spark"
    HIVE = "Hive"


@frozen(kw_only=True)
class Job:
    """A named list of main and library binaries of one type."""

    id: JobId
    tenant_id: TenantId
    name: str
    description: str | None = None
    type: JobType
    mains: tuple[JobBinaryId, ...] = ()
    libs: tuple[JobBinaryId, ...] = ()
    created_at: Timestamp
    updated_at: Timestamp | None = None


@frozen(kw_only=True)
class JobConfigs:
    """The caller's options for one execution. Answers show `args` in the caller's form."""

    configs: Mapping[str, ConfigValue] = field(factory=dict, repr=False)
    args: Mapping[str, GivenValue] | tuple[GivenText, ...] = field(factory=dict, repr=False)
    params: Mapping[str, GivenValue] = field(factory=dict, repr=False)


class ExecutionStatus(enum.StrEnum):
    """The status of an execution: `Pending` is svcd's own, the others are the engine's."""

    PENDING = "Pending"
    PREP = "PREP"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    SUCCEEDED = "SUCCEEDED"
    KILLED = "KILLED"
    FAILED = "FAILED"


@frozen(kw_only=True)
class Failure:
    """Why an execution did not succeed: code of a closed list, the step, and text for a person."""

    code: str
    step: str
    text: str


@frozen(kw_only=True)
class Waiting:
    """Why an execution waits for a missing thing. code, step, text: as in Failure.

    since: when svcd first found the thing missing; until: when svcd gives up, None for never.
    """

    code: str
    step: str
    text: str
    since: Timestamp
    until: Timestamp | None = None


@frozen(kw_only=True)
class Doubt:
    """The knowledge about a submit whose answer was lost (`Execution.submitting`).

    denied_at: begin of the time in which the engine denies the job; None: it has not answered since
    the submit. fenced_at: when svcd removed the workflow definition, so that the submit can no
    longer succeed. watch_until: when svcd stops the search for the job of an execution that it has
    given up.
    """

    denied_at: Timestamp | None = None
    fenced_at: Timestamp | None = None
    watch_until: Timestamp | None = None


@frozen(kw_only=True)
class Execution:
    """A job run on a cluster.

    cluster_id: stays after the cluster was deleted; None only until a transient cluster is created.
    status: value of `info.status`. record: the engine's record as last read, credentials masked
    (the other keys of `info`); {} before the engine knows the job.
    cancel_requested, delete_requested: requests of the caller, which the controller carries out.
    submitting: written before the submit call, so that a restart asks the engine first. It stays
    true for an execution that was given up, until the engine certainly has no job of it.
    submits: number of submits; each has its own folder. workflow_dir: the folder in HDFS, None
    without one. staged: the folder is complete.
    waiting: why the execution waits; None while it does not.
    """

    id: ExecutionId
    tenant_id: TenantId
    job_id: JobId
    cluster_id: ClusterId | None
    input_id: DataSourceId | None = None
    output_id: DataSourceId | None = None
    job_configs: JobConfigs | None = None
    status: ExecutionStatus = ExecutionStatus.PENDING
    record: Mapping[str, object] = field(factory=dict)
    failure: Failure | None = None
    workflow_job_id: str | None = None
    workflow_dir: str | None = None
    staged: bool = False
    submitting: bool = False
    submits: int = 0
    doubt: Doubt | None = None
    waiting: Waiting | None = None
    attempts: int = 0
    retry_at: Timestamp | None = None
    cancel_requested: bool = False
    delete_requested: bool = False
    suspended_since: Timestamp | None = None
    version: int = 1
    return_code: int | None = None
    progress: float | None = None
    start_time: Timestamp | None = None
    end_time: Timestamp | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None

    @cached_property
    def engine_record(self) -> engine_record.Record:
        """`record` as typed values, parsed at the first use."""
        return engine_record.parsed(self.record)
