"""`svcd orphans` on a real OpenStack: exactly what is ours and lost goes, kind by kind.

Beside it stand a living cluster and things of others of the same kinds, with names and marks as
near to ours as they can be. Key pairs are not among the kinds: svcd makes none. Needed: see
openstack_case. A minute on two cores.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from svcd.model import ownership_tags
from tests.support.openstack_case import Cloud, OpenStackCase, User
from tests.support.processes import Ended, run, until
from tests.support.real_openstack import given, platform

_GONE_S = 120.0
_COMMAND_S = 300.0
_LISTED = re.compile(r"^((?:[a-z]+ )?[a-zA-Z]+)  ([0-9a-f-]{32,36})(?:  |$)", re.MULTILINE)
_OTHER = "0123456789abcdef"
"""The mark of another installation."""


class OrphansTests(OpenStackCase):
    """One long test: the living cluster is what costs."""

    timeout = 700

    async def prepare(self) -> None:
        """A daemon, its mark, and the cloud as its user sees it."""
        await self.begin()
        self.alpha: User = await self.user()
        self.cloud = Cloud(self.alpha.token, "alpha")
        found = await self.alpha.get("GET", "/marks")
        self.installation = str(found["marks"]["installation"])

    async def orphans(self, *arguments: str) -> Ended:
        environment = {"OS_AUTH_URL": given("AUTH_URL"), "OS_TOKEN": self.alpha.token}
        where = ("--api", self.api, "--tenant", self.alpha.tenant, "--younger", "0")
        ended = await run(
            "svcd", "orphans", *where, *arguments, environment=environment, limit_s=_COMMAND_S
        )
        self.assertEqual((ended.code, ended.err), (0, ""), ended)
        return ended

    # ---- things ---------------------------------------------------------------------------------

    async def make(self, url: str, kind: str, **fields: Any) -> str:
        """The id of a new thing, which goes after the test if it is still there."""
        made = (await self.cloud.get("POST", url, {kind: fields}))[kind]
        own = f"{url}/{made['id']}"

        async def gone() -> bool:
            return (await self.cloud.ask("DELETE", own)).status == 404

        self.addCleanup(lambda: Deferred.fromCoroutine(until(gone, f"{own} gone", _GONE_S, 0.5)))
        return str(made["id"])

    async def server(self, name: str, metadata: Mapping[str, str], group: str) -> str:
        known = platform()["tenants"]["alpha"]
        return await self.make(
            f"{self.cloud.nova}/servers",
            "server",
            name=name,
            imageRef=known["private_image"],
            flavorRef=given("FLAVOR"),
            metadata=dict(metadata),
            networks=[{"uuid": known["network"]}],
            security_groups=[{"name": group}],
        )

    async def volume(self, name: str, metadata: Mapping[str, str]) -> str:
        url = f"{self.cloud.cinder}/volumes"
        made = await self.make(url, "volume", name=name, size=1, metadata=dict(metadata))

        async def available() -> bool:
            shown = await self.cloud.get("GET", f"{url}/{made}")
            return bool(shown["volume"]["status"] == "available")

        await until(available, "the volume", _GONE_S, 0.3)
        return made

    async def group(self, name: str, text: str) -> str:
        url = f"{self.cloud.neutron}/security-groups"
        return await self.make(url, "security_group", name=name, description=text)

    async def server_group(self, name: str) -> str:
        url = f"{self.cloud.nova}/os-server-groups"
        return await self.make(url, "server_group", name=name, policy="anti-affinity")

    async def address(self, text: str) -> str:
        url = f"{self.cloud.neutron}/floatingips"
        pool = platform()["external_network"]["id"]
        return await self.make(url, "floatingip", floating_network_id=pool, description=text)

    async def port(self, group: str) -> str:
        """What is left of a server that went while somebody took its address."""
        return await self.make(
            f"{self.cloud.neutron}/ports",
            "port",
            network_id=platform()["tenants"]["alpha"]["network"],
            device_owner="compute:nova",
            device_id=str(uuid.uuid4()),
            security_groups=[group],
        )

    async def trust(self, trustee: str, **fields: Any) -> str:
        return await self.make(
            f"{self.cloud.identity}/OS-TRUST/trusts",
            "trust",
            trustor_user_id=platform()["users"]["alpha-user"]["id"],
            trustee_user_id=platform()["users"][trustee]["id"],
            project_id=self.cloud.project,
            impersonation=True,
            roles=[{"name": "member"}],
            **fields,
        )

    async def lost(self) -> tuple[set[str], str]:
        """Ours, of a cluster without a row; the second: a trust, which can carry no mark."""
        cluster_id, instance_id = str(uuid.uuid4()), str(uuid.uuid4())
        metadata = ownership_tags.metadata(cluster_id, instance_id, self.installation)
        name = ownership_tags.group_name(cluster_id)
        group = await self.group(name, ownership_tags.group_text("lost", self.installation))
        found = {
            f"security_groups {group}",
            f"servers {await self.server('lost-worker-001', metadata, group)}",
            f"servers {await self.server('lost-worker-002', metadata, group)}",
            f"volumes {await self.volume('volume_lost-worker-001_1', metadata)}",
            f"ports {await self.port(group)}",
            f"server_groups {await self.server_group(name)}",
        }
        text = ownership_tags.address_text(cluster_id, instance_id, self.installation)
        found.add(f"floatingips {await self.address(text)}")
        return found, await self.trust(
            "svcd", expires_at=ownership_tags.trust_end(str(uuid.uuid4()))
        )

    async def foreign(self) -> str:
        """Of others, who have chosen their names and marks alike; a group of another installation.

        The group's id.
        """
        some = str(uuid.uuid4())
        theirs = await self.group("svcd-theirs", f"cluster x of svcd {self.installation}")
        await self.group(ownership_tags.group_name(some), "cluster of ours")
        await self.server("lost-worker-003", {}, theirs)
        await self.server(
            "lost-worker-004",
            {ownership_tags.CLUSTER: "mine", ownership_tags.INSTANCE: "1"},
            "default",
        )
        await self.volume("volume_lost-worker-001_1", {ownership_tags.INSTANCE: some})
        await self.port(theirs)
        await self.server_group("svcd-theirs")
        await self.address(f"svcd:{some}")
        await self.trust("alpha-user2")
        await self.trust("svcd")
        name = ownership_tags.group_name(str(uuid.uuid4()))
        return await self.group(name, ownership_tags.group_text("x", _OTHER))

    # ---- the test -------------------------------------------------------------------------------

    async def test_exactly_what_is_ours_and_lost_goes(self) -> None:
        """Listed, then removed, a trust by its id; a living cluster and foreign things stay."""
        await self.prepare()
        cluster_id = await self.small(
            self.alpha,
            anti_affinity=["datanode"],
            group={"volumes_per_node": 1, "volumes_size": 1, "floating_ip_pool": given("POOL")},
        )
        await self.alpha.until(cluster_id, "Active")
        lost, trust = await self.lost()
        other = await self.foreign()
        await self.built()
        before = await self.everything()
        ids = {name.split()[1] for name in lost}

        listed = await self.orphans()
        self.assertEqual({id_ for _, id_ in _LISTED.findall(listed.out)}, {*ids, trust, other})
        self.assertIn(f"{len(ids)} to be removed, 2 left alone", listed.out)
        self.assertEqual(set(await self.everything()), set(before), "a look has changed something")

        removed = await self.orphans("--delete", "--yes", "--id", trust)
        self.assertEqual(removed.out.count("\nremoved "), len(ids) + 1, removed.out)
        after = await self.everything()
        own = {n for n, text in before.items() if n.startswith("ports") and self.is_of(text, lost)}
        self.assertEqual(set(before) - set(after), {*lost, *own, f"trusts {trust}"})
        self.assertEqual(set(after) - set(before), set())

        again = await self.orphans("--delete", "--yes")
        self.assertEqual([id_ for _, id_ in _LISTED.findall(again.out)], [other])
        self.assertIn("1 found, 0 to be removed, 1 left alone", again.out)
        self.assertEqual(set(await self.everything()), set(after))
        self.assertEqual((await self.alpha.cluster(cluster_id))["status"], "Active")

    async def built(self) -> None:
        """All servers have their ports."""

        async def look() -> bool:
            found = await self.cloud.get("GET", f"{self.cloud.nova}/servers/detail")
            return all(each["status"] == "ACTIVE" for each in found["servers"])

        await until(look, "all servers ACTIVE", _GONE_S, 0.5)

    @staticmethod
    def is_of(port: str, lost: set[str]) -> bool:
        """Whether it goes with a server or an address. port: its text."""
        return any(name.split()[1] in port for name in lost)
