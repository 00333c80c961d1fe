"""Commands on machines over SSH, and HTTP probes of their daemons, as Protocols."""

from __future__ import annotations

from typing import Protocol

from attrs import field, frozen

from svcd.model.cluster import Cluster, Instance
from svcd.model.secret import Secret
from svcd.ports.faults import PortError


class RemoteError(PortError):
    """A fault of SSH: the machine is unreachable or refuses svcd. A command's exit code is none."""


class ProbeError(PortError):
    """A fault of an HTTP probe of a daemon on a machine."""


@frozen(kw_only=True)
class Host:
    """Address and login of a machine. private_key: OpenSSH text; host_key: the pinned line.

    host_key None: svcd accepts the machine's first key, and the result carries it.
    internal: the machine's own address, to which its SSH server forwards; "": `address`.
    """

    address: str
    port: int
    user: str
    private_key: Secret = field(repr=False)
    host_key: str | None = None
    internal: str = ""


def login(cluster: Cluster, instance: Instance, key: Secret) -> Host:
    """The address and login of a cluster's machine. key: the cluster's private key."""
    internal = instance.internal_ip or ""
    return Host(
        address=instance.management_ip or internal,
        port=cluster.ssh_port,
        user=cluster.username,
        private_key=key,
        host_key=instance.host_key,
        internal=internal,
    )


@frozen(kw_only=True)
class CommandResult:
    """The result of a command. exit_code: None after a signal. Output is cut at 256 KiB."""

    exit_code: int | None
    signal: str = ""
    stdout: str = ""
    stderr: str = ""
    host_key: str


class Remote(Protocol):
    """Runs commands on machines over SSH. Connections are pooled; `forget` drops one."""

    async def run(
        self, host: Host, command: str, *, stdin: bytes = b"", timeout_s: float
    ) -> CommandResult:
        """Run one command. Raises RemoteError (UNREACHABLE, TIMEOUT, UNAUTHORIZED, HOST_KEY)."""
        ...

    def forget(self, host: Host) -> None: ...
    async def close(self) -> None: ...


class Probe(Protocol):
    """Plain HTTP to a daemon on a machine."""

    async def get(self, url: str, timeout_s: float) -> tuple[int, bytes]:
        """Status and body (at most 4 MiB). Raises ProbeError."""
        ...

    async def put(self, url: str, body: bytes, timeout_s: float) -> int:
        """Send JSON; returns the status. The client may repeat the request. Raises ProbeError."""
        ...
