"""The kept dumps of every schema, upgraded on SQLite. On PostgreSQL: test_live_upgrade."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from svcd.ports.store import Tx
from svcd.store import migrations
from svcd.store.offline.session import Session
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore
from tests.contract.store.rows import at
from tests.support.api import now

try:
    from tests.support.database.dump import KINDS, dump_file, load_sqlite, seal_key
except ImportError as error:
    raise SkipTest("psycopg2 is not installed: pip install 'svcd[postgresql]'") from error
from tests.support.database.upgraded import ADD, UpgradeContract, add_tests

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
