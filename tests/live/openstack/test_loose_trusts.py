"""A real daemon killed between a trust and its row, on a real Keystone: the trust is given back.

Needed: SVCD_TEST_OS_PLATFORM; its servers need not answer on SSH. A minute and a half on two cores,
most of it the daemon's pause between two looks.
"""

from __future__ import annotations

import sqlite3
import uuid
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred
from twisted.web.client import Agent, FileBodyProducer, readBody
from twisted.web.http_headers import Headers
from twisted.web.iweb import IResponse
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from svcd.model import ownership_tags
from tests.support.openstack_case import MASTER, WORKER, Cloud, OpenStackCase
from tests.support.processes import Daemon, until
from tests.support.real_openstack import given, missing, platform

_SWEPT_S = 240.0
_PATH = "/OS-TRUST/trusts"
_KEPT = frozenset({"content-type", "x-subject-token", "vary"})


class _Between(Resource):
    """Keystone, but who gets a trust dies before it hears of it. daemon: who that is."""

    isLeaf = True

    def __init__(self, reactor: Any) -> None:
        super().__init__()
        self._agent: Any = Agent(reactor)
        self.daemon: Daemon | None = None
        self.made = 0

    def render(self, request: Request) -> Any:
        """See IResource."""
        Deferred.fromCoroutine(self._pass_on(request)).addErrback(
            lambda _: request.loseConnection()
        )
        return NOT_DONE_YET

    async def _pass_on(self, request: Request) -> None:
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(given("AUTH_URL")))
        sent = Headers()
        for name, values in request.requestHeaders.getAllRawHeaders():
            if name.lower() not in (b"host", b"content-length", b"connection", b"accept-encoding"):
                sent.setRawHeaders(name, values)
        assert request.content is not None
        answer: IResponse = await self._agent.request(
            request.method, origin.encode() + request.uri, sent, _body(request.content.read())
        )
        body = await readBody(answer)
        if request.method == b"POST" and request.path.endswith(_PATH.encode()):
            self.made += answer.code == 201
            if self.daemon is not None:
                await self.daemon.kill()
                return
        request.setResponseCode(answer.code)
        for name, values in answer.headers.getAllRawHeaders():
            if name.decode().lower() in _KEPT:
                request.responseHeaders.setRawHeaders(name, values)
        request.write(body)
        request.finish()


def _body(content: bytes) -> Any:
    return FileBodyProducer(BytesIO(content)) if content else None


class LooseTrustTests(OpenStackCase):
    """One daemon, and what stands between it and Keystone."""

    timeout = 600
    skip = (missing("AUTH_URL") if platform() else "SVCD_TEST_OS_PLATFORM is not set") or None

    async def given_to_svcd(self) -> set[str]:
        """Ids of all trusts of the platform."""
        return {name.split()[1] for name in await (await self.admin()).trusts()}

    async def another_trust(self, owner: Cloud) -> str:
        """Of the same user to the same svcd, as another installation has it."""
        users = platform()["users"]
        new = {
            "trustor_user_id": users["alpha-user"]["id"],
            "trustee_user_id": users["svcd"]["id"],
            "project_id": owner.project,
            "impersonation": True,
            "roles": [{"name": "member"}],
            "expires_at": ownership_tags.trust_end(uuid.uuid4().hex),
        }
        url = f"{given('AUTH_URL')}{_PATH}"
        trust_id = str((await owner.get("POST", url, {"trust": new}))["trust"]["id"])

        async def forget() -> None:
            await owner.ask("DELETE", f"{url}/{trust_id}")

        self.addCleanup(lambda: Deferred.fromCoroutine(forget()))
        return trust_id

    async def test_daemon_killed_between_the_trust_and_its_row(self) -> None:
        """The next one gives the trust back, and leaves that of another installation alone."""
        from twisted.internet import reactor  # noqa: TID251

        between = _Between(reactor)
        listening: Any = reactor
        port = listening.listenTCP(0, Site(between), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        path = urlsplit(given("AUTH_URL")).path
        daemon = await self.begin(cloud__auth_url=f"http://127.0.0.1:{port.getHost().port}{path}")
        alpha = await self.user()
        await self.registered(alpha)
        other = await self.another_trust(Cloud(alpha.token, "alpha"))
        before = await self.given_to_svcd()
        between.daemon = daemon
        body = self.body(alpha, ("all", 1, [*MASTER, *WORKER]))
        with self.assertRaises(Exception):  # noqa: B017 (whatever says that nobody answers)
            await alpha.ask("POST", "/clusters", body)
        self.assertEqual(between.made, 1)
        (lost,) = await self.given_to_svcd() - before

        _let_time_pass(Path(daemon.state) / "svcd.sqlite")
        between.daemon = None
        self.api = (await daemon.start())["api"]

        async def gone() -> bool:
            return lost not in await self.given_to_svcd()

        await until(gone, "the trust to be given back", _SWEPT_S, 2.0)
        self.assertIn(other, await self.given_to_svcd())
        again = await self.user()
        self.assertEqual(await again.get("GET", "/clusters"), {"clusters": []})


def _let_time_pass(database: Path) -> None:
    """What was noted is as old as that of a request that must be dead."""
    connection = sqlite3.connect(database)
    try:
        with connection:
            changed = connection.execute(
                "update loose_trusts set due_at = asked_at where trust_id = '' and doomed = 0"
            )
            if changed.rowcount != 1:
                raise AssertionError(f"{changed.rowcount} trusts are noted")
    finally:
        connection.close()
