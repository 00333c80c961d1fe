"""The kept dumps of every schema, upgraded on PostgreSQL; upgrades that are hindered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import psycopg2
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from svcd.ports.store import Tx
from svcd.runtime.tasks import sleep
from svcd.settings import Database
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.offline.postgres import PostgresSession
from svcd.store.offline.session import Session
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import FernetSealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import at
from tests.live.store.test_postgres import drive, own_reactor
from tests.support.database.dump import load_postgresql, postgresql_lines, seal_key
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.database.upgraded import UpgradeContract, add_tests, cut
from tests.support.processes import reactor, until

_KILL = """
select count(pg_terminate_backend(pid)) from pg_stat_activity
 where query like '%pg_sleep%' and pid <> pg_backend_pid() and state = 'active'
   and datname = current_database()
"""

T = TypeVar("T")


class PostgresUpgradeTests(SynchronousTestCase, UpgradeContract):
    """A database of its own for each."""

    def opened(self, number: int, also: str = "") -> int:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        folder = Path(self.mktemp())
        folder.mkdir()
        self.sealer = FernetSealer(seal_key(folder))
        load_postgresql(number, self.url)
        if also:
            execute(self.url, also)
        database = PostgresDatabase(own_reactor(), Database(url=self.url), self.fail)
        self.store = SqlStore(database, self.sealer)
        self.addCleanup(lambda: drive(self.store.close()))

        async def opened() -> int:
            await database.open()
            return await self.store.open(at(0))

        return drive(opened())

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return drive(self.store.tx(work))

    def checked(self) -> tuple[Session, FernetSealer]:
        return PostgresSession(Database(url=self.url), "check"), self.sealer


add_tests(PostgresUpgradeTests)


class HinderedTests(TestCase):
    """One more file of the schema, on a database that others use."""

    timeout = 60

    async def opened(self, text: str) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.database = PostgresDatabase(reactor, Database(url=self.url), self.fail)
        await self.database.open()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.database.close()))
        await migrations.migrate(self.database, at(0))
        self.before = migrations.steps()
        self.next = (self.before[-1][0] + 1, text)
        self.patch(migrations, "steps", lambda: (*self.before, self.next))

    def schema(self) -> int:
        return int(execute(self.url, migrations.CURRENT)[0][0])

    async def test_it_gives_way_to_others(self) -> None:
        """A backup reads for seconds: requests wait a second at most, and the upgrade for it."""
        await self.opened("alter table clusters add column more text;")
        backup = psycopg2.connect(self.url)
        self.addCleanup(backup.close)
        backup.cursor().execute("select count(*) from clusters")
        upgrade = Deferred.fromCoroutine(migrations.migrate(self.database, at(0)))
        await sleep(reactor, 0.3)  # the upgrade waits for the table
        for _ in range(3):
            began = reactor.seconds()
            await self.database.read(lambda sql: sql.one("select count(*) from clusters"))
            self.assertLess(reactor.seconds() - began, 5.0)
        self.assertFalse(upgrade.called)
        self.assertEqual(self.schema(), self.before[-1][0])
        backup.rollback()
        self.assertEqual(await upgrade, self.next[0])
        execute(self.url, "select more from clusters")

    async def test_a_lost_connection_leaves_the_schema_before(self) -> None:
        """The next start makes the upgrade from its beginning."""
        await self.opened("create table one (id integer); select pg_sleep(30);")
        upgrade = Deferred.fromCoroutine(migrations.migrate(self.database, at(0)))

        async def killed() -> bool:
            return bool(execute(self.url, _KILL)[0][0])

        await until(killed, "the upgrade is under way", 20.0)
        try:
            await upgrade
        except SchemaError as error:
            self.assertIn("the schema cannot be created", str(error))
        else:
            self.fail("the upgrade has not failed")
        self.assertEqual(self.schema(), self.before[-1][0])
        self.next = (self.next[0], "create table one (id integer);")
        self.assertEqual(await migrations.migrate(self.database, at(0)), self.next[0])


class InterruptedTests(SynchronousTestCase):
    """One statement after the other."""

    def upgrade(self, url: str) -> int:
        database = PostgresDatabase(own_reactor(), Database(url=url), self.fail)

        async def opened() -> int:
            await database.open()
            try:
                return await migrations.migrate(database, at(0))
            finally:
                await database.close()

        return drive(opened())

    def test_interrupted_at_any_statement(self) -> None:
        """The former release finds all as it was, and the next start makes the upgrade."""
        real = migrations.steps()
        for number, _ in real[1:]:
            url, name = new_database()
            self.addCleanup(drop_database, name)
            load_postgresql(number - 1, url)
            before = list(postgresql_lines(url))
            for text in cut(number):
                steps = (*real[: number - 1], (number, text), *real[number:])
                patch = self.patch(migrations, "steps", lambda steps=steps: steps)
                try:
                    with self.assertRaises(SchemaError):
                        self.upgrade(url)
                finally:
                    patch.restore()
            self.assertEqual(list(postgresql_lines(url)), before, number)
            self.assertEqual(self.upgrade(url), real[-1][0])
