"""Identity, the tenant's cloud and the object store, as Protocols. Calls have time-outs."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
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
    LoggedIn,
    Network,
    NewServer,
    Opening,
    Quota,
    Server,
    Usage,
    VolumeState,
)
from svcd.model.ids import (
    ClusterId,
    TenantId,
)
from svcd.model.job import Credentials
from svcd.model.job_credential import ApplicationCredential
from svcd.model.requests import PasswordLogin
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust
from svcd.ports.faults import Fault, PortError


class CloudError(PortError):
    """A fault of the cloud. service: identity, compute, image, network, volume or object store."""

    def __init__(
        self, service: str, kind: Fault, text: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(kind, f"{service}: {text}", retry_after_s)
        self.service = service


@frozen(kw_only=True)
class Access:
    """The credential of a cloud session: a token or a trust, or neither.

    Neither means svcd's own user scoped to `tenant_id` (`auth.mode=none`).
    """

    tenant_id: TenantId
    token: Secret | None = None
    trust_id: str | None = field(default=None, repr=False)


class Identity(Protocol):
    """Validates the callers' tokens."""

    async def authenticate(self, token: Secret, address: Callable[[], str] = lambda: "") -> Caller:
        """Raises Unauthorized (refused), ServiceUnavailable or PlatformTimeout (identity down),
        TooManyRequests.

        address: of the caller; called for an unknown token only.
        """
        ...

    async def log_in(self, login: PasswordLogin, address: str) -> LoggedIn:
        """A token for the password of a user, who is at `address`. Nothing of it is kept.

        Raises Unauthorized (refused), Forbidden (no role in the project, or in any),
        TooManyRequests, ServiceUnavailable or PlatformTimeout (identity down).
        """
        ...

    async def log_out(self, token: Secret) -> None:
        """End a valid token. Other daemons may accept it until `auth.cache_s` has passed.

        Raises ServiceUnavailable or PlatformTimeout (identity down).
        """
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
    async def server_usage(self) -> Mapping[str, Usage]:
        """Quotas of one service by the fields of `Quota`; so do the next two."""
        ...

    async def volume_usage(self) -> Mapping[str, Usage]: ...
    async def address_usage(self) -> Mapping[str, Usage]: ...

    # networks
    async def networks(self) -> Sequence[Network]: ...
    async def create_security_group(
        self,
        name: str,
        description: str,
        openings: Sequence[Opening],
        others: Sequence[int] = (),
    ) -> str:
        """Create a group, or adopt one of the same name; returns its id.

        The group opens `openings`, and all traffic between its members. An adopted group loses its
        other openings of these ports and of the ports `others`.
        """
        ...

    async def delete_security_group(self, group_id: str) -> bool:
        """Delete a group. False: the cloud does not find it, which is no fault."""
        ...

    async def find_security_groups(self, name: str) -> Sequence[str]: ...
    async def floating_ips(self) -> Sequence[FloatingIp]: ...
    async def create_floating_ip(self, pool: str, description: str) -> FloatingIp: ...
    async def associate_floating_ip(self, floating_ip_id: str, server_id: str) -> None: ...
    async def delete_floating_ip(self, floating_ip_id: str) -> None: ...

    # servers. `delete_*` of something absent is no fault.
    async def servers(self, cluster_id: ClusterId, name_prefix: str = "") -> Sequence[Server]:
        """Servers whose metadata `svcd_cluster_id` is the cluster's.

        name_prefix: prefix of the servers' names, by which the cloud narrows the list.
        """
        ...

    async def server(self, server_id: str) -> Server: ...
    async def create_server(self, new: NewServer) -> str: ...
    async def delete_server(self, server_id: str) -> None: ...
    async def create_server_group(self, name: str) -> str: ...
    async def find_server_groups(self, name: str) -> Sequence[str]: ...
    async def delete_server_group(self, group_id: str) -> bool:
        """Delete a group. False: the cloud does not find it, which is no fault."""
        ...

    # volumes
    async def volumes(self, cluster_id: ClusterId) -> Sequence[VolumeState]: ...
    async def create_volume(self, name: str, size_gib: int, metadata: Mapping[str, str]) -> str: ...
    async def attach_volume(self, server_id: str, volume_id: str) -> str:
        """The device's name, for example /dev/vdb."""
        ...

    async def detach_volume(self, server_id: str, volume_id: str) -> None: ...
    async def delete_volume(self, volume_id: str) -> None: ...


class Cloud(Protocol):
    """The cloud platform."""

    def session(self, access: Access) -> CloudSession: ...

    async def create_trust(self, caller: Caller, expires_at: str) -> str | None:
        """Create a trust; returns its id, or None when tokens are not in use.

        expires_at: from `ownership_tags.trust_end`; svcd finds the trust by it when the
        answer is lost. Raises CloudError (FORBIDDEN: refused; after TIMEOUT or SERVER_ERROR the
        trust may exist).
        """
        ...

    async def given_trusts(self, wanted: Collection[str]) -> Sequence[GivenTrust]:
        """All users' trusts to svcd's user with one of the `wanted` expiry times.

        Raises CloudError.
        """
        ...

    async def delete_trust(self, trust_id: str) -> None:
        """Delete the trust; an absent trust is no fault. Raises CloudError."""
        ...


class ObjectStore(Protocol):
    """The platform's object store, with the credentials of a job binary or data source."""

    async def read(
        self, tenant_id: TenantId, credentials: Credentials, container: str, name: str
    ) -> tuple[int, AsyncIterator[bytes]]:
        """Size in bytes and the content in pieces. Raises CloudError."""
        ...


class ApplicationCredentials(Protocol):
    """The application credentials of the users whose accounts the data sources name."""

    async def create_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, expires_at: float
    ) -> ApplicationCredential:
        """Create one for the account in the tenant's project, in place of any of the same name.

        It has the roles of `cloud.job_roles`. expires_at: epoch seconds. Raises CloudError
        (UNAUTHORIZED: the account is refused; after TIMEOUT or SERVER_ERROR it may exist).
        """
        ...

    async def delete_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, id_: str
    ) -> bool:
        """Delete one, by its id, else by its name. An absent one is no fault.

        False: the account has none of the name. Raises CloudError (UNAUTHORIZED: the account is
        refused, so that svcd cannot delete it).
        """
        ...
