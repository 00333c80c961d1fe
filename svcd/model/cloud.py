"""Records of resources in a cloud, with the fields that svcd uses. Source: the OpenStack APIs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from svcd.model.ids import TenantId
from svcd.model.secret import Secret

ANYWHERE: Final = "0.0.0.0/0"


@frozen(kw_only=True)
class Caller:
    """The sender of a request, as validated by the identity service.

    token: None with `auth.mode=none`. expires_at: epoch seconds, None when unknown. is_job: the
    token is of an application credential that svcd gave to a job.
    """

    tenant_id: TenantId
    user_id: str
    user_name: str = ""
    roles: tuple[str, ...] = ()
    token: Secret | None = None
    expires_at: float | None = None
    is_trust: bool = False
    is_job: bool = False


@frozen(kw_only=True)
class Project:
    """A project of the identity service."""

    id: TenantId
    name: str


@frozen(kw_only=True)
class LoggedIn:
    """A user who has logged in with a password.

    expires_at: epoch seconds. projects: all in which the user has a role. project: of the token;
    None: the token has no project yet.
    """

    token: Secret
    user_id: str
    user_name: str
    expires_at: float
    projects: Sequence[Project]
    project: Project | None


@frozen(kw_only=True)
class Image:
    """A platform image. properties: its free text properties (`_svc_*` and others)."""

    id: str
    name: str
    status: str
    min_disk_gib: int = 0
    min_ram_mib: int = 0
    size_bytes: int | None = None
    properties: Mapping[str, str] = field(factory=dict)
    created_at: str | None = None
    updated_at: str | None = None


@frozen(kw_only=True)
class Flavor:
    id: str
    name: str
    ram_mib: int
    vcpus: int
    disk_gib: int = 0


@frozen(kw_only=True)
class KeyPair:
    name: str
    public_key: str


@frozen(kw_only=True)
class Network:
    id: str
    name: str
    external: bool = False


@frozen(kw_only=True)
class Server:
    """A server in a list. status: Nova's status; fault: Nova's text when the status is ERROR.

    addresses: (address, kind) with kind `fixed` or `floating`, IPv4 first.
    """

    id: str
    name: str
    status: str
    task_state: str | None = None
    addresses: tuple[tuple[str, str], ...] = ()
    fault: str = ""
    metadata: Mapping[str, str] = field(factory=dict)
    host_id: str = ""


@frozen(order=True)
class Opening:
    """A TCP port of a security group that is open to a network (`cidr`)."""

    port: int
    cidr: str

    def __str__(self) -> str:
        return f"{self.port} {self.cidr}"


@frozen(kw_only=True)
class Firewall:
    """The networks that may reach machines: cloud.ssh_cidrs and cloud.web_cidrs.

    Members of a cluster's group reach all ports of each other; `EnsureSecurityGroup` adds this.
    """

    ssh_cidrs: tuple[str, ...] = (ANYWHERE,)
    web_cidrs: tuple[str, ...] = ()

    def openings(self, ssh_port: int, web_ports: Collection[int]) -> tuple[Opening, ...]:
        """The openings of a cluster's security group, in order. web_ports: of the distribution."""
        openings = {Opening(ssh_port, cidr) for cidr in self.ssh_cidrs}
        openings |= {Opening(port, cidr) for cidr in self.web_cidrs for port in web_ports}
        return tuple(sorted(openings))


@frozen(kw_only=True)
class NewServer:
    """The request for a new server. user_data: the raw text (the client encodes it)."""

    name: str
    image_id: str
    flavor_id: str
    keypair: str | None = None
    network_id: str | None = None
    security_groups: tuple[str, ...] = ()
    server_group_id: str | None = None
    user_data: str = ""
    metadata: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class VolumeState:
    """A volume in the cloud. attached_to: server id; device: its name in the server."""

    id: str
    name: str
    status: str
    size_gib: int
    attached_to: str | None = None
    device: str | None = None
    metadata: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class FloatingIp:
    id: str
    address: str
    pool_id: str
    port_id: str | None = None
    description: str = ""


@frozen(kw_only=True)
class Usage:
    """The use of one quota of the tenant. limit: None when it is unlimited or unknown."""

    used: int
    limit: int | None

    @property
    def left(self) -> int | None:
        """The unused part; None: unlimited or unknown."""
        return None if self.limit is None else max(0, self.limit - self.used)


@frozen(kw_only=True)
class Quota:
    """The unused part of the tenant's quota. None: unlimited or unknown."""

    instances: int | None = None
    cores: int | None = None
    ram_mib: int | None = None
    volumes: int | None = None
    volume_gib: int | None = None
    floating_ips: int | None = None
