"""What a real Oozie, its YARN and its HDFS say of all executions that were ever asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.kills.things import Wrong
from tests.support.processes import send, until
from tests.support.yarn import applications

_ENDED = {"FINISHED", "FAILED", "KILLED"}


async def check_engine(cluster: Any, executions: Mapping[str, str]) -> str:
    """At the engine, in YARN and in HDFS: each execution once, and no folder of one. The counts.

    executions: the id of each that was ever made -> how it must have ended. Raises Wrong.
    """
    web = origin(cluster["info"]["JobFlow"]["Oozie"])
    found = await get_json(f"{web}/oozie/v1/jobs?jobtype=wf&len=2000")
    names: dict[str, str] = {}
    for job in found["workflows"]:
        shown = await get_json(f"{web}/oozie/v1/job/{job['id']}?show=info")
        names[job["id"]] = str(shown.get("externalId"))
        wanted = executions.get(names[job["id"]])
        if wanted != shown["status"]:
            raise Wrong(f"{job['id']} of {names[job['id']]}: {shown['status']}, not {wanted}")
    none("workflows of one execution", [n for n, c in Counter(names.values()).items() if c > 1])
    lacking = {e for e, end in executions.items() if end == "SUCCEEDED"}
    none("executions without a workflow", sorted(lacking - set(names.values())))

    manager = origin(cluster["info"]["YARN"]["Web UI"])
    apps = await applications(manager)
    kinds = Counter(app["name"] for app in apps)
    none("applications of one action", [n for n, count in kinds.items() if count > 1])
    none("applications that run", [a["name"] for a in apps if a["state"] not in _ENDED])

    head = origin(cluster["info"]["HDFS"]["Web UI"])
    left: list[str] = []

    async def tidy() -> bool:
        left[:] = await _folders(head)
        return not left

    try:
        await until(tidy, "no folder of an execution in HDFS", 90.0, 1.0)
    except AssertionError as error:
        raise Wrong(f"{error}: {left}") from None
    return f"{len(executions)} executions, {len(names)} workflows, {len(kinds)} applications"


def none(what: str, found: object) -> None:
    """Raises Wrong if there is any."""
    if found:
        raise Wrong(f"{what}: {found}")


def origin(url: str) -> str:
    return f"http://{urlsplit(url).netloc}"


async def get_json(url: str) -> Any:
    reply = await send("GET", url)
    if reply.status != 200:
        raise Wrong(f"GET {url}: {reply.status} {reply.body.decode(errors='replace')[:500]}")
    return reply.json


async def _folders(head: str) -> list[str]:
    found = []
    for user in await _listed(head, "/user"):
        folder = f"/user/{user}/svcd"
        found += [f"{folder}/{name}" for name in await _listed(head, folder)]
    return found


async def _listed(head: str, folder: str) -> list[str]:
    """Names in a folder of HDFS; none when there is no such folder."""
    reply = await send("GET", f"{head}/webhdfs/v1{folder}?op=LISTSTATUS&user.name=svcd")
    if reply.status == 404:
        return []
    if reply.status != 200:
        raise Wrong(f"LISTSTATUS {folder}: {reply.status} {reply.body.decode(errors='replace')}")
    return [e["pathSuffix"] for e in reply.json["FileStatuses"]["FileStatus"]]
