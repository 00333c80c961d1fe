"""`svcd orphans` as a command, on the embedded cloud. Real: tests/live/openstack/test_orphans."""

from __future__ import annotations

import sqlite3

from tests.support.live import Tenant
from tests.support.processes import DaemonCase, Ended, run
from tests.support.sample import SLOW

skip = SLOW

_GONE_S = 120.0
_COMMAND_S = 300.0


async def orphans(*arguments: str, **environment: str) -> Ended:
    return await run("svcd", "orphans", *arguments, environment=environment, limit_s=_COMMAND_S)


class EmbeddedTests(DaemonCase):
    timeout = 400

    async def test_database_that_forgot_a_cluster(self) -> None:
        """Its things are found and removed; those of a cluster that lives are not."""
        daemon = self.daemon()
        cloud = dict(await daemon.start())
        tenant = Tenant(cloud)
        lost, kept = await tenant.new_cluster("lost", 1), await tenant.new_cluster("kept", 1)
        for each in (lost, kept):
            await tenant.until_active(each)
        await daemon.stop()
        database = sqlite3.connect(daemon.state / "svcd.sqlite")
        database.execute("delete from clusters where id = ?", (lost,))
        database.commit()
        database.close()
        await daemon.start()
        place = ("--set", f"server.state_dir={daemon.state}")

        young = await orphans("--delete", "--yes", *place)
        self.assertEqual((young.code, young.err), (0, ""))
        self.assertIn("0 to be removed", young.out)
        self.assertIn("left alone: an object of its cluster is younger than 10 min", young.out)
        old = ("--younger", "0")
        listed = await orphans(*old, *place)
        self.assertEqual((listed.code, listed.err), (0, ""))
        self.assertIn("5 found, 5 to be removed, 0 left alone\nnothing was removed", listed.out)
        self.assertEqual(len(await Tenant(daemon.endpoints).servers()), 4)

        removed = await orphans("--delete", "--yes", *old, *place)
        self.assertEqual((removed.code, removed.err), (0, ""))
        self.assertEqual(removed.out.count("\nremoved "), 5)
        tenant = Tenant(daemon.endpoints)
        names = sorted(s["name"] for s in await tenant.servers())
        self.assertEqual(names, ["kept-master-001", "kept-worker-001"])
        self.assertEqual((await tenant.cluster(kept))["status"], "Active")

        await daemon.stop()
        silent = await orphans("--delete", "--yes", *old, *place)
        self.assertEqual(silent.code, 5, silent)
