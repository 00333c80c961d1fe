"""Spark Connect in earnest: a notebook's queries, through `svcd tunnel`, on a loopback cluster.

Needs a software tree with Spark (see test_main_job), ssh, and SVCD_TEST_PYSPARK: a Python with
pyspark-client. About a minute and a half on two cores.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.live.test_main_job import vanilla_prefix
from tests.support.live import MASTER, WORKER, Tenant
from tests.support.processes import (
    ROOT,
    DaemonCase,
    Program,
    machine_processes,
    proc_text,
    send,
    until,
)  # fmt: skip
from tests.support.yarn import applications

ACTIVE_S = 300.0
NOTEBOOK_S = 150.0
SOON_S = 60.0
RUNNING = "?states=RUNNING"
NOTEBOOK = ROOT / "tests/support/spark/notebook.py"


def python() -> str:
    """The Python of notebooks. The test is skipped without one, or without Spark."""
    found = os.environ.get("SVCD_TEST_PYSPARK", "")
    if not Path(vanilla_prefix(), "spark/python/svcd").is_dir():
        raise SkipTest("the software tree has no Spark Connect; build it with: make image")
    if not found:
        raise SkipTest("set SVCD_TEST_PYSPARK to a Python with pyspark-client 4.2.0")
    if shutil.which("ssh") is None:
        raise SkipTest("ssh is not installed (apt-get install openssh-client)")
    return found


class SparkConnectTests(DaemonCase):
    timeout = 600

    async def test_notebook(self) -> None:
        """It needs the token; the cluster gives executors and takes them back; a dead server is
        a finding."""
        client = python()
        daemon = self.daemon(
            plugins__enabled="vanilla",
            embedded__image_prefix=str(vanilla_prefix()),
            provisioning__health_poll_s="2",
        )
        tenant = Tenant(await daemon.start())
        cluster_id = await new_cluster(tenant)
        shown = await tenant.until_active(cluster_id, ACTIVE_S)
        link = shown["info"]["Spark"]["Connect"]
        self.assertRegex(link, r"\Asc://127\.[0-9.]+:15002/;token=[0-9a-f]{40}\Z")
        token = link.rpartition("=")[2]
        manager = shown["info"]["YARN"]["Web UI"]

        tunnel = self.program("svcd", "tunnel", "mine", "Spark", "--state-dir", str(daemon.state))
        url = await opened(tunnel, token)
        program = Program([client, str(NOTEBOOK), url])
        ended = await program.end(NOTEBOOK_S)
        self.assertEqual(ended.code, 0, ended.err)
        found = json.loads(ended.out)
        self.assertIn("No authentication token provided", found["without"])
        self.assertIn("Invalid authentication token", found["wrong"])
        self.assertEqual(found["counts"], [["one", 2], ["two", 1]])
        self.assertEqual(found["doubled"], [0, 2, 4, 6])
        self.assertIn("No module named 'not_on_the_workers'", found["missing"])
        self.assertIn("/spark/python/packages on each worker", found["missing"])

        async def idle() -> bool:
            apps = await applications(manager, RUNNING)
            return [app["runningContainers"] for app in apps] == [0]

        await until(idle, "no executor", SOON_S, 0.5)
        (server,) = servers(daemon.state)
        print(f"\nfirst query {found['first_s']} s, first Python function {found['function_s']} s,"
              f" idle server {resident_mib(server)} MiB", end=" ")  # fmt: skip
        self.assertNotIn(token, Path(f"/proc/{server}/cmdline").read_text())
        for folder in daemon.state.glob("cloud/machines/*/home/svcd"):
            texts = [p for p in folder.rglob("*") if p.is_file() and token in read(p)]
            self.assertEqual({oct(p.stat().st_mode & 0o777) for p in texts} - {"0o600"}, set())
        self.assertNotIn(token, daemon.said)

        (application,) = await applications(manager, RUNNING)
        path = f"{manager}/ws/v1/cluster/apps/{application['id']}/state?user.name=svcd"
        await send("PUT", path, json={"state": "KILLED"})

        async def told() -> Any:
            shown = await tenant.cluster(cluster_id)
            return "sparkconnect is not running" in shown["status_description"]

        await until(told, "the finding of the health check", SOON_S, 0.5)

        tunnel.signal(signal.SIGTERM)  # takes its ssh with it
        self.assertEqual((await tunnel.end(SOON_S)).code, 0)


async def opened(tunnel: Program, token: str) -> str:
    """The URL that `svcd tunnel` prints."""

    async def printed() -> Any:
        assert tunnel.code is None, tunnel.out + tunnel.err
        return re.search(rf"sc://localhost:\d+/;token={token}", tunnel.out)

    return str((await until(printed, "the URL of the tunnel", SOON_S))[0])


async def new_cluster(tenant: Tenant, name: str = "mine", **more: object) -> str:
    """The id of a master and a worker with Spark Connect, which returns executors soon."""
    image = tenant.image("vanilla-3.5.0")
    await tenant.done("POST", f"/images/{image}", {"username": "svcd"})
    await tenant.done("POST", f"/images/{image}/tag", {"tags": ["vanilla", "3.5.0"]})
    processes = [*MASTER[:2], "sparkconnect"]
    body = {
        **more,
        "name": name,
        "plugin_name": "vanilla",
        "engine_version": "3.5.0",
        "default_image_id": image,
        "user_keypair_id": "demo",
        "cluster_configs": {"Spark": {"spark.dynamicAllocation.executorIdleTimeout": "5s"}},
        "node_groups": [
            {"name": "master", "count": 1, "flavor_id": "3", "node_processes": processes},
            {"name": "worker", "count": 1, "flavor_id": "3", "node_processes": WORKER},
        ],
    }
    made = await tenant.done("POST", "/clusters", body)
    return str(made["cluster"]["id"])


def servers(state: Path) -> list[int]:
    """The processes of Spark Connect below a state folder."""
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    return [p for p in machine_processes(state) if name in proc_text(p, "cmdline")]


def resident_mib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", proc_text(pid, "status"))
    assert found is not None
    return int(found[1]) // 1024


def read(path: Path) -> str:
    """The text; empty when its process or file has gone meanwhile."""
    try:
        return path.read_text(encoding="latin-1")
    except (FileNotFoundError, ProcessLookupError):
        return ""
