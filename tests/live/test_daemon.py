"""The daemon over real sockets, with machines that are reached by SSH and the fake distribution.

Processes are killed at awkward moments; whatever the moment, work is finished, and once.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from svcd.clients.ssh import SshRemote
from svcd.model.secret import Secret
from svcd.ports.machines import Host
from svcd.runtime.tasks import sleep
from svcd.settings import Ssh
from tests.support.live import Tenant, machine_folders
from tests.support.processes import (
    Daemon,
    DaemonCase,
    machine_processes,
    own_network,
    reactor,
    until,
)
from tests.support.sample import SLOW


class _LiveCase(DaemonCase):
    """Whole lives, checked against what the cloud says."""

    async def served(self, **settings: str) -> tuple[Daemon, Tenant]:
        """A daemon that serves, and its tenant."""
        daemon = self.daemon(**settings)
        return daemon, Tenant(await daemon.start())

    async def check_machines(self, tenant: Tenant, count: int, *cluster_ids: str) -> None:
        """As many servers as instances, each instance with one, and its own volume."""
        shown = [await tenant.cluster(each) for each in cluster_ids]
        instances = [i for c in shown for g in c["node_groups"] for i in g["instances"]]
        servers = await tenant.servers()
        self.assertEqual(len(servers), count, [s["name"] for s in servers])
        self.assertEqual(
            sorted(s["id"] for s in servers), sorted(i["server_id"] for i in instances)
        )
        self.assertEqual(
            sorted(s["metadata"]["svcd_instance_id"] for s in servers),
            sorted(i["instance_id"] for i in instances),
        )
        volumes = await tenant.volumes()
        self.assertEqual(len(volumes), count)
        self.assertEqual(
            sorted(v["id"] for v in volumes),
            sorted(v for i in instances for v in i["volumes"]),
        )

    async def check_nothing_left(self, daemon: Daemon, tenant: Tenant) -> None:
        """No server, volume, process or folder."""
        self.assertEqual((await tenant.servers(), await tenant.volumes()), ([], []))

        async def swept() -> bool:
            return not machine_processes(daemon.state) and not machine_folders(daemon.state)

        await until(swept, "no process and no folder", 20)


class LifeTests(_LiveCase):
    """A cluster's life on one daemon."""

    async def test_create_scale_delete(self) -> None:
        """Machines come and go; processes that a user has left there go with them."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 2)
        shown = await tenant.until_active(cluster_id)
        await self.check_machines(tenant, 3, cluster_id)
        self.assertEqual(set(shown["info"]), {"HDFS", "JobFlow"})
        await self.start_something(daemon, shown)

        await tenant.scale(cluster_id, 4)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, 5, cluster_id)
        await tenant.scale(cluster_id, 1)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, 2, cluster_id)

        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)
        await self.check_nothing_left(daemon, tenant)
        self.assertEqual((await daemon.stop()).code, 0)

    async def start_something(self, daemon: Daemon, cluster: Any) -> None:
        """Log in at the master with the user's key and leave a process that outlives the login."""
        address = cluster["node_groups"][0]["instances"][0]["management_ip"]
        key = (daemon.state / "cloud" / "keys" / "demo").read_text()
        host = Host(
            address=address,
            port=int(daemon.settings.get("embedded.ssh_port", "2222")),
            user="svcd",
            private_key=Secret(key),
        )
        remote = SshRemote(reactor, reactor, Ssh())
        try:
            result = await remote.run(
                host,
                "cat svcd-fake/running && exec setsid nohup sleep 1000 >log 2>&1 </dev/null &",
                timeout_s=20,
            )
        finally:
            await remote.close()
        self.assertEqual(result.exit_code, 0, result)

        async def alone() -> bool:
            return len(machine_processes(daemon.state)) == 1  # the shell that began it has ended

        await until(alone, "one process", 10)


class KillTests(_LiveCase):
    """kill -9 in the middle; SIGTERM: test_restarts, test_rolling_upgrade."""

    timeout = 400
    skip = SLOW

    async def killed(self, daemon: Daemon, *delays_s: float) -> Tenant:
        """Kill the daemon so long after each of its starts, and start it again."""
        for delay_s in delays_s:
            await sleep(reactor, delay_s)
            await daemon.kill()
            await daemon.start()
        return Tenant(daemon.endpoints)

    async def test_killed_during_create_scale_and_delete(self) -> None:
        """Again and again, from the first request on; each change is done once.

        Several clusters at a time: svcd looks a minute for a server whose answer it has lost.
        """
        daemon, tenant = await self.served(embedded__boot_s="0.3", embedded__list_lag_s="0.3")
        first, second = [await tenant.new_cluster(each, 2) for each in ("first", "second")]
        for each in (first, second):
            await tenant.until_active(each)
        third = await tenant.new_cluster("third", 3)
        await tenant.scale(first, 5)
        await tenant.done("DELETE", f"/clusters/{second}")
        tenant = await self.killed(daemon, 0.0, 0.1, 0.3, 0.6)
        await tenant.until_gone(second)
        for each in (first, third):
            await tenant.until_active(each)
        await self.check_machines(tenant, 10, first, third)

        await tenant.scale(first, 1)
        tenant = await self.killed(daemon, 0.05, 0.2)
        await tenant.until_active(first)
        await self.check_machines(tenant, 6, first, third)

        for each in (first, third):
            await tenant.done("DELETE", f"/clusters/{each}")
        tenant = await self.killed(daemon, 0.05)
        for each in (first, third):
            await tenant.until_gone(each)
        await self.check_nothing_left(daemon, tenant)


class OtherCloudTests(_LiveCase):
    """A daemon on a cloud of its own process, with nothing but a login."""

    skip = SLOW

    async def test_killed_cloud(self) -> None:
        """The daemon waits for it and then goes on."""
        network = own_network()
        cloud = self.daemon("svcd-cloud", embedded__network=network)
        told = await cloud.start()
        cloud.settings["cloud.listen"] = "tcp:" + told["identity"].split("/")[2]
        daemon = self.daemon(
            cloud__kind="openstack",
            cloud__auth_url=told["identity"],
            cloud__username=told["username"],
            cloud__password=told["password"],
            cloud__project=told["tenant"],
            embedded__network=network,
        )
        endpoints = await daemon.start()
        self.assertEqual(set(endpoints), {"api", "pid"})
        tenant = Tenant(endpoints, told)
        cluster_id = await tenant.new_cluster("mine", 3)
        await sleep(reactor, 0.1)
        await cloud.kill()
        await sleep(reactor, 1.0)
        await cloud.start()
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, 4, cluster_id)


class OpenStackCommandTests(_LiveCase):
    """The unmodified `openstack` command."""

    async def test_lists(self) -> None:
        """Token, catalog, images, servers, volumes, containers: a call to each service."""
        command = os.environ.get("SVCD_TEST_OPENSTACK") or shutil.which("openstack")
        if not command or not Path(command).exists():
            raise SkipTest(
                "no `openstack` command: pip install python-openstackclient, or name it in"
                " SVCD_TEST_OPENSTACK"
            )
        _, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 1)
        await tenant.until_active(cluster_id)
        told = tenant.cloud
        login = {
            "OS_AUTH_URL": told["identity"],
            "OS_USERNAME": told["username"],
            "OS_PASSWORD": told["password"],
            "OS_PROJECT_NAME": told["tenant"],
            "OS_USER_DOMAIN_ID": "default",
            "OS_PROJECT_DOMAIN_ID": "default",
            "OS_IDENTITY_API_VERSION": "3",
        }
        for words, expected in (
            ("token issue", told["tenant"]),
            ("catalog list", "compute"),
            ("image list", "plain"),
            ("server list", "mine-master-001"),
            ("volume list", "in-use"),
            ("network list", "private"),
            ("container list", ""),
        ):
            program = self.program(command, *words.split(), environment=login)
            ended = await program.end(120)
            self.assertEqual(ended.code, 0, f"{words}: {ended.out}{ended.err}")
            self.assertIn(expected, ended.out, words)
