"""The daemon on a real OpenStack, with real servers that it logs in to by SSH.

Needed: SVCD_TEST_OS_PLATFORM, a platform.json of a running platform whose servers answer on SSH.
The distribution is `fake`; everything that the cloud has to give is asked for: volumes, floating
IPs, anti-affinity, security groups, trusts.
"""

from __future__ import annotations

import json
import os
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.processes import Daemon, DaemonCase, Reply, run, send, until
from tests.real_openstack import given, missing, platform

_ACTIVE_S = 120.0
_GONE_S = 60.0
_SSH_OPTIONS = (
    "-oBatchMode=yes",
    "-oStrictHostKeyChecking=no",
    "-oUserKnownHostsFile=/dev/null",
    "-oLogLevel=ERROR",
    "-oConnectTimeout=10",
)


def _no_platform() -> str:
    lacking = missing("AUTH_URL")
    if lacking or not platform():
        return lacking or "SVCD_TEST_OS_PLATFORM is not set"
    state = Path(os.environ["SVCD_TEST_OS_PLATFORM"]).parent
    try:
        pid = int((state / "run" / "instances.pid").read_text().split()[0])
        os.kill(pid, 0)
    except (OSError, ValueError, IndexError):
        return f"the servers of the platform in {state} do not answer on SSH (up --ssh)"
    return ""


class User:
    """A user of the platform with a token of a project, at the daemon and at the cloud."""

    def __init__(self, name: str, project: str, token: str, api: str) -> None:
        self.name = name
        self.token = token
        self.tenant: str = platform()["projects"][project]
        self.base = f"{api}/v1.1/{self.tenant}"

    async def ask(self, method: str, path: str, body: object = None) -> Reply:
        return await send(method, self.base + path, body, headers={"X-Auth-Token": self.token})

    async def get(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a success."""
        reply = await self.ask(method, path, body)
        if reply.status >= 300:
            raise AssertionError(f"{method} {path}: {reply.status} {reply.body.decode()}")
        return reply.json


async def token(user: str, project: str) -> str:
    """A fresh token of the platform's user."""
    domain = {"id": "default"}
    name = {"name": user, "domain": domain, "password": platform()["users"][user]["password"]}
    auth = {
        "identity": {"methods": ["password"], "password": {"user": name}},
        "scope": {"project": {"name": project, "domain": domain}},
    }
    reply = await send("POST", given("AUTH_URL") + "/auth/tokens", {"auth": auth})
    if reply.status != 201:
        raise AssertionError(f"no token for {user}: {reply.status} {reply.body.decode()}")
    return reply.headers["x-subject-token"]


class OpenStackTests(DaemonCase):
    """One daemon a test."""

    timeout = 240
    skip = _no_platform() or None

    async def begin(self, **settings: str) -> Daemon:
        """A daemon of the platform's service user."""
        daemon = self.daemon(
            cloud__kind="openstack",
            auth__mode="keystone",
            cloud__auth_url=given("AUTH_URL"),
            cloud__username=given("SERVICE_USERNAME"),
            cloud__password=given("SERVICE_PASSWORD"),
            cloud__project=given("SERVICE_PROJECT"),
            **settings,
        )
        await daemon.start()
        self.api = daemon.endpoints["api"]
        return daemon

    async def user(self, name: str, project: str) -> User:
        return User(name, project, await token(name, project), self.api)

    async def made(self, user: User, workers: int, **fields: Any) -> str:
        """Id of a cluster that was accepted; it is removed after the test."""
        tenant = platform()["tenants"]["alpha"]
        image = f"/images/{tenant['private_image']}"
        await user.get("POST", image, {"username": "debian", "description": ""})
        await user.get("POST", image + "/tag", {"tags": ["one", "two"]})
        master = ["namenode", "resourcemanager", "historyserver", "oozie"]
        groups = (("master", 1, master), ("worker", workers, ["datanode", "nodemanager"]))
        body = {
            "name": f"live-{uuid.uuid4().hex[:6]}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": tenant["private_image"],
            "user_keypair_id": tenant["keypair"],
            "node_groups": [
                {"name": name, "count": count, "node_processes": processes, **self.GROUP}
                for name, count, processes in groups
            ],
            **fields,
        }
        cluster_id = str((await user.get("POST", "/clusters", body))["cluster"]["id"])

        async def remove() -> None:
            fresh = await self.user(user.name, "alpha")
            await fresh.ask("DELETE", f"/clusters/{cluster_id}?force=true")
            await self.gone(fresh, cluster_id)

        self.addCleanup(remove)
        return cluster_id

    GROUP: Mapping[str, Any] = {
        "flavor_id": "1",
        "volumes_per_node": 2,
        "volumes_size": 1,
        "volume_mount_prefix": "/mnt/volume",
        "floating_ip_pool": "public",
    }

    async def active(self, user: User, cluster_id: str) -> Any:
        """The cluster, once it is Active."""

        async def look() -> Any:
            found = (await user.get("GET", f"/clusters/{cluster_id}"))["cluster"]
            if found["status"] == "Error":
                raise AssertionError(found["status_description"])
            return found if found["status"] == "Active" else None

        try:
            return await until(look, "Active", _ACTIVE_S, 0.5)
        except AssertionError as error:
            events = (await user.get("GET", f"/clusters/{cluster_id}/events"))["events"]
            told = "\n".join(
                f"{e['step']} {e['machine']} {e['outcome']} {e['text']}" for e in events
            )
            raise AssertionError(f"{error}\n{told}") from None

    async def gone(self, user: User, cluster_id: str) -> None:
        async def look() -> bool:
            return (await user.ask("GET", f"/clusters/{cluster_id}")).status == 404

        await until(look, "the cluster to be gone", _GONE_S, 0.5)

    async def on(self, address: str, command: str) -> str:
        """What a command prints on a server, with the key pair of the platform's user."""
        key = platform()["tenants"]["alpha"]["private_key_file"]
        ended = await run("/usr/bin/ssh", *_SSH_OPTIONS, "-i", key, f"debian@{address}", command)
        self.assertEqual(ended.code, 0, ended)
        return ended.out

    async def cloud(self, url: str) -> Any:
        """What an administrator gets from a service."""
        version = {"OpenStack-API-Version": "compute 2.79"} if "/v2.1" in url else {}
        headers = {"X-Auth-Token": await token("admin", "admin"), **version}
        reply = await send("GET", url, headers=headers)
        self.assertEqual(reply.status, 200, reply)
        return reply.json

    async def left(self, *marks: str) -> list[str]:
        """Everything in the cloud whose description contains one of the marks."""
        ends = platform()["endpoints"]
        volumes = f"{ends['cinder']}/{platform()['projects']['admin']}"
        lists = (
            (f"{ends['nova']}/servers/detail?all_tenants=1", "servers"),
            (f"{ends['nova']}/os-server-groups?all_projects=true", "server_groups"),
            (f"{ends['neutron']}/ports", "ports"),
            (f"{ends['neutron']}/floatingips", "floatingips"),
            (f"{ends['neutron']}/security-groups", "security_groups"),
            (f"{volumes}/volumes/detail?all_tenants=1", "volumes"),
            (f"{given('AUTH_URL')}/OS-TRUST/trusts", "trusts"),
        )
        found = []
        for url, name in lists:
            rows = (await self.cloud(url))[name]
            found += [
                f"{name}: {row['id']}"
                for row in rows
                if any(mark in json.dumps(row) for mark in marks)
            ]
        return found

    async def test_a_cluster_lives_and_leaves_nothing(self) -> None:
        """Servers, volumes, addresses and groups come, follow the size, and go with the trust."""
        await self.begin()
        alpha = await self.user("alpha-user", "alpha")
        before = set(await self.left(alpha.tenant))
        cluster_id = await self.made(alpha, 2, anti_affinity=["datanode"])
        cluster = await self.active(alpha, cluster_id)
        workers = cluster["node_groups"][1]["instances"]
        self.assertEqual(len({i["management_ip"] for i in workers}), 2)
        for each in workers:
            await self.check_worker(each)
        ends = platform()["endpoints"]
        hosts = {
            (await self.cloud(f"{ends['nova']}/servers/{i['server_id']}"))["server"]["hostId"]
            for i in workers
        }
        self.assertEqual(len(hosts), 2, "anti-affinity")
        for workers_wanted in (3, 1):
            resize = [{"name": "worker", "count": workers_wanted}]
            await alpha.get("PUT", f"/clusters/{cluster_id}", {"resize_node_groups": resize})
            cluster = await self.active(alpha, cluster_id)
            workers = cluster["node_groups"][1]["instances"]
            self.assertEqual(len(workers), workers_wanted, cluster["status_description"])
        await self.check_worker(workers[0])
        await alpha.get("DELETE", f"/clusters/{cluster_id}")
        await self.gone(alpha, cluster_id)
        self.assertEqual(await self.left(cluster_id), [])
        self.assertEqual(set(await self.left(alpha.tenant)) - before, set())

    async def check_worker(self, each: Mapping[str, Any]) -> None:
        """It knows all names, its volumes are mounted and its daemons were started."""
        said = await self.on(
            each["management_ip"],
            "hostname; stat -c %U /mnt/volume1 /mnt/volume2; grep -c /mnt/volume /proc/mounts; "
            f"getent ahostsv4 {shlex.quote(each['instance_name'])} | head -n 1; "
            "cat svcd-fake/running",
        )
        lines = said.splitlines()
        self.assertEqual(lines[:4], [each["instance_name"], "debian", "debian", "2"], said)
        self.assertEqual(lines[4].split()[0], each["internal_ip"], said)
        self.assertIn("nodemanager", lines)

    async def test_only_the_callers_own_project_opens(self) -> None:
        """No token and a wrong one: 401; another tenant: 403; without a role to pass on: 403."""
        await self.begin()
        alpha = await self.user("alpha-user", "alpha")
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
        tenant = platform()["tenants"]["tiny"]
        image = f"/images/{tenant['private_image']}"
        await tiny.get("POST", image, {"username": "debian", "description": ""})
        body = {
            "name": "big",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": tenant["private_image"],
            "user_keypair_id": tenant["keypair"],
            "node_groups": [
                {"name": "all", "count": 3, "node_processes": ["namenode"], **self.GROUP}
            ],
        }
        reply = await tiny.ask("POST", "/clusters", body)
        self.assertEqual((reply.status, reply.json["error_name"]), (400, "QUOTA_ERROR"), reply)
        for words in ("instances: needed 3, left 2", "floating IPs: needed 3, left 1"):
            self.assertIn(words, reply.json["error_message"])
