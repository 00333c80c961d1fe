"""What a user asks for while the daemon is killed, each driven to its end and looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from svcd.cli.demo import SLEEP, WORD_COUNT
from tests.kills.service import GONE_S, Service, Wrong
from tests.processes import send, until

ACTIVE_S = 300.0
JOB_S = 300.0
WORDS = b"one two two three three three\n"
COUNTS = {"one": 1, "two": 2, "three": 3}
LONG_SLEEP = {**SLEEP, "svcd.examples.sleep.ms": "300000"}


class Cycles:
    """The kinds of cycles on one service with one cluster that lives on."""

    def __init__(self, service: Service, image: Path) -> None:
        self.service = service
        self._image = image
        self._number = 0
        self.ends: dict[str, str] = {}
        self._events: dict[str, list[Any]] = {}
        self.cluster_id = ""
        self.kinds: Mapping[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "submit": (5, self.submit),
            "cancel": (5, self.cancel),
            "delete execution": (3, self.delete_execution),
            "scale vanilla": (2, self.scale_vanilla),
            "create, scale, delete fake": (4, self.fake),
            "create, delete vanilla": (1, self.vanilla),
        }

    @property
    def tenant(self) -> Any:
        return self.service.tenant

    async def prepare(self) -> None:
        """The long-lived cluster, the job and its input."""
        self.cluster_id = await self.tenant.new_cluster("lasting", 1, "vanilla", "3.5.0")
        await self.tenant.upload("kills", "in/words.txt", WORDS)
        jar = (self._image / "examples" / "svcd-examples.jar").read_bytes()
        self._job = await self.tenant.new_jar_job("kills", jar)
        self._source = await self.tenant.new_source("in", "kills", "in")
        await self.active(self.cluster_id)

    async def active(self, cluster_id: str, workers: int = 1) -> Any:
        """Active with as many workers, settled, and its events go on from those seen before."""
        shown = await self.tenant.until_active(cluster_id, ACTIVE_S)
        counts = {g["name"]: len(g["instances"]) for g in shown["node_groups"]}
        if counts != {"master": 1, "worker": workers}:
            raise Wrong(f"instances {counts}, expected {workers} workers")
        if shown["status_description"]:
            raise Wrong(f"Active, but: {shown['status_description']}")
        await self.told(cluster_id)
        return shown

    async def told(self, cluster_id: str) -> None:
        """The events go on where they were, whatever died between."""
        events = (await self.tenant.done("GET", f"/clusters/{cluster_id}/events"))["events"]
        before = self._events.get(cluster_id, [])
        if len(events) < 2000 and events[: len(before)] != before:
            raise Wrong(f"events have changed: {before} and then {events[: len(before)]}")
        self._events[cluster_id] = events

    async def ended(self) -> None:
        """After each cycle."""
        await self.told(self.cluster_id)
        await self.service.check_cloud()

    async def everything(self) -> None:
        """The engine's own word of all executions."""
        shown = await self.tenant.cluster(self.cluster_id)
        await self.service.check_engine(shown, self.ends)

    async def finish(self) -> None:
        """Delete what is left, and look at that."""
        for execution in (await self.tenant.done("GET", "/job-executions"))["job_executions"]:
            await self.tenant.done("DELETE", f"/job-executions/{execution['id']}")
        await self.tenant.done("DELETE", f"/clusters/{self.cluster_id}")
        await self.tenant.until_gone(self.cluster_id, GONE_S)
        await self.service.check_cloud()

    # ---- jobs -----------------------------------------------------------------------------------

    async def execute(self, configs: Mapping[str, str], kill_within_s: float | None) -> str:
        """An execution's id; kill_within_s: the daemon is killed so soon after the request."""
        self._number += 1
        target = await self.tenant.new_source(f"out-{self._number}", "kills", f"out/{self._number}")
        asked = partial(self._asked, target, configs)
        if kill_within_s is None:
            made: str | None = await asked()
        else:
            made = await self.service.killed_during(asked, self.service.moment(kill_within_s))
        rows = (await self.tenant.done("GET", "/job-executions"))["job_executions"]
        mine = [e["id"] for e in rows if e["output_id"] == target]
        if not mine and made is None:
            self.service.say("the execution was not taken, asked for again")
            mine = [await asked()]
        if len(mine) != 1 or made not in (None, *mine):
            raise Wrong(f"executions {mine}, the answer named {made}")
        self.service.say(f"execution {mine[0]}")
        return str(mine[0])

    async def _asked(self, target: str, configs: Mapping[str, str]) -> str:
        made: str = await self.tenant.execute(
            self.cluster_id, self._job, self._source, target, configs
        )
        return made

    async def _words(self, number: int) -> dict[str, int]:
        """What the job has written."""
        base = self.service.told["object_store"]
        headers = {"X-Auth-Token": await self.tenant.token()}
        url = f"{base}/kills?format=json&prefix=out/{number}/part"
        names = [e["name"] for e in (await send("GET", url, headers=headers)).json]
        text = ""
        for name in names:
            text += (await send("GET", f"{base}/kills/{name}", headers=headers)).body.decode()
        return {word: int(count) for word, count in (x.split("\t") for x in text.splitlines())}

    async def submit(self) -> None:
        """Two at once; the second kill finds the first one anywhere."""
        made = []
        for _ in range(2):
            execution = await self.execute(WORD_COUNT, 15.0)
            self.ends[execution] = "SUCCEEDED"
            made.append((execution, self._number))
        if self.service.rng.random() < 0.5:
            await self.service.killed(self.service.moment(20.0))
        for execution, number in made:
            await self.tenant.until_execution(execution, "SUCCEEDED", JOB_S)
            found = await self._words(number)
            if found != COUNTS:
                raise Wrong(f"words of {execution}: {found}")

    async def _until_some(self, execution: str) -> None:
        """Until it is somewhere between accepted and running in YARN."""
        wanted = self.service.rng.choice(("at once", "PREP", "RUNNING", "in YARN"))
        self.service.say(f"to be met: {wanted}")
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
        kill_too = 0.5 if self.service.rng.random() < 0.3 else None
        execution = await self.execute(LONG_SLEEP, kill_too)
        self.ends[execution] = "KILLED"
        await self._until_some(execution)

        async def asked() -> Any:
            return await self.tenant.done("GET", f"/job-executions/{execution}/cancel")

        answer = await self.service.killed_during(asked, self.service.moment(6.0))
        if answer is None:
            await asked()
        await self.tenant.until_execution(execution, "KILLED", JOB_S)

    async def delete_execution(self) -> None:
        """Gone, and killed at the engine if it had come there."""
        execution = await self.execute(LONG_SLEEP, None)
        self.ends[execution] = "KILLED"
        await self._until_some(execution)
        path = f"/job-executions/{execution}"

        async def asked() -> bool:
            return (await self.tenant.ask("DELETE", path)).status in (200, 202, 204, 404)

        answer = await self.service.killed_during(asked, self.service.moment(6.0))
        if answer is None:
            answer = await asked()
        if not answer:
            raise Wrong("the delete was refused")

        async def gone() -> bool:
            return bool((await self.tenant.ask("GET", path)).status == 404)

        await until(gone, "the execution to be gone", JOB_S)

    # ---- clusters -------------------------------------------------------------------------------

    async def _scale(self, cluster_id: str, workers: int, most_s: float) -> None:
        asked = partial(self._scaled, cluster_id, workers)
        answer = await self.service.killed_during(asked, self.service.moment(most_s))
        if answer is None:
            shown = await self.tenant.cluster(cluster_id)
            counts = {g["name"]: g["count"] for g in shown["node_groups"]}
            if counts["worker"] != workers:
                self.service.say("the scale was not taken, asked for again")
                await self._scaled(cluster_id, workers)
        await self.active(cluster_id, workers)

    async def _scaled(self, cluster_id: str, workers: int) -> bool:
        await self.tenant.scale(cluster_id, workers)
        return True

    async def _made(self, name: str, most_s: float, *more: str) -> str:
        """A cluster's id."""

        async def asked() -> str:
            made: str = await self.tenant.new_cluster(name, 1, *more)
            return made

        made = await self.service.killed_during(asked, self.service.moment(most_s))
        rows = (await self.tenant.done("GET", "/clusters"))["clusters"]
        mine = [c["id"] for c in rows if c["name"] == name]
        if not mine and made is None:
            self.service.say("the cluster was not taken, asked for again")
            mine = [await asked()]
        if len(mine) != 1 or made not in (None, *mine):
            raise Wrong(f"clusters {mine}, the answer named {made}")
        await self.active(mine[0])
        return str(mine[0])

    async def _deleted(self, cluster_id: str, most_s: float) -> None:
        async def asked() -> bool:
            status = (await self.tenant.ask("DELETE", f"/clusters/{cluster_id}")).status
            return status in (200, 202, 204, 404)

        answer = await self.service.killed_during(asked, self.service.moment(most_s))
        if answer is None:
            answer = await asked()
        if not answer:
            raise Wrong("the delete was refused")
        await self.tenant.until_gone(cluster_id, GONE_S)

    async def scale_vanilla(self) -> None:
        """The lasting cluster has two workers, and then one again."""
        await self._scale(self.cluster_id, 2, 20.0)
        await self._scale(self.cluster_id, 1, 20.0)

    async def fake(self) -> None:
        """A second, small cluster comes, grows and goes."""
        self._number += 1
        cluster_id = await self._made(f"small-{self._number}", 4.0)
        if self.service.rng.random() < 0.5:
            await self._scale(cluster_id, 2, 3.0)
        await self._deleted(cluster_id, 2.0)

    async def vanilla(self) -> None:
        """The same of Hadoop."""
        self._number += 1
        cluster_id = await self._made(f"second-{self._number}", 30.0, "vanilla", "3.5.0")
        await self._deleted(cluster_id, 3.0)
