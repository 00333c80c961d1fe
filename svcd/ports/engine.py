"""The workflow engine and HDFS, as Protocols. Every call has a time-out inside."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Mapping,
    Sequence,
)
from typing import Protocol

from attrs import frozen

from svcd.ports.faults import Fault, PortError
from svcd.ports.machines import Location, Ways


class EngineError(PortError):
    """A fault of the workflow engine or HDFS. code: the engine's code (as E0604), or ""."""

    def __init__(self, kind: Fault, text: str, code: str = "") -> None:
        super().__init__(kind, text)
        self.code = code


@frozen(kw_only=True)
class JobLine:
    """One row of the engine's batch list."""

    id: str
    status: str
    last_modified: str | None
    external_id: str | None


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
    async def log(self, base: Location, job_id: str) -> bytes: ...


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
    async def list(self, base: Location, path: str, user: str) -> Sequence[str] | None:
        """Names in the folder, or None when the folder does not exist."""
        ...

    async def read(
        self, base: Location, path: str, user: str, limit: int, ways: Ways | None = None
    ) -> bytes: ...
