"""Databases that move between SQLite and PostgreSQL, with the commands that an operator types."""

from __future__ import annotations

from pathlib import Path

import psycopg2

from svcd.settings import Database
from svcd.store import migrations
from svcd.store.offline.content import Sum
from svcd.store.offline.postgres import PostgresSession
from svcd.store.offline.session import OfflineError
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.postgres import PostgresDatabase
from tests.live.store.test_postgres import drive, own_reactor
from tests.support.database.life import PASSWORD
from tests.support.database.postgres_server import drop_database, execute, new_database, own_server
from tests.unit.cli.databases import DatabaseCase, change, contents, everything, svcd

_TABLES = "select count(*) from pg_tables where schemaname = current_schema()"


class _Case(DatabaseCase):
    def setUp(self) -> None:
        super().setUp()
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.source = f"sqlite:///{self.state / 'svcd.sqlite'}"

    def moved(self) -> str:
        """The URL of the server's database, which holds the rows now."""
        self.done("db", "copy", "--from", self.source, "--to", self.url)
        return self.url

    def there(self) -> dict[str, Sum]:
        """What the server's database holds."""
        return contents(PostgresSession(Database(url=self.url), "test"))


class MovingTests(_Case):
    def test_file_to_server_and_back(self) -> None:
        """Counts and digests are the same in both, and both hold together, also with a new key."""
        self.moved()
        self.assertEqual(self.there(), self.rows)
        self.done("db", "current", url=self.url)
        back = self.state.with_name(f"{self.state.name}-back") / "svcd.sqlite"
        back.parent.mkdir()
        self.done("db", "copy", "--from", self.url, "--to", f"sqlite:///{back}")
        self.assertEqual(everything(back.parent), self.rows)
        said = self.done("keys", "rotate", url=self.url).out
        self.assertRegex(said, r"(?m)^  clusters +[1-9]\d* rows sealed anew$")
        self.assertIn("to every other host", said)
        self.assertIn("no faults", self.done("db", "check", url=self.url).out)
        execute(self.url, "delete from jobs")
        execute(self.url, "update data_sources set sealed = 'f1:x'")
        ran = svcd("db", "check", state=self.state, url=self.url)
        self.assertEqual((ran.code, ran.err), (1, ""))
        for words in ("its job_id ", "cannot be opened with", "4 faults"):
            self.assertIn(words, ran.out)

    def test_text_that_the_server_cannot_hold_is_said(self) -> None:
        """Nothing of the rest is there then; an upgrade makes the tables."""
        change(self.state, "update clusters set name = 'a' || char(0)")
        told = self.fails("db", "copy", "--from", self.source, "--to", self.url)
        self.assertIn("cannot store a text", told)
        self.assertEqual(execute(self.url, _TABLES), [(0,)])
        ran = svcd("db", "current", state=self.state, url=self.url)
        self.assertEqual((ran.code, ran.err, "schema 0, " in ran.out), (1, "", True))
        told = self.done("db", "upgrade", url=self.url).out
        self.assertIn(f"schema 0 was upgraded to {migrations.newest()}", told)

    def test_backup_of_either_is_restored_into_the_other(self) -> None:
        """Both files have the same rows."""
        self.done("backup", str(self.file))
        self.done("restore", str(self.file), url=self.url)
        self.assertEqual(self.there(), self.rows)
        again = Path(f"{self.file}-again")
        self.done("backup", str(again), url=self.url)
        change(self.state, "delete from executions")
        self.done("restore", "--replace", str(again))
        self.assertEqual(everything(self.state), self.rows)
        for file in (self.file, again):
            self.assertEqual(contents(SqliteSession(file, "look")), self.rows)
            self.assertNotIn(PASSWORD.encode(), file.read_bytes())

    def test_rows_are_not_replaced_unasked(self) -> None:
        """Only --replace does it, and a copy never."""
        self.done("backup", str(self.file))
        self.moved()
        execute(self.url, "delete from executions")
        changed = self.there()
        self.assertIn("say --replace", self.fails("restore", str(self.file), url=self.url))
        told = self.fails("db", "copy", "--from", self.source, "--to", self.url)
        self.assertIn("rows: name an empty one\n", told)
        self.assertEqual(self.there(), changed)
        self.done("restore", "--replace", str(self.file), url=self.url)
        self.assertEqual(self.there(), self.rows)

    def test_tables_of_others_are_left_alone(self) -> None:
        """Those of our names in a strange database, and those of a later release."""
        self.done("backup", str(self.file))
        execute(self.url, "create table jobs (id text)")
        for more in ([], ["--replace"]):
            told = self.fails("restore", str(self.file), *more, url=self.url)
            self.assertIn("tables of another program (jobs)", told)
        execute(self.url, "drop table jobs")
        self.done("db", "upgrade", url=self.url)
        execute(self.url, "insert into schema_version values (999, 'later', 999)")
        told = self.fails("restore", "--replace", str(self.file), url=self.url)
        self.assertIn(f"schema 999, this release knows {migrations.newest()}", told)
        self.assertIn("schema 999", self.fails("backup", f"{self.file}-2", url=self.url))

    def test_running_daemon_is_seen(self) -> None:
        """It may go on during a backup and a check, and nothing else is done beside it."""
        self.done("backup", str(self.file))
        self.moved()
        database = PostgresDatabase(own_reactor(), Database(url=self.url), self.fail)
        drive(database.open())
        try:
            for command in (
                ("restore", "--replace", str(self.file)),
                ("db", "upgrade"),
                ("db", "copy", "--from", self.url, "--to", f"{self.source}-2"),
            ):
                self.assertIn("a daemon has the database", self.fails(*command, url=self.url))
            self.done("backup", f"{self.file}-2", url=self.url)
            self.done("db", "check", url=self.url)
            self.done("db", "current", url=self.url)
        finally:
            drive(database.close())
        of_its_pool = psycopg2.connect(self.url, application_name="svcd-0123456789abcdef")
        try:  # the daemon takes its lock again, and its other connections go on
            self.assertIn("a daemon has the database", self.fails("db", "upgrade", url=self.url))
        finally:
            of_its_pool.close()
        self.assertEqual(self.there(), self.rows)
        self.assertFalse(Path(f"{self.state / 'svcd.sqlite'}-2").exists())


class TroubleTests(_Case):
    def test_server_that_is_not_there(self) -> None:
        """One line without the password."""
        for url, what in (
            ("postgresql://u:s3cret@127.0.0.1:1/db", "refused"),
            ("postgresql://u:s3cret@/db?nonsense=1", "cannot be understood"),
        ):
            for command in (("backup", str(self.file)), ("db", "check"), ("db", "current")):
                told = self.fails(*command, url=url)
                self.assertIn(what, told)
                self.assertNotIn("s3cret", told)
        self.assertFalse(self.file.exists())

    def test_server_that_is_silent(self) -> None:
        """It is given up after a while."""
        if not self.url.startswith("postgresql://svcd@"):
            self.skipTest("the server of PGHOST is not ours to stop")
        session = PostgresSession(Database(url=self.url), "test", statement_s=0.5)
        own_server().freeze()
        try:
            with self.assertRaises(OfflineError) as raised:
                session.one("select 1")
        finally:
            own_server().thaw()
            session.close()
        self.assertIn("did not answer within", str(raised.exception))
