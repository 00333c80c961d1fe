"""What a user asks of clusters while the daemon is killed, each step driven to its right end.

A request whose answer was lost is looked up by name, and repeated only if it had not been taken.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from attrs import frozen

from svcd.runtime.tasks import sleep
from tests.kills.clouds import Cloud
from tests.kills.service import Service
from tests.kills.things import Wrong
from tests.support.live import MASTER, WORKER, Tenant, seconds
from tests.support.processes import reactor

T = TypeVar("T")
ACTIVE_S = 400.0
GONE_S = 300.0
JOB_S = 300.0
MOST_EVENTS = 2000
TRIES = 20
"""A request is repeated so often while others kill the daemon."""


@frozen
class Step:
    """One that was driven to its end. kills: that happened meanwhile. took_s: with all of them."""

    kind: str
    kills: int
    failed: bool
    took_s: float


class Cycles:
    """One user's requests. kinds: weight and cycle by name; each goes by itself."""

    def __init__(self, service: Service, name: str, rng: random.Random) -> None:
        self.service = service
        self.name = name
        self.rng = rng
        self.steps: list[Step] = []
        self.kinds: Mapping[str, tuple[int, Callable[[], Awaitable[None]]]] = {}
        self._number = 0
        self._events: dict[str, list[Any]] = {}
        self._told: list[str] = []

    @property
    def tenant(self) -> Tenant:
        return self.service.tenant

    @property
    def cloud(self) -> Cloud:
        return self.service.cloud

    def say(self, text: str) -> None:
        self.service.say(f"{self.name}: {text}")

    def new_name(self) -> str:
        """Of a cluster."""
        self._number += 1
        return f"{self.name}-{self._number}"

    async def step(self, kind: str, work: Awaitable[T]) -> T:
        """Its outcome is written down."""
        kills, began = self.service.kills, seconds()
        failed = True
        self.say(kind)
        try:
            result = await work
            failed = False
            return result
        finally:
            took_s = seconds() - began
            self.steps.append(Step(kind, self.service.kills - kills, failed, took_s))
            self.say(f"{kind} {'FAILED' if failed else 'right'} after {took_s:.1f} s")

    async def killed_during(
        self, asked: Callable[[], Awaitable[T]], most_s: float | None
    ) -> T | None:
        """The daemon is killed so soon after the request; None: the answer was lost.

        most_s None: others may kill it.
        """
        moment = None if most_s is None else self.service.moment(self.rng, most_s)
        return await self.service.killed_during(asked, moment)

    async def one(
        self,
        what: str,
        asked: Callable[[], Awaitable[str]],
        found: Callable[[], Awaitable[list[str]]],
        most_s: float | None,
    ) -> str:
        """The id of a thing that is asked for until it is taken, and there is one then."""
        made = await self.killed_during(asked, most_s)
        mine = await found()
        for _ in range(TRIES):
            if mine or made is not None:
                break
            self.say(f"the {what} was not taken, asked for again")
            made = await self.killed_during(asked, None)
            mine = await found()
        if len(mine) != 1 or made not in (None, *mine):
            raise Wrong(f"{what}: {mine}, the answer named {made}")
        self.say(f"{what} {mine[0]}")
        return mine[0]

    # ---- what is there --------------------------------------------------------------------------

    async def active(self, cluster_id: str, sizes: Mapping[str, int]) -> Any:
        """Active with groups of the sizes, as the cloud has it, and its events go on."""
        shown = await self.tenant.until_active(cluster_id, ACTIVE_S)
        counts = {g["name"]: len(g["instances"]) for g in shown["node_groups"]}
        if counts != dict(sizes):
            raise Wrong(f"instances {counts}, expected {sizes}")
        if shown["status_description"]:
            raise Wrong(f"Active, but: {shown['status_description']}")
        await self.told(cluster_id)
        await self.service.check_cluster(cluster_id)
        return shown

    async def told(self, cluster_id: str) -> None:
        """The events go on where they were, whatever died between."""
        events = (await self.tenant.done("GET", f"/clusters/{cluster_id}/events"))["events"]
        before = self._events.get(cluster_id, [])
        if len(events) < MOST_EVENTS and events[: len(before)] != before:
            raise Wrong(f"events have changed: {before} and then {events[: len(before)]}")
        self._events[cluster_id] = events

    # ---- clusters -------------------------------------------------------------------------------

    async def register(self, plugin: str, tags: Sequence[str] = ()) -> None:
        """The plugin's image."""
        path = f"/images/{self.cloud.image(plugin)}"
        await self.tenant.done("POST", path, {"username": self.cloud.login})
        if tags:
            await self.tenant.done("POST", f"{path}/tag", {"tags": list(tags)})

    def body(
        self, name: str, workers: int, plugin: str = "fake", version: str = "0.1", **fields: Any
    ) -> Any:
        """Of a cluster of a master and workers; see `register`."""
        return {
            "name": name,
            "plugin_name": plugin,
            "engine_version": version,
            "default_image_id": self.cloud.image(plugin),
            "cluster_configs": {"HDFS": {"dfs.replication": 1}},
            "node_groups": [
                self.group("master", 1, MASTER),
                self.group("worker", workers, WORKER),
            ],
            **self.cloud.fields,
            **fields,
        }

    def group(self, name: str, count: int, processes: Sequence[str]) -> Any:
        return {"name": name, "count": count, "node_processes": processes, **self.cloud.group}

    async def taken(self, body: Any, most_s: float) -> str:
        """The id of a cluster that is asked for while the daemon is killed."""

        async def asked() -> str:
            made = await self.tenant.done("POST", "/clusters", body)
            return str(made["cluster"]["id"])

        return await self.one("cluster", asked, partial(self.named, body["name"]), most_s)

    async def named(self, name: str) -> list[str]:
        """Ids of the clusters of a name."""
        rows = (await self.tenant.done("GET", "/clusters"))["clusters"]
        return [str(c["id"]) for c in rows if c["name"] == name]

    async def scaled(self, cluster_id: str, body: Any, sizes: Mapping[str, int]) -> None:
        """PUT while the daemon is killed, until the groups have the sizes."""

        async def asked() -> bool:
            await self.tenant.done("PUT", f"/clusters/{cluster_id}", body)
            return True

        answer = await self.killed_during(asked, 10.0)
        for _ in range(TRIES):
            shown = await self.tenant.cluster(cluster_id)
            taken = {g["name"]: g["count"] for g in shown["node_groups"] if g["count"]}
            if answer or taken == dict(sizes):
                break
            self.say("the scale was not taken, asked for again")
            answer = await self.killed_during(asked, None)
        await self.active(cluster_id, sizes)

    async def resized(self, cluster_id: str, workers: int) -> None:
        """So many workers beside the master."""
        body = {"resize_node_groups": [{"name": "worker", "count": workers}]}
        await self.scaled(cluster_id, body, {"master": 1, "worker": workers})

    async def deleted(self, cluster_id: str, most_s: float, force: bool = False) -> None:
        """Gone, and nothing of it is left in the cloud."""
        path = f"/clusters/{cluster_id}{'?force=true' if force else ''}"

        async def asked() -> int:
            return (await self.tenant.ask("DELETE", path)).status

        status = await self.killed_during(asked, most_s)
        for _ in range(TRIES):
            if status is not None:
                break
            status = await self.killed_during(asked, None)
        if status not in (204, 404):
            raise Wrong(f"DELETE {path}: {status}")
        await self.tenant.until_gone(cluster_id, GONE_S)
        self._events.pop(cluster_id, None)
        try:
            await self.service.check_cluster(cluster_id)
        except Wrong as error:
            if not force:
                raise
            self.say(f"left by force: {error}")  # of a slow cloud; the log has named it
            await self.service.orphans()
            await self.service.check_cluster(cluster_id)

    async def pause(self, most_s: float) -> None:
        """Some of the time."""
        await sleep(reactor, self.rng.uniform(0.0, most_s))

    # ---- executions -----------------------------------------------------------------------------

    async def execution(
        self, target: str, asked: Callable[[], Awaitable[str]], most_s: float | None
    ) -> str:
        """Its id, found by its output."""

        async def found() -> list[str]:
            rows = (await self.tenant.done("GET", "/job-executions"))["job_executions"]
            return [str(e["id"]) for e in rows if e["output_id"] == target]

        return await self.one("execution", asked, found, most_s)

    async def cancelled(self, execution: str) -> None:
        """KILLED, while the daemon is killed."""
        asked = partial(self.tenant.done, "GET", f"/job-executions/{execution}/cancel")
        await self.killed_during(asked, 6.0)  # a look: repeated until it is answered
        await self.tenant.until_execution(execution, "KILLED", JOB_S)
