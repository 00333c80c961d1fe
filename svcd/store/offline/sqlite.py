"""A SQLite file on a blocking connection of a command.

Note: locks. A command that writes holds the daemon's lock beside the file. `mode="alone"` keeps
every other program out of the file too: it requests the exclusive lock, which SQLite refuses while
any program has the file open. Readers (`mode="look"`) see the file at one point in time and block
no other program.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import quote

from svcd.store.database import Row
from svcd.store.offline.session import Damaged, OfflineError
from svcd.store.offline.shape import TableShape
from svcd.store.sqlite_statements import parted

_BUSY_S = 2.0
"""Longest wait for another program's lock."""
_SHOWN = 100
"""Most faults that the integrity check reports."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})
_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_TABLES = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"


class SqliteSession:
    """Implements OfflineSession.

    mode: `look` (reads; others may write), `alone` (excludes other programs), `new` (a draft file).
    """

    def __init__(self, path: Path, mode: Literal["look", "alone", "new"]) -> None:
        """Raises OfflineError, and Damaged."""
        self.path = path
        self.where = f"the database {path}"
        kind = "rwc" if mode == "new" else "rw"
        with self._named():
            self._connection = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode={kind}",
                uri=True,
                isolation_level=None,
                timeout=_BUSY_S,
            )
        try:
            with self._named():
                self._prepare(mode)
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self, mode: str) -> None:
        execute = self._connection.execute
        execute("pragma foreign_keys=on")
        execute("pragma cache_size=-8192")
        if mode == "look":
            execute("pragma query_only=on")
            execute("select count(*) from sqlite_schema").fetchone()
        elif mode == "new":
            execute("pragma page_size=8192")
            execute("pragma journal_mode=off")  # after a failure the caller deletes the file
            execute("pragma synchronous=off")  # the caller syncs the file before it publishes it
        else:
            execute("pragma synchronous=full")
            execute("pragma locking_mode=exclusive")
            execute("begin exclusive")
            execute("rollback")

    def snapshot(self) -> None:
        with self._named():
            self._connection.execute("begin")
            self._connection.execute("select count(*) from sqlite_schema").fetchone()

    def begin(self) -> None:
        with self._named():
            self._connection.execute("begin immediate")

    def commit(self) -> None:
        with self._named():
            self._connection.execute("commit")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # a draft has no journal for a rollback
                self._connection.execute("rollback")

    def close(self) -> None:
        self._connection.close()

    def rows(self, text: str, parameters: Mapping[str, object] | None = None) -> Iterator[Row]:
        with self._named():
            cursor = self._connection.execute(text, cast("dict[str, Any]", parameters or {}))
        while True:
            with self._named():
                row = cursor.fetchone()
            if row is None:
                return
            yield row

    def one(self, text: str, parameters: Mapping[str, object] | None = None) -> Row | None:
        with self._named():
            cursor = self._connection.execute(text, cast("dict[str, Any]", parameters or {}))
            return cast("Row | None", cursor.fetchone())

    def script(self, text: str) -> None:
        with self._named():
            for statement in parted(text):
                self._connection.execute(statement)

    def insert(self, table: TableShape, rows: Iterable[Sequence[Any]]) -> None:
        values = ", ".join("?" * len(table.columns))
        text = f"insert into {table.name} ({', '.join(table.columns)}) values ({values})"
        with self._named():
            self._connection.executemany(text, rows)

    def tables(self) -> frozenset[str]:
        return frozenset(str(row[0]) for row in self.rows(_TABLES))

    def faults(self) -> Iterator[str]:
        for row in self.rows(f"pragma integrity_check({_SHOWN})"):
            if row[0] != "ok":
                yield str(row[0])
        for table, row_id, parent, _ in self.rows("pragma foreign_key_check"):
            yield f"row {row_id} of {table} refers to a row of {parent} that does not exist"

    def put_aside(self) -> None:
        """Write the journal into the database file and remove it. Only in mode `alone`."""
        with self._named():
            self._connection.execute("pragma wal_checkpoint(truncate)").fetchall()
            mode = self._connection.execute("pragma journal_mode=delete").fetchone()[0]
        if mode != "delete":
            raise OfflineError(f"the journal of {self.where} cannot be closed: it is in use")

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._meaning(error) from error

    def _meaning(self, error: sqlite3.Error) -> OfflineError:
        code = getattr(error, "sqlite_errorcode", None)
        if code in _DAMAGED:
            return Damaged(f"{self.where} is damaged ({error}): restore a backup (svcd restore)")
        if code in _BUSY:
            return OfflineError(
                f"{self.where} is in use by another program: stop the daemon that has it first"
            )
        if code == sqlite3.SQLITE_CANTOPEN:
            return OfflineError(f"{self.where} cannot be opened: {_why(self.path)}")
        if code in _FULL:
            return OfflineError(f"{self.where} cannot be written ({error}): make room on its disk")
        return OfflineError(f"{self.where} cannot be used: {error}")


def _why(path: Path) -> str:
    if not path.parent.exists():
        return f"the folder {path.parent} does not exist"
    return "this user may not read and write it" if path.exists() else "the file does not exist"
