"""Implements the Protocols of ports.cloud with the clients of the services."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence

from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IAgent

from svcd.clients.application_credentials import UserCredentials
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient, Observe
from svcd.clients.identity import Keystone, Scope
from svcd.clients.image import Images
from svcd.clients.network import Networks
from svcd.clients.objectstore import read_object
from svcd.clients.rest import Rest, Session
from svcd.clients.sessions import CallerSession, KeystoneIdentity, own_session, user_session
from svcd.clients.trusts import Trusts
from svcd.clients.volume import Volumes
from svcd.model.cloud import (
    Caller,
    Network,
    NewServer,
    Quota,
    Server,
    VolumeState,
)
from svcd.model.ids import ClusterId, TenantId
from svcd.model.job import Credentials
from svcd.model.job_credential import ApplicationCredential
from svcd.model.trust import GivenTrust
from svcd.ports.cloud import Access, CloudError, CloudSession
from svcd.ports.faults import Fault, PortError
from svcd.runtime.coalesce import Coalescer
from svcd.settings import Auth, CloudSettings

_CLUSTER = "svcd_cluster_id"


def cloud_error(service: str, kind: Fault, text: str, retry_after_s: float | None) -> PortError:
    """The ErrorMaker of the cloud's services."""
    return CloudError(service, kind, text, retry_after_s)


class OpenStack:
    """Implements ports.Cloud, ObjectStore and ApplicationCredentials.

    It finds the services in Keystone's catalog.
    """

    def __init__(
        self,
        agent: IAgent,
        clock: IReactorTime,
        settings: CloudSettings,
        observe: Observe | None = None,
    ) -> None:
        self._http = HttpClient(
            agent,
            clock,
            cloud_error,
            timeout_s=settings.timeout_s,
            at_once=max(1, settings.calls_at_once),
            observe=observe,
        )
        self._clock = clock
        self._job_roles = settings.job_roles
        self._keystone = Keystone(self._http, settings, clock)
        self._trusts = Trusts(self._keystone, settings.trust_roles)
        self._versions: dict[str, tuple[int, int]] = {}

    def identity(self, settings: Auth) -> KeystoneIdentity:
        """The ports.Identity that validates callers' tokens at the same Keystone."""
        return KeystoneIdentity(self._keystone, settings, self._clock)

    def session(self, access: Access) -> CloudSession:
        """See ports.Cloud."""
        session: Session
        if access.token is not None:
            session = CallerSession(self._keystone, access.token, access.tenant_id)
        elif access.trust_id is not None:
            session = own_session(self._keystone, Scope(trust_id=access.trust_id))
        else:
            session = own_session(self._keystone, Scope(project=access.tenant_id))
        return TenantCloud(self._http, session, access.tenant_id, self._versions)

    async def create_trust(self, caller: Caller, expires_at: str) -> str | None:
        """See ports.Cloud."""
        if caller.token is None:
            return None
        if caller.is_trust:
            text = "a token from a trust cannot create another trust: log in with a password"
            raise CloudError("identity", Fault.FORBIDDEN, text)
        return await self._trusts.create(caller, caller.token, expires_at)

    async def given_trusts(self, wanted: Collection[str]) -> Sequence[GivenTrust]:
        """See ports.Cloud."""
        return await self._trusts.given(wanted)

    async def delete_trust(self, trust_id: str) -> None:
        """See ports.Cloud."""
        await self._trusts.delete(trust_id)

    async def ready(self) -> str:
        """An empty text when svcd's own user can log in, else the reason why not."""
        try:
            await self._keystone.own(Scope())
        except CloudError as error:
            return error.text
        return ""

    async def read(
        self, tenant_id: TenantId, credentials: Credentials, container: str, name: str
    ) -> tuple[int, AsyncIterator[bytes]]:
        """See ports.ObjectStore."""
        session = user_session(self._keystone, credentials, tenant_id)
        rest = Rest(self._http, session, "object-store", ("object-store",), tenant=tenant_id)
        return await read_object(rest, container, name)

    async def create_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, expires_at: float
    ) -> ApplicationCredential:
        """See ports.ApplicationCredentials."""
        of_user = self._credentials_of(tenant_id, account)
        return await of_user.create(name, self._job_roles, expires_at)

    async def delete_application_credential(
        self, tenant_id: TenantId, account: Credentials, name: str, id_: str
    ) -> bool:
        """See ports.ApplicationCredentials."""
        return await self._credentials_of(tenant_id, account).delete(name, id_)

    def _credentials_of(self, tenant_id: TenantId, account: Credentials) -> UserCredentials:
        session = user_session(self._keystone, account, tenant_id)
        return UserCredentials(self._http, self._keystone, session, session.current, tenant_id)


class TenantCloud:
    """Implements ports.CloudSession for one tenant: most calls are those of one service."""

    def __init__(
        self,
        http: HttpClient,
        session: Session,
        tenant_id: str,
        versions: dict[str, tuple[int, int]],
    ) -> None:
        def rest(service: str, types: Sequence[str], suffix: str = "") -> Rest:
            return Rest(http, session, service, types, suffix, tenant=tenant_id)

        self._compute = compute = Compute(rest("compute", ("compute",)), versions)
        self._images = images = Images(rest("image", ("image",), "/v2"))
        self._networks = networks = Networks(rest("network", ("network",), "/v2.0"), tenant_id)
        self._volumes = volumes = Volumes(rest("volume", ("volumev3", "block-storage", "volume")))
        self._inner: Sequence[Network] | None = None
        self._asking = Coalescer()
        self.images, self.image = images.images, images.image
        self.set_image_properties = images.change
        self.networks = networks.networks
        self.create_security_group, self.openings = (
            networks.create_security_group,
            networks.openings,
        )
        self.find_security_groups = networks.find_security_groups
        self.floating_ips = networks.floating_ips
        self.create_floating_ip = networks.create_floating_ip
        self.associate_floating_ip = networks.associate_floating_ip
        self.delete_floating_ip = networks.delete_floating_ip
        self.flavors = compute.flavors
        self.keypair, self.keypairs = compute.keypair, compute.keypairs
        self.server, self.delete_server = compute.server, compute.delete_server
        self.create_server_group = compute.create_server_group
        self.find_server_groups = compute.find_server_groups
        self.delete_server_group = compute.delete_server_group
        self.attach_volume, self.detach_volume = compute.attach_volume, compute.detach_volume
        self.server_usage, self.volume_usage = compute.usage, volumes.usage
        self.address_usage = networks.usage
        self.create_volume, self.delete_volume = volumes.create, volumes.delete

    # ---- calls that need more than one service ----

    async def quota(self) -> Quota:
        """See CloudSession. A service that is not in the catalog sets no limit."""
        usages = dict(await self.server_usage())
        try:
            usages |= await self.volume_usage()
        except CloudError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
        try:
            usages |= await self.address_usage()
        except CloudError as error:
            if error.kind not in (Fault.NOT_FOUND, Fault.FORBIDDEN):
                raise
        return Quota(**{name: limit.left for name, limit in usages.items()})

    async def delete_security_group(self, group_id: str) -> bool:
        """See CloudSession."""
        return await remove_security_group(self._networks, self._compute, group_id)

    async def servers(self, cluster_id: ClusterId, name_prefix: str = "") -> Sequence[Server]:
        return await self._compute.servers({_CLUSTER: cluster_id}, name_prefix)

    async def create_server(self, new: NewServer) -> str:
        network_id = new.network_id or await self._only_network()
        return await self._compute.create_server(new, network_id)

    async def _only_network(self) -> str | None:
        """The only inner network of the tenant; None without one. Raises CloudError REFUSED."""
        if self._inner is None:  # all servers of a cluster ask at once
            networks = await self._asking.get("networks", self._networks.networks)
            self._inner = [network for network in networks if not network.external]
        if len(self._inner) > 1:
            names = ", ".join(sorted(network.name or network.id for network in self._inner)[:5])
            text = f"the tenant has several networks ({names}): give neutron_management_network"
            raise CloudError("network", Fault.REFUSED, text)
        return self._inner[0].id if self._inner else None

    async def volumes(self, cluster_id: ClusterId) -> Sequence[VolumeState]:
        return await self._volumes.volumes({_CLUSTER: cluster_id})


async def remove_security_group(networks: Networks, compute: Compute, group_id: str) -> bool:
    """Delete a security group, and ports in it that the cloud kept without a server.

    False: the cloud does not find the group. Raises CloudError; BUSY while a server uses the group.
    """
    try:
        return await networks.delete_security_group(group_id)
    except CloudError as error:
        if error.kind is not Fault.BUSY or not await _delete_orphans(networks, compute, group_id):
            raise
        return await networks.delete_security_group(group_id)


async def _delete_orphans(networks: Networks, compute: Compute, group_id: str) -> bool:
    """Delete the group's ports whose server does not exist. Returns whether there were any."""
    any_orphan = False
    for port_id, server_id in await networks.server_ports(group_id):
        try:
            await compute.server(server_id)
        except CloudError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            await networks.delete_port(port_id)
            any_orphan = True
    return any_orphan
