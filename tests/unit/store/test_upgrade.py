"""The kept dumps of every schema, upgraded on SQLite. On PostgreSQL: tests.live.store."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.ports.store import Tx
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.offline.session import Session
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore
from tests.contract.store.rows import at
from tests.support.api import now

try:
    from tests.support.database.dump import (
        KINDS,
        dump_file,
        fields,
        fields_file,
        load_sqlite,
        seal_key,
    )
except ImportError as error:
    raise SkipTest("psycopg2 is not installed: pip install 'svcd[postgresql]'") from error
from tests.support.database.upgraded import ADD, UpgradeContract, add_tests, cut

T = TypeVar("T")


class DumpTests(SynchronousTestCase):
    def test_every_schema_has_a_dump(self) -> None:
        """A migration is added together with a dump of what it makes."""
        missing = [
            dump_file(number, kind).name
            for number, _ in migrations.steps()
            for kind in KINDS
            if not dump_file(number, kind).exists()
        ]
        self.assertEqual(missing, [], ADD)

    def test_numbers_have_no_gap(self) -> None:
        """From 1."""
        numbers = [number for number, _ in migrations.steps()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)))


class TwoStepTests(SynchronousTestCase):
    """Files that leave the releases before them at work."""

    def test_what_a_file_serves(self) -> None:
        """By its first line; without it only releases that know the file itself."""
        self.assertEqual(migrations.serves(19, "-- serves: 0017\nselect 1;"), 17)
        self.assertEqual(migrations.serves(19, "-- It serves: 0017\nselect 1;"), 19)

    def test_a_later_file_serves_no_older_release(self) -> None:
        """Else a release that the file before has shut out would begin again."""
        served = [migrations.serves(*step) for step in migrations.steps()]
        self.assertEqual(served, sorted(served))
        self.assertTrue(all(s <= n for s, (n, _) in zip(served, migrations.steps(), strict=True)))

    def test_the_version_of_a_database(self) -> None:
        """With and without the column, and without a row."""
        self.assertEqual(migrations.version_of(None), migrations.Version(0, 0))
        self.assertEqual(migrations.version_of((16, "then")), migrations.Version(16, 16))
        self.assertEqual(migrations.version_of((19, "then", 17)), migrations.Version(19, 17))

    def test_the_releases_that_a_version_serves(self) -> None:
        """By the schema that they know."""
        newest = migrations.newest()
        self.assertEqual(migrations.newer(migrations.Version(newest + 2, newest)), "")
        refusal = migrations.newer(migrations.Version(newest + 2, newest + 1))
        self.assertIn(f"has schema {newest + 2}, this release knows {newest}", refusal)

    def test_files_that_serve_older_releases_only_add(self) -> None:
        """What these neither read nor write."""
        for number, text in migrations.steps():
            if migrations.serves(number, text) < number:
                self.assertEqual(hindering(text), [])

    def test_what_hinders_older_releases(self) -> None:
        """Statement by statement."""
        for text in (
            "alter table clusters add column more text;",
            "alter table clusters add column more text {c} not null default '';",
            "create table more (id integer primary key, name text not null);\n-- of a table\n",
            "create index more on clusters (name) where name > '';",
        ):
            self.assertEqual(hindering(f"-- serves: 0017\n{text}"), [], text)
        for text in (
            "alter table clusters add column more text not null",
            "alter table clusters add column more text references jobs (id)",
            "alter table clusters drop column used",
            "alter table seals rename column sealed to text",
            "create unique index more on clusters (name)",
            "create table more (id text references clusters (id))",
            "drop table seals",
            "update clusters set used = 1",
        ):
            self.assertEqual(hindering(f"-- serves: 0017\n{text};\n"), [text], text)

    def test_what_releases_write_into_records(self) -> None:
        """A release loses the fields that it does not know, so a field needs a file of its own.

        When this fails: add a file below svcd/store/schema without a line `serves`, and run
        `python -m tests.support.database.dump`, which writes the fields anew.
        """
        needed = migrations.needed()
        known = json.loads(fields_file(needed).read_text(encoding="utf-8"))
        self.assertEqual(fields(), known)


_ADDS = re.compile(
    r"create table \w+ \((?!.*\breferences\b)|(?:\{sqlite\})?create index "
    r"|alter table \w+ add column (?!.*\breferences\b)(?!.*\bnot null\b(?!.*\bdefault\b))",
    re.DOTALL,
)


def hindering(text: str) -> list[str]:
    """The statements that an older release may notice."""
    bare = re.sub(r"--.*", "", text)
    statements = (" ".join(each.split()) for each in bare.split(";"))
    return [each for each in statements if each and not _ADDS.match(each)]


class LineTests(SynchronousTestCase):
    """What the log says."""

    def test_an_upgrade_is_one_line(self) -> None:
        """A new database, and one that is up to date, are none."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if event.get("log_namespace") == "svcd.store.migrations":
                lines.append(formatEvent(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        folder = Path(self.mktemp())
        folder.mkdir()
        load_sqlite(9, folder / "old.sqlite")
        for name in ("old", "old", "new"):
            database = SqliteDatabase(folder / f"{name}.sqlite")
            now(Deferred.fromCoroutine(migrations.migrate(database, at(0))))
            now(Deferred.fromCoroutine(database.close()))
        self.assertEqual(lines, [f"Schema upgraded from 9 to {migrations.newest()}"])


class HinderedTests(SynchronousTestCase):
    """An upgrade that does not come to its end. On PostgreSQL: tests.live.store.test_upgrade."""

    def opened(self, number: int) -> SqliteDatabase:
        """The dump of a schema."""
        self.path = Path(self.mktemp())
        load_sqlite(number, self.path)
        database = SqliteDatabase(self.path)
        self.addCleanup(lambda: now(Deferred.fromCoroutine(database.close())))
        return database

    def upgrade(self, database: SqliteDatabase) -> int:
        return int(now(Deferred.fromCoroutine(migrations.migrate(database, at(0)))))

    def content(self) -> list[str]:
        """All tables and rows."""
        with closing(sqlite3.connect(self.path)) as connection:
            return list(connection.iterdump())

    def test_interrupted_at_any_statement(self) -> None:
        """The former release finds all as it was, and the next start makes the upgrade."""
        real = migrations.steps()
        for number, _ in real[1:]:
            database = self.opened(number - 1)
            before = self.content()
            for text in cut(number):
                steps = (*real[: number - 1], (number, text), *real[number:])
                with self.patched(steps), self.assertRaises(SchemaError):
                    self.upgrade(database)
                self.assertEqual(self.content(), before, (number, text))
            self.assertEqual(self.upgrade(database), real[-1][0])

    @contextmanager
    def patched(self, steps: tuple[tuple[int, str], ...]) -> Iterator[None]:
        patch = self.patch(migrations, "steps", lambda: steps)
        try:
            yield
        finally:
            patch.restore()

    def test_full_disk(self) -> None:
        """It is named with what helps; nothing was changed; with room the upgrade succeeds."""
        database = self.opened(1)
        before = self.content()
        (pages,) = database._connection.execute("pragma page_count").fetchone()
        database._connection.execute(f"pragma max_page_count={pages}")
        with self.assertRaises(SchemaError) as raised:
            self.upgrade(database)
        self.assertEqual(
            str(raised.exception),
            f"the schema of {self.path} cannot be changed: database or disk is full",
        )
        self.assertEqual(self.content(), before)
        database._connection.execute("pragma max_page_count=1000000")
        self.assertEqual(self.upgrade(database), migrations.newest())


class SqliteUpgradeTests(SynchronousTestCase, UpgradeContract):
    """A file."""

    def opened(self, number: int, also: str = "") -> int:
        folder = Path(self.mktemp())
        folder.mkdir()
        self.sealer = FernetSealer(seal_key(folder))
        self.path = folder / "svcd.sqlite"
        load_sqlite(number, self.path)
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(also)
        self.store = SqlStore(SqliteDatabase(self.path), self.sealer)
        return int(now(Deferred.fromCoroutine(self.store.open(at(0)))))

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return now(Deferred.fromCoroutine(self.store.tx(work)))

    def checked(self) -> tuple[Session, FernetSealer]:
        now(Deferred.fromCoroutine(self.store.close()))
        return SqliteSession(self.path, "look"), self.sealer


add_tests(SqliteUpgradeTests)
