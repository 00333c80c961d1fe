"""A daemon process whose machine's clock is set while it works, by libfaketime: real ones stay."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, send, until
from tests.support.sample import SLOW

skip = SLOW

LIBRARIES = sorted(Path("/usr/lib").glob("**/faketime/libfaketime.so.1"))
SOON_S = 180.0
JUMPS = ("+3600", "-3600", "+315576000", "-315576000", "+0")
"""Of what the machine's clock shows, against real time."""


class JumpTests(DaemonCase):
    timeout = 600

    def setUp(self) -> None:
        if not LIBRARIES:
            raise SkipTest("no libfaketime: install the package `libfaketime`")
        self.offset = Path(tempfile.mkdtemp(prefix="svcd-clock-")) / "offset"
        self.set_clock("+0")
        super().setUp()

    def set_clock(self, offset: str) -> None:
        """At once, also for a process that runs."""
        new = self.offset.with_suffix(".new")
        new.write_text(f"{offset}\n")
        new.rename(self.offset)

    async def daemon_with_a_clock(self, **settings: str) -> Daemon:
        daemon: Daemon = self.daemon(**settings)
        daemon.environment = {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self.offset),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        await daemon.start()
        return daemon

    async def jump(self, daemon: Daemon, tenant: Tenant) -> None:
        """Through all offsets, and others are answered at each."""
        for offset in JUMPS:
            before = daemon.said.count("The clock of this machine was set")
            self.set_clock(offset)

            async def noticed(before: int = before) -> bool:
                answer = await send("GET", f"{tenant.api}/healthz")
                self.assertEqual(answer.status, 200)
                return daemon.said.count("The clock of this machine was set") > before

            await until(noticed, f"the clock at {offset} is noticed", SOON_S)

    async def test_clock_that_jumps_while_everything_is_under_way(self) -> None:
        """A create, a job, a scale and a delete go on through jumps of an hour and of ten years."""
        daemon = await self.daemon_with_a_clock(embedded__boot_s="1")
        tenant = Tenant(daemon.endpoints)
        cluster_id = await tenant.new_cluster("mine", 1)
        await self.jump(daemon, tenant)
        shown = await tenant.until_active(cluster_id, SOON_S)
        self.assertEqual(len(await tenant.servers()), 2)
        self.assertLessEqual(shown["created_at"], shown["updated_at"])

        job_id = await tenant.new_pig_job("count", b"-- does nothing\n")
        source = await tenant.new_source("in", "data.svcd", "in")
        target = await tenant.new_source("out", "data.svcd", "out")
        configs = {"svcd.fake.run_s": "3"}
        execution_id = await tenant.execute(cluster_id, job_id, source, target, configs)
        await self.jump(daemon, tenant)
        ended: Any = await tenant.until_execution(execution_id, "SUCCEEDED", SOON_S)
        self.assertLessEqual(ended["start_time"], ended["end_time"])

        await tenant.scale(cluster_id, 2)
        await self.jump(daemon, tenant)
        await tenant.until_active(cluster_id, SOON_S)
        self.assertEqual(len(await tenant.servers()), 3)

        await tenant.done("DELETE", f"/clusters/{cluster_id}")
        await self.jump(daemon, tenant)
        await tenant.until_gone(cluster_id, SOON_S)
        self.assertEqual(await tenant.servers(), [])
        for each in ("Unhandled", "Traceback", "incident"):
            self.assertNotIn(each, daemon.said)
        ended_as = await daemon.stop()
        self.assertEqual(ended_as.code, 0)
