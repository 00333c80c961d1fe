"""The daemon over real sockets, with machines that are reached by SSH and the fake distribution.

Processes are killed at awkward moments; whatever the moment, work is finished, and once.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from svcd.clients.ssh import SshRemote
from svcd.model.secret import Secret
from svcd.ports.machines import Host
from svcd.runtime.tasks import sleep
from svcd.settings import Ssh
from tests.support.live import Tenant, machine_folders, seconds
from tests.support.processes import (
    Daemon,
    DaemonCase,
    machine_processes,
    own_network,
    reactor,
    run,
    send,
    until,
)
from tests.support.sample import SLOW


class _LiveCase(DaemonCase):
    """Whole lives, checked against what the cloud says."""

    async def served(self, **settings: str) -> tuple[Daemon, Tenant]:
        """A daemon that serves, and its tenant."""
        daemon = self.daemon(**settings)
        return daemon, Tenant(await daemon.start())

    async def check_machines(self, tenant: Tenant, cluster_id: str, count: int) -> None:
        """As many servers as instances, each instance with one, and its own volume."""
        shown = await tenant.cluster(cluster_id)
        instances = [i for g in shown["node_groups"] for i in g["instances"]]
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
        await self.check_machines(tenant, cluster_id, 3)
        self.assertEqual(set(shown["info"]), {"HDFS", "JobFlow"})
        await self.start_something(daemon, shown)

        await tenant.scale(cluster_id, 4)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, cluster_id, 5)
        await tenant.scale(cluster_id, 1)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, cluster_id, 2)

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

    async def test_jobs_survive_a_restart(self) -> None:
        """An execution that was accepted runs once, whatever happens to the daemon."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 1)
        await tenant.until_active(cluster_id)
        execution = await self.execute(tenant, cluster_id)
        await daemon.kill()
        tenant = Tenant(await daemon.start())

        async def over() -> Any:
            shown = await tenant.done("GET", f"/job-executions/{execution}")
            return shown if shown["end_time"] else None

        shown = await until(over, "the end of the execution", 60)
        self.assertIn(shown["info"]["status"], {"SUCCEEDED", "FAILED", "KILLED"})

    async def execute(self, tenant: Tenant, cluster_id: str) -> str:
        """A Pig job with data in HDFS."""
        made = await send(
            "PUT",
            f"{tenant.cloud['api']}/v1.1/{tenant.tenant}/job-binary-internals/a.pig",
            data=b"a = load '$INPUT'; store a into '$OUTPUT';",
        )
        url = f"internaldb://{made.json['job_binary_internal']['id']}"
        binary = await tenant.done("POST", "/job-binaries", {"name": "a.pig", "url": url})
        job = await tenant.done(
            "POST", "/jobs", {"name": "a", "type": "Pig", "mains": [binary["job_binary"]["id"]]}
        )
        sources = []
        for name in ("in", "out"):
            body = {"name": name, "type": "hdfs", "url": f"/data/{name}"}
            sources.append((await tenant.done("POST", "/data-sources", body))["data_source"]["id"])
        asked = {"cluster_id": cluster_id, "input_id": sources[0], "output_id": sources[1]}
        made = await tenant.done("POST", f"/jobs/{job['job']['id']}/execute", asked)
        return str(made["job_execution"]["id"])


class KillTests(_LiveCase):
    """kill -9 and SIGTERM in the middle."""

    timeout = 400
    skip = SLOW

    async def interrupted(
        self, daemon: Daemon, delay_s: float, how: Callable[[], Awaitable[Any]]
    ) -> Tenant:
        """Stop the daemon `delay_s` after now and start it again."""
        await sleep(reactor, delay_s)
        await how()
        return Tenant(await daemon.start())

    async def test_killed_during_create(self) -> None:
        """At several moments, from the first request on; the cluster becomes Active."""
        for delay_s in (0.0, 0.1, 0.3, 0.6):
            daemon, tenant = await self.served(embedded__boot_s="0.3", embedded__list_lag_s="0.3")
            cluster_id = await tenant.new_cluster("mine", 4)
            tenant = await self.interrupted(daemon, delay_s, daemon.kill)
            await tenant.until_active(cluster_id)
            await self.check_machines(tenant, cluster_id, 5)
            await tenant.done("DELETE", f"/clusters/{cluster_id}")
            await tenant.until_gone(cluster_id)
            await self.check_nothing_left(daemon, tenant)
            await daemon.stop()

    async def test_killed_during_scale_and_delete(self) -> None:
        """Up, down and away, each with a kill in it."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 2)
        await tenant.until_active(cluster_id)
        for workers, delay_s in ((6, 0.1), (1, 0.1), (5, 0.4), (2, 0.0)):
            await tenant.scale(cluster_id, workers)
            tenant = await self.interrupted(daemon, delay_s, daemon.kill)
            await tenant.until_active(cluster_id)
            await self.check_machines(tenant, cluster_id, workers + 1)
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        tenant = await self.interrupted(daemon, 0.05, daemon.kill)
        await tenant.until_gone(cluster_id)
        await self.check_nothing_left(daemon, tenant)

    async def test_killed_again_and_again(self) -> None:
        """A daemon that lives for a moment only still gets there."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 3)
        moments = random.Random(4)
        for _ in range(8):
            tenant = await self.interrupted(daemon, moments.uniform(0.0, 0.4), daemon.kill)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, cluster_id, 4)

    async def test_terminated_during_create(self) -> None:
        """Exit code 0 at once, and the next process goes on."""
        for delay_s in (0.0, 0.2, 0.5):
            daemon, tenant = await self.served(embedded__boot_s="0.3")
            cluster_id = await tenant.new_cluster("mine", 3)
            await sleep(reactor, delay_s)
            before = seconds()
            ended = await daemon.stop()
            self.assertEqual((ended.code, ended.err), (0, ""), ended)
            self.assertLess(seconds() - before, 10.0)
            tenant = Tenant(await daemon.start())
            await tenant.until_active(cluster_id)
            await self.check_machines(tenant, cluster_id, 4)
            await daemon.stop()

    async def test_machines_live_on_without_the_daemon(self) -> None:
        """Their processes too; the next daemon finds both."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 1)
        shown = await tenant.until_active(cluster_id)
        await LifeTests.start_something(self, daemon, shown)  # type: ignore[arg-type]
        (process,) = machine_processes(daemon.state)
        await daemon.kill()
        self.assertEqual(machine_processes(daemon.state), [process])
        tenant = Tenant(await daemon.start())
        await tenant.scale(cluster_id, 2)
        await tenant.until_active(cluster_id)
        self.assertEqual(machine_processes(daemon.state), [process])
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)
        await self.check_nothing_left(daemon, tenant)


class OtherCloudTests(_LiveCase):
    """A daemon on a cloud of its own process, with nothing but a login."""

    def cloud_and_daemon(self, **settings: str) -> tuple[Daemon, Daemon]:
        network = own_network()
        cloud = self.daemon("svcd-cloud", embedded__network=network)
        return cloud, self.daemon(cloud__kind="openstack", embedded__network=network, **settings)

    async def test_life_on_another_cloud(self) -> None:
        """With auth_url, username, password and project alone; a kill of the daemon in it."""
        cloud, daemon = self.cloud_and_daemon()
        told = await cloud.start()
        daemon.settings.update(
            {
                "cloud.auth_url": told["identity"],
                "cloud.username": told["username"],
                "cloud.password": told["password"],
                "cloud.project": told["tenant"],
            }
        )
        endpoints = await daemon.start()
        self.assertEqual(set(endpoints), {"api", "pid"})
        tenant = Tenant(endpoints, told)
        cluster_id = await tenant.new_cluster("mine", 3)
        await sleep(reactor, 0.2)
        await daemon.kill()
        tenant = Tenant(await daemon.start(), told)
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, cluster_id, 4)
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)
        await self.check_nothing_left(cloud, tenant)

    async def test_killed_cloud(self) -> None:
        """The daemon waits for it and then goes on."""
        cloud, daemon = self.cloud_and_daemon()
        told = await cloud.start()
        cloud.settings["cloud.listen"] = "tcp:" + told["identity"].split("/")[2]
        daemon.settings.update(
            {
                "cloud.auth_url": told["identity"],
                "cloud.username": told["username"],
                "cloud.password": told["password"],
                "cloud.project": told["tenant"],
            }
        )
        tenant = Tenant(await daemon.start(), told)
        cluster_id = await tenant.new_cluster("mine", 3)
        await sleep(reactor, 0.1)
        await cloud.kill()
        await sleep(reactor, 1.0)
        await cloud.start()
        await tenant.until_active(cluster_id)
        await self.check_machines(tenant, cluster_id, 4)


class KeystoneTests(_LiveCase):
    """auth.mode=keystone with the users alice and bob."""

    async def test_tenants_are_kept_apart(self) -> None:
        """Own tenant 200, another's 403, no token or a wrong one 401 with a challenge."""
        daemon = self.daemon(auth__mode="keystone")
        told = await daemon.start()
        open_door = Tenant(told)
        alice = await open_door.token("alice", daemon.password("alice"), "alpha")
        bob = await open_door.token("bob", daemon.password("bob"), "beta")
        mine = Tenant(told, tenant="alpha", headers={"X-Auth-Token": alice})
        theirs = Tenant(told, tenant="alpha", headers={"X-Auth-Token": bob})
        self.assertEqual((await mine.ask("GET", "/clusters")).status, 200)
        forbidden = await theirs.ask("GET", "/clusters")
        self.assertEqual((forbidden.status, forbidden.json["error_code"]), (403, 403))
        for headers in ({}, {"X-Auth-Token": "nonsense"}):
            nobody = await Tenant(told, tenant="alpha", headers=headers).ask("GET", "/clusters")
            self.assertEqual((nobody.status, nobody.json["error_code"]), (401, 401))
            self.assertIn(told["identity"], nobody.headers["www-authenticate"])

    async def test_cluster_of_a_user(self) -> None:
        """Made in her project; it outlives her token; the other tenant does not see it."""
        daemon = self.daemon(auth__mode="keystone", embedded__token_ttl_s="8", auth__cache_s="1")
        told = await daemon.start()
        door = Tenant(told)

        async def alice() -> Tenant:
            token = await door.token("alice", daemon.password("alice"), "alpha")
            return Tenant(told, tenant="alpha", headers={"X-Auth-Token": token})

        first = await alice()
        cluster_id = await first.new_cluster("mine", 1)
        await (await alice()).until_active(cluster_id)

        async def expired() -> bool:
            return (await first.ask("GET", "/clusters")).status == 401

        await until(expired, "the end of the token", 30)
        await (await alice()).scale(cluster_id, 2)
        bob = await door.token("bob", daemon.password("bob"), "beta")
        other = Tenant(told, tenant="beta", headers={"X-Auth-Token": bob})
        self.assertEqual((await other.ask("GET", f"/clusters/{cluster_id}")).status, 404)

        async def active() -> bool:
            shown = await (await alice()).cluster(cluster_id)
            self.assertNotEqual(shown["status"], "Error", shown["status_description"])
            return bool(shown["status"] == "Active")

        await until(active, "Active after the scale", 60, 0.5)
        await (await alice()).done("DELETE", f"/clusters/{cluster_id}")

        async def gone() -> bool:
            return (await (await alice()).ask("GET", f"/clusters/{cluster_id}")).status == 404

        await until(gone, "the end of the cluster", 60, 0.5)

        async def swept() -> bool:
            return not machine_processes(daemon.state) and not machine_folders(daemon.state)

        await until(swept, "no process and no folder", 20)


class FolderTests(_LiveCase):
    """One state folder, one daemon."""

    async def test_second_daemon_is_refused(self) -> None:
        """Also while the first one builds a cluster, which is not disturbed."""
        daemon, tenant = await self.served()
        cluster_id = await tenant.new_cluster("mine", 2)
        flags = [f"--set={k}={v}" for k, v in daemon.settings.items()]
        second = await run("twistd", "-n", "--pidfile=", "svcd", *flags)
        self.assertEqual(second.code, 1)
        self.assertIn("is in use by process", second.err)
        await tenant.until_active(cluster_id)
        told = json.loads((daemon.state / "endpoints.json").read_text())
        self.assertEqual(told["pid"], daemon.program.pid)


class OpenStackCommandTests(_LiveCase):
    """The unmodified `openstack` command."""

    async def test_lists(self) -> None:
        """Token, catalog, images, flavors, key pairs, servers, volumes, networks."""
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
            ("flavor list", "m1.small"),
            ("keypair list", "demo"),
            ("server list", "mine-master-001"),
            ("volume list", "in-use"),
            ("network list", "private"),
            ("quota show", "instances"),
            ("container list", ""),
        ):
            program = self.program(command, *words.split(), environment=login)
            ended = await program.end(120)
            self.assertEqual(ended.code, 0, f"{words}: {ended.out}{ended.err}")
            self.assertIn(expected, ended.out, words)
