"""What the contract suites of the cloud's services share.

A run mixes a suite into a TestCase and gives the hooks of `CloudCase`; every `check_x` of a suite
becomes a `test_x` that `drive`s it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from svcd.clients.cloud import OpenStack
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient
from svcd.clients.image import Images
from svcd.clients.rest import Rest
from svcd.clients.sessions import CallerSession
from svcd.model.cloud import NewServer, Server
from svcd.model.ids import ClusterId, TenantId
from svcd.model.secret import Secret
from svcd.ports.cloud import Access, CloudError, CloudSession, Identity
from svcd.ports.faults import Fault


class CloudCase:
    """Hooks, and what the suites need in common.

    cloud: the client under test, logged in as svcd's own user. tenant, token: of an ordinary user
    of a project. image_id: an image that this user may change. pool: name of the external network.
    auth_url, agent, http, clock: for further clients of the same cloud.
    """

    cloud: OpenStack
    identity: Identity
    tenant: TenantId
    token: Secret
    image_id: str
    flavor_id: str
    keypair: str
    pool: str
    user: str
    password: str
    auth_url: str
    agent: Any
    http: HttpClient
    clock: Any

    assertEqual: Callable[..., None]
    assertTrue: Callable[..., None]
    assertIn: Callable[..., None]
    addCleanup: Callable[..., None]

    def drive(self, work: Coroutine[Any, Any, None]) -> Any:
        """Run a check to its end."""
        raise NotImplementedError

    async def pause(self, seconds: float) -> None:
        """Let the cloud work."""
        raise NotImplementedError

    def unique(self, prefix: str) -> str:
        """A name that nothing has yet."""
        raise NotImplementedError

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in dir(cls):
            if name.startswith("check_"):
                setattr(cls, "test_" + name[6:], _driven(name))

    @property
    def session(self) -> CloudSession:
        """The tenant's cloud by the user's token."""
        return self.cloud.session(Access(tenant_id=self.tenant, token=self.token))

    def rest(self, service: str, suffix: str = "") -> Rest:
        """Calls of one service by the user's token."""
        session = CallerSession(self.cloud._keystone, self.token, self.tenant)
        return Rest(self.http, session, service, (service,), suffix)

    @property
    def compute(self) -> Compute:
        """The compute service by the user's token."""
        return Compute(self.rest("compute"), {})

    @property
    def images(self) -> Images:
        """The image service by the user's token."""
        return Images(self.rest("image", "/v2"))

    async def until(self, what: str, ready: Callable[[], Awaitable[bool]]) -> None:
        """Poll until `ready`, at most about a minute."""
        for _ in range(120):
            if await ready():
                return
            await self.pause(0.5)
        raise AssertionError(f"not in time: {what}")

    async def refused(self, work: Awaitable[object]) -> CloudError:
        """The fault of `work`, which must have one."""
        try:
            await work
        except CloudError as error:
            return error
        raise AssertionError("was not refused")

    async def active_server(self, cluster_id: ClusterId, **more: Any) -> Server:
        """A server that is ACTIVE and has an address."""
        new = NewServer(
            name=self.unique("server"),
            image_id=self.image_id,
            flavor_id=self.flavor_id,
            metadata={"svcd_cluster_id": cluster_id, "svcd_instance_id": "i"},
            **more,
        )
        server_id = await self.session.create_server(new)

        async def active() -> bool:
            server = await self.session.server(server_id)
            if server.status == "ERROR":
                raise AssertionError(server.fault)
            return server.status == "ACTIVE" and bool(server.addresses)

        await self.until("server ACTIVE", active)
        return await self.session.server(server_id)

    async def without_server(self, server_id: str) -> None:
        """Delete and wait until it is gone."""
        await self.session.delete_server(server_id)

        async def gone() -> bool:
            try:
                await self.session.server(server_id)
            except CloudError as error:
                return error.kind is Fault.NOT_FOUND
            return False

        await self.until("server gone", gone)


def _driven(name: str) -> Callable[[CloudCase], Any]:
    def test(self: CloudCase) -> Any:
        return self.drive(getattr(self, name)())

    test.__name__ = "test_" + name[6:]
    return test
