"""One blocking connection to a database, for commands: the protocol of both drivers.

A command has no reactor and serves no other caller, so it may block, but never for ever. Rows are
streamed in both directions: no function holds more than a few megabytes of the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline.shape import TableShape

ROWS_AT_ONCE = 16
"""Rows of one fetch and of one insert: pieces of binaries have 256 KiB, so 4 MiB."""


class OfflineError(Exception):
    """A command cannot continue: one line that says what failed, where, why, and what to do."""


class Damaged(OfflineError):
    """The file is not a sound database."""


class OfflineSession(Protocol):
    """A connection of either driver. where: name of the database for people, without a password."""

    where: str

    def snapshot(self) -> None:
        """Begin to read. Until `rollback` all reads see the same state, and block no writer."""
        ...

    def begin(self) -> None:
        """Begin to write; `commit` stores all changes, or none."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...

    def rows(self, text: str, parameters: Mapping[str, object] | None = None) -> Iterator[Row]:
        """The rows of one statement, a few in memory. Several iterators may be in use."""
        ...

    def one(self, text: str, parameters: Mapping[str, object] | None = None) -> Row | None:
        """The first row, or None."""
        ...

    def script(self, text: str) -> None:
        """Run statements separated by `;` at the end of a line, in the current transaction."""
        ...

    def insert(self, table: TableShape, rows: Iterable[Sequence[Any]]) -> None: ...

    def tables(self) -> frozenset[str]:
        """Names of all tables in the database, also of other programs."""
        ...

    def faults(self) -> Iterator[str]:
        """The faults that the database itself finds in its storage."""
        ...


def current(session: OfflineSession) -> int:
    """The schema's number, 0 without a schema. Raises OfflineError for an unknown schema.

    A newer schema is refused even when it serves this release, which does not know its tables.
    """
    number = schema_of(session).number
    if why := migrations.refusal(migrations.Version(number, number), session.where):
        raise OfflineError(why)
    return number


def schema_of(session: OfflineSession) -> migrations.Version:
    """The schema, which this release may not know; 0 without a schema."""
    there = "schema_version" in session.tables()
    return migrations.version_of(session.one(migrations.CURRENT) if there else None)


def upgrade(session: OfflineSession, at: str, last: int | None = None) -> int:
    """Upgrade the schema in the current transaction. Returns the number before the upgrade."""
    before = current(session)
    session.script(migrations.CREATE)
    for script in migrations.scripts(before, at, last):
        session.script(script)
    return before
