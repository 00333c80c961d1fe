"""The daemon that is killed, the cloud beside it that is not, and what may be there of both.

The daemon is `twistd svcd` with `cloud.kind=openstack` and `auth.mode=keystone` on a `twistd
svcd-cloud`; so clusters have trusts, and machines, jobs and objects outlive every kill.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.web.client import ResponseFailed

from svcd.tasks import sleep
from tests.live import Tenant, machine_folders, seconds
from tests.processes import Daemon, machine_processes, own_network, reactor, send, until

T = TypeVar("T")
LOST = (ConnectError, ConnectionClosed, ResponseFailed)
"""A request whose daemon died under it, or is not there."""
GONE_S = 120.0
READY_S = 90.0


class Wrong(AssertionError):
    """Something is not as it must be."""


class Service:
    """The daemon, its cloud, and one tenant of both."""

    def __init__(self, state: Path, image: Path, rng: random.Random) -> None:
        self.state = state
        self.rng = rng
        self.kills = 0
        self.ready_at = 0.0
        self.story: list[str] = []
        self.counted = ""
        self.left: list[str] = []
        network = own_network()
        self.cloud = Daemon(
            state / "cloud",
            "svcd-cloud",
            auth__mode="keystone",
            embedded__network=network,
            embedded__image_prefix=str(image),
        )
        self.daemon = Daemon(
            state / "daemon",
            auth__mode="keystone",
            cloud__kind="openstack",
            embedded__network=network,
            plugins__enabled="vanilla,fake",
        )
        self.tenant: Tenant

    # ---- life and death -------------------------------------------------------------------------

    async def begin(self) -> None:
        """Start both."""
        self.told = await self.cloud.start()
        self.daemon.settings.update(
            {
                "cloud.auth_url": self.told["identity"],
                "cloud.username": "svcd",
                "cloud.password": "svcd",
                "cloud.project": "service",
            }
        )
        await self.start()

    async def start(self) -> None:
        """Start the daemon, and wait until it serves."""
        endpoints = await self.daemon.start()
        token = await Tenant(endpoints, self.told).token()
        self.tenant = Tenant(endpoints, self.told, headers={"X-Auth-Token": token})
        self.ready_at = seconds()

    async def killed(self, delay_s: float) -> None:
        """kill -9 `delay_s` from now; at times again soon after or in the next one's start."""
        await self._kill(delay_s, "")
        while self.rng.random() < 0.4:
            self.daemon.spawn()
            await self._kill(self.rng.uniform(0.0, 2.0), " in its start")
        await self.start()
        while self.rng.random() < 0.5:
            await self._kill(self.rng.uniform(0.0, 1.5), " again")
            await self.start()

    async def _kill(self, delay_s: float, how: str) -> None:
        await sleep(reactor, delay_s)
        await self.daemon.kill()
        self.kills += 1
        self.say(f"killed{how} after {delay_s:.3f} s")

    async def killed_during(self, asked: Callable[[], Awaitable[T]], delay_s: float) -> T | None:
        """Ask, and kill the daemon `delay_s` after the request; None: the answer was lost."""

        async def ask() -> T | None:
            try:
                return await asked()
            except LOST as error:
                self.say(f"no answer: {type(error).__name__}")
                return None

        answer = Deferred.fromCoroutine(ask())
        await self.killed(delay_s)
        return await answer

    def moment(self, most_s: float) -> float:
        """A random delay: half of them within the first half second."""
        return self.rng.choice((0.1, 0.5, min(3.0, most_s), most_s)) * self.rng.random()

    def say(self, text: str) -> None:
        """A line of the cycle's story."""
        self.story.append(f"{seconds():.2f} {text}")

    # ---- what is there --------------------------------------------------------------------------

    async def check_cloud(self) -> None:
        """Servers, volumes, groups and trusts are those of the clusters; folders too."""
        shown = (await self.tenant.done("GET", "/clusters"))["clusters"]
        instances = [i for c in shown for g in c["node_groups"] for i in g["instances"]]
        headers = {"X-Auth-Token": await self.tenant.token()}
        admin = {"X-Auth-Token": await self.tenant.token("svcd", "svcd", "service")}

        async def listed(service: str, path: str, kind: str, who: dict[str, str]) -> list[Any]:
            reply = await send("GET", self.told[service] + path, headers=who)
            if reply.status != 200:
                raise Wrong(f"GET {service} {path}: {reply.status} {reply.body.decode()}")
            rows: list[Any] = reply.json[kind]
            return rows

        servers = await listed("compute", "/servers/detail", "servers", headers)
        same("servers", [s["id"] for s in servers], [i["server_id"] for i in instances])
        volumes = await listed("volume", "/volumes/detail", "volumes", headers)
        expected = [v for i in instances for v in i["volumes"]]
        same("volumes", [v["id"] for v in volumes], expected)
        trusts = await listed("identity", "/OS-TRUST/trusts", "trusts", admin)
        same("number of trusts", [str(len(trusts))], [str(len(shown))])
        groups = await listed("network", "/v2.0/security-groups", "security_groups", headers)
        known = {f"svcd-{c['id']}" for c in shown}
        names = Counter(g["name"] for g in groups if g["name"].startswith("svcd-"))
        same("security groups", [n for n in names.elements() if n not in known], [])
        same("security groups twice", [n for n, count in names.items() if count > 1], [])
        groups = await listed("compute", "/os-server-groups", "server_groups", headers)
        names = Counter(g["name"] for g in groups)
        same("server groups", [n for n in names.elements() if n not in known], [])
        same("server groups twice", [n for n, count in names.items() if count > 1], [])

        async def folders() -> bool:
            return len(machine_folders(self.cloud.state)) == len(instances)

        await until(folders, f"{len(instances)} folders of machines", 30.0)

    async def check_engine(self, cluster: Any, executions: dict[str, str]) -> None:
        """At the engine, in YARN and in HDFS: each execution once, and no folder of one.

        executions: the id of each that was ever made -> how it must have ended.
        """
        web = _origin(cluster["info"]["JobFlow"]["Oozie"])
        found = await _json(f"{web}/oozie/v1/jobs?jobtype=wf&len=2000")
        names: dict[str, str] = {}
        for job in found["workflows"]:
            shown = await _json(f"{web}/oozie/v1/job/{job['id']}?show=info")
            names[job["id"]] = str(shown.get("externalId"))
            wanted = executions.get(names[job["id"]])
            if wanted != shown["status"]:
                raise Wrong(f"{job['id']} of {names[job['id']]}: {shown['status']}, not {wanted}")
        twice = [name for name, count in Counter(names.values()).items() if count > 1]
        same("workflows of one execution", twice, [])
        lacking = [e for e, end in executions.items() if end == "SUCCEEDED"]
        same("executions without a workflow", set(lacking) - set(names.values()), [])

        manager = _origin(cluster["info"]["YARN"]["Web UI"])
        apps = (await _json(f"{manager}/ws/v1/cluster/apps"))["apps"] or {"app": []}
        kinds = Counter(app["name"] for app in apps["app"])
        same("applications of one action", [n for n, count in kinds.items() if count > 1], [])
        running = [a["name"] for a in apps["app"] if a["state"] not in _ENDED]
        same("applications that still run", running, [])

        self.counted = (
            f"{len(executions)} executions, {len(names)} workflows, {len(kinds)} applications"
        )
        head = _origin(cluster["info"]["HDFS"]["Web UI"])

        async def tidy() -> bool:
            left = await self._folders(head)
            self.left = left
            return not left

        try:
            await until(tidy, "no folder of an execution in HDFS", 90.0, 1.0)
        except AssertionError as error:
            raise Wrong(f"{error}: {self.left}") from None

    async def _folders(self, head: str) -> list[str]:
        found = []
        for user in await _listed(head, "/user"):
            folder = f"/user/{user}/svcd"
            found += [f"{folder}/{name}" for name in await _listed(head, folder)]
        return found

    async def check_left(self) -> None:
        """No process and no folder of a machine, and no bug in what the daemon said."""

        async def swept() -> bool:
            return not machine_processes(self.state) and not machine_folders(self.cloud.state)

        await until(swept, "no process and no folder", 60.0)
        for mark in ("Traceback", "incident"):
            at = self.daemon.said.find(mark)
            if at >= 0:
                raise Wrong(f"the daemon said: {self.daemon.said[max(0, at - 500) : at + 1500]}")


_ENDED = {"FINISHED", "FAILED", "KILLED"}


def same(what: str, found: Any, expected: Any) -> None:
    """Raises Wrong if they are not the same, in any order."""
    if sorted(found) != sorted(expected):
        raise Wrong(f"{what}: {sorted(found)}, expected {sorted(expected)}")


def _origin(url: str) -> str:
    return f"http://{urlsplit(url).netloc}"


async def _json(url: str) -> Any:
    reply = await send("GET", url)
    if reply.status != 200:
        raise Wrong(f"GET {url}: {reply.status} {reply.body.decode(errors='replace')[:500]}")
    return reply.json


async def _listed(head: str, folder: str) -> list[str]:
    """Names in a folder of HDFS; none when there is no such folder."""
    reply = await send("GET", f"{head}/webhdfs/v1{folder}?op=LISTSTATUS&user.name=svcd")
    if reply.status == 404:
        return []
    if reply.status != 200:
        raise Wrong(f"LISTSTATUS {folder}: {reply.status} {reply.body.decode(errors='replace')}")
    return [e["pathSuffix"] for e in reply.json["FileStatuses"]["FileStatus"]]
