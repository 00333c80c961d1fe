"""Real jobs on one cluster of real Hadoop that lives on, and the cluster itself."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from svcd.cli.demo_files import SLEEP, WORD_COUNT
from tests.kills.cycles import GONE_S, JOB_S, TRIES, Cycles
from tests.kills.engine import check_engine
from tests.kills.service import Service
from tests.kills.things import Wrong
from tests.support.processes import send, until

WORDS = b"one two two three three three\n"
COUNTS = {"one": 1, "two": 2, "three": 3}
LONG_SLEEP = {**SLEEP, "svcd.examples.sleep.ms": "300000"}
BOX = "svcd-kills"


class Jobs(Cycles):
    """image: the software tree, for the job's jar. ends: how each execution must end."""

    def __init__(self, service: Service, name: str, rng: random.Random, image: Path) -> None:
        super().__init__(service, name, rng)
        self._image = image
        self.ends: dict[str, str] = {}
        self.cluster_id = ""
        self.counted = ""
        self.kinds = {
            "submit": (5, self.submit),
            "cancel": (5, self.cancel),
            "delete execution": (3, self.delete_execution),
            "scale": (2, self.scale),
            "create, delete": (1, self.another),
        }

    async def prepare(self) -> None:
        """The image, the long-lived cluster, the job and its input."""
        await self.register("vanilla", ["vanilla", "3.5.0"])
        self.cluster_id = await self.new_cluster("lasting")
        await self.tenant.upload(BOX, "in/words.txt", WORDS)
        jar = (self._image / "examples" / "svcd-examples.jar").read_bytes()
        self._job = await self.tenant.new_jar_job("kills", jar)
        self._source = await self.tenant.new_source("in", BOX, "in")
        await self.lasting()

    async def new_cluster(self, name: str) -> str:
        """The id of one of Hadoop, asked for in peace."""
        body = self.body(name, 1, "vanilla", "3.5.0")
        return str((await self.tenant.done("POST", "/clusters", body))["cluster"]["id"])

    async def lasting(self) -> None:
        """The lasting cluster is as it should be."""
        await self.active(self.cluster_id, {"master": 1, "worker": 1})

    async def everything(self) -> None:
        """The engine's own word of all executions."""
        shown = await self.tenant.cluster(self.cluster_id)
        self.counted = await check_engine(shown, self.ends)

    async def finish(self) -> None:
        """Delete what is left."""
        for execution in (await self.tenant.done("GET", "/job-executions"))["job_executions"]:
            await self.tenant.done("DELETE", f"/job-executions/{execution['id']}")
        await self.tenant.done("DELETE", f"/clusters/{self.cluster_id}")
        await self.tenant.until_gone(self.cluster_id, GONE_S)
        headers = {"X-Auth-Token": await self.tenant.token()}
        for name in [*await self.tenant.objects(BOX, ""), ""]:
            url = f"{self.cloud.told['object_store']}/{BOX}/{name}".rstrip("/")
            reply = await send("DELETE", url, headers=headers)
            if reply.status not in (204, 404):
                raise Wrong(f"DELETE {url}: {reply.status}")

    # ---- jobs -----------------------------------------------------------------------------------

    async def execute(self, configs: Mapping[str, str], within_s: float | None) -> str:
        """An execution's id; within_s: the daemon is killed so soon after the request."""
        self._number += 1
        target = await self.tenant.new_source(f"out-{self._number}", BOX, f"out/{self._number}")

        async def asked() -> str:
            return await self.tenant.execute(
                self.cluster_id, self._job, self._source, target, configs
            )

        return await self.execution(target, asked, within_s)

    async def _words(self, number: int) -> dict[str, int]:
        """What the job has written."""
        text = await self.tenant.parts(BOX, f"out/{number}")
        return {word: int(count) for word, count in (x.split("\t") for x in text.splitlines())}

    async def submit(self) -> None:
        """Two at once; the second kill finds the first one anywhere."""
        await self.step("submit, Hadoop", self._submit())

    async def _submit(self) -> None:
        made = []
        for _ in range(2):
            execution = await self.execute(WORD_COUNT, 15.0)
            self.ends[execution] = "SUCCEEDED"
            made.append((execution, self._number))
        if self.rng.random() < 0.5:
            await self.service.killed(self.service.moment(self.rng, 20.0))
        for execution, number in made:
            await self.tenant.until_execution(execution, "SUCCEEDED", JOB_S)
            found = await self._words(number)
            if found != COUNTS:
                raise Wrong(f"words of {execution}: {found}")

    async def _until_some(self, execution: str) -> None:
        """Until it is somewhere between accepted and running in YARN."""
        wanted = self.rng.choice(("at once", "PREP", "RUNNING", "in YARN"))
        self.say(f"to be met: {wanted}")
        order = {"Pending": 0, "PREP": 1, "RUNNING": 2}

        async def reached() -> bool:
            info = (await self.tenant.done("GET", f"/job-executions/{execution}"))["info"]
            if wanted == "in YARN":
                ids = [str(a.get("externalId")) for a in info.get("actions", [])]
                return any(i.startswith(("application_", "job_")) for i in ids)
            return wanted == "at once" or order[info["status"]] >= order[wanted]

        await until(reached, f"execution {wanted}", JOB_S)

    async def cancel(self) -> None:
        """KILLED, whenever it was asked for."""
        await self.step("cancel, Hadoop", self._cancel())

    async def _cancel(self) -> None:
        execution = await self.execute(LONG_SLEEP, 0.5 if self.rng.random() < 0.3 else None)
        self.ends[execution] = "KILLED"
        await self._until_some(execution)
        await self.cancelled(execution)

    async def delete_execution(self) -> None:
        """Gone, and killed at the engine if it had come there."""
        await self.step("delete execution, Hadoop", self._delete_execution())

    async def _delete_execution(self) -> None:
        execution = await self.execute(LONG_SLEEP, None)
        self.ends[execution] = "KILLED"
        await self._until_some(execution)
        path = f"/job-executions/{execution}"

        async def asked() -> int:
            return (await self.tenant.ask("DELETE", path)).status

        status = await self.killed_during(asked, 6.0)
        for _ in range(TRIES):
            if status is not None:
                break
            status = await self.killed_during(asked, None)
        if status not in (200, 202, 204, 404):
            raise Wrong(f"DELETE {path}: {status}")

        async def gone() -> bool:
            return (await self.tenant.ask("GET", path)).status == 404

        await until(gone, "the execution to be gone", JOB_S)

    # ---- clusters -------------------------------------------------------------------------------

    async def scale(self) -> None:
        """The lasting cluster has two workers, and then one again."""
        await self.step("scale up, Hadoop", self.resized(self.cluster_id, 2))
        await self.step("scale down, Hadoop", self.resized(self.cluster_id, 1))

    async def another(self) -> None:
        """A second one comes and goes."""
        await self.step("create, delete, Hadoop", self._another())

    async def _another(self) -> None:
        body: Any = self.body(self.new_name(), 1, "vanilla", "3.5.0")
        cluster_id = await self.taken(body, 30.0)
        await self.active(cluster_id, {"master": 1, "worker": 1})
        await self.deleted(cluster_id, 3.0)
