"""The cloud's contract suites against the real OpenStack of the environment (real_openstack)."""

from __future__ import annotations

import uuid
from collections.abc import Coroutine
from typing import Any
from urllib.parse import quote

from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool

from svcd.clients.cloud import OpenStack, cloud_error
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone, Scope
from svcd.clients.sessions import own_session
from svcd.model.ids import ClusterId, TenantId
from svcd.runtime.tasks import sleep
from svcd.settings import Auth, CloudSettings
from tests.contract.cloud import CloudCase
from tests.contract.compute import ComputeContract
from tests.contract.identity import IdentityContract
from tests.contract.image import ImageContract
from tests.contract.network import NetworkContract
from tests.contract.object_store import ObjectStoreContract
from tests.contract.volume import VolumeContract
from tests.support.real_openstack import given, missing

_MISSING = missing("AUTH_URL", "USERNAME", "PASSWORD", "PROJECT", "IMAGE", "KEYPAIR")


class LiveCase(TestCase):
    """Hooks for a cloud that others use too: everything is made under fresh names."""

    timeout = 300
    skip = _MISSING or None

    def setUp(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.prepare())

    async def prepare(self) -> None:
        from twisted.internet import reactor  # noqa: TID251

        self.clock: Any = reactor
        self.pool_of_connections = HTTPConnectionPool(self.clock)
        self.agent = Agent(self.clock, pool=self.pool_of_connections)
        self.user, self.password = given("USERNAME"), given("PASSWORD")
        self.auth_url = given("AUTH_URL")
        service = CloudSettings(
            auth_url=self.auth_url,
            username=given("SERVICE_USERNAME", "svcd"),
            password=given("SERVICE_PASSWORD", self.password),
            project=given("SERVICE_PROJECT", "service"),
            region=given("REGION"),
        )
        self.cloud = OpenStack(self.agent, self.clock, service)
        self.identity = self.cloud.identity(Auth(mode="keystone"))
        mine = CloudSettings(
            auth_url=self.auth_url,
            username=self.user,
            password=self.password,
            project=given("PROJECT"),
        )
        self.http = HttpClient(self.agent, self.clock, cloud_error)
        keystone = Keystone(self.http, mine, self.clock)
        token = await keystone.own(Scope())
        self.mine = own_session(keystone, Scope())
        self.token = token.text
        self.tenant = TenantId(token.project_id)
        self.image_id = given("IMAGE")
        self.keypair = given("KEYPAIR")
        self.flavor_id = given("FLAVOR", "1")
        self.pool = given("POOL", "public")

    def tearDown(self) -> Any:
        return self.pool_of_connections.closeCachedConnections() if not _MISSING else None

    def drive(self, work: Coroutine[Any, Any, None]) -> Deferred[None]:
        return Deferred.fromCoroutine(work)

    async def pause(self, seconds: float) -> None:
        await sleep(self.clock, seconds)

    def unique(self, prefix: str) -> str:
        return f"{prefix}-{uuid.uuid4().hex[:8]}"


class LiveIdentity(LiveCase, IdentityContract):
    pass


class LiveCompute(LiveCase, ComputeContract):
    pass


class LiveVersions(LiveCase, CloudCase):
    async def check_older_microversions(self) -> None:
        """As an older service would have them: each call in the form of its time."""
        for version in ((2, 1), (2, 63), (2, 64), (2, 79)):
            base = await self.mine.endpoint("compute")
            self.cloud._versions[base] = version
            name = self.unique("group")
            group = await self.session.create_server_group(name)
            self.assertEqual(list(await self.session.find_server_groups(name)), [group])
            await self.session.delete_server_group(group)
            self.assertEqual((await self.session.keypair(self.keypair)).name, self.keypair)
            self.assertEqual(list(await self.session.servers(ClusterId("another"))), [])
            self.assertEqual(self.cloud._versions[base], version)

    async def check_a_server_of_the_oldest_microversion(self) -> None:
        """Its life."""
        self.cloud._versions[await self.mine.endpoint("compute")] = (2, 1)
        server = await self.active_server(ClusterId(self.unique("cluster")))
        await self.without_server(server.id)

    async def check_a_microversion_that_the_service_has_no_more(self) -> None:
        """It is asked which it has, and the call is made again."""
        base = await self.mine.endpoint("compute")
        self.cloud._versions[base] = (2, 999)
        self.assertEqual((await self.session.keypair(self.keypair)).name, self.keypair)
        self.assertEqual(self.cloud._versions[base], (2, 79))


class LiveImage(LiveCase, ImageContract):
    pass


class LiveNetwork(LiveCase, NetworkContract):
    pass


class LiveVolume(LiveCase, VolumeContract):
    pass


class LiveObjectStore(LiveCase, ObjectStoreContract):
    async def put_object(self, container: str, name: str, content: bytes) -> None:
        base = await self.mine.endpoint("object-store")
        headers = {"X-Auth-Token": self.token.reveal()}
        await self.http.request("PUT", f"{base}/{container}", headers=headers, body=b"")
        url = f"{base}/{container}/{quote(name)}"
        await self.http.request("PUT", url, headers=headers, body=content)
