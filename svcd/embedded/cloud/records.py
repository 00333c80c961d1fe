"""The records of the embedded cloud. They are frozen; the disk holds them as JSON.

Times are epoch seconds. `id` is the key of every family.
"""

from __future__ import annotations

from attrs import field, frozen


@frozen(kw_only=True)
class Project:
    id: str
    name: str


@frozen(kw_only=True)
class User:
    """A built-in user. roles: project id -> role names; open: may scope to any project."""

    id: str
    name: str
    password: str = field(repr=False)
    roles: dict[str, tuple[str, ...]]
    open: bool = False


@frozen(kw_only=True)
class Token:
    """id: the text of the token. project_id: None without a scope. trust_id: of its trust."""

    id: str = field(repr=False)
    user_id: str
    project_id: str | None
    roles: tuple[str, ...]
    methods: tuple[str, ...]
    issued_at: float
    expires_at: float
    audit_id: str
    trust_id: str | None = None
    credential_id: str | None = None


@frozen(kw_only=True)
class Trust:
    id: str
    trustor_id: str
    trustee_id: str
    project_id: str
    roles: tuple[str, ...]
    impersonation: bool
    created_at: float
    expires_at: float | None = None


@frozen(kw_only=True)
class ApplicationCredential:
    """expires_at: epoch seconds; None: it does not end."""

    id: str
    name: str
    secret: str = field(repr=False)
    user_id: str
    project_id: str
    roles: tuple[str, ...]
    expires_at: float | None = None
    description: str | None = None


@frozen(kw_only=True)
class KeyPair:
    """id: user id, slash, name."""

    id: str
    user_id: str
    name: str
    public_key: str
    created_at: float


@frozen(kw_only=True)
class Flavor:
    id: str
    name: str
    ram_mib: int
    vcpus: int
    disk_gib: int


@frozen(kw_only=True)
class Image:
    """builtin: it exists from the start, and every user may change it.

    saved_at: end of the snapshot; source_id: the server of the snapshot, "" for other images.
    """

    id: str
    name: str
    owner: str
    visibility: str
    status: str
    min_disk_gib: int = 0
    properties: dict[str, str]
    created_at: float
    updated_at: float
    builtin: bool = False
    saved_at: float = 0.0
    source_id: str = ""


@frozen(kw_only=True)
class Server:
    """A server. status and task_state: Nova's words.

    desired: the state that `life` works towards: ACTIVE, SHUTOFF or DELETED.
    due_at: `life` does not act before this time. host: number of the pretended host; -1: none.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    image_id: str
    flavor_id: str
    key_name: str | None
    public_key: str
    user_data: str
    metadata: dict[str, str]
    security_groups: tuple[str, ...]
    group_id: str | None
    host: int
    status: str
    task_state: str | None
    desired: str
    fault: str
    created_at: float
    updated_at: float
    due_at: float


@frozen(kw_only=True)
class ServerGroup:
    id: str
    name: str
    project_id: str
    user_id: str
    policy: str


@frozen(kw_only=True)
class Rule:
    """A security group rule."""

    id: str
    group_id: str
    project_id: str
    direction: str
    ethertype: str
    protocol: str | None = None
    port_min: int | None = None
    port_max: int | None = None
    remote_prefix: str | None = None
    remote_group_id: str | None = None


@frozen(kw_only=True)
class SecurityGroup:
    id: str
    name: str
    description: str
    project_id: str


@frozen(kw_only=True)
class Port:
    """device_id: the server; "" when free."""

    id: str
    project_id: str
    network_id: str
    device_id: str
    address: str
    mac: str
    security_groups: tuple[str, ...]


@frozen(kw_only=True)
class FloatingIp:
    id: str
    project_id: str
    address: str
    port_id: str | None
    description: str


@frozen(kw_only=True)
class Volume:
    """status: Cinder's word; due_at: the end of the present change (for the -ing words)."""

    id: str
    name: str
    project_id: str
    user_id: str
    size_gib: int
    status: str
    metadata: dict[str, str]
    server_id: str | None
    device: str | None
    created_at: float
    updated_at: float
    due_at: float


@frozen(kw_only=True)
class Quotas:
    """Overrides of a project's quotas. id: the project; names as in the settings."""

    id: str
    limits: dict[str, int]


@frozen(kw_only=True)
class Container:
    """id: account, slash, name. bytes: of its objects."""

    id: str
    account: str
    name: str
    created_at: float
    bytes: int = 0


@frozen(kw_only=True)
class Segment:
    """One part of a static large object."""

    container: str
    name: str
    etag: str
    size: int


@frozen(kw_only=True)
class StoredObject:
    """id: account, container and name by slashes; blob: key of the content ("" when none).

    manifest: container/prefix of a dynamic large object. segments: of a static large object; None
    for any other object.
    """

    id: str
    account: str
    container: str
    name: str
    blob: str
    size: int
    etag: str
    content_type: str
    created_at: float
    manifest: str | None = None
    segments: tuple[Segment, ...] | None = None
