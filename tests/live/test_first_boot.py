"""First-boot scripts on loopback machines, which are reached by SSH, while the daemon is killed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.live.test_main_job import ACTIVE_S, vanilla_prefix
from tests.support.live import WORKER, Tenant, machine_folders
from tests.support.processes import Daemon, DaemonCase, until
from tests.support.sample import SLOW

FIRST = b"""#!/bin/sh
echo "first $SVCD_MACHINE $SVCD_INDEX $SVCD_PROCESSES" >>said
sleep 3
"""
SECOND = b"echo second >>said; echo ready\n"
ROOT = b"sudo -n apt-get install r-base\n"


class FirstBootTests(DaemonCase):
    timeout = 400

    async def walk(self, plugin: str, version: str, **settings: str) -> None:
        daemon = self.daemon(**settings)
        tenant = Tenant(await daemon.start())
        for name, content in (("first", FIRST), ("second", SECOND), ("root", ROOT)):
            await tenant.store(name, content)
        scripts = ("first", "second")
        cluster_id = await tenant.new_cluster("mine", 2, plugin, version, scripts)

        async def begun() -> bool:
            return len(self.said(daemon)) == 2

        await until(begun, "the first script on both workers", ACTIVE_S)
        await daemon.kill()
        tenant = Tenant(await daemon.start())
        await tenant.until_active(cluster_id, ACTIVE_S)
        wanted = [self.line(number) for number in (1, 2)]
        self.assertEqual(self.said(daemon), wanted)

        await tenant.scale(cluster_id, 3)
        await until(partial(self.third, daemon), "the first script on the third", ACTIVE_S)
        server = next(s for s in await tenant.servers() if s["name"] == "mine-worker-003")
        await tenant.act(server["id"], {"os-stop": None})

        async def off() -> bool:
            return "SHUTOFF" in [s["status"] for s in await tenant.servers()]

        await until(off, "the third machine off", ACTIVE_S)
        await tenant.act(server["id"], {"os-start": None})
        await tenant.until_active(cluster_id, ACTIVE_S)
        again = self.line(3).partition("\n")[0] + "\n" + self.line(3)
        self.assertEqual(self.said(daemon), [*wanted, again])
        told = [e for e in await self.events(tenant, cluster_id) if e["outcome"] == "done"]
        done = [e for e in told if e["step"] == "run script second"]
        self.assertEqual([e["text"] for e in done], ["ready"] * 3)

        more = {"name": "more", "count": 1, "flavor_id": "3", "node_processes": WORKER}
        change = {"add_node_groups": [{**more, "init_scripts": ["root"]}]}
        await tenant.done("PUT", f"/clusters/{cluster_id}", change)
        shown = await tenant.until_active(cluster_id, ACTIVE_S)
        self.assertRegex(
            shown["status_description"],
            "SCRIPT_FAILED: run script root on mine-more-001: exit code 1:"
            " sudo: machines of the embedded cloud have no sudo",
        )
        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await tenant.until_gone(cluster_id)

    async def third(self, daemon: Daemon) -> bool:
        return len(self.said(daemon)) == 3

    def line(self, number: int) -> str:
        return f"first mine-worker-00{number} {number} {','.join(WORKER)}\nsecond\n"

    def said(self, daemon: Daemon) -> list[str]:
        """What the scripts have written, on each machine with scripts."""
        machines = daemon.state / "cloud" / "machines"
        files = [Path(machines, name, "home", "said") for name in machine_folders(daemon.state)]
        return sorted(path.read_text() for path in files if path.exists())

    async def events(self, tenant: Tenant, cluster_id: str) -> list[Any]:
        events: list[Any] = (await tenant.done("GET", f"/clusters/{cluster_id}/events"))["events"]
        return events

    async def test_scripts_run_once_though_the_daemon_is_killed(self) -> None:
        await self.walk("fake", "0.1")

    async def test_scripts_on_real_hadoop(self) -> None:
        prefix = str(vanilla_prefix())
        settings = {"plugins__enabled": "vanilla", "embedded__image_prefix": prefix}
        await self.walk("vanilla", "3.5.0", **settings)

    test_scripts_on_real_hadoop.skip = SLOW  # type: ignore[attr-defined]
