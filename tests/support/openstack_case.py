"""What the suites of a daemon on a real OpenStack share: users, clusters, and a watch on the cloud.

Needed: SVCD_TEST_OS_PLATFORM, a platform.json of a running platform whose servers answer on SSH.
After each test the cloud is listed, with the tokens of an administrator and of the tenants; what
was not there before it fails the test and is named.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from twisted.internet.defer import Deferred

from svcd.runtime.tasks import gather
from tests.support.processes import Daemon, DaemonCase, Reply, run, send, until
from tests.support.real_openstack import given, missing, platform

ACTIVE_S = 120.0
GONE_S = 90.0
MASTER = ["namenode", "resourcemanager", "historyserver", "oozie"]
WORKER = ["datanode", "nodemanager"]
_SSH_OPTIONS = (
    "-oBatchMode=yes",
    "-oStrictHostKeyChecking=no",
    "-oUserKnownHostsFile=/dev/null",
    "-oLogLevel=ERROR",
    "-oConnectTimeout=10",
)
_COMPUTE = {"OpenStack-API-Version": "compute 2.79"}


def state_folder() -> Path:
    """Where the platform keeps itself on this machine."""
    return Path(os.environ["SVCD_TEST_OS_PLATFORM"]).parent


def no_platform() -> str:
    """Why the suites cannot run; "" when they can."""
    lacking = missing("AUTH_URL")
    if lacking or not platform():
        return lacking or "SVCD_TEST_OS_PLATFORM is not set"
    try:
        pid = int((state_folder() / "run" / "instances.pid").read_text().split()[0])
        os.kill(pid, 0)
    except (OSError, ValueError, IndexError):
        return f"the servers of the platform in {state_folder()} do not answer on SSH (up --ssh)"
    return ""


class User:
    """A user of the platform with a token of a project, at the daemon and at the cloud."""

    def __init__(self, name: str, project: str, token: str, api: str) -> None:
        self.name = name
        self.project = project
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

    async def cluster(self, cluster_id: str) -> Any:
        return (await self.get("GET", f"/clusters/{cluster_id}"))["cluster"]

    async def story(self, cluster_id: str) -> list[Any]:
        """The cluster's events."""
        found: list[Any] = (await self.get("GET", f"/clusters/{cluster_id}/events"))["events"]
        return found

    async def until(self, cluster_id: str, statuses: str, limit_s: float = ACTIVE_S) -> Any:
        """The cluster in one of the statuses; at once a failure in another one of rest."""
        wanted = statuses.split()

        async def look() -> Any:
            found = await self.cluster(cluster_id)
            if found["status"] in wanted:
                return found
            if found["status"] in {"Error", "Active"}:
                raise AssertionError(f"{found['status']}: {found['status_description']}")
            return None

        try:
            return await until(look, statuses, limit_s, 0.3)
        except AssertionError as error:
            told = "\n".join(
                f"{e['step']} {e['machine']} {e['outcome']} {e['text']}"
                for e in await self.story(cluster_id)
            )
            raise AssertionError(f"{error}\n{told}") from None

    async def gone(self, cluster_id: str, limit_s: float = GONE_S) -> None:
        """Until the cluster is not found any more."""

        async def look() -> bool:
            reply = await self.ask("GET", f"/clusters/{cluster_id}")
            if reply.status == 200 and reply.json["cluster"]["status"] == "Error":
                raise AssertionError(reply.json["cluster"]["status_description"])
            return reply.status == 404

        await until(look, "the cluster to be gone", limit_s, 0.3)

    async def delete(self, cluster_id: str) -> None:
        """Delete it, and see it go."""
        await self.get("DELETE", f"/clusters/{cluster_id}")
        await self.gone(cluster_id)


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
        raise AssertionError(f"no token: {reply.status} {reply.body.decode()}")
    return reply.headers["x-subject-token"]


def instances(cluster: Any) -> list[Any]:
    """Of all node groups."""
    return [each for group in cluster["node_groups"] for each in group["instances"]]


class Cloud:
    """The real services, with one token."""

    def __init__(self, token: str, project: str) -> None:
        ends = platform()["endpoints"]
        self.token = token
        self.project: str = platform()["projects"][project]
        self.nova, self.neutron = ends["nova"], ends["neutron"]
        self.cinder = f"{ends['cinder']}/{self.project}"
        self.identity = given("AUTH_URL")

    async def ask(self, method: str, url: str, body: object = None) -> Reply:
        version = _COMPUTE if url.startswith(self.nova) else {}
        return await send(method, url, body, headers={"X-Auth-Token": self.token, **version})

    async def get(self, method: str, url: str, body: object = None) -> Any:
        """The JSON of a success."""
        reply = await self.ask(method, url, body)
        if reply.status >= 300:
            raise AssertionError(f"{method} {url}: {reply.status} {reply.body.decode()}")
        return reply.json

    async def listed(self, everybody: bool) -> dict[str, str]:
        """Everything that a cluster can leave, by kind and id. everybody: of all projects."""
        all_ = "?all_tenants=1" if everybody else ""
        lists = (
            (f"{self.nova}/servers/detail{all_}", "servers"),
            (f"{self.nova}/os-server-groups{'?all_projects=true' if everybody else ''}",
             "server_groups"),
            (f"{self.neutron}/ports", "ports"),
            (f"{self.neutron}/floatingips", "floatingips"),
            (f"{self.neutron}/security-groups", "security_groups"),
            (f"{self.cinder}/volumes/detail{all_}", "volumes"),
        )  # fmt: skip
        found = await gather([partial(self._rows, *each) for each in lists], 3)
        rows: dict[str, str] = {}
        for each in found:
            if isinstance(each, BaseException):
                raise each
            rows.update(each)
        return rows

    async def trusts(self, query: str = "") -> dict[str, str]:
        """Those that the token may see."""
        return await self._rows(f"{self.identity}/OS-TRUST/trusts{query}", "trusts")

    async def _rows(self, url: str, kind: str) -> dict[str, str]:
        """The default groups are made by a mere look at a project."""
        rows = (await self.get("GET", url))[kind]
        return {
            f"{kind} {row['id']}": f"{kind} {row['id']} {row.get('name', '')} "
            f"{row.get('status', '')} {row.get('description', '')} "
            f"{row.get('device_id', '')} {row.get('metadata', '')}"
            for row in rows
            if kind != "security_groups" or row["name"] != "default"
        }


async def ssh(address: str, command: str) -> str:
    """What a command prints on a server, with the key pair of alpha's user."""
    key = platform()["tenants"]["alpha"]["private_key_file"]
    ended = await run("/usr/bin/ssh", *_SSH_OPTIONS, "-i", key, f"debian@{address}", command)
    if ended.code != 0:
        raise AssertionError(f"{address}: {ended}")
    return ended.out


async def administrator() -> Cloud:
    """The services as an administrator."""
    return Cloud(await token("admin", "admin"), "admin")


async def everything() -> dict[str, str]:
    """What an administrator and the users of the tenants see, by kind and id."""
    seen: dict[str, str] = {}
    known = platform()

    async def all_of_all() -> dict[str, str]:
        admin = await administrator()
        return await admin.listed(True) | await admin.trusts()

    async def member(tenant: str) -> dict[str, str]:
        user = known["tenants"][tenant]["user"]
        cloud = Cloud(await token(user, tenant), tenant)
        mine = await cloud.trusts(f"?trustor_user_id={known['users'][user]['id']}")
        return await cloud.listed(False) | mine

    members = [partial(member, tenant) for tenant in known["tenants"]]
    for each in await gather([all_of_all, *members], 2):
        if isinstance(each, BaseException):
            raise each
        seen.update(each)
    return seen


class OpenStackCase(DaemonCase):
    """A daemon of the platform's service user; and nothing may be left in the cloud."""

    timeout = 240
    skip = no_platform() or None
    _seen: ClassVar[dict[str, str] | None] = None

    def setUp(self) -> Any:
        return Deferred.fromCoroutine(self._watch())

    async def _watch(self) -> None:
        """One look between two tests of a class is enough: nobody else has come between."""
        mine = type(self)
        known = mine.__dict__.get("_seen")
        before = await self.everything() if known is None else known

        async def look() -> None:
            after = await self.everything()
            mine._seen = after
            new = sorted(text for id_, text in after.items() if id_ not in before)
            self.assertEqual(new, [], "left in the cloud")

        self.addCleanup(lambda: Deferred.fromCoroutine(look()))

    async def everything(self) -> dict[str, str]:
        return await everything()

    async def admin(self) -> Cloud:
        return await administrator()

    # ---- the daemon -----------------------------------------------------------------------------

    async def begin(self, **settings: str) -> Daemon:
        daemon = self.daemon(
            **{
                "cloud__kind": "openstack",
                "auth__mode": "keystone",
                "cloud__auth_url": given("AUTH_URL"),
                "cloud__username": given("SERVICE_USERNAME"),
                "cloud__password": given("SERVICE_PASSWORD"),
                "cloud__project": given("SERVICE_PROJECT"),
                **settings,
            }
        )
        await daemon.start()
        self.api = daemon.endpoints["api"]
        return daemon

    async def user(self, name: str = "alpha-user", project: str = "alpha") -> User:
        return User(name, project, await token(name, project), self.api)

    def body(self, user: User, *groups: tuple[str, int, Sequence[str]], **fields: Any) -> Any:
        """A cluster of `fake` with groups of (name, count, processes). fields: of the cluster."""
        tenant = platform()["tenants"][user.project]
        more = fields.pop("group", {})
        return {
            "name": f"live-{uuid.uuid4().hex[:6]}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "default_image_id": tenant["private_image"],
            "user_keypair_id": tenant["keypair"],
            "cluster_configs": {"HDFS": {"dfs.replication": 1}},
            "node_groups": [
                {
                    "name": name,
                    "count": count,
                    "node_processes": processes,
                    "flavor_id": "1",
                    **more,
                }
                for name, count, processes in groups
            ],
            **fields,
        }

    async def registered(self, user: User, tags: Sequence[str] = ()) -> str:
        """The tenant's own image, fit for clusters."""
        image_id: str = platform()["tenants"][user.project]["private_image"]
        await user.get("POST", f"/images/{image_id}", {"username": "debian", "description": ""})
        if tags:
            await user.get("POST", f"/images/{image_id}/tag", {"tags": list(tags)})
        return image_id

    async def made(self, user: User, workers: int, **fields: Any) -> str:
        """Id of a cluster of a master and workers that was accepted; it goes after the test."""
        await self.registered(user)
        groups = (("master", 1, MASTER), ("worker", workers, WORKER))
        return await self.accepted(user, self.body(user, *groups, **fields))

    async def small(self, user: User, count: int = 1, **fields: Any) -> str:
        """The same of a single group whose first process is the name node."""
        await self.registered(user)
        groups = [("all", 1, [*MASTER, *WORKER])]
        if count > 1:
            groups.append(("more", count - 1, WORKER))
        return await self.accepted(user, self.body(user, *groups, **fields))

    async def accepted(self, user: User, body: Any) -> str:
        """Id of the cluster that `body` asks for; it goes after the test."""
        cluster_id = str((await user.get("POST", "/clusters", body))["cluster"]["id"])

        async def remove() -> None:
            fresh = await self.user(user.name, user.project)
            if (await fresh.ask("DELETE", f"/clusters/{cluster_id}?force=true")).status != 404:
                await fresh.gone(cluster_id)

        self.addCleanup(lambda: Deferred.fromCoroutine(remove()))
        return cluster_id

    async def ingress(self, cluster_id: str) -> Sequence[Mapping[str, Any]]:
        """The inward rules of the group that svcd made for a cluster of alpha's user."""
        cloud = Cloud(await token("alpha-user", "alpha"), "alpha")
        url = f"{cloud.neutron}/security-groups?name=svcd-{cluster_id}"
        (group,) = (await cloud.get("GET", url))["security_groups"]
        return [r for r in group["security_group_rules"] if r["direction"] == "ingress"]

    async def on(self, address: str, command: str) -> str:
        """What a command prints on a server, with the key pair of alpha's user."""
        return await ssh(address, command)
