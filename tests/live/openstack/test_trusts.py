"""Who can give a real daemon a trust on a real OpenStack, and what those hear who cannot.

Needed: see openstack_case. Half a minute on two cores.
"""

from __future__ import annotations

import uuid
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.openstack_case import (
    MASTER,
    WORKER,
    Cloud,
    OpenStackCase,
    User,
    token_by,
)
from tests.support.processes import Reply
from tests.support.real_openstack import given, platform


class TrustTests(OpenStackCase):
    """One daemon a test."""

    timeout = 400

    async def trusts(self) -> set[str]:
        """Ids of all trusts of the platform."""
        return {name.split()[1] for name in await (await self.admin()).trusts()}

    async def asked(self, token: str) -> Reply:
        """What a token hears that asks for a cluster of one server."""
        user = User("", "alpha", token, self.api)
        return await user.ask("POST", "/clusters", self.one_server(user))

    def one_server(self, user: User) -> Any:
        """Without a key pair: that of alpha's user is nobody else's."""
        body = self.body(user, ("all", 1, [*MASTER, *WORKER]))
        del body["user_keypair_id"]
        return body

    async def test_a_reader_reads_and_makes_nothing(self) -> None:
        """The roles of a real Keystone: a reader gets 403 for a cluster, and gives no trust."""
        await self.begin()
        await self.registered(await self.user())
        before = await self.trusts()
        reader = await self.user("alpha-reader")
        self.assertEqual((await reader.ask("GET", "/clusters")).status, 200)
        reply = await reader.ask("POST", "/clusters", self.one_server(reader))
        self.assertEqual((reply.status, reply.json["error_name"]), (403, "FORBIDDEN"), reply)
        self.assertIn("auth.write_roles", reply.json["error_message"])
        self.assertEqual(await self.trusts() - before, set())

    async def test_a_member_gives_the_role_member_and_no_other(self) -> None:
        """Also when the token has more roles, such as the implied reader."""
        await self.begin()
        alpha = await self.user()
        await self.registered(alpha)
        before = await self.trusts()
        cluster_id = await self.accepted(alpha, self.one_server(alpha))
        (trust_id,) = await self.trusts() - before
        mine = Cloud(alpha.token, "alpha")
        trust = await mine.get("GET", f"{mine.identity}/OS-TRUST/trusts/{trust_id}")
        self.assertEqual([role["name"] for role in trust["trust"]["roles"]], ["member"])
        await alpha.delete(cluster_id)
        self.assertEqual(await self.trusts() - before, set())

    async def test_delegated_tokens_give_no_trust(self) -> None:
        """Of a restricted application credential, of a trust: 403 with the reason, nothing made."""
        await self.begin()
        alpha = await self.user()
        await self.registered(alpha)
        owner = Cloud(alpha.token, "alpha")
        before = await self.trusts()
        for delegated, words in (
            (await self.by_credential(owner), "Delegated tokens cannot"),
            (await self.by_trust(owner), "a token from a trust"),
        ):
            reply = await self.asked(delegated)
            self.assertEqual((reply.status, reply.json["error_name"]), (403, "FORBIDDEN"), reply)
            self.assertIn(words, reply.json["error_message"])
        self.assertEqual(await alpha.get("GET", "/clusters"), {"clusters": []})
        self.assertEqual(len(await self.trusts() - before), 1)  # the one that the test has made

    async def by_credential(self, owner: Cloud) -> str:
        """A token by an application credential that goes after the test."""
        url = f"{owner.identity}/users/{_id('alpha-user')}/application_credentials"
        new = {"application_credential": {"name": f"live-{uuid.uuid4().hex[:8]}"}}
        made = (await owner.get("POST", url, new))["application_credential"]
        self.forgotten(owner, f"{url}/{made['id']}")
        secret = {"id": made["id"], "secret": made["secret"]}
        method = {"methods": ["application_credential"], "application_credential": secret}
        return await token_by({"identity": method})

    async def by_trust(self, owner: Cloud) -> str:
        """A token by a trust that the member gives another user; it goes after the test."""
        new = {
            "trustor_user_id": _id("alpha-user"),
            "trustee_user_id": _id("alpha-user2"),
            "project_id": owner.project,
            "impersonation": True,
            "roles": [{"name": "member"}],
        }
        url = f"{given('AUTH_URL')}/OS-TRUST/trusts"
        trust = (await owner.get("POST", url, {"trust": new}))["trust"]
        self.forgotten(owner, f"{url}/{trust['id']}")
        password = platform()["users"]["alpha-user2"]["password"]
        user = {"id": _id("alpha-user2"), "password": password}
        method = {"methods": ["password"], "password": {"user": user}}
        return await token_by(
            {"identity": method, "scope": {"OS-TRUST:trust": {"id": trust["id"]}}}
        )

    def forgotten(self, owner: Cloud, url: str) -> None:
        """It goes after the test."""

        async def forget() -> None:
            await owner.ask("DELETE", url)

        self.addCleanup(lambda: Deferred.fromCoroutine(forget()))


def _id(user: str) -> str:
    return str(platform()["users"][user]["id"])
