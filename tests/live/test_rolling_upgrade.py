"""Three daemons that share a PostgreSQL go to the next release one by one, and back, under load.

The next release is this one with one more file of the schema, in a folder of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from twisted.internet.defer import Deferred

from svcd.runtime.tasks import sleep
from svcd.store import migrations
from tests.live.test_daemons import SharedCase
from tests.support.database.postgres_server import execute
from tests.support.database.releases import ADDS, DROPS
from tests.support.database.releases import NEWEST as _NOW
from tests.support.live import Tenant
from tests.support.processes import ROOT, reactor, send
from tests.support.sample import SLOW

skip = SLOW

_SERVERS = "compute POST /v2.1/servers"
_PAUSE_S = 0.02


class RollingUpgradeTests(SharedCase):
    timeout = 400

    def release(self, *files: str) -> str:
        """A folder with svcd and these files of the schema besides."""
        folder = Path(self.mktemp()).absolute()
        shutil.copytree(ROOT / "svcd", folder / "svcd", ignore=shutil.ignore_patterns("*.pyc"))
        for number, text in enumerate(files, _NOW + 1):
            (folder / f"svcd/store/schema/{number:04d}_next.sql").write_text(text)
        return str(folder)

    async def load(self) -> None:
        """Reads and writes at every daemon that is not being replaced, until `over`."""
        number = 0
        while not self.over:
            for tenant in tuple(self.serving):
                number += 1
                base = f"{tenant.api}/v1.1/{tenant.tenant}"
                source = {"name": f"s{number}", "type": "hdfs", "url": f"/data/{number}"}
                for method, path, body in (
                    ("GET", "/clusters", None), ("POST", "/data-sources", source)
                ):  # fmt: skip
                    if tenant in self.serving:
                        self.asked = tenant
                        reply = await send(method, f"{base}{path}", json=body)
                        self.asked = None
                        self.answers.append((reply.status, reply.body[:300]))
            await sleep(reactor, _PAUSE_S)

    async def replace(self, number: int, release: str) -> None:
        """Stop a daemon and start it again, of another release.

        A request that is sent and not yet accepted would be refused at the stop.
        """
        self.serving.remove(self.tenants[number])
        while self.asked is self.tenants[number]:
            await sleep(reactor, _PAUSE_S)
        daemon = self.daemons[number]
        self.assertEqual((await daemon.stop()).code, 0)
        daemon.environment = {"PYTHONPATH": release}
        await daemon.start()
        self.tenants[number] = Tenant(daemon.endpoints, self.cloud.endpoints)
        await self.until_ready(self.tenants[number])
        self.serving.append(self.tenants[number])

    def schema(self) -> Sequence[object]:
        return execute(self.url, migrations.CURRENT)[0][0]

    async def test_one_by_one_and_back(self) -> None:
        """No request fails, nothing is made twice, and what the next release wrote stays."""
        self.over = False
        self.answers: list[tuple[int, bytes]] = []
        self.asked: Tenant | None = None
        expands = self.release(ADDS)
        self.tenants = await self.shared(3, embedded__boot_s="1.0")
        self.serving = list(self.tenants)
        load = Deferred.fromCoroutine(self.load())
        clusters = [await t.new_cluster(f"c{n}", 1) for n, t in enumerate(self.tenants)]
        await self.tenants[0].until_active(clusters[0])
        job = await self.pig_job(self.tenants[0])
        endless = await self.execute(self.tenants[0], job, clusters[0], svcd__fake__outcome="hang")

        for number in range(3):  # up, with a create and a scale under way each time
            other = self.tenants[(number + 1) % 3]
            clusters.append(await other.new_cluster(f"up{number}", 1))
            await self.replace(number, expands)
            self.assertEqual(self.schema(), _NOW + 1)
            await other.until_active(clusters[number])
            await other.scale(clusters[number], 2)
        first = self.daemons[0].said
        self.assertIn(f"Schema upgraded from {_NOW} to {_NOW + 1}", first)
        execute(self.url, "update clusters set remark = 'of the next release'")
        for number in range(3):  # and back
            other = self.tenants[(number + 1) % 3]
            clusters.append(await other.new_cluster(f"back{number}", 1))
            await self.replace(number, str(ROOT))
        self.assertIn(f"The schema {_NOW + 1} of a newer release is used", self.daemons[0].said)

        last = self.tenants[0]
        for cluster_id in clusters:
            await last.until_active(cluster_id)
        await last.until_execution(endless, "RUNNING", 60.0)
        done = await self.execute(last, job, clusters[1])
        await last.until_execution(done, "SUCCEEDED", 60.0)
        await last.scale(clusters[1], 1)
        await last.until_active(clusters[1])
        self.over = True
        await load
        self.assertGreater(len(self.answers), 200)
        self.assertEqual([each for each in self.answers if each[0] >= 300], [])
        remarks = execute(self.url, "select remark, count(*) from clusters group by 1 order by 1")
        self.assertEqual(remarks, [("nothing", 3), ("of the next release", 6)])
        await self.check_once(last, clusters)
        self.assertEqual((await self.calls())[_SERVERS], 2 * 9 + 3)
        for daemon in self.daemons:
            self.assertNotIn("Traceback", daemon.said)

    async def test_a_release_that_takes_something_away(self) -> None:
        """It waits for the last daemon of the release before, names it, and shuts it out then."""
        both = self.release(ADDS, DROPS)
        self.tenants = await self.shared(2)
        first, second = self.daemons
        self.assertEqual((await second.stop()).code, 0)
        second.environment = {"PYTHONPATH": both}
        ended = await second.spawn().end()
        self.assertEqual(ended.code, 1)
        self.assertIn("daemons of an older release use the database", ended.err)
        self.assertIn(f"process {first.program.pid}", ended.err)
        self.assertEqual(self.schema(), _NOW)
        self.assertEqual((await first.stop()).code, 0)
        await second.start()
        self.assertEqual(self.schema(), _NOW + 2)
        late = await first.spawn().end()
        self.assertEqual(late.code, 1)
        self.assertIn(f"the database has schema {_NOW + 2}, this release knows {_NOW}", late.err)
