"""`svcd orphans` as a command: on the embedded cloud, and on a real OpenStack where there is one.

Needed for the latter: SVCD_TEST_OS_PLATFORM, a platform.json of a running platform; its servers
need not answer on SSH.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from svcd.model import marks
from tests.live import Tenant
from tests.processes import Daemon, DaemonCase, Ended, run, send, until
from tests.real_openstack import given, missing, platform

_GONE_S = 120.0
_COMMAND_S = 300.0


async def orphans(*arguments: str, **environment: str) -> Ended:
    return await run("svcd", "orphans", *arguments, environment=environment, limit_s=_COMMAND_S)


class EmbeddedTests(DaemonCase):
    timeout = 400

    async def test_database_that_forgot_a_cluster(self) -> None:
        """Its things are found and removed; those of another installation's clusters are not."""
        daemon = self.daemon()
        cloud = dict(await daemon.start())
        tenant = Tenant(cloud)
        lost, kept = await tenant.new_cluster("lost", 1), await tenant.new_cluster("kept", 1)
        for each in (lost, kept):
            await tenant.until_active(each)
        await daemon.stop()
        database = sqlite3.connect(daemon.state / "svcd.sqlite")
        database.execute("delete from clusters where id = ?", (lost,))
        database.commit()
        database.close()
        await daemon.start()
        place = ("--set", f"server.state_dir={daemon.state}")

        young = await orphans("--delete", *place)
        self.assertEqual((young.code, young.err), (0, ""))
        self.assertIn("0 to be removed", young.out)
        self.assertIn("left alone: something of its cluster is younger than 10 min", young.out)
        old = ("--younger", "0")
        listed = await orphans(*old, *place)
        self.assertEqual((listed.code, listed.err), (0, ""))
        self.assertIn("5 found, 5 to be removed, 0 left alone\nnothing was removed", listed.out)
        self.assertEqual(len(await Tenant(daemon.endpoints).servers()), 4)

        other = self.daemon(
            cloud__kind="openstack",
            cloud__auth_url=daemon.endpoints["identity"],
            cloud__username="demo",
            cloud__password="demo",
            cloud__project="demo",
        )
        endpoints = await other.start()
        user = {
            "OS_AUTH_URL": daemon.endpoints["identity"],
            "OS_USERNAME": "demo",
            "OS_PASSWORD": "demo",
            "OS_PROJECT_NAME": "demo",
        }
        api = ("--api", endpoints["api"], "--tenant", "demo")
        foreign = await orphans("--delete", "--unmarked", *old, *api, **user)
        self.assertEqual((foreign.code, foreign.err), (0, ""))
        self.assertIn("0 to be removed, 10 left alone", foreign.out)
        self.assertIn("another installation has made it", foreign.out)

        removed = await orphans("--delete", *old, *place)
        self.assertEqual((removed.code, removed.err), (0, ""))
        self.assertEqual(removed.out.count("\nremoved "), 5)
        tenant = Tenant(daemon.endpoints)
        names = sorted(s["name"] for s in await tenant.servers())
        self.assertEqual(names, ["kept-master-001", "kept-worker-001"])
        self.assertEqual((await tenant.cluster(kept))["status"], "Active")

        await other.stop()
        silent = await orphans("--delete", "--unmarked", *old, *api, **user)
        self.assertEqual(silent.code, 1)
        self.assertIn("cannot be reached", silent.err)
        self.assertEqual(len(await tenant.servers()), 2)


class OpenStackTests(DaemonCase):
    """Beside servers, volumes and groups of others in the same project."""

    timeout = 700
    skip = missing("AUTH_URL") or (None if platform() else "SVCD_TEST_OS_PLATFORM is not set")

    async def begin(self) -> Daemon:
        daemon = self.daemon(
            cloud__kind="openstack",
            auth__mode="keystone",
            cloud__auth_url=given("AUTH_URL"),
            cloud__username=given("SERVICE_USERNAME"),
            cloud__password=given("SERVICE_PASSWORD"),
            cloud__project=given("SERVICE_PROJECT"),
        )
        await daemon.start()
        domain = {"id": "default"}
        user = {"name": given("USERNAME"), "password": given("PASSWORD"), "domain": domain}
        scope = {"project": {"name": given("PROJECT"), "domain": domain}}
        identity = {"methods": ["password"], "password": {"user": user}}
        reply = await send(
            "POST",
            given("AUTH_URL") + "/auth/tokens",
            {"auth": {"identity": identity, "scope": scope}},
        )
        self.assertEqual(reply.status, 201, reply)
        self.token = reply.headers["x-subject-token"]
        self.tenant = reply.json["token"]["project"]["id"]
        self.ends = {
            service["type"]: each["url"]
            for service in reply.json["token"]["catalog"]
            for each in service["endpoints"]
            if each["interface"] == "public"
        }
        return daemon

    async def cloud(self, method: str, service: str, path: str, body: object = None) -> Any:
        """What the user gets; None for nothing, or for 404."""
        url = self.ends[service].rstrip("/") + path
        reply = await send(method, url, body, headers={"X-Auth-Token": self.token})
        if reply.status == 404:
            return None
        self.assertLess(reply.status, 300, reply)
        return reply.json

    async def server(self, name: str, metadata: Mapping[str, str], group: str) -> str:
        known = platform()
        networks = (await self.cloud("GET", "network", "/v2.0/networks"))["networks"]
        inner = next(n["id"] for n in networks if not n["router:external"] and not n["shared"])
        body = {
            "name": name,
            "imageRef": known["tenants"]["alpha"]["private_image"],
            "flavorRef": given("FLAVOR"),
            "metadata": dict(metadata),
            "networks": [{"uuid": inner}],
            "security_groups": [{"name": group}],
        }
        made = await self.cloud("POST", "compute", "/servers", {"server": body})
        server_id = str(made["server"]["id"])
        self.remove_later("compute", f"/servers/{server_id}")
        return server_id

    async def volume(self, name: str, metadata: Mapping[str, str]) -> str:
        body = {"volume": {"name": name, "size": 1, "metadata": dict(metadata)}}
        volume_id = str((await self.cloud("POST", "volumev3", "/volumes", body))["volume"]["id"])

        async def available() -> bool:
            shown = await self.cloud("GET", "volumev3", f"/volumes/{volume_id}")
            return bool(shown["volume"]["status"] == "available")

        self.remove_later("volumev3", f"/volumes/{volume_id}")
        await until(available, "the volume", _GONE_S, 0.3)
        return volume_id

    async def group(self, name: str, text: str) -> str:
        body = {"security_group": {"name": name, "description": text}}
        made = await self.cloud("POST", "network", "/v2.0/security-groups", body)
        id_ = str(made["security_group"]["id"])
        self.remove_later("network", f"/v2.0/security-groups/{id_}")
        return id_

    def remove_later(self, service: str, path: str) -> None:
        """What is left by a test that failed; retried while something holds it."""

        async def gone() -> bool:
            url = self.ends[service].rstrip("/") + path
            reply = await send("DELETE", url, headers={"X-Auth-Token": self.token})
            return reply.status == 404

        self.addCleanup(lambda: Deferred.fromCoroutine(until(gone, f"{path} to go", _GONE_S, 0.5)))

    async def test_only_what_carries_our_marks_goes(self) -> None:
        """Two lost servers, a volume, an address and both groups go; foreign ones stay."""
        daemon = await self.begin()
        headers = {"X-Auth-Token": self.token}
        url = f"{daemon.endpoints['api']}/v1.1/{self.tenant}/marks"
        installation = (await send("GET", url, headers=headers)).json["marks"]["installation"]
        cluster_id, instance_id = str(uuid.uuid4()), str(uuid.uuid4())
        metadata = marks.metadata(cluster_id, instance_id, installation)
        name = marks.group_name(cluster_id)
        their_group = await self.group("svcd-theirs", "cluster x of svcd")
        our_group = await self.group(name, marks.group_text("lost", installation))
        theirs = [
            await self.server("lost-worker-009", {}, "default"),
            await self.server("lost-worker-010", {marks.CLUSTER: "mine"}, their_group),
        ]
        ours = [await self.server(f"lost-worker-00{n}", metadata, our_group) for n in (1, 2)]
        their_volume = await self.volume("volume_lost-worker-009_1", {})
        our_volume = await self.volume("volume_lost-worker-001_1", metadata)
        group = {"server_group": {"name": name, "policies": ["anti-affinity"]}}
        made = await self.cloud("POST", "compute", "/os-server-groups", group)
        server_group = str(made["server_group"]["id"])
        self.remove_later("compute", f"/os-server-groups/{server_group}")
        networks = (await self.cloud("GET", "network", "/v2.0/networks"))["networks"]
        pool = next(n["id"] for n in networks if n["name"] == given("POOL"))
        address = {
            "floating_network_id": pool,
            "description": marks.address_text(cluster_id, instance_id, installation),
        }
        made = await self.cloud("POST", "network", "/v2.0/floatingips", {"floatingip": address})
        our_address = str(made["floatingip"]["id"])
        self.remove_later("network", f"/v2.0/floatingips/{our_address}")

        user = {
            "OS_AUTH_URL": given("AUTH_URL"),
            "OS_USERNAME": given("USERNAME"),
            "OS_PASSWORD": given("PASSWORD"),
            "OS_PROJECT_NAME": given("PROJECT"),
        }
        api = ("--api", daemon.endpoints["api"], "--younger", "0")
        listed = await orphans(*api, **user)
        self.assertEqual((listed.code, listed.err), (0, ""), listed)
        gone_ids = [*ours, our_volume, our_group, our_address, server_group]
        kept_ids = [*theirs, their_volume, their_group]
        for id_ in gone_ids:
            self.assertIn(id_, listed.out)
        for id_ in kept_ids:
            self.assertNotIn(id_, listed.out)

        removed = await orphans("--delete", *api, **user)
        self.assertEqual((removed.code, removed.err), (0, ""), removed)
        for id_ in gone_ids:
            self.assertRegex(removed.out, rf"removed [a-zA-Z ]+ {id_}")
        for service, path in (
            *(("compute", f"/servers/{s}") for s in ours),
            ("volumev3", f"/volumes/{our_volume}"),
            ("network", f"/v2.0/security-groups/{our_group}"),
            ("network", f"/v2.0/floatingips/{our_address}"),
            ("compute", f"/os-server-groups/{server_group}"),
        ):
            self.assertIsNone(await self.cloud("GET", service, path))
        for service, path in (
            *(("compute", f"/servers/{s}") for s in theirs),
            ("volumev3", f"/volumes/{their_volume}"),
            ("network", f"/v2.0/security-groups/{their_group}"),
        ):
            self.assertIsNotNone(await self.cloud("GET", service, path))
