"""Data processing: data sources, binaries, jobs and executions."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from attrs import field, frozen

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
from svcd.model.template import ConfigValue


@frozen(kw_only=True)
class Credentials:
    """User and password of an object store account. Sealed at rest by the store."""

    user: str = field(repr=False)
    password: str = field(repr=False)


@frozen(kw_only=True)
class DataSource:
    """A location of job input or output. credentials: None when none were given."""

    id: DataSourceId
    tenant_id: TenantId
    name: str
    description: str | None = None
    type: str
    url: str
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

    extra: user and password for the object store; None when unused (answered as {}).
    """

    id: JobBinaryId
    tenant_id: TenantId
    name: str
    description: str | None = None
    url: str
    extra: Credentials | None = None
    created_at: Timestamp
    updated_at: Timestamp | None = None


class JobType(enum.StrEnum):
    """Kinds of jobs; which ones a cluster can run is its distribution's to say."""

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
    """What the caller set for one execution. `args` is answered in the form given."""

    configs: Mapping[str, ConfigValue] = field(factory=dict)
    args: Mapping[str, ConfigValue] | tuple[str, ...] = field(factory=dict)
    params: Mapping[str, ConfigValue] = field(factory=dict)


class ExecutionStatus(enum.StrEnum):
    """`Pending` is ours; the others are the engine's words, passed through."""

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
class Execution:
    """A job run on a cluster.

    status: what `info.status` shows. record: the engine's record as last read, credentials masked
    (the other keys of `info`); {} before the engine knows the job.
    cancel_requested, delete_requested: the caller's wish, carried out by the poller.
    submitting: written before the submit call, so that a restart asks the engine first.
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
    submitting: bool = False
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
