"""The workflow engine and HDFS, as Protocols. Every call has a time-out inside."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Mapping,
    Sequence,
)
from typing import Protocol

import msgspec
from attrs import field, frozen

from svcd.model.cluster import Cluster
from svcd.model.execution_log import FileEnds
from svcd.model.job import JobType
from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Location, Ways


class EngineError(PortError):
    """A fault of the workflow engine or HDFS. code: the engine's code (as E0604), or ""."""

    def __init__(self, kind: Fault, text: str, code: str = "") -> None:
        super().__init__(kind, text)
        self.code = code


class JobLine(
    msgspec.Struct, frozen=True, kw_only=True, gc=False, rename={"last_modified": "lastModTime"}
):
    """One row of the engine's batch list, of which each tick reads one for each running job.

    The client decodes it from the engine's JSON, without another object between. gc: it holds only
    texts.
    """

    id: str
    status: str
    last_modified: str | None = None


class Identity(Protocol):
    """The page of a daemon that shows its cluster. what: the daemon, for texts."""

    @property
    def what(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def missing(self) -> Callable[[int, bytes], str]:
        """(status, body) -> the part that a good answer lacks; "" for a good answer."""
        ...

    def stranger(self, status: int, body: bytes) -> str:
        """The fault of a good answer that is not of the cluster's own daemon, else ""."""
        ...


@frozen(kw_only=True)
class LauncherLimits:
    """The largest launcher of a job, by the configuration of the cluster; empty and 0: unknown.

    queue: YARN's queue of launchers that name none. most_mib: by queue. most_cores: in any queue.
    """

    queue: str = ""
    most_mib: Mapping[str, int] = field(factory=dict)
    most_cores: int = 0


@frozen(kw_only=True)
class Endpoints:
    """The addresses for the jobs of a cluster, and the user that they run as.

    engine: base of the workflow engine (ends in /oozie). webhdfs: base of the name node's HTTP.
    name_node: hdfs:// URL. resource_manager: host:port. history: base URL or "". user: the HDFS
    user. identities: of the daemons that a job uses, the engine and the name node among them.
    launcher_limits: of any job.
    """

    engine: str
    webhdfs: str
    name_node: str
    resource_manager: str
    history: str
    user: str
    identities: Sequence[Identity] = ()
    launcher_limits: LauncherLimits = LauncherLimits()


@frozen(kw_only=True)
class Hint:
    """A configuration name that a job of some type may set."""

    name: str
    value: str
    description: str


class Engine(Protocol):
    """Apache Oozie at `base`, for example http://10.0.0.5:11000/oozie. Raises EngineError."""

    async def status(self, base: Location) -> str:
        """The engine's system mode, for example NORMAL."""
        ...

    async def submit(self, base: Location, properties: Mapping[str, str]) -> str:
        """Submit and start a job; returns the engine's job id."""
        ...

    async def find(self, base: Location, external_id: str) -> str | None: ...
    async def record(self, base: Location, job_id: str) -> Mapping[str, object]:
        """The engine's whole record of the job, unchanged."""
        ...

    async def lines(self, base: Location, job_ids: Sequence[str]) -> Sequence[JobLine]:
        """The rows of several jobs in one request; ids unknown to the engine are missing."""
        ...

    async def kill(self, base: Location, job_id: str) -> None: ...
    async def log(self, base: Location, job_id: str) -> FileEnds:
        """The engine's log of the job."""
        ...


class FileSystem(Protocol):
    """HDFS by WebHDFS at `base` (for example http://10.0.0.5:9870). Raises EngineError."""

    async def make_folders(self, base: Location, path: str, user: str, mode: str = "") -> None:
        """Create `path` and its parents. mode: octal permission of `path`; "": the default."""
        ...

    async def write(
        self,
        base: Location,
        path: str,
        user: str,
        content: AsyncIterator[bytes],
        size: int | None,
        ways: Ways | None = None,
    ) -> None:
        """Stream `content` to a file; an existing file is overwritten.

        ways: to the machines that may receive the content; None: any host that the name node names.
        """
        ...

    async def delete(self, base: Location, path: str, user: str) -> None: ...


class Engines(Protocol):
    """The distributions, as far as jobs are concerned. All methods are pure and fast.

    `svcd.provisioning.engines` has the implementation, because the rooms of jobs and clusters never
    import each other.
    """

    def endpoints(self, cluster: Cluster) -> Endpoints | None:
        """The addresses for jobs of an Active cluster; None when it has no engine."""
        ...

    def has_engine(self, cluster: Cluster) -> bool:
        """Whether the cluster has an engine once it is Active, by its node groups."""
        ...

    def job_types(self, cluster: Cluster) -> Sequence[JobType]:
        """The job types that the cluster's distribution can run."""
        ...

    def hints(self, job_type: JobType) -> Sequence[Hint]:
        """The hints of all enabled distributions for a type, in the order of distributions."""
        ...
