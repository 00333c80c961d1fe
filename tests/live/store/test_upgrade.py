"""Upgrades to a made-up next schema on PostgreSQL, and upgrades that are hindered."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import psycopg2
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from svcd.runtime.tasks import sleep
from svcd.settings import Database
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.lease.keeper import Me
from svcd.store.offline.check import Counted, check
from svcd.store.offline.content import sums
from svcd.store.offline.postgres import PostgresSession
from svcd.store.offline.shape import shape
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import FernetSealer
from tests.contract.store.rows import at
from tests.live.store.test_postgres import drive, own_reactor
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.database.releases import CHANGES, DEVELOPMENT, NEWEST, become, cut
from tests.support.processes import reactor
from tests.unit.cli.databases import lived_in, svcd

_NOISE = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")


def content(url: str) -> list[str]:
    """The statements that make a database again."""
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [line for line in said.split("\n") if line and not line.startswith(_NOISE)]


class UpgradeTests(SynchronousTestCase):
    """A database with rows in every table."""

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.state = lived_in(self.mktemp())
        source = f"sqlite:///{self.state / 'svcd.sqlite'}"
        ran = svcd("db", "copy", "--from", source, "--to", self.url, state=self.state)
        self.assertEqual(ran.code, 0, ran)

    def upgrade(self, me: Me | None = None) -> int:
        """What a daemon does at its start."""
        settings = Database(url=self.url)
        database = PostgresDatabase(own_reactor(), settings, self.fail, me=me)

        async def opened() -> int:
            await database.open()
            try:
                return await migrations.migrate(database, at(0))
            finally:
                await database.close()

        return drive(opened())

    def session(self) -> Iterator[PostgresSession]:
        session = PostgresSession(Database(url=self.url), "test")
        try:
            yield session
        finally:
            session.close()

    def test_rows_stay_and_are_changed(self) -> None:
        """All columns of before hold what they held; the check finds no fault."""
        kept = shape(NEWEST)
        for session in self.session():
            session.snapshot()
            before = sums(session, kept)
        become(self, CHANGES)
        self.assertEqual(self.upgrade(), NEWEST + 1)
        for session in self.session():
            found = list(check(session, FernetSealer(self.state / "seal.key")))
            self.assertEqual(sums(session, kept), before)
        self.assertEqual(execute(self.url, "select remark from clusters"), [("mine",)])
        self.assertEqual([each for each in found if not isinstance(each, Counted)], [])

    def test_interrupted_at_any_statement(self) -> None:
        """The former release finds all as it was, and the next start makes the upgrade."""
        before = content(self.url)
        for text in cut(CHANGES):
            back = become(self, text)
            with self.assertRaises(SchemaError):
                self.upgrade()
            back()
        self.assertEqual(content(self.url), before)
        become(self, CHANGES)
        self.assertEqual(self.upgrade(), NEWEST + 1)

    def test_database_of_a_development_version_is_left_alone(self) -> None:
        """By a daemon alone, by one that shares, and by the commands."""
        execute(self.url, f"update schema_version set number = {DEVELOPMENT}")
        execute(self.url, "alter table daemons drop column knows")
        before = content(self.url)
        shared = Me("svcd-0123456789abcdef", "of the test", own_reactor().seconds)
        for sharing in (None, shared):
            with self.assertRaises(SchemaError) as raised:
                self.upgrade(sharing)
            self.assertIn("has schema 18 of a development version", str(raised.exception))
        file = str(self.state / "backup")
        self.assertEqual(svcd("backup", file, state=self.state).code, 0)
        for command in (
            ("db", "upgrade"),
            ("db", "check"),
            ("backup", f"{file}-2"),
            ("restore", "--replace", file),
        ):
            ran = svcd(*command, state=self.state, url=self.url)
            self.assertEqual(ran.code, 1)
            self.assertIn("has schema 18 of a development version", ran.err)
        ran = svcd("doctor", state=self.state, url=self.url)
        self.assertIn("has schema 18 of a development version", " ".join(ran.out.split()))
        self.assertEqual(content(self.url), before)


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
        self.back = become(self, text)

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
        self.assertEqual(self.schema(), NEWEST)
        backup.rollback()
        self.assertEqual(await upgrade, NEWEST + 1)
        execute(self.url, "select more from clusters")
