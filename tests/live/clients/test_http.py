"""The HTTP client over sockets: the same as in memory, and that connections are given back."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import TestCase
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.server import Site

from svcd.clients.cloud import OpenStack, cloud_error
from svcd.clients.http import HttpClient
from svcd.embedded.cloud.cloud import EmbeddedCloud
from svcd.embedded.cloud.guests import Guests
from svcd.embedded.faults import Faults
from svcd.model.ids import TenantId
from svcd.model.job import Credentials
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.settings import CloudSettings, Embedded

_MIB = 1 << 20


async def zeros(mebibytes: int) -> AsyncIterator[bytes]:
    for _ in range(mebibytes):
        yield bytes(_MIB)


class Cutting(Protocol):
    """Resets the connection at the first bytes."""

    def dataReceived(self, data: bytes) -> None:
        self.transport.abortConnection()  # type: ignore[union-attr]


class Silent(Protocol):
    """Counts what it is sent, and never answers."""

    asked = 0

    def dataReceived(self, data: bytes) -> None:
        Silent.asked += 1


class SocketTests(TestCase):
    timeout = 60

    def setUp(self) -> None:
        from twisted.internet import reactor  # noqa: TID251

        clock: Any = reactor
        self.clock = clock
        self.faults = Faults()
        self.cloud = EmbeddedCloud(
            clock,
            Embedded(password="demo"),
            Guests(),
            self.faults,
            Path(self.mktemp()),
            "",
            lambda: str(uuid.uuid4()),
            random.Random(1),
            lambda: "",
        )
        site = Site(self.cloud.resource, parsePOSTFormSubmission=False)
        self.port = clock.listenTCP(0, site, interface="127.0.0.1")
        self.base = f"http://127.0.0.1:{self.port.getHost().port}"
        self.cloud.set_public_url(self.base)
        self.cloud.start()
        self.pool = HTTPConnectionPool(clock)
        self.pool.retryAutomatically = False
        agent = Agent(clock, pool=self.pool)
        self.http = HttpClient(agent, clock, cloud_error, timeout_s=20.0)
        settings = CloudSettings(
            auth_url=self.base + "/identity/v3",
            username="demo",
            password="demo",
            project="demo",
            timeout_s=1.0,
        )
        self.client = OpenStack(agent, clock, settings)
        self.demo = TenantId("demo")

    def tearDown(self) -> Deferred[None]:
        async def end() -> None:
            await self.pool.closeCachedConnections()
            await self.port.stopListening()
            await self.cloud.stop()

        return Deferred.fromCoroutine(end())

    async def upload(self, mebibytes: int, size: int | None) -> int:
        who = {"name": "demo", "password": "demo", "domain": {"id": "default"}}
        methods = {"methods": ["password"], "password": {"user": who}}
        auth = {"auth": {"identity": methods, "scope": {"project": {"id": "demo"}}}}
        answer = await self.http.request(
            "POST", self.base + "/identity/v3/auth/tokens", body=json.dumps(auth).encode()
        )
        headers = {"X-Auth-Token": answer.header("x-subject-token")}
        container = self.base + "/object-store/v1/AUTH_demo/c"
        await self.http.request("PUT", container, headers=headers, body=b"")
        answer = await self.http.stream_put(
            container + "/o", zeros(mebibytes), size, headers=headers
        )
        return answer.status

    def test_uploads_and_downloads_stream(self) -> Deferred[None]:
        """Chunked and with a length; leaving a download early closes its connection."""

        async def check() -> None:
            self.assertEqual(await self.upload(8, 8 * _MIB), 201)
            self.assertEqual(await self.upload(12, None), 201)
            mine = Credentials(user="demo", password="demo")
            size, pieces = await self.client.read(self.demo, mine, "c", "o")
            self.assertEqual(size, 12 * _MIB)
            self.assertEqual(sum([len(piece) async for piece in pieces]), 12 * _MIB)
            size, pieces = await self.client.read(self.demo, mine, "c", "o")
            await anext(pieces)
            await pieces.aclose()  # type: ignore[attr-defined]

        return Deferred.fromCoroutine(check())

    def test_an_upload_that_is_cut_off_is_a_fault_of_the_peer(self) -> Deferred[None]:
        """The peer goes away while the content is being sent."""

        async def check() -> None:
            port = self.clock.listenTCP(0, Factory.forProtocol(Cutting), interface="127.0.0.1")
            url = f"http://127.0.0.1:{port.getHost().port}/x"
            try:
                await self.http.stream_put(url, zeros(64), None)
            except CloudError as error:
                self.assertEqual(error.kind, Fault.SERVER_ERROR)
                self.assertIn("Connection to the other side was lost", error.text)
            else:
                self.fail("was answered")
            finally:
                await port.stopListening()

        return Deferred.fromCoroutine(check())

    def test_a_cancelled_call_is_sent_once(self) -> Deferred[None]:
        """And ends at once, though calls that broke are sent again."""

        async def check() -> None:
            factory = Factory.forProtocol(Silent)
            port = self.clock.listenTCP(0, factory, interface="127.0.0.1")
            url = f"http://127.0.0.1:{port.getHost().port}/x"
            work = self.http.request("GET", url)
            try:
                await with_deadline(self.clock, 0.1, "an answer", work)
            except DeadlineExceeded as late:
                self.assertEqual(late.args[0], "an answer")
            else:
                self.fail("was answered")
            finally:
                await port.stopListening()
            self.assertEqual(Silent.asked, 1)

        Silent.asked = 0
        return Deferred.fromCoroutine(check())

    def test_a_closed_port_is_unreachable(self) -> Deferred[None]:
        """Nothing was done."""

        async def check() -> None:
            try:
                await self.http.request("POST", "http://127.0.0.1:9/x", body=b"")
            except CloudError as error:
                self.assertEqual(error.kind, Fault.UNREACHABLE)
            else:
                self.fail("was answered")

        return Deferred.fromCoroutine(check())
