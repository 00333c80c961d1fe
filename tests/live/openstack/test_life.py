"""The daemon on a real OpenStack, with real servers that it logs in to by SSH.

The distribution is `fake`; everything that the cloud has to give is asked for: volumes, floating
IPs, anti-affinity, security groups, trusts. Needed: see openstack_case.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tests.support.openstack_case import OpenStackCase, User, token
from tests.support.processes import send, until
from tests.support.real_openstack import given, platform

_GROUP: Mapping[str, Any] = {
    "volumes_per_node": 2,
    "volumes_size": 1,
    "volume_mount_prefix": "/mnt/volume",
    "floating_ip_pool": "public",
}
_FEW: Mapping[str, tuple[int, int]] = {
    "instances": (0, 2),
    "volumes": (0, 2),
    "volume_gib": (0, 10),
    "floating_ips": (0, 1),
}
"""Used and limit of the quotas of the project `tiny`."""
_OFFER_S = 90.0


class OpenStackTests(OpenStackCase):
    """One daemon a test."""

    async def test_a_cluster_lives_and_leaves_nothing(self) -> None:
        """Servers, volumes, addresses and groups come, follow the size, and go with the trust."""
        await self.begin()
        alpha = await self.user()
        before = set(await self.everything())
        cluster_id = await self.made(alpha, 2, anti_affinity=["datanode"], group=_GROUP)
        cluster = await alpha.until(cluster_id, "Active")
        workers = cluster["node_groups"][1]["instances"]
        self.assertEqual(len({i["management_ip"] for i in workers}), 2)
        for each in workers:
            await self.check_worker(each)
        await self.check_rules(cluster_id)
        admin = await self.admin()
        hosts = {
            (await admin.get("GET", f"{admin.nova}/servers/{i['server_id']}"))["server"]["hostId"]
            for i in workers
        }
        self.assertEqual(len(hosts), 2, "anti-affinity")
        for workers_wanted in (3, 1):
            resize = [{"name": "worker", "count": workers_wanted}]
            await alpha.get("PUT", f"/clusters/{cluster_id}", {"resize_node_groups": resize})
            cluster = await alpha.until(cluster_id, "Active")
            workers = cluster["node_groups"][1]["instances"]
            self.assertEqual(len(workers), workers_wanted, cluster["status_description"])
        await self.check_worker(workers[0])
        await alpha.delete(cluster_id)
        self.assertEqual(set(await self.everything()) - before, set())

    async def check_rules(self, cluster_id: str) -> None:
        """The group lets in SSH, and all traffic of its members; nothing else."""
        rules = await self.ingress(cluster_id)
        self.assertEqual(
            sorted(
                (r["port_range_min"] or 0, r["port_range_max"] or 0, r["remote_group_id"] or "")
                for r in rules
            ),
            [(0, 0, rules[0]["security_group_id"]), (22, 22, "")],
        )

    async def check_worker(self, each: Mapping[str, Any]) -> None:
        """It knows all names, its volumes are mounted and its daemons were started."""
        said = await self.on(
            each["management_ip"],
            "hostname; stat -c %U /mnt/volume1 /mnt/volume2; grep -c /mnt/volume /proc/mounts; "
            f"getent ahostsv4 {shlex.quote(each['instance_name'])} | head -n 1; "
            "sudo -n cat /home/svcd/svcd-fake/running",
        )
        lines = said.splitlines()
        self.assertEqual(lines[:4], [each["instance_name"], "svcd", "svcd", "2"], said)
        self.assertEqual(lines[4].split()[0], each["internal_ip"], said)
        self.assertIn("nodemanager", lines)

    async def test_only_the_callers_own_project_opens(self) -> None:
        """No token and a wrong one: 401; another tenant: 403; without a role to pass on: 403."""
        await self.begin()
        alpha = await self.user()
        for wrong in ("", "garbled"):
            reply = await send("GET", alpha.base + "/clusters", headers={"X-Auth-Token": wrong})
            self.assertEqual((reply.status, reply.json["error_name"]), (401, "UNAUTHORIZED"))
            self.assertIn(given("AUTH_URL"), reply.headers["www-authenticate"])
        beta = await token("beta-user", "beta")
        reply = await send("GET", alpha.base + "/clusters", headers={"X-Auth-Token": beta})
        self.assertEqual((reply.status, reply.json["error_name"]), (403, "FORBIDDEN"))

    async def test_a_quota_is_told_before_anything_is_made(self) -> None:
        """What is needed and what is left."""
        await self.begin()
        tiny = await self.user("tiny-user", "tiny")
        await self.registered(tiny)
        body = self.body(tiny, ("all", 3, ["namenode"]), group=_GROUP)
        reply = await tiny.ask("POST", "/clusters", body)
        self.assertEqual((reply.status, reply.json["error_name"]), (400, "QUOTA_ERROR"), reply)
        for words in ("instances: needed 3, left 2", "floating IPs: needed 3, left 1"):
            self.assertIn(words, reply.json["error_message"])

    async def offer(self, user: User) -> Any:
        """What the cloud offers a user, as soon as all services have answered in time."""

        async def look() -> Any:
            found = (await user.get("GET", "/cloud"))["cloud"]
            return None if found["failed"] else found

        return await until(look, "all parts of the offer", _OFFER_S)

    async def test_the_offer_of_the_cloud(self) -> None:
        """Flavors, networks, the user's key pairs, and quotas that follow a server."""
        await self.begin()
        alpha, tiny = await self.user(), await self.user("tiny-user", "tiny")
        found = await self.offer(alpha)
        self.assertEqual(found["cut"], [])
        self.assertLessEqual({"m1.tiny", "m1.medium"}, {f["name"] for f in found["flavors"]})
        self.assertIn(given("FLAVOR"), [each["id"] for each in found["flavors"] if each["ram_mib"]])
        self.assertIn(given("KEYPAIR"), found["keypairs"])
        networks = {each["id"]: each["external"] for each in found["networks"]}
        self.assertIs(networks[platform()["tenants"]["alpha"]["network"]], False)
        self.assertIn(True, networks.values())
        of_reader = await self.offer(await self.user("alpha-reader", "alpha"))
        self.assertEqual(of_reader["flavors"], found["flavors"])
        self.assertEqual(of_reader["keypairs"], [])
        few = {each["resource"]: each for each in (await self.offer(tiny))["quota"]}
        self.assertEqual({name: (few[name]["used"], few[name]["limit"]) for name in _FEW}, _FEW)
        cluster_id = await self.made(alpha, 1)
        await alpha.until(cluster_id, "Active")
        before, after = (
            {each["resource"]: each["used"] for each in one["quota"]}
            for one in (found, await self.offer(alpha))
        )
        self.assertEqual(after["instances"] - before["instances"], 2)
        await alpha.delete(cluster_id)
