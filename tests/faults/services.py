"""Services of a real OpenStack die and hang while a cluster is made, and what svcd makes of it.

Every server is there once at the end, and none is left after the delete. Needed: see
platform_services. About two minutes on two cores.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.openstack_case import User, instances
from tests.support.platform_services import FaultCase, up
from tests.support.processes import send, until
from tests.support.real_openstack import platform

_GOOD = 5
_FAST = {"provisioning__poll_s": "0.3", "cloud__timeout_s": "8"}


class ServiceTests(FaultCase):
    """One daemon, one cluster and one fault a test."""

    async def start(self, **settings: str) -> User:
        await self.begin(**{**_FAST, **settings})
        return await self.user()

    async def requested(self, user: User, cluster_id: str) -> Any:
        """The cluster, when the first of its servers has been made."""

        async def look() -> Any:
            found = await user.cluster(cluster_id)
            return found if any("server_id" in i for i in instances(found)) else None

        return await until(look, "the first server", 60, 0.05)

    async def right(self, user: User, cluster_id: str) -> None:
        """It becomes Active without a complaint, each of its parts is there once, and it goes."""
        cluster = await user.until(cluster_id, "Active")
        self.assertEqual(cluster["status_description"], "")
        admin = await self.admin()
        rows = await admin.listed(True)
        kinds = Counter(id_.split()[0] for id_, text in rows.items() if cluster_id in text)
        machines = len(instances(cluster))
        self.assertEqual((kinds["servers"], kinds["security_groups"]), (machines, 1), rows)
        ports = [text for text in rows.values() if text.startswith("ports")]
        for each in instances(cluster):
            mine = [text for text in ports if each["server_id"] in text]
            self.assertEqual(len(mine), 1, mine)
        await user.delete(cluster_id)

    async def made_anew(self, user: User, cluster_id: str) -> None:
        """Right, if need be by an empty resize.

        Servers that Nova itself has forgotten in BUILD are given up at the deadline and removed.
        """
        cluster = await user.until(cluster_id, "Active Error")
        await self.rested()
        if cluster["status"] == "Error":
            self.assertRegex(
                cluster["status_description"],
                r"^BOOT_TIMEOUT: Spawning took longer than \d+ s: server \S+ is (BUILD|not listed)",
            )
            self.assertEqual(await self.servers_of(cluster_id), [])
            await user.get("PUT", f"/clusters/{cluster_id}", {})
        await self.right(user, cluster_id)

    async def rested(self) -> None:
        """Every service answers well, some times in a row.

        One whose database was killed answers 500 once for each connection that it had, whoever asks
        then: a look of this test, or the next test.
        """
        images = platform()["endpoints"]["glance"] + "/images"
        good = 0

        async def look() -> bool:
            nonlocal good
            try:
                admin = await self.admin()
                await admin.listed(True)
                await admin.get("GET", images)
            except AssertionError:
                good = 0
            else:
                good += 1
            return good >= _GOOD

        await until(look, "services that answer well", 60, 0.2)

    async def test_nova_is_killed_while_servers_are_made(self) -> None:
        """What was made is found again, the rest is made once."""
        alpha = await self.start(provisioning__spawn_deadline_s="30")
        cluster_id = await self.small(alpha, 2)
        await self.requested(alpha, cluster_id)
        self.kill("nova")
        await up()
        await self.made_anew(alpha, cluster_id)

    async def test_keystone_is_away_for_some_seconds(self) -> None:
        """A 401 meanwhile is nobody's fault, a known token is good, an unknown one is a 503."""
        alpha = await self.start()
        other = await self.user("alpha-user2")
        self.assertEqual((await other.ask("GET", "/clusters")).status, 200)
        cluster_id = await self.small(alpha)
        self.kill("keystone")
        await self.lasting(3)
        self.assertEqual((await alpha.ask("GET", "/clusters")).status, 200)
        reply = await send("GET", alpha.base + "/clusters", headers={"X-Auth-Token": "unknown"})
        self.assertEqual((reply.status, reply.json["error_name"]), (503, "SERVICE_UNAVAILABLE"))
        self.assertIn("the identity service cannot check the token", reply.json["error_message"])
        image = await other.ask("GET", "/images")  # Glance has not seen the token yet: a 401
        self.assertEqual((image.status, image.json["error_name"]), (503, "SERVICE_UNAVAILABLE"))
        await up()
        await self.right(alpha, cluster_id)

    async def test_neutron_hangs_for_twenty_seconds(self) -> None:
        """Calls that were given up take effect afterwards: nothing is there twice."""
        alpha = await self.start(cloud__timeout_s="4")
        cluster_id = await self.small(alpha)
        self.hang("neutron")
        await self.lasting(20)
        self.assertNotEqual((await alpha.cluster(cluster_id))["status"], "Error")
        self.go_on("neutron")
        await self.right(alpha, cluster_id)

    async def test_the_platforms_database_is_killed(self) -> None:
        """All services answer 500 meanwhile; Nova forgets what it was about to build."""
        alpha = await self.start(provisioning__spawn_deadline_s="80")
        cluster_id = await self.small(alpha)
        await self.requested(alpha, cluster_id)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.rested()))
        self.kill("postgres")
        await self.lasting(2)
        await up()
        await self.made_anew(alpha, cluster_id)

    async def servers_of(self, cluster_id: str) -> list[str]:
        """Those in the cloud, once the clean-up has had its time."""
        admin = await self.admin()
        found: list[str] = []

        async def gone() -> bool:
            rows = await admin.listed(True)
            found[:] = [text for text in rows.values() if cluster_id in text]
            return not found

        await until(gone, f"nothing left of {cluster_id}", 60, 0.5)
        return found
