"""The lives of small clusters of plugin `fake`; their jobs run on a scripted engine of ours."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

from svcd.cli.demo_files import SLEEP
from tests.kills.cycles import ACTIVE_S, GONE_S, JOB_S, Cycles
from tests.kills.service import Service
from tests.kills.things import Wrong
from tests.support.live import WORKER, seconds

LONG = {**SLEEP, "svcd.fake.run_s": "600"}


class Lives(Cycles):
    """One user with one cluster after another."""

    def __init__(self, service: Service, name: str, rng: random.Random) -> None:
        super().__init__(service, name, rng)
        self.kinds = {
            "life": (4, self.life),
            "delete during create": (2, self.delete_early),
            "transient": (2, self.transient),
        }
        self._job = ""

    async def prepare(self) -> None:
        """Image, job and input."""
        await self.register("fake")
        self._job = await self.tenant.new_jar_job(self.name, b"classes")
        self._source = await self.tenant.new_source(f"in-{self.name}", "kills", "in")

    def new_body(self) -> Any:
        """One or two workers, at times kept apart."""
        apart: dict[str, Any] = {"anti_affinity": ["datanode"]} if self.rng.random() < 0.5 else {}
        return self.body(self.new_name(), self.rng.choice((1, 2)), **apart)

    async def life(self) -> None:
        """It comes, is changed, works and goes."""
        body = self.new_body()
        workers = body["node_groups"][1]["count"]
        cluster_id = await self.step("create", self.created(body, workers))
        ends: dict[str, str] = {}
        for what in self.rng.sample(("size", "group", "job", "cancel"), 2):
            match what:
                case "size":
                    kind, wanted = ("scale up", 2) if workers == 1 else ("scale down", 1)
                    await self.step(kind, self.resized(cluster_id, wanted))
                    workers = wanted
                case "group":
                    sizes = {"master": 1, "worker": workers, "more": 1}
                    new = {"add_node_groups": [self.group("more", 1, WORKER)]}
                    await self.step("add a group", self.scaled(cluster_id, new, sizes))
                    sizes = {"master": 1, "worker": workers}
                    away = {"resize_node_groups": [{"name": "more", "count": 0}]}
                    await self.step("remove a group", self.scaled(cluster_id, away, sizes))
                case "job":
                    await self.step("submit", self.submit(cluster_id, ends))
                case "cancel":
                    await self.step("cancel", self.cancel(cluster_id, ends))
        force = self.rng.random() < 0.4
        kind = "force delete" if force else "delete"
        await self.step(kind, self.deleted(cluster_id, 5.0, force))

    async def created(self, body: Any, workers: int) -> str:
        """The id, once it is Active."""
        cluster_id = await self.taken(body, 15.0)
        await self.active(cluster_id, {"master": 1, "worker": workers})
        return cluster_id

    async def delete_early(self) -> None:
        """Anywhere between accepted and Active."""
        await self.step("delete during create", self._delete_early())

    async def _delete_early(self) -> None:
        cluster_id = await self.taken(self.new_body(), 2.0)
        await self.pause(12.0)
        await self.deleted(cluster_id, 3.0, self.rng.random() < 0.3)

    # ---- jobs -----------------------------------------------------------------------------------

    async def execute(self, configs: Mapping[str, str], where: Mapping[str, Any]) -> str:
        """The id of an execution, asked for while the daemon is killed. where: which cluster."""
        self._number += 1
        name = f"out-{self.name}-{self._number}"
        target = await self.tenant.new_source(name, "kills", name)
        body = {
            "input_id": self._source,
            "output_id": target,
            "job_configs": {"configs": dict(configs), "args": {}, "params": {}},
            **where,
        }

        async def asked() -> str:
            made = await self.tenant.done("POST", f"/jobs/{self._job}/execute", body)
            return str(made["job_execution"]["id"])

        return await self.execution(target, asked, 4.0)

    async def submit(self, cluster_id: str, ends: dict[str, str]) -> None:
        """SUCCEEDED, submitted once. ends: of all executions of the cluster; one more then."""
        execution = await self.execute(SLEEP, {"cluster_id": cluster_id})
        await self.tenant.until_execution(execution, "SUCCEEDED", JOB_S)
        ends[execution] = "SUCCEEDED"
        self.check_engine(cluster_id, ends)

    async def cancel(self, cluster_id: str, ends: dict[str, str]) -> None:
        """KILLED, there and here."""
        execution = await self.execute(LONG, {"cluster_id": cluster_id})
        await self.pause(3.0)
        await self.cancelled(execution)
        ends[execution] = "KILLED"
        self.check_engine(cluster_id, ends)

    async def transient(self) -> None:
        """Made for one execution, and gone after it."""
        await self.step("transient", self._transient())

    async def _transient(self) -> None:
        body = self.new_body()
        execution = await self.execute(SLEEP, {"cluster": body})
        shown = await self.tenant.done("GET", f"/job-executions/{execution}")
        # it may have come and gone in one kill, and then only its engine knows whose it was
        cluster_id = str(shown["cluster_id"] or self._engine_of(execution))
        await self.tenant.until_execution(execution, "SUCCEEDED", ACTIVE_S + JOB_S)
        await self.tenant.until_gone(cluster_id, GONE_S)
        self.check_engine(cluster_id, {execution: "SUCCEEDED"})
        await self.service.check_cluster(cluster_id)
        if await self.named(body["name"]):
            raise Wrong(f"there is another cluster {body['name']}")

    def _engine_of(self, execution: str) -> str:
        """The id of the cluster whose engine had it."""
        engines = self.service.engines
        found = [
            key
            for key in engines.known()
            if any(job.external_id == execution for job in engines.engine(key).jobs.values())
        ]
        if len(found) != 1:
            raise Wrong(f"execution {execution} is at the engines of {found}")
        return found[0]

    def check_engine(self, cluster_id: str, ends: Mapping[str, str]) -> None:
        """Each execution was submitted once, and ended as it should; one that was cancelled
        before it came there is not known."""
        jobs = self.service.engines.engine(cluster_id).jobs.values()
        twice = [e for e, n in Counter(j.external_id for j in jobs).items() if n > 1]
        if twice:
            raise Wrong(f"submitted twice: {twice}")
        found = {str(j.external_id): j.status(seconds()) for j in jobs}
        lacking = [e for e, end in ends.items() if end == "SUCCEEDED" and e not in found]
        wrong = {e: end for e, end in found.items() if ends.get(e) != end}
        if lacking or wrong:
            raise Wrong(f"at the engine: {found}, expected {ends}")
