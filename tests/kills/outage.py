"""A cluster of real Hadoop with a running job, of which a part is taken away; for tests.

One daemon with its embedded cloud for each outage: nothing of another one is in the way, and at the
end nothing may be left.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from svcd.cli.demo_files import SLEEP
from svcd.runtime.tasks import sleep
from tests.kills.things import Wrong, check_said
from tests.support.disks import fill
from tests.support.live import Tenant, machine_folders, seconds
from tests.support.processes import (
    Daemon,
    machine_processes,
    proc_text,
    reactor,
    run,
    send,
    until,
)  # fmt: skip
from tests.support.yarn import applications, works

ACTIVE_S = 300.0
IN_YARN_S = 240.0
CANCELLED_S = 60.0
GONE_S = 180.0
DISK_MIB = 3000
ENDED = ("SUCCEEDED", "KILLED", "FAILED")


class Outage:
    """The daemon, its cluster, and the job.

    gives_up_s: after which the daemon gives up a silent engine or resource manager. told: prints a
    line of the story.
    """

    def __init__(self, state: Path, image: Path, gives_up_s: float, quiet: bool = False) -> None:
        self._daemon = Daemon(
            state,
            embedded__image_prefix=str(image),
            plugins__enabled="vanilla",
            workflow__unreachable_deadline_s=str(gives_up_s),
        )
        self._image = image
        self._quiet = quiet
        self._jobs = 0
        self._mounted: Path | None = None
        self.cluster_id = ""
        self.tenant: Tenant

    async def begin(self) -> None:
        """An Active cluster of a master and a worker."""
        self.tenant = Tenant(await self._daemon.start())
        self.cluster_id = await self.tenant.new_cluster("outage", 1, "vanilla", "3.5.0")
        await self.tenant.upload("outage", "in/words.txt", b"one two two\n")
        jar = (self._image / "examples" / "svcd-examples.jar").read_bytes()
        self._job = await self.tenant.new_jar_job("outage", jar)
        self._source = await self.tenant.new_source("in", "outage", "in")
        await self.tenant.until_active(self.cluster_id, ACTIVE_S)

    async def end(self) -> None:
        """Whatever happened before."""
        await self._daemon.remove()
        if self._mounted is not None:
            subprocess.run(["umount", "--lazy", self._mounted], check=True)

    def say(self, text: str) -> None:
        """A line of the story."""
        if not self._quiet:
            print(text, flush=True)

    # ---- the job --------------------------------------------------------------------------------

    async def execute(self, sleep_s: float) -> str:
        """An execution that sleeps so long in its only task."""
        self._jobs += 1
        target = await self.tenant.new_source(f"out-{self._jobs}", "outage", f"out/{self._jobs}")
        configs = {**SLEEP, "svcd.examples.sleep.ms": str(int(sleep_s * 1000))}
        return await self.tenant.execute(self.cluster_id, self._job, self._source, target, configs)

    async def running(self, sleep_s: float) -> str:
        """One whose task runs, and that waits for nothing."""
        execution = await self.execute(sleep_s)
        links = (await self.tenant.cluster(self.cluster_id))["info"]["YARN"]

        async def task() -> bool:
            apps = await applications(links["Web UI"])
            return any(app["name"].startswith("oozie:action:") and works(app) for app in apps)

        async def content() -> bool:
            return (await self.info(execution)).get("waiting") is None

        await until(task, "a task of the job running", IN_YARN_S, 0.5)
        await until(content, "the job to wait for nothing", 60.0, 0.5)
        return execution

    async def info(self, execution: str) -> Mapping[str, Any]:
        """`info` of the execution as a GET shows it."""
        shown = await self.tenant.done("GET", f"/job-executions/{execution}")
        info: Mapping[str, Any] = shown["info"]
        return info

    async def told(self, execution: str, codes: Collection[str], within_s: float) -> str:
        """The first code that is told of it. Raises Wrong for another one, or none in time."""
        began = seconds()
        while True:
            info = await self.info(execution)
            found = info.get("waiting") or info.get("failure")
            spent = seconds() - began
            if found is not None:
                self.say(f"+{spent:.1f} s {info['status']} {found['code']}: {found['text']}")
                if found["code"] not in codes:
                    raise Wrong(
                        f"{found['code']} is told, expected one of {sorted(codes)}: {found}"
                    )
                return str(found["code"])
            if info["status"] in ENDED:
                raise Wrong(f"{info['status']} without a failure")
            if spent > within_s:
                raise Wrong(f"nothing is told within {within_s:.0f} s, expected {sorted(codes)}")
            await sleep(reactor, 0.5)

    async def explained(self, what: str, code: str) -> None:
        """`svcd why` names the code."""
        flags = ("--api", self.tenant.api, "--tenant", self.tenant.tenant)
        ended = await run("svcd", "why", what, *flags)
        self.say(f"$ svcd why {what}\n{ended.out}{ended.err}")
        if code not in ended.out:
            raise Wrong(f"svcd why does not say {code}: {ended.out}{ended.err}")

    async def ended(self, execution: str, within_s: float) -> Mapping[str, Any]:
        """`info` of the execution after its end."""

        async def over() -> Any:
            info = await self.info(execution)
            return info if info["status"] in ENDED else None

        info: Mapping[str, Any] = await until(over, "the end of the execution", within_s, 0.5)
        failure = info.get("failure")
        self.say(
            f"ended: {info['status']} {failure['code'] + ': ' + failure['text'] if failure else ''}"
        )
        return info

    async def cancelled(self, execution: str, within_s: float) -> None:
        """KILLED, at once or after the answer that it will be."""
        at = seconds()
        reply = await self.tenant.ask("GET", f"/job-executions/{execution}/cancel")
        self.say(f"cancel: {reply.status} in {seconds() - at:.1f} s")
        if reply.status != 200 and b"has recorded the cancel" not in reply.body:
            raise Wrong(f"cancel: {reply.status} {reply.body!r}")
        info = await self.ended(execution, within_s)
        if info["status"] != "KILLED":
            raise Wrong(f"cancelled, and {info['status']}")

    # ---- what is taken away ---------------------------------------------------------------------

    def kill(self, daemon: str) -> None:
        """kill -9 of a daemon of Hadoop, by the name in its command line."""
        found = []
        for pid in machine_processes(self._daemon.state):
            line = proc_text(pid, "cmdline")
            if f"\0-Dproc_{daemon}\0" in line or (
                daemon == "namenode" and "\0-Dproc_org.svcd.hadoop.Format" in line
            ):
                found.append(pid)
        if not found:
            raise Wrong(f"no process of {daemon}")
        for pid in found:
            self.say(f"kill -9 {pid}")
            os.kill(pid, signal.SIGKILL)

    async def remove_worker(self) -> None:
        """Somebody deletes the server under the cluster."""
        cluster = await self.tenant.cluster(self.cluster_id)
        (worker,) = (g for g in cluster["node_groups"] if g["name"] == "worker")
        server = worker["instances"][0]["server_id"]
        headers = {"X-Auth-Token": await self.tenant.token()}
        url = f"{self.tenant.cloud['compute']}/servers/{server}"
        reply = await send("DELETE", url, headers=headers)
        if reply.status != 204:
            raise Wrong(f"DELETE server: {reply.status}")
        self.say(f"server {server} deleted")

    def small_disk(self) -> None:
        """The volumes that are made from now on, where machines keep their data, share a disk."""
        folder = self._daemon.state / "cloud" / "volumes"
        folder.mkdir(parents=True)
        options = ["-o", f"size={DISK_MIB}m"]
        subprocess.run(["mount", "-t", "tmpfs", *options, "tmpfs", folder], check=True)
        self._mounted = folder

    def fill_disk(self) -> None:
        """All of it."""
        assert self._mounted is not None
        file = fill(self._mounted)
        self.say(f"{file.stat().st_size >> 20} MiB of {DISK_MIB} filled")

    # ---- the end --------------------------------------------------------------------------------

    async def deleted(self) -> None:
        """The cluster goes, whatever is dead of it; its jobs have ended and nothing is left."""
        at = seconds()
        await self.tenant.done("DELETE", f"/clusters/{self.cluster_id}")
        await self.tenant.until_gone(self.cluster_id, GONE_S)
        self.say(f"cluster gone after {seconds() - at:.1f} s")
        rows = (await self.tenant.done("GET", "/job-executions"))["job_executions"]
        alive = [row["id"] for row in rows if row["info"]["status"] not in ENDED]
        if alive:
            raise Wrong(f"executions that have not ended: {alive}")
        servers, volumes = await self.tenant.servers(), await self.tenant.volumes()
        if servers or volumes:
            raise Wrong(f"left in the cloud: {servers} {volumes}")

        async def swept() -> bool:
            state = self._daemon.state
            return not machine_folders(state) and not machine_processes(state)

        await until(swept, "no process and no folder of a machine", 60.0)
        check_said(self._daemon.said)
