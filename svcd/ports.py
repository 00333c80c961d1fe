"""What provisioning, workflow and resources need of the outside, as Protocols.

Implementations are injected by `svcd.service`: clients for the real things, `embedded` behind the
same clients, the store. Nothing here acts.

Errors of every port: `CloudError`, `RemoteError`, `EngineError` and `ProbeError` below, each with a
`kind` that the callers decide by; a port never raises a library's own exception for a fault of its
peer. Every call has a time-out inside.
"""

from __future__ import annotations

import enum
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from typing import Any, Final, Protocol, TypeVar

from attrs import field, frozen

from svcd.errors import ServiceUnavailable
from svcd.model.cloud import (
    Caller,
    Flavor,
    FloatingIp,
    Image,
    KeyPair,
    Network,
    NewServer,
    Quota,
    Server,
    VolumeState,
)
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    NodeGroupTemplateId,
    TenantId,
)
from svcd.model.job import (
    Credentials,
    DataSource,
    Execution,
    Job,
    JobBinary,
    JobBinaryInternal,
)
from svcd.model.secret import Secret
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.trust import GivenTrust, LooseTrust

T = TypeVar("T")
R = TypeVar("R")
I_contra = TypeVar("I_contra", contravariant=True)


class Fault(enum.StrEnum):
    """What kind of fault a peer had; retry rules are written over these."""

    UNREACHABLE = "unreachable"  # refused, reset, no route: nothing was done
    TIMEOUT = "timeout"  # no answer in time: it may have been done
    SERVER_ERROR = "server_error"  # 5xx or an answer that makes no sense: it may have been done
    BUSY = "busy"  # 409, 413/429 with Retry-After, "in use": try later
    UNAUTHORIZED = "unauthorized"  # 401
    FORBIDDEN = "forbidden"  # 403 by policy
    QUOTA = "quota"  # 403/409/413 over quota
    NOT_FOUND = "not_found"  # 404
    REFUSED = "refused"  # other 4xx: the request itself is wrong
    HOST_KEY = "host_key"  # SSH: not the pinned key


class PortError(Exception):
    """A fault of a peer. kind: decides; text: one line for a person, without secrets."""

    def __init__(self, kind: Fault, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same call can succeed later without anybody's help."""
        return self.kind in {Fault.UNREACHABLE, Fault.TIMEOUT, Fault.SERVER_ERROR, Fault.BUSY}


class CloudError(PortError):
    """Identity, compute, image, network, volume or object store. `service` names which."""

    def __init__(
        self, service: str, kind: Fault, text: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(kind, f"{service}: {text}", retry_after_s)
        self.service = service


class RemoteError(PortError):
    """SSH to a machine: it could not be reached, or it refused us. Not: a command's exit code."""


class EngineError(PortError):
    """The workflow engine or HDFS. `code` is the engine's own (for example E0604), else ""."""

    def __init__(self, kind: Fault, text: str, code: str = "") -> None:
        super().__init__(kind, text)
        self.code = code


class ProbeError(PortError):
    """An HTTP probe of a daemon on a machine."""


# ---- identity and cloud -------------------------------------------------------------------------


@frozen(kw_only=True)
class Access:
    """With what a cloud session is opened: exactly one of token and trust_id, or neither.

    Neither means the service's own user scoped to `tenant_id` (`auth.mode=none`).
    """

    tenant_id: TenantId
    token: Secret | None = None
    trust_id: str | None = field(default=None, repr=False)


class Identity(Protocol):
    """Validates the callers' tokens."""

    async def authenticate(self, token: Secret) -> Caller:
        """Raises Unauthorized (refused), ServiceUnavailable or PlatformTimeout (identity down)."""
        ...

    def challenge(self) -> str:
        """Value of `WWW-Authenticate` for a 401."""
        ...


class CloudSession(Protocol):
    """One tenant's cloud. All methods raise CloudError. Lists are complete (paged inside)."""

    # images and flavors
    async def images(self) -> Sequence[Image]: ...
    async def image(self, image_id: str) -> Image: ...
    async def set_image_properties(
        self, image_id: str, set_: Mapping[str, str], remove: Sequence[str]
    ) -> Image:
        """Idempotent; removing an absent property is no fault."""
        ...

    async def flavors(self) -> Sequence[Flavor]: ...
    async def keypair(self, name: str) -> KeyPair: ...
    async def keypairs(self) -> Sequence[str]:
        """Names of the user's key pairs."""
        ...

    async def quota(self) -> Quota: ...

    # networks
    async def networks(self) -> Sequence[Network]: ...
    async def create_security_group(
        self, name: str, description: str, tcp_ports: Sequence[int]
    ) -> str:
        """Id of the group; adopts one of the same name; opens the ports and all inner traffic."""
        ...

    async def delete_security_group(self, group_id: str) -> None: ...
    async def find_security_groups(self, name: str) -> Sequence[str]: ...
    async def floating_ips(self) -> Sequence[FloatingIp]: ...
    async def create_floating_ip(self, pool: str, description: str) -> FloatingIp: ...
    async def associate_floating_ip(self, floating_ip_id: str, server_id: str) -> None: ...
    async def delete_floating_ip(self, floating_ip_id: str) -> None: ...

    # servers. `delete_*` of something absent is no fault.
    async def servers(self, cluster_id: ClusterId, name_prefix: str = "") -> Sequence[Server]:
        """Servers whose metadata `svcd_cluster_id` is the cluster's.

        name_prefix: their names begin so; it lets the cloud narrow the list of a large project.
        """
        ...

    async def server(self, server_id: str) -> Server: ...
    async def create_server(self, new: NewServer) -> str: ...
    async def delete_server(self, server_id: str) -> None: ...
    async def create_server_group(self, name: str) -> str: ...
    async def find_server_groups(self, name: str) -> Sequence[str]: ...
    async def delete_server_group(self, group_id: str) -> None: ...

    # volumes
    async def volumes(self, cluster_id: ClusterId) -> Sequence[VolumeState]: ...
    async def create_volume(self, name: str, size_gib: int, metadata: Mapping[str, str]) -> str: ...
    async def attach_volume(self, server_id: str, volume_id: str) -> str:
        """The device's name, for example /dev/vdb."""
        ...

    async def detach_volume(self, server_id: str, volume_id: str) -> None: ...
    async def delete_volume(self, volume_id: str) -> None: ...


class Cloud(Protocol):
    """The platform."""

    def session(self, access: Access) -> CloudSession: ...

    async def create_trust(self, caller: Caller, mark: str) -> str | None:
        """Trust id; None when tokens are not in use. Raises CloudError (FORBIDDEN: refused).

        mark: of `marks.trust_end`; by it the trust is found when the answer is lost. Where the
        fault is TIMEOUT or SERVER_ERROR it may have been made.
        """
        ...

    async def given_trusts(self, wanted: Collection[str]) -> Sequence[GivenTrust]:
        """Those that were given to svcd's user with these marks, whosesoever. Raises CloudError."""
        ...

    async def delete_trust(self, trust_id: str) -> None:
        """Returns when it is gone, also when it was before. Raises CloudError."""
        ...


class ObjectStore(Protocol):
    """The platform's object store, with the credentials of a job binary or data source."""

    async def read(
        self, tenant_id: TenantId, credentials: Credentials, container: str, name: str
    ) -> tuple[int, AsyncIterator[bytes]]:
        """Size in bytes and the content in pieces. Raises CloudError."""
        ...


# ---- machines -----------------------------------------------------------------------------------


@frozen(kw_only=True)
class Host:
    """Where and as whom to log in. private_key: OpenSSH text; host_key: pinned line or None.

    None as host_key accepts the first key that is shown; the result carries it.
    """

    address: str
    port: int
    user: str
    private_key: Secret = field(repr=False)
    host_key: str | None = None


@frozen(kw_only=True)
class CommandResult:
    """What a command said. exit_code: None when a signal ended it. Output is cut at 256 KiB."""

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
        """Raises RemoteError (UNREACHABLE, TIMEOUT, UNAUTHORIZED, HOST_KEY)."""
        ...

    def forget(self, address: str) -> None: ...
    async def close(self) -> None: ...


class Probe(Protocol):
    """Plain HTTP to a daemon on a machine."""

    async def get(self, url: str, timeout_s: float) -> tuple[int, bytes]:
        """Status and body (at most 4 MiB). Raises ProbeError."""
        ...

    async def put(self, url: str, body: bytes, timeout_s: float) -> int:
        """Status of an answer to JSON. Safe to repeat, and repeated. Raises ProbeError."""
        ...


# ---- workflow engine ----------------------------------------------------------------------------


@frozen(kw_only=True)
class JobLine:
    """One row of the engine's batch list."""

    id: str
    status: str
    last_modified: str | None
    external_id: str | None


class Engine(Protocol):
    """Apache Oozie at `base`, for example http://10.0.0.5:11000/oozie. Raises EngineError."""

    async def status(self, base: str) -> str:
        """System mode, for example NORMAL."""
        ...

    async def submit(self, base: str, properties: Mapping[str, str]) -> str:
        """Submit and start; the engine's job id."""
        ...

    async def find(self, base: str, external_id: str) -> str | None: ...
    async def record(self, base: str, job_id: str) -> Mapping[str, object]:
        """The whole record, as the engine sent it."""
        ...

    async def lines(self, base: str, job_ids: Sequence[str]) -> Sequence[JobLine]:
        """Batch; unknown ids are missing."""
        ...

    async def kill(self, base: str, job_id: str) -> None: ...
    async def log(self, base: str, job_id: str) -> bytes: ...


class FileSystem(Protocol):
    """HDFS by WebHDFS at `base` (for example http://10.0.0.5:9870). Raises EngineError."""

    async def make_folders(self, base: str, path: str, user: str, mode: str = "") -> None:
        """With its parents. mode: octal permission of the last folder; "": the default."""
        ...

    async def write(
        self,
        base: str,
        path: str,
        user: str,
        content: AsyncIterator[bytes],
        size: int | None,
        machines: Mapping[str, str] | None = None,
    ) -> None:
        """Streamed, overwrites.

        machines: names and addresses of the machines that may take the content -> the address to
        use for each; None: wherever the name node says.
        """
        ...

    async def delete(self, base: str, path: str, user: str) -> None: ...
    async def list(self, base: str, path: str, user: str) -> Sequence[str] | None:
        """Names in the folder, None when it does not exist."""
        ...

    async def read(self, base: str, path: str, user: str, limit: int) -> bytes: ...


# ---- store --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Page:
    """A list request. filters: column name -> text, only names the family declares.

    limit None means all. marker: the id after which to begin (exclusive); unknown -> NotFound.
    """

    limit: int | None = None
    marker: str | None = None
    filters: Mapping[str, str] = field(factory=dict)


class Rows(Protocol[R, I_contra]):
    """One family of records. Everything is inside one tenant; another tenant's id is NotFound."""

    async def add(self, record: R) -> None:
        """Raises the family's NameTaken leaf."""
        ...

    async def get(self, tenant_id: TenantId, id_: I_contra) -> R:
        """Raises NotFound."""
        ...

    async def page(self, tenant_id: TenantId, page: Page) -> Sequence[R]:
        """Ordered by creation, then id."""
        ...

    async def remove(self, tenant_id: TenantId, id_: I_contra) -> None:
        """Raises NotFound, and InvalidReference or DeletionFailed when something refers to it."""
        ...


class RenderedRows(Rows[R, I_contra], Protocol[R, I_contra]):
    """A family whose wire JSON is stored beside the record, written by the same statement."""

    async def rendered(self, tenant_id: TenantId, id_: I_contra) -> bytes:
        """The JSON object (unwrapped). Raises NotFound."""
        ...

    async def rendered_page(self, tenant_id: TenantId, page: Page) -> Sequence[bytes]:
        """In pieces; joined by commas they are what a JSON array of the page's objects holds."""
        ...


class ClusterRows(RenderedRows[Cluster, ClusterId], Protocol):
    async def find(self, id_: ClusterId) -> Cluster | None:
        """By id in any tenant: for provisioning only."""
        ...

    async def save(self, cluster: Cluster) -> bool:
        """Compare-and-set: writes `cluster` with `version` + 1 if the row still has `version`.

        False when another writer was faster (or the row is gone): read again.
        """
        ...

    async def drop(self, id_: ClusterId) -> None:
        """Delete the row and its events; executions stay, and keep its id as cluster_id."""
        ...

    async def unsettled(self) -> Mapping[ClusterId, int]:
        """Those with generation > settled_generation -> generation; any tenant, oldest first."""
        ...

    async def active(self) -> Sequence[ClusterId]:
        """Those that are Active and settled, tenant by tenant. The database looks at all rows."""
        ...

    async def idle_transient(self) -> Sequence[ClusterId]:
        """Transient clusters at rest that had an execution and have none unfinished."""
        ...

    async def uses_image(self, tenant_id: TenantId, image_id: str) -> str | None:
        """Name of a cluster that uses the image, or None."""
        ...

    async def add_events(self, id_: ClusterId, events: Sequence[ClusterEvent]) -> None:
        """At most 2,000 newest are kept per cluster, none of one that has gone."""
        ...

    async def events(self, tenant_id: TenantId, id_: ClusterId) -> Sequence[ClusterEvent]:
        """Oldest first. Raises NotFound."""
        ...


class ExecutionRows(RenderedRows[Execution, ExecutionId], Protocol):
    async def find(self, id_: ExecutionId) -> Execution | None: ...
    async def save(self, execution: Execution) -> bool:
        """Compare-and-set on version, as ClusterRows.save."""
        ...

    async def drop(self, id_: ExecutionId) -> None: ...
    async def unfinished(self, mine: Callable[[str], bool] | None = None) -> Sequence[Execution]:
        """Without end_time, in doubt, or to be deleted; any tenant, oldest first.

        mine: asked with each one's `lease_key`; only those it wants are decoded. None: all.
        """
        ...

    async def untidy(self) -> Sequence[ExecutionId]:
        """Ended, with a folder in the HDFS of a cluster. The database looks at all that ended."""
        ...

    async def of_cluster(self, cluster_id: ClusterId) -> Sequence[Execution]: ...


class InternalRows(Rows[JobBinaryInternal, JobBinaryInternalId], Protocol):
    """Internal binaries; the bytes are rows of 256 KiB."""

    async def begin(self, upload_id: str) -> None: ...
    async def append(self, upload_id: str, index: int, piece: bytes) -> None:
        """Pieces of an upload that no record owns yet.

        Raises ServiceUnavailable when it was thrown away, because its holder seemed to be dead.
        """
        ...

    async def finish(self, upload_id: str, record: JobBinaryInternal) -> None:
        """The record takes over the pieces.

        Raises JobBinaryInternalNameTaken (pieces stay), ServiceUnavailable as `append`.
        """
        ...

    async def abandon(self, upload_id: str) -> None: ...
    async def piece(self, id_: JobBinaryInternalId, index: int) -> bytes | None: ...


class LooseTrustRows(Protocol):
    """Trusts that no cluster's row names."""

    async def add(self, trust: LooseTrust) -> None:
        """Again with the same id: nothing happens."""
        ...

    async def take(self, id_: str) -> bool:
        """In the transaction that writes the row which names the trust: it is loose no more.

        False: it is being given back, and the row must not be written.
        """
        ...

    async def doom(self, id_: str) -> bool:
        """From now on no row can take it. False: it is not there, as after `take`.

        Waits for a `take` that is under way.
        """
        ...

    async def delay(self, trust: LooseTrust) -> None:
        """Write its due_at, tries and trouble."""
        ...

    async def forget(self, id_: str) -> None: ...
    async def first(self, limit: int) -> Sequence[LooseTrust]:
        """So many, those due first at the head."""
        ...


class Tx(Protocol):
    """One transaction. Only methods of its families may be awaited inside."""

    @property
    def node_group_templates(
        self,
    ) -> RenderedRows[NodeGroupTemplate, NodeGroupTemplateId]: ...
    @property
    def cluster_templates(self) -> RenderedRows[ClusterTemplate, ClusterTemplateId]: ...
    @property
    def clusters(self) -> ClusterRows: ...
    @property
    def data_sources(self) -> Rows[DataSource, DataSourceId]: ...
    @property
    def internals(self) -> InternalRows: ...
    @property
    def job_binaries(self) -> Rows[JobBinary, JobBinaryId]: ...
    @property
    def jobs(self) -> Rows[Job, JobId]: ...
    @property
    def executions(self) -> ExecutionRows: ...
    @property
    def loose_trusts(self) -> LooseTrustRows: ...
    async def tell(self, text: str) -> None:
        """When this is committed, the other daemons of the database hear `text`, most likely."""
        ...


class Store(Protocol):
    """All rows. Raises ServiceUnavailable when no connection can serve."""

    async def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in one transaction: all or nothing; it may be run again after a conflict."""
        ...

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """The same for reading only: cheaper, and nothing is written."""
        ...

    async def rendered(self, family: str, tenant_id: TenantId, id_: str) -> bytes:
        """`rendered` of the `RenderedRows` that `Tx` names `family`, cheaper when many ask at once.

        Raises NotFound. What was committed before the call shows, whoever wrote it.
        """
        ...

    async def ready(self) -> str:
        """ "" when the store answers, else why not."""
        ...

    async def close(self) -> None: ...


_MOST_LOST_RACES: Final = 20


async def until_saved(name: str, attempt: Callable[[], Coroutine[Any, Any, tuple[bool, T]]]) -> T:
    """The result of the first `attempt` that loses no race: (whether it lost none, its result).

    attempt: reads a row, decides, and writes it by compare-and-set. name: of the row, for people.
    Raises ServiceUnavailable after many lost races.
    """
    for _ in range(_MOST_LOST_RACES):
        won, result = await attempt()
        if won:
            return result
    raise ServiceUnavailable(f"{name} is being changed by others; try again")


class Leases(Protocol):
    """Which clusters and executions this daemon drives. key: of a cluster its id; see `lease_key`.

    Of all daemons that share a database exactly one drives a key: see `svcd.fencing`.
    """

    def holds(self, key: str) -> bool:
        """Whether this daemon drives `key` now."""
        ...

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, which is cancelled when the lease is lost.

        Raises LeaseLost, also when it is not held in the first place.
        """
        ...


def lease_key(execution: Execution) -> str:
    """An execution belongs to the daemon of its cluster; one without a cluster is by itself."""
    return execution.cluster_id or execution.id


class Sealer(Protocol):
    """Seals secrets for rest."""

    def seal(self, secret: Secret) -> str: ...
    def open(self, sealed: str) -> Secret: ...
