"""The daemon on a real OpenStack, with real servers that it logs in to by SSH.

The distribution is `fake`; everything that the cloud has to give is asked for: volumes, floating
IPs, anti-affinity, security groups, trusts. Needed: see openstack_case.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tests.support.openstack_case import OpenStackCase, token
from tests.support.processes import send, until
from tests.support.real_openstack import given, platform

_GROUP: Mapping[str, Any] = {
    "volumes_per_node": 2,
    "volumes_size": 1,
    "volume_mount_prefix": "/mnt/volume",
    "floating_ip_pool": "public",
}


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

    async def test_a_create_goes_on_when_its_token_is_revoked(self) -> None:
        """By the trust. The caller is let in no more, nor is anybody of another project."""
        await self.begin(auth__cache_s="1")
        alpha = await self.user()
        cluster_id = await self.small(alpha)
        headers = {"X-Auth-Token": alpha.token, "X-Subject-Token": alpha.token}
        reply = await send("DELETE", given("AUTH_URL") + "/auth/tokens", headers=headers)
        self.assertEqual(reply.status, 204)

        async def refused() -> bool:
            reply = await alpha.ask("GET", "/clusters")
            return reply.status == 401 and given("AUTH_URL") in reply.headers["www-authenticate"]

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
