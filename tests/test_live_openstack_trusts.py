"""Who can give a real daemon a trust on a real OpenStack, and what those hear who cannot.

Needed: SVCD_TEST_OS_PLATFORM. The servers need not answer on SSH: a cluster counts as made when
its server is ACTIVE.
"""

from __future__ import annotations

import uuid
from typing import Any

from tests.processes import DaemonCase, Reply, send, until
from tests.real_openstack import given, missing, platform

_ACTIVE_S = 180.0
_GONE_S = 120.0
_LOOK_S = 0.5


def _no_platform() -> str:
    lacking = missing("AUTH_URL")
    return lacking if lacking or platform() else "SVCD_TEST_OS_PLATFORM is not set"


async def login(identity: dict[str, Any], scope: object = None) -> str:
    """A token of the identity service."""
    body: dict[str, Any] = {"auth": {"identity": identity}}
    if scope is not None:
        body["auth"]["scope"] = scope
    reply = await send("POST", given("AUTH_URL") + "/auth/tokens", body)
    if reply.status != 201:
        raise AssertionError(f"no token: {reply.status} {reply.body.decode()}")
    return reply.headers["x-subject-token"]


async def by_password(user: str, project: str) -> str:
    """A token of the platform's user."""
    domain = {"id": "default"}
    name = {"name": user, "domain": domain, "password": platform()["users"][user]["password"]}
    return await login(
        {"methods": ["password"], "password": {"user": name}},
        {"project": {"name": project, "domain": domain}},
    )


async def identity(token: str, method: str, path: str, body: object = None) -> Any:
    """The JSON of a success of the identity service."""
    url = given("AUTH_URL") + path
    reply = await send(method, url, body, headers={"X-Auth-Token": token})
    if reply.status >= 300:
        raise AssertionError(f"{method} {path}: {reply.status} {reply.body.decode()}")
    return reply.json if reply.body else None


class TrustTests(DaemonCase):
    """One daemon a test."""

    timeout = 400
    skip = _no_platform() or None

    async def begin(self) -> None:
        daemon = self.daemon(
            cloud__kind="openstack",
            auth__mode="keystone",
            cloud__auth_url=given("AUTH_URL"),
            cloud__username=given("SERVICE_USERNAME"),
            cloud__password=given("SERVICE_PASSWORD"),
            cloud__project=given("SERVICE_PROJECT"),
        )
        await daemon.start()
        self.base = f"{daemon.endpoints['api']}/v1.1/{platform()['projects']['alpha']}"

    async def ask(self, token: str, method: str, path: str, body: object = None) -> Reply:
        return await send(method, self.base + path, body, headers={"X-Auth-Token": token})

    async def create(self, token: str) -> Reply:
        """A cluster of one server, of the member's image."""
        tenant = platform()["tenants"]["alpha"]
        image = f"/images/{tenant['private_image']}"
        member = await by_password("alpha-user", "alpha")
        register = {"username": "debian", "description": ""}
        self.assertEqual((await self.ask(member, "POST", image, register)).status, 202)
        processes = ["namenode", "datanode", "resourcemanager", "nodemanager"]
        processes += ["historyserver", "oozie"]
        group = {"name": "all", "count": 1, "flavor_id": "1", "node_processes": processes}
        body = {
            "name": f"trust-{uuid.uuid4().hex[:6]}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": tenant["private_image"],
            "neutron_management_network": tenant["network"],
            "node_groups": [group],
        }
        return await self.ask(token, "POST", "/clusters", body)

    async def trusts(self) -> set[str]:
        """Ids of all trusts that svcd's user has."""
        admin = await by_password("admin", "admin")
        rows = (await identity(admin, "GET", "/OS-TRUST/trusts"))["trusts"]
        svcd = platform()["users"]["svcd"]["id"]
        return {row["id"] for row in rows if row["trustee_user_id"] == svcd}

    async def test_a_reader_gives_the_role_that_it_has(self) -> None:
        """Not more: what it may make with that is the cloud's own affair, and is told."""
        await self.begin()
        before = await self.trusts()
        token = await by_password("alpha-reader", "alpha")
        reply = await self.create(token)
        self.assertEqual(reply.status, 202, reply.body)
        path = f"/clusters/{reply.json['cluster']['id']}"
        (trust_id,) = await self.trusts() - before
        mine = await identity(token, "GET", f"/OS-TRUST/trusts/{trust_id}")
        self.assertEqual([role["name"] for role in mine["trust"]["roles"]], ["reader"])

        async def decided() -> Any:
            cluster = (await self.ask(token, "GET", path)).json["cluster"]
            told = [i.get("status") for i in cluster["node_groups"][0].get("instances", ())]
            return cluster if "ACTIVE" in told or cluster["status"] == "Error" else None

        cluster = await until(decided, "a server, or why not", _ACTIVE_S, _LOOK_S)
        if cluster["status"] == "Error":  # a cloud with the newer policies
            self.assertIn("403", cluster["status_description"])
        await self.ask(token, "DELETE", path)

        async def gone() -> bool:
            return (await self.ask(token, "GET", path)).status == 404

        await until(gone, "the cluster to be gone", _GONE_S, _LOOK_S)
        self.assertEqual(await self.trusts() - before, set())

    async def test_delegated_tokens_give_no_trust(self) -> None:
        """Of a restricted application credential, of a trust: 403 with the reason, nothing made."""
        await self.begin()
        before = await self.trusts()
        token = await by_password("alpha-user", "alpha")
        me = platform()["users"]["alpha-user"]["id"]
        base = f"/users/{me}/application_credentials"
        new = {"application_credential": {"name": f"live-{uuid.uuid4().hex[:8]}"}}
        made = (await identity(token, "POST", base, new))["application_credential"]

        async def forget() -> None:
            await identity(token, "DELETE", f"{base}/{made['id']}")

        self.addCleanup(forget)
        secret = {"id": made["id"], "secret": made["secret"]}
        method = {"methods": ["application_credential"], "application_credential": secret}
        for given_, words in (
            (await login(method), "Delegated tokens cannot"),
            (await self.of_trust(token, me), "a token made from a trust"),
        ):
            reply = await self.create(given_)
            self.assertEqual((reply.status, reply.json["error_name"]), (403, "FORBIDDEN"), reply)
            self.assertIn(words, reply.json["error_message"])
        self.assertEqual((await self.ask(token, "GET", "/clusters")).json, {"clusters": []})
        self.assertEqual(await self.trusts() - before, set())

    async def of_trust(self, token: str, me: str) -> str:
        """A token by a trust that the member gives another user; it goes after the test."""
        trustee = platform()["users"]["alpha-user2"]
        new = {
            "trustor_user_id": me,
            "trustee_user_id": trustee["id"],
            "project_id": platform()["projects"]["alpha"],
            "impersonation": True,
            "roles": [{"name": "member"}],
        }
        trust = (await identity(token, "POST", "/OS-TRUST/trusts", {"trust": new}))["trust"]

        async def forget() -> None:
            await identity(token, "DELETE", f"/OS-TRUST/trusts/{trust['id']}")

        self.addCleanup(forget)
        name = {"id": trustee["id"], "password": trustee["password"]}
        method = {"methods": ["password"], "password": {"user": name}}
        return await login(method, {"OS-TRUST:trust": {"id": trust["id"]}})
