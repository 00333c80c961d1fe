"""Tokens, trusts and application credentials of a real Keystone.

Needed: see platform_services. About a minute and a half on two cores.
"""

from __future__ import annotations

import uuid

from twisted.internet.defer import Deferred

from tests.support.openstack_case import MASTER, WORKER, Cloud, User, token, token_by
from tests.support.platform_services import FaultCase, up
from tests.support.processes import send, until
from tests.support.real_openstack import given, platform

_SHORT_S = 30
"""Life of a token in the test that outlives one."""


class IdentityTests(FaultCase):
    """One daemon and one cluster a test."""

    async def trusts(self) -> dict[str, str]:
        """All of the platform, whoever made them."""
        return await (await self.admin()).trusts()

    async def test_a_create_outlives_the_callers_token(self) -> None:
        """svcd goes on by the trust, and gives it up with the cluster."""
        self.kill("keystone")
        await up(OPENSTACK_TOKEN_TTL=str(_SHORT_S))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.lasting_tokens()))
        await self.begin(auth__cache_s="1")
        alpha = await self.user()
        before = set(await self.trusts())
        self.hang("instances")  # nobody can be logged in to before the token has ended
        cluster_id = await self.small(alpha)
        self.assertEqual(len(set(await self.trusts()) - before), 1)

        async def refused() -> bool:
            return (await alpha.ask("GET", f"/clusters/{cluster_id}")).status == 401

        await until(refused, "the caller's token to end", 3 * _SHORT_S, 1.0)
        self.go_on("instances")
        await self.seen(cluster_id, "Active")
        late = await self.user()
        await late.get("DELETE", f"/clusters/{cluster_id}")
        await self.seen(cluster_id, "")
        self.assertEqual(set(await self.trusts()) - before, set())

    async def seen(self, cluster_id: str, status: str) -> None:
        """The cluster's status ("": it is gone), each time with a fresh token."""

        async def look() -> bool:
            reply = await (await self.user()).ask("GET", f"/clusters/{cluster_id}")
            shown = reply.json["cluster"] if reply.status == 200 else {"status": ""}
            if shown["status"] == "Error":
                raise AssertionError(shown["status_description"])
            return bool(shown["status"] == status)

        await until(look, status or "gone", 120, 0.5)

    async def lasting_tokens(self) -> None:
        """Keystone as it was."""
        self.kill("keystone")
        await up()

    async def test_a_create_goes_on_when_its_token_is_revoked(self) -> None:
        """The caller is let in no more; nobody else sees the cluster, whatever his role."""
        await self.begin(auth__cache_s="1")
        alpha = await self.user()
        cluster_id = await self.small(alpha)
        headers = {"X-Auth-Token": alpha.token, "X-Subject-Token": alpha.token}
        reply = await send("DELETE", given("AUTH_URL") + "/auth/tokens", headers=headers)
        self.assertEqual(reply.status, 204)

        async def refused() -> bool:
            return (await alpha.ask("GET", "/clusters")).status == 401

        await until(refused, "the revoked token to be refused", 60, 0.3)
        again = await self.user()
        await again.until(cluster_id, "Active")
        for name, project, path, status in (
            ("admin", "admin", again.base, 403),
            ("beta-user", "beta", again.base, 403),
            ("admin", "admin", f"{self.api}/v1.1/{platform()['projects']['admin']}", 404),
        ):
            for method in ("GET", "DELETE"):
                other = {"X-Auth-Token": await token(name, project)}
                reply = await send(method, f"{path}/clusters/{cluster_id}", headers=other)
                self.assertEqual(reply.status, status, (name, method, reply))
        await again.delete(cluster_id)

    async def credential(self, owner: Cloud) -> str:
        """A token by an application credential of alpha's user that is new."""
        user_id = platform()["users"]["alpha-user"]["id"]
        url = f"{given('AUTH_URL')}/users/{user_id}/application_credentials"
        body = {"application_credential": {"name": f"svcd-{uuid.uuid4().hex[:8]}"}}
        made = (await owner.get("POST", url, body))["application_credential"]

        async def remove() -> None:
            fresh = Cloud(await token("alpha-user", "alpha"), "alpha")
            await fresh.ask("DELETE", f"{url}/{made['id']}")

        self.addCleanup(lambda: Deferred.fromCoroutine(remove()))
        known = {"id": made["id"], "secret": made["secret"]}
        methods = ["application_credential"]
        return await token_by({"identity": {"methods": methods, "application_credential": known}})

    async def test_application_credentials_are_accepted(self) -> None:
        """They read; for a cluster Keystone gives them no trust, and that is told."""
        await self.begin()
        owner = Cloud(await token("alpha-user", "alpha"), "alpha")
        user = User("alpha-user", "alpha", await self.credential(owner), self.api)
        self.assertEqual((await user.ask("GET", "/clusters")).status, 200)
        await self.registered(user)
        body = self.body(user, ("all", 1, [*MASTER, *WORKER]))
        reply = await user.ask("POST", "/clusters", body)
        self.assertEqual((reply.status, reply.json["error_name"]), (403, "FORBIDDEN"), reply)
        self.assertIn("log in with a password", reply.json["error_message"])
        self.assertEqual((await user.get("GET", "/clusters"))["clusters"], [])
