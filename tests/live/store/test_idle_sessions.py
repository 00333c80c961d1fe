"""A PostgreSQL server that ends idle sessions (idle_session_timeout)."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as _reactor  # noqa: TID251 - sockets
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest, TestCase

from svcd.runtime.clock import steady_seconds
from svcd.runtime.tasks import sleep
from svcd.settings import Database
from svcd.store.lease.keeper import Me
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import MemorySealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import at
from tests.support.database.postgres_server import drop_database, execute, new_database

reactor: Any = _reactor

_IDLE_S = 0.3
_KNOWN = "select current_setting('idle_session_timeout', true)"
_SESSIONS = """
select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
 order by pid
"""


class IdleSessionTests(TestCase):
    """The sessions of a daemon live on, whatever the server's default is."""

    timeout = 60

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        if execute(self.url, _KNOWN)[0][0] is None:
            raise SkipTest("PostgreSQL ends idle sessions since version 14")
        execute(self.url, f"alter database {name} set idle_session_timeout = '{_IDLE_S}s'")

    async def keep(self, me: Me | None) -> None:
        """Open a store, and compare its sessions before and after the time-out."""
        taken: list[str] = []
        database = PostgresDatabase(reactor, Database(url=self.url), taken.append, me=me)
        await database.open()
        store = SqlStore(database, MemorySealer())
        self.addCleanup(lambda: Deferred.fromCoroutine(store.close()))
        await store.open(at(0))
        before = execute(self.url, _SESSIONS)
        self.assertGreaterEqual(len(before), 2)
        await sleep(reactor, _IDLE_S * 3)
        self.assertEqual(execute(self.url, _SESSIONS), before)
        self.assertEqual((database.figures().lost, taken), (0, []))

    async def test_a_daemon_alone_keeps_its_lock(self) -> None:
        """And the session of its transactions."""
        await self.keep(None)

    async def test_a_daemon_that_shares_keeps_its_lease(self) -> None:
        """It renews them less often than the time-out."""
        await self.keep(Me("one", "a test", steady_seconds))
