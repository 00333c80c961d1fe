"""One blocking connection to a database, for commands: what both drivers must offer.

A command has no reactor and nobody to wait for it, so it may block; yet it never blocks for ever.
Rows stream both ways: nothing here holds more than a few megabytes, whatever the database holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline.shape import TableShape, shape

ROWS_AT_ONCE = 100
BULKY_AT_ONCE = 4
"""Pieces of 256 KiB, and one a megabyte at most: what PostgreSQL is asked for at once."""


class OfflineError(Exception):
    """A command cannot go on: one line that says what, where, why and what to do."""


class Damaged(OfflineError):
    """What the file holds is not a sound database."""


class Session(Protocol):
    """where: what to call the database before people, without a password."""

    where: str

    def snapshot(self) -> None:
        """Begin to read: until `rollback`, all reads see one moment, and nobody waits for us."""
        ...

    def begin(self) -> None:
        """Begin to write; all of it is there after `commit`, or nothing."""
        ...

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...

    def rows(
        self, text: str, parameters: Mapping[str, object] | None = None, at_once: int = ROWS_AT_ONCE
    ) -> Iterator[Row]:
        """The rows of one statement, `at_once` in memory. Several may be under way."""
        ...

    def one(self, text: str, parameters: Mapping[str, object] | None = None) -> Row | None:
        """The first row, or None."""
        ...

    def script(self, text: str) -> None:
        """Statements separated by `;` at the end of a line, in the transaction under way."""
        ...

    def insert(self, table: TableShape, rows: Iterable[Sequence[Any]]) -> None: ...

    def tables(self) -> frozenset[str]:
        """Names of the tables that are there, of whomever they are."""
        ...

    def faults(self) -> Iterator[str]:
        """What the database itself finds wrong with its storage."""
        ...

    def settle(self, tables: Sequence[TableShape]) -> None:
        """After many rows were written, before the commit: what makes it quick from the start."""
        ...


def current(session: Session) -> int:
    """The schema's number, 0 when there is none yet. Raises OfflineError for a newer one."""
    number = number_of(session)
    if number > migrations.newest():
        raise OfflineError(
            f"{session.where} has schema {number}, this release knows {migrations.newest()}:"
            " use the release that wrote it, or a newer one"
        )
    return number


def number_of(session: Session) -> int:
    """The schema's number, whether this release knows it or not."""
    if "schema_version" not in session.tables():
        return 0
    return _count(session, migrations.CURRENT)


def upgrade(session: Session, at: str, last: int | None = None) -> int:
    """Within the transaction under way; returns the number before."""
    before = current(session)
    session.script(migrations.CREATE)
    for script in migrations.scripts(before, at, last):
        session.script(script)
    return before


def strangers(session: Session) -> frozenset[str]:
    """Tables of our names in a database that never was ours."""
    names = frozenset(each.name for each in shape(migrations.newest()).every)
    there = session.tables()
    return frozenset() if "schema_version" in there else there & names


def occupied(session: Session) -> int:
    """Rows that a restore would replace."""
    number = current(session)
    if not number:
        return 0
    tables = shape(number).kept
    return sum(_count(session, f"select count(*) from {each.name}") for each in tables)


def _count(session: Session, text: str) -> int:
    row = session.one(text)
    return int(row[0]) if row else 0
