"""Idle clusters of real Hadoop end, and clusters in use stay; on loopback machines.

Needs a software tree with Spark (see test_main_job) and ssh; for the part with a notebook also
SVCD_TEST_PYSPARK (see test_spark_connect). About two minutes on two cores.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from typing import Any

from twisted.trial.unittest import SkipTest

from svcd.runtime.tasks import sleep
from tests.live.test_main_job import has_spark, vanilla_prefix
from tests.live.test_spark_connect import new_cluster, opened
from tests.support.live import Tenant, seconds
from tests.support.processes import ROOT, DaemonCase, reactor, run, send, until
from tests.support.yarn import applications

ACTIVE_S = 240.0
IDLE_S = 60
SOON_S = 60.0
LOOK_S = 3.0
"""Time in which svcd sees a changed row, and asks the cluster."""
LIVE = "?states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
FOREIGN = r"""
printf 'import time\nfrom pyspark.sql import SparkSession\n' >sleep.py
printf 'SparkSession.builder.getOrCreate()\ntime.sleep(600)\n' >>sleep.py
. svcd/env.sh
spark-submit --name 'Spark Connect' --conf spark.yarn.submit.waitAppCompletion=false sleep.py
"""
SESSION = ROOT / "tests/support/spark/session.py"


class IdleTests(DaemonCase):
    timeout = 600

    async def test_only_an_unused_cluster_ends(self) -> None:
        """Two clusters with Spark Connect: one idle, one with an application of a user.

        Then the application ends, and a notebook is all that uses the second one.
        """
        prefix = vanilla_prefix()
        if not has_spark() or shutil.which("ssh") is None:
            raise SkipTest("needs ssh, and a software tree with Spark: make image")
        daemon = self.daemon(
            plugins__enabled="vanilla",
            embedded__image_prefix=str(prefix),
            provisioning__endings_poll_s="1",
        )
        tenant = Tenant(await daemon.start())
        idle, used = [
            await new_cluster(tenant, name, idle_delete_s=IDLE_S) for name in ("idle", "used")
        ]
        shown = await tenant.until_active(used, ACTIVE_S)
        manager = shown["info"]["YARN"]["Web UI"]
        state = ("--state-dir", str(daemon.state))
        ssh = await run("svcd", "cluster", "ssh", "used", *state, "--", FOREIGN)
        self.assertEqual(ssh.code, 0, ssh.err)

        told = await until_gone(tenant, idle)
        self.assertIn(f"if it is not used before (idle_delete_s: {IDLE_S // 60} min)", told)
        live = await applications(manager, LIVE)
        self.assertEqual({app["name"] for app in live}, {"Spark Connect"})
        (foreign,) = (app for app in live if not app["unmanagedApplication"])
        self.assertEqual(foreign["state"], "RUNNING")
        await self.is_used(tenant, used)

        path = f"{manager}/ws/v1/cluster/apps/{foreign['id']}/state?user.name=svcd"
        await send("PUT", path, json={"state": "KILLED"})
        await until_idle(tenant, used)
        client = os.environ.get("SVCD_TEST_PYSPARK", "")
        if not client:
            raise SkipTest("all but the notebook passed; it needs SVCD_TEST_PYSPARK")
        tunnel = self.program("svcd", "tunnel", "used", "Spark", *state)
        url = await opened(tunnel, shown["info"]["Spark"]["Connect"].rpartition("=")[2])
        notebook = self.program(client, str(SESSION), url)

        async def counted() -> bool:
            assert notebook.code is None, notebook.err
            return notebook.out == "3\n"

        await until(counted, "the answer of Spark Connect", SOON_S)
        await until(partial(executors_gone, manager), "no executor", SOON_S, 0.5)
        await self.is_used(tenant, used)
        notebook.write(b"\n")
        self.assertEqual((await notebook.end()).code, 0, notebook.err)
        await until_idle(tenant, used)

    async def is_used(self, tenant: Tenant, cluster_id: str) -> None:
        """A new look finds a use."""
        await look(tenant, cluster_id)
        shown = await tenant.cluster(cluster_id)
        self.assertEqual((shown["status"], shown.get("idle_since")), ("Active", None))


async def look(tenant: Tenant, cluster_id: str) -> None:
    """A change of the row makes svcd look at its use at once."""
    age = 86_400 + int(seconds()) % 86_400
    await tenant.done("PUT", f"/clusters/{cluster_id}", {"max_age_s": age})
    await sleep(reactor, LOOK_S)


async def until_idle(tenant: Tenant, cluster_id: str) -> None:
    async def idle() -> Any:
        await look(tenant, cluster_id)
        return (await tenant.cluster(cluster_id)).get("idle_since")

    await until(idle, "an unused cluster", SOON_S)


async def until_gone(tenant: Tenant, cluster_id: str) -> str:
    """The last events of a cluster before it was gone."""
    told = ""

    async def gone() -> bool:
        nonlocal told
        reply = await tenant.ask("GET", f"/clusters/{cluster_id}/events")
        told = told if reply.status == 404 else reply.body.decode()
        return reply.status == 404

    await until(gone, "the end of the idle cluster", IDLE_S + 90.0, 0.5)
    return told


async def executors_gone(manager: str) -> bool:
    return {app["runningContainers"] for app in await applications(manager, LIVE)} == {0}
