"""The whole daemon on PostgreSQL: its interface, a life, and a database that goes away or is taken.

The store alone is in tests/live/store/test_postgres*.py.
"""

from __future__ import annotations

from typing import Any

from svcd.store.lease.lock import LOCK_KEY
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import run
from tests.conformance.targets import OverHttp
from tests.live import test_daemon
from tests.support.database.postgres_server import (
    drop_database,
    execute,
    new_database,
    own_server,
    steal,
)
from tests.support.live import Tenant
from tests.support.processes import Daemon, DaemonCase, reactor, send, until
from tests.support.sample import SLOW


class _PostgresCase(DaemonCase):
    timeout = 300

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)

    def daemon(self, kind: str = "svcd", **settings: str) -> Daemon:
        return super().daemon(kind, **{"database__url": self.url, **settings})


class PostgresLifeTests(_PostgresCase, test_daemon.LifeTests):
    """What holds on SQLite holds here: kills, restarts, a cluster from first to last."""


class PostgresConformanceTests(_PostgresCase):
    async def test_every_chapter(self) -> None:
        """The interface does not depend on the database."""
        api = await self.daemon().start()
        image = next(i for i in api["images"] if i["name"] == "plain")
        values = {
            "tenant": api["tenant"],
            "image_id": image["id"],
            "flavor_id": "2",
            "keypair": "demo",
            "plugin": "fake",
            "version": "0.1",
            "username": image["username"],
        }
        features = frozenset({"commands", "build", "engine"})
        faults: list[str] = []
        for number, (name, rows) in enumerate(CHAPTERS.items()):
            target = OverHttp(reactor, api["api"], {**values, "run": f"r{number}"}, features, {})
            faults += [f"{name}: {fault}" for fault in await run(rows, target)]
        if faults:
            self.fail("\n".join(["", *faults]))


class PostgresTroubleTests(_PostgresCase):
    skip = SLOW

    async def ready(self, api: dict[str, Any]) -> tuple[int, Any]:
        answer = await send("GET", f"{api['api']}/readyz")
        return answer.status, answer.json

    async def test_second_daemon_ends_with_1(self) -> None:
        """And says who has the database; the first one goes on."""
        tenant = Tenant(await self.daemon().start())
        ended = await self.daemon().spawn().end()
        self.assertEqual(ended.code, 1)
        self.assertIn("another svcd has this database", ended.err)
        await tenant.done("GET", "/clusters")

    async def test_daemon_whose_database_was_taken_ends_with_1(self) -> None:
        """It must not work on rows that are another's now."""
        daemon = self.daemon()
        await daemon.start()
        self.addCleanup(steal(self.url, LOCK_KEY).close)
        ended = await daemon.program.end(30.0)
        self.assertEqual(ended.code, 1)
        self.assertIn("another svcd has this database", ended.err)

    async def test_server_that_goes_away(self) -> None:
        """503 and readyz says why; all is well again soon after it is back."""
        if not self.url.startswith("postgresql://svcd@"):
            self.skipTest("the server of PGHOST is not ours to stop")
        daemon = self.daemon()
        api = await daemon.start()
        tenant = Tenant(api)
        cluster_id = await tenant.new_cluster("mine", 1)
        own_server().stop()
        try:
            answer = await tenant.ask("GET", "/clusters")
            status, said = await self.ready(api)
        finally:
            own_server().start()
        self.assertEqual((answer.status, status), (503, 503))
        self.assertIn("retry-after", answer.headers)
        self.assertIn("database", str(said))

        async def ready() -> bool:
            return (await self.ready(api))[0] == 200

        await until(ready, "ready again", 10.0)
        await tenant.until_active(cluster_id)
        self.assertEqual((await daemon.stop()).code, 0)
        self.assertNotIn("Unhandled", daemon.said)
        self.assertNotIn("Traceback", daemon.said)

    async def test_kill_and_start_again_at_once(self) -> None:
        """The lock of a killed daemon does not keep the next one out."""
        daemon = self.daemon()
        await daemon.start()
        await daemon.kill()
        await daemon.start()
        self.assertEqual(execute(self.url, "select count(*) from internals"), [(0,)])
        self.assertEqual((await daemon.stop()).code, 0)
