"""`svcd backup` beside a daemon that writes, and daemons on what was restored from it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, gatherResults

from tests.support.database.postgres_server import drop_database, new_database
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, run, send, until
from tests.support.sample import SLOW

skip = SLOW

_LISTS = {
    "cluster-templates": "cluster_templates", "clusters": "clusters", "jobs": "jobs",
    "data-sources": "data_sources", "job-binary-internals": "binaries", "job-binaries": "binaries",
    "job-executions": "job_executions",
}  # fmt: skip
_SIZE = 700_000  # three pieces
_WRITES = 3


def content(name: str) -> bytes:
    """What is uploaded under a name."""
    return (name.encode() + b"\x00\xff") * (_SIZE // (len(name) + 2))


class BackupOfALivingDaemonTests(DaemonCase):
    """The rows of one moment, from either database into both."""

    timeout = 300

    async def test_from_a_file(self) -> None:
        """SQLite's snapshot; daemons on a file and on a server show the same."""
        shown = await self.check_backup(self.daemon(), ["", self.new_url()])
        self.assertEqual(shown[0], shown[1])

    async def test_from_a_server(self) -> None:
        """PostgreSQL's, from which a file is made."""
        await self.check_backup(self.daemon(database__url=self.new_url()), [""])

    def new_url(self) -> str:
        url, name = new_database()
        self.addCleanup(drop_database, name)
        return url

    async def write(self, writer: int) -> None:
        """Upload binaries and refer to them, one after the other, until `writing` ends."""
        number = 0
        while self.writing:
            name = f"w{writer}-{number}.jar"
            number += 1
            self.begun.append(name)
            path = f"{self.base}/job-binary-internals/{name}"
            stored = (await send("PUT", path, data=content(name))).json["job_binary_internal"]
            url = f"internaldb://{stored['id']}"
            await self.tenant.done("POST", "/job-binaries", {"name": name, "url": url})
            self.acknowledged.append(name)

    async def until_acknowledged(self, more: int) -> None:
        count = len(self.acknowledged) + more

        async def enough() -> bool:
            return len(self.acknowledged) >= count

        await until(enough, f"{count} writes", 60)

    async def check_backup(self, daemon: Daemon, targets: Sequence[str]) -> list[Any]:
        """What daemons show on what was restored into the databases of these URLs."""
        api = await daemon.start()
        tenant = self.tenant = Tenant(api)
        self.base = f"{api['api']}/v1.1/{api['tenant']}"
        cluster_id = await tenant.new_cluster("mine", 1)
        await tenant.until_active(cluster_id)
        job = await tenant.new_jar_job("count", content("count.jar"))
        ends = [await tenant.new_source(n, "box", n) for n in ("in", "out")]
        execution = await tenant.execute(cluster_id, job, ends[0], ends[1], {})
        await tenant.until_execution(execution, "SUCCEEDED", 60)

        self.writing, self.begun, self.acknowledged = True, [], []
        work = gatherResults([Deferred.fromCoroutine(self.write(n)) for n in range(3)])
        await self.until_acknowledged(_WRITES)
        before = list(self.acknowledged)
        file = str(daemon.state.parent / f"{daemon.state.name}.backup")
        ended = await self.svcd("backup", file, daemon=daemon)
        self.assertIn("svcd read the file again and it is complete", ended)
        after = list(self.begun)
        await self.until_acknowledged(_WRITES)
        self.assertIn("no faults", await self.svcd("db", "check", daemon=daemon))
        self.writing = False
        await work
        self.assertEqual((await daemon.stop()).code, 0)

        shown = [await self.restored(daemon, file, url) for url in targets]
        kept = {each["name"] for each in shown[0]["job-binaries"]}
        self.assertEqual([name for name in before if name not in kept], [])
        self.assertEqual(kept - {*after, "count.jar"}, set())
        self.assertEqual([c["status"] for c in shown[0]["clusters"]], ["Active"])
        (done,) = shown[0]["job-executions"]
        self.assertEqual(done["info"]["status"], "SUCCEEDED")
        return shown

    async def svcd(self, *arguments: str, daemon: Daemon) -> str:
        """What a command prints, with the settings of the daemon."""
        command = ["svcd", *arguments]
        for name in ("server.state_dir", "database.url"):
            if name in daemon.settings:
                command += ["--set", f"{name}={daemon.settings[name]}"]
        ended = await run(*command, limit_s=120)
        self.assertEqual((ended.code, ended.err), (0, ""), ended.out)
        return ended.out

    async def restored(self, source: Daemon, file: str, url: str) -> dict[str, Any]:
        """All lists of a daemon on what was restored; every binary's bytes are compared."""
        daemon = self.daemon(**({"database__url": url} if url else {}))
        daemon.state.mkdir(mode=0o700)
        shutil.copy2(source.state / "seal.key", daemon.state / "seal.key")
        await self.svcd("restore", file, daemon=daemon)
        await self.svcd("db", "check", daemon=daemon)
        tenant = Tenant(await daemon.start())
        shown = {path: (await tenant.done("GET", f"/{path}"))[key] for path, key in _LISTS.items()}
        for each in shown["job-binaries"]:
            body = (await tenant.ask("GET", f"/job-binaries/{each['id']}/data")).body
            self.assertEqual(body, content(each["name"]))
        self.assertEqual((await daemon.stop()).code, 0)
        return shown
