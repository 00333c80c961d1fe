"""`python -m tests.kills.dead`: a part of the cluster dies in the middle of a running job.

For each of Oozie, ResourceManager, NameNode, DataNode, NodeManager and a whole worker: a new
cluster, a job that runs, kill -9, and what the API and `svcd why` say then, to be read by a person.
The job is cancelled and the cluster deleted at the end, which must succeed whatever is dead.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from svcd.embedded.processes import root_of
from svcd.tasks import sleep
from tests.kills.cycles import LONG_SLEEP, Cycles
from tests.kills.service import GONE_S, Service, Wrong
from tests.live import seconds
from tests.processes import machine_processes, reactor, run, send, until

PARTS = ("oozie", "resourcemanager", "namenode", "datanode", "nodemanager", "worker")
WATCHED_S = 75.0


async def drive(parts: Sequence[str], state: Path, image: Path) -> None:
    """All parts, one after the other."""
    service = Service(state, image, random.Random(0))
    cycles = Cycles(service, image)
    try:
        await service.begin()
        for number, part in enumerate(parts):
            print(f"\n==== {part}", flush=True)
            if number == 0:
                await cycles.prepare()
            else:
                cycles.cluster_id = await service.tenant.new_cluster(part, 1, "vanilla", "3.5.0")
                await cycles.active(cycles.cluster_id)
            await one(service, cycles, part)
    finally:
        await service.daemon.remove()
        await service.cloud.remove()


async def one(service: Service, cycles: Cycles, part: str) -> None:
    """One death."""
    execution = await cycles.execute(LONG_SLEEP, None)

    async def in_yarn() -> bool:
        shown = await service.tenant.done("GET", f"/job-executions/{execution}")
        ids = [str(a.get("externalId")) for a in shown["info"].get("actions", [])]
        return any(i.startswith(("application_", "job_")) for i in ids)

    await until(in_yarn, "the job in YARN", 120.0)
    await sleep(reactor, 5.0)
    if part == "worker":
        await remove_worker(service, cycles.cluster_id)
    else:
        for pid in processes(service.state, part):
            print(f"kill -9 {pid}")
            os.kill(pid, signal.SIGKILL)
    began = seconds()
    told = ""
    while seconds() - began < WATCHED_S:
        shown = await service.tenant.done("GET", f"/job-executions/{execution}")
        cluster = await service.tenant.cluster(cycles.cluster_id)
        info = {k: shown["info"].get(k) for k in ("status", "failure", "waiting")}
        now = f"{info} | {cluster['status']} {cluster['status_description']}"
        if now != told:
            told = now
            print(f"+{seconds() - began:.1f} s {now}", flush=True)
        await sleep(reactor, 1.0)
    await yarn(service, cycles.cluster_id)
    await why(service, execution)
    await why(service, cycles.cluster_id)
    for path in (f"/job-executions/{execution}/cancel", f"/job-executions/{execution}/log"):
        at = seconds()
        reply = await service.tenant.ask("GET", path)
        print(f"GET {path[-7:]}: {reply.status} in {seconds() - at:.1f} s {reply.body[-700:]!r}")
    other = await cycles.execute(LONG_SLEEP, None)
    await sleep(reactor, 15.0)
    shown = await service.tenant.done("GET", f"/job-executions/{other}")
    print("a new one:", {k: shown["info"].get(k) for k in ("status", "failure", "waiting")})
    await why(service, other)
    at = seconds()
    await service.tenant.done("DELETE", f"/clusters/{cycles.cluster_id}")
    await service.tenant.until_gone(cycles.cluster_id, GONE_S)
    for each in (execution, other):
        shown = await service.tenant.done("GET", f"/job-executions/{each}")
        info = {k: shown["info"].get(k) for k in ("status", "failure", "waiting")}
        print(f"cluster gone after {seconds() - at:.1f} s: {info}", flush=True)
    await service.check_cloud()


async def yarn(service: Service, cluster_id: str) -> None:
    """The resource manager's own word, to compare with."""
    links = (await service.tenant.cluster(cluster_id))["info"]["YARN"]
    try:
        reply = await send("GET", f"{links['Web UI']}/ws/v1/cluster/apps", limit_s=10.0)
    except Exception as error:
        print(f"the resource manager does not answer: {error}")
        return
    for app in ((reply.json or {}).get("apps") or {"app": []})["app"]:
        print(app["id"], app["state"], app["finalStatus"], repr(app["diagnostics"]))


async def why(service: Service, what: str) -> None:
    """`svcd why`, printed."""
    token = await service.tenant.token()
    api, tenant = service.tenant.api, service.tenant.tenant
    flags = ("--api", api, "--tenant", tenant)
    ended = await run("svcd", "why", what, *flags, environment={"OS_TOKEN": token})
    print(f"$ svcd why -> {ended.code}\n{ended.out}{ended.err}", flush=True)


async def remove_worker(service: Service, cluster_id: str) -> None:
    """Somebody deletes the server under the cluster."""
    cluster: Any = await service.tenant.cluster(cluster_id)
    (worker,) = (g for g in cluster["node_groups"] if g["name"] == "worker")
    headers = {"X-Auth-Token": await service.tenant.token()}
    server = worker["instances"][0]["server_id"]
    reply = await send("DELETE", f"{service.told['compute']}/servers/{server}", headers=headers)
    print(f"DELETE server {server}: {reply.status}")


def processes(state: Path, part: str) -> list[int]:
    """Of the daemon of Hadoop with that name."""
    found = []
    for pid in machine_processes(state):
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
        if f"\0-Dproc_{part}\0".encode() in line or (
            part == "namenode" and b"\0-Dproc_org.svcd.hadoop.Format" in line
        ):
            found.append(pid)
            assert root_of(Path(f"/proc/{pid}/environ").read_bytes())
    if not found:
        raise Wrong(f"no process of {part}")
    return found


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kills.dead", description=__doc__)
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--image", type=Path, default=Path("/opt/svcd/vanilla"))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="svcd-dead-") as state:
        work = drive
        react(
            lambda _reactor: Deferred.fromCoroutine(
                work(given.parts, Path(state), given.image.absolute())
            )
        )


if __name__ == "__main__":
    main(sys.argv[1:])
