"""What others do in a real OpenStack behind svcd's back: servers, volumes, hosts, quota.

Each ends as a person would want it: made again, or given up with a code and a reason that names
the thing, and nothing is left. Needed: see platform_services. About two minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from tests.support.openstack_case import WORKER, User, instances
from tests.support.platform_services import FaultCase
from tests.support.processes import until
from tests.support.real_openstack import platform

_FAST = {"provisioning__poll_s": "0.3"}
_VOLUME: Mapping[str, Any] = {"volumes_per_node": 1, "volumes_size": 1}


class BehindTests(FaultCase):
    """One daemon, one cluster and one intruder a test."""

    async def start(self, **settings: str) -> User:
        await self.begin(**{**_FAST, **settings})
        self.root = await self.admin()
        return await self.user()

    async def servers(self, cluster_id: str) -> list[Any]:
        """Those of the cluster in the cloud, by name."""
        shown = await self.root.get("GET", f"{self.root.nova}/servers/detail?all_tenants=1")
        mine = [s for s in shown["servers"] if s["metadata"].get("svcd_cluster_id") == cluster_id]
        return sorted(mine, key=lambda server: str(server["name"]))

    async def server(self, cluster_id: str, status: str = "") -> Any:
        """The cluster's first server, as soon as there is one (in the status)."""

        async def look() -> list[Any]:
            return [s for s in await self.servers(cluster_id) if status in ("", s["status"])]

        return (await until(look, f"a server {status}", 60, 0.05))[0]

    async def act(self, server: Any, action: Any) -> None:
        url = f"{self.root.nova}/servers/{server['id']}/action"
        await self.root.get("POST", url, action)

    async def removed(self, server: Any) -> None:
        """Somebody deletes the server, and it goes."""
        url = f"{self.root.nova}/servers/{server['id']}"
        await self.root.get("DELETE", url)

        async def gone() -> bool:
            return (await self.root.ask("GET", url)).status == 404

        await until(gone, "the server to go", 60, 0.2)

    async def cleaned(self, user: User, cluster_id: str) -> str:
        """Why it is in Error, once nothing of it is left in the cloud."""
        cluster = await user.until(cluster_id, "Error")

        async def gone() -> bool:
            return not [t for t in (await self.root.listed(True)).values() if cluster_id in t]

        await until(gone, f"nothing left of {cluster_id}", 60, 0.5)
        return str(cluster["status_description"])

    # ---- servers --------------------------------------------------------------------------------

    async def test_a_server_set_to_error_while_it_boots_is_made_again(self) -> None:
        """With another server in its place, and an event that says so."""
        alpha = await self.start(cloud__timeout_s="4")
        cluster_id = await self.small(alpha, group=_VOLUME)
        self.hang("cinder")  # svcd sees nothing of the cluster before it is done
        server = await self.server(cluster_id, "ACTIVE")
        await self.act(server, {"os-resetState": {"state": "error"}})
        self.go_on("cinder")
        cluster = await alpha.until(cluster_id, "Active")
        (mine,) = await self.servers(cluster_id)
        self.assertNotEqual(mine["id"], server["id"])
        self.assertEqual(mine["id"], instances(cluster)[0]["server_id"])
        (told,) = [e for e in await alpha.story(cluster_id) if e["step"] == "replace"]
        self.assertEqual((told["machine"], told["attempt"]), (server["name"], 1))
        self.assertIn(f"server {server['id']} of {server['name']} is in ERROR", told["text"])
        await alpha.delete(cluster_id)

    async def test_a_server_deleted_while_it_boots_is_made_again(self) -> None:
        """The cluster becomes Active with the one that replaced it."""
        alpha = await self.start()
        self.hang("instances")
        cluster_id = await self.small(alpha)
        server = await self.server(cluster_id)
        await self.removed(server)
        self.go_on("instances")
        cluster = await alpha.until(cluster_id, "Active")
        (mine,) = await self.servers(cluster_id)
        self.assertNotEqual(mine["id"], server["id"])
        self.assertEqual(mine["id"], instances(cluster)[0]["server_id"])
        await alpha.delete(cluster_id)

    async def test_a_server_stopped_while_it_boots_is_named(self) -> None:
        """It never answers: given up at the deadline with its state, and all is removed."""
        alpha = await self.start(provisioning__prepare_deadline_s="22")
        self.hang("instances")
        cluster_id = await self.small(alpha)
        await alpha.until(cluster_id, "Preparing")
        (server,) = await self.servers(cluster_id)
        await self.act(server, {"os-stop": None})
        self.go_on("instances")
        reason = await self.cleaned(alpha, cluster_id)
        self.assertRegex(reason, r"^SSH_TIMEOUT: Preparing took longer than 22 s: ")
        self.assertIn(f"server {server['name']} is SHUTOFF", reason)
        await alpha.delete(cluster_id)

    async def test_a_server_deleted_from_an_active_cluster_is_named_and_replaced(self) -> None:
        """SERVER_VANISHED at the next resize, to the same size too; another one at an empty one."""
        alpha = await self.start()
        cluster_id = await self.small(alpha, 3)
        await alpha.until(cluster_id, "Active")
        lost = (await self.servers(cluster_id))[-1]
        await self.removed(lost)
        resize = [{"name": "more", "count": 2}]
        await alpha.get("PUT", f"/clusters/{cluster_id}", {"resize_node_groups": resize})
        cluster = await alpha.until(cluster_id, "Active")
        self.assertIn("SERVER_VANISHED", cluster["status_description"])
        self.assertIn(lost["name"], cluster["status_description"])
        states = [i["status"] for i in cluster["node_groups"][1]["instances"]]
        self.assertEqual(states, ["ACTIVE", "DELETED"])
        await alpha.get("PUT", f"/clusters/{cluster_id}", {})
        cluster = await alpha.until(cluster_id, "Active")
        names = [i["instance_name"][-3:] for i in cluster["node_groups"][1]["instances"]]
        self.assertEqual((names, cluster["status_description"]), (["001", "003"], ""))
        self.assertEqual(len(await self.servers(cluster_id)), 3)
        await alpha.delete(cluster_id)

    async def test_a_stopped_server_of_an_active_cluster_is_shown(self) -> None:
        """At an empty resize, as one in ERROR is; neither keeps a delete waiting."""
        alpha = await self.start()
        cluster_id = await self.small(alpha)
        await alpha.until(cluster_id, "Active")
        (server,) = await self.servers(cluster_id)
        await self.act(server, {"os-stop": None})

        async def off() -> bool:
            return bool((await self.servers(cluster_id))[0]["status"] == "SHUTOFF")

        await until(off, "SHUTOFF", 60, 0.2)
        self.assertEqual(await self.shown(alpha, cluster_id), "SHUTOFF")
        await self.act(server, {"os-resetState": {"state": "error"}})
        self.assertEqual(await self.shown(alpha, cluster_id), "ERROR")
        await alpha.delete(cluster_id)

    async def shown(self, user: User, cluster_id: str) -> str:
        """The status of the cluster's first server after an empty resize."""
        await user.get("PUT", f"/clusters/{cluster_id}", {})
        cluster = await user.until(cluster_id, "Active")
        self.assertEqual(cluster["status_description"], "")
        return str(instances(cluster)[0]["status"])

    # ---- hosts and quota ------------------------------------------------------------------------

    async def disabled(self, hosts: int) -> None:
        """So many hosts take no server any more, until the test is over."""
        shown = await self.root.get("GET", f"{self.root.nova}/os-services?binary=nova-compute")
        chosen = shown["services"][:hosts]
        self.assertEqual(len(chosen), hosts)

        async def put(status: str) -> None:
            for each in chosen:
                url = f"{self.root.nova}/os-services/{each['id']}"
                await self.root.get("PUT", url, {"status": status})

        self.addCleanup(lambda: Deferred.fromCoroutine(put("enabled")))
        await put("disabled")

    async def test_no_host_is_left_for_anything(self) -> None:
        """Three tries, then SERVER_ERROR with the cloud's own words."""
        alpha = await self.start()
        await self.disabled(len(platform()["computes"]))
        cluster_id = await self.small(alpha)
        reason = await self.cleaned(alpha, cluster_id)
        self.assertRegex(
            reason, r"^SERVER_ERROR: server \S+ of \S+-all-001 is in ERROR: No valid host was found"
        )
        await alpha.delete(cluster_id)

    async def test_more_servers_apart_than_hosts(self) -> None:
        """One host for two that may not share one: the reason says what keeps them apart."""
        alpha = await self.start()
        await self.disabled(len(platform()["computes"]) - 1)
        cluster_id = await self.small(alpha, 2, anti_affinity=[WORKER[0]])
        reason = await self.cleaned(alpha, cluster_id)
        self.assertRegex(reason, r"^SERVER_ERROR: .* is in ERROR: No valid host was found")
        self.assertIn("anti_affinity", reason)
        await alpha.delete(cluster_id)

    async def test_the_quota_is_taken_between_check_and_create(self) -> None:
        """Nova refuses one of two servers, or fails it: QUOTA with its words, both are removed."""
        await self.begin(**_FAST)
        self.root = await self.admin()
        tiny = await self.user("tiny-user", "tiny")
        await self.registered(tiny)
        cluster_id = await self.small(tiny, 2)
        self.hang("neutron")  # no server can be made before the quota is another one
        await self.allowed(1)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.allowed(2)))
        self.go_on("neutron")
        reason = await self.cleaned(tiny, cluster_id)
        self.assertRegex(reason, r"^QUOTA: .*Quota exceeded for instances")
        await tiny.delete(cluster_id)

    async def allowed(self, servers: int) -> None:
        """What the project tiny may have."""
        url = f"{self.root.nova}/os-quota-sets/{platform()['projects']['tiny']}"
        await self.root.get("PUT", url, {"quota_set": {"instances": servers, "force": True}})

    # ---- volumes --------------------------------------------------------------------------------

    async def stuck_volume(self, user: User, status: str) -> tuple[str, str]:
        """An Active cluster with a volume that an administrator has put into a state."""
        cluster_id = await self.small(user, group=_VOLUME)
        cluster = await user.until(cluster_id, "Active")
        volume_id = str(instances(cluster)[0]["volumes"][0])
        for server in await self.servers(cluster_id):
            await self.removed(server)  # else its end would put the volume right
        await self.volume_is(volume_id, "available")
        await self.reset(volume_id, status)
        return cluster_id, volume_id

    def volume_url(self, volume_id: str) -> str:
        return f"{self.root.cinder}/volumes/{volume_id}"

    async def volume_is(self, volume_id: str, status: str) -> None:
        async def look() -> bool:
            shown = await self.root.get("GET", self.volume_url(volume_id))
            return bool(shown["volume"]["status"] == status)

        await until(look, f"volume {status}", 60, 0.2)

    async def reset(self, volume_id: str, status: str) -> None:
        url = self.volume_url(volume_id) + "/action"
        await self.root.get("POST", url, {"os-reset_status": {"status": status}})

    async def test_a_volume_that_cannot_be_deleted_is_named(self) -> None:
        """Error at the deadline; when the state is put back, the delete goes on to its end."""
        alpha = await self.start(provisioning__delete_deadline_s="8")
        cluster_id, volume_id = await self.stuck_volume(alpha, "creating")
        await alpha.get("DELETE", f"/clusters/{cluster_id}")
        cluster = await alpha.until(cluster_id, "Error")
        reason = cluster["status_description"]
        self.assertRegex(reason, r"^LEFTOVERS: Deleting took longer than 8 s: ")
        self.assertIn(f"({volume_id}, creating)", reason)
        self.assertIn("Volume status must be available", reason)
        await self.reset(volume_id, "available")
        await alpha.delete(cluster_id)

    async def test_a_forced_delete_drops_what_cannot_be_deleted(self) -> None:
        """The record goes, and the log names the volume that is left."""
        daemon = await self.begin(**_FAST)
        self.root = await self.admin()
        alpha = await self.user()
        cluster_id, volume_id = await self.stuck_volume(alpha, "detaching")
        self.addCleanup(lambda: Deferred.fromCoroutine(self.dispose(volume_id)))
        await alpha.get("DELETE", f"/clusters/{cluster_id}?force=true")
        await alpha.gone(cluster_id)
        self.assertIn(volume_id, daemon.said)

    async def dispose(self, volume_id: str) -> None:
        """Delete what svcd had to leave."""
        await self.reset(volume_id, "available")
        await self.root.get("DELETE", self.volume_url(volume_id))
        url = self.volume_url(volume_id)

        async def gone() -> bool:
            return (await self.root.ask("GET", url)).status == 404

        await until(gone, "the volume to go", 60, 0.2)
