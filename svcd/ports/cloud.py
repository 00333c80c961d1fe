"""Identity, the tenant's cloud and the object store, as Protocols. Calls have time-outs."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Collection,
    Mapping,
    Sequence,
)
from typing import Protocol

from attrs import field, frozen

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
from svcd.model.ids import (
    ClusterId,
    TenantId,
)
from svcd.model.job import Credentials
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust
from svcd.ports.faults import Fault, PortError


class CloudError(PortError):
    """Identity, compute, image, network, volume or object store. `service` names which."""

    def __init__(
        self, service: str, kind: Fault, text: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(kind, f"{service}: {text}", retry_after_s)
        self.service = service


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
