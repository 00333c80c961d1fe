"""Machines of clusters: commands over SSH, HTTP to their daemons, and the way to each.

svcd reaches a daemon through the pinned SSH connection of its machine, so no port but SSH must be
open to it. Services name machines by names or internal addresses, and the owner of a cluster
controls its services. So svcd follows a URL from a cluster only to the cluster's own machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias
from urllib.parse import urlsplit, urlunsplit

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
    tenant_id: of the cluster; svcd's connections are shared out among the tenants.
    """

    address: str
    port: int
    user: str
    private_key: Secret = field(repr=False)
    host_key: str | None = None
    internal: str = ""
    tenant_id: str = ""


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
        tenant_id=cluster.tenant_id,
    )


@frozen
class Way:
    """The way to a host. machine: the one that svcd reaches; None: the host is no machine."""

    address: str
    machine: Host | None = None


Ways: TypeAlias = Mapping[str, Way]
"""Every name and address of a cluster's hosts -> the way to it."""


@frozen
class Location:
    """A URL, and the machine to which svcd sends its requests. machine None: as the URL says."""

    url: str
    machine: Host | None = None


def ways_of(cluster: Cluster, key: Secret) -> dict[str, Way]:
    """The ways to the cluster's machines. key: the cluster's private key."""
    ways: dict[str, Way] = {}
    for instance in cluster.instances():
        machine = login(cluster, instance, key)
        if machine.address:
            way = Way(machine.internal or machine.address, machine)
            names = (instance.instance_name, instance.internal_ip, instance.management_ip)
            ways.update({name: way for name in names if name})
    return ways


def reachable(url: str, ways: Ways) -> Location | None:
    """`url` with the address of its host; None when the host is not one of `ways`."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # no URL at all
        return None
    host = parts.hostname or ""
    way = ways.get(host) or ways.get(host.split(".")[0])
    if way is None or parts.scheme not in ("http", "https"):
        return None
    return Location(urlunsplit(parts._replace(netloc=f"{way.address}{port}")), way.machine)


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
        """Run one command.

        Raises RemoteError (UNREACHABLE, TIMEOUT, UNAUTHORIZED, HOST_KEY, BUSY, REFUSED, FORBIDDEN).
        """
        ...

    def forget(self, host: Host) -> None: ...
    async def close(self) -> None: ...


class Probe(Protocol):
    """Plain HTTP to a daemon on a machine."""

    async def get(self, at: Location, timeout_s: float) -> tuple[int, bytes]:
        """Status and body (at most 4 MiB). Raises ProbeError."""
        ...

    async def put(self, at: Location, body: bytes, timeout_s: float) -> int:
        """Send JSON; returns the status. The client may repeat the request. Raises ProbeError."""
        ...
