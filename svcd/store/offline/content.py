"""Reads and writes all rows of a database as one stream, with the same digests for both drivers.

The digest of a table is the SHA-256 of its rows, each as MessagePack, in the order of their key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping

import msgspec
from attrs import field, frozen, mutable

from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline.session import (
    BULKY_AT_ONCE,
    ROWS_AT_ONCE,
    OfflineError,
    Session,
    foreign_tables,
    occupied,
    schema_of,
    upgrade,
)
from svcd.store.offline.shape import Shape, TableShape, shape

encode_row = msgspec.msgpack.Encoder().encode


@frozen
class Sum:
    """The content of a table: the number of its rows, and their digest in hex."""

    rows: int
    sha256: str


@mutable
class Tally:
    """Counts and digests of a stream of rows, table after table."""

    rows: dict[str, int] = field(factory=dict)
    _digests: dict[str, hashlib._Hash] = field(factory=dict)

    def add(self, table: str, encoded: bytes) -> None:
        self.rows[table] = self.rows.get(table, 0) + 1
        self._digests.setdefault(table, hashlib.sha256()).update(encoded)

    def sums(self, of: Shape) -> dict[str, Sum]:
        """The sums of every kept table, also of empty ones."""
        empty = hashlib.sha256()
        return {
            each.name: Sum(
                self.rows.get(each.name, 0), self._digests.get(each.name, empty).hexdigest()
            )
            for each in of.kept
        }


def read(session: Session, table: TableShape) -> Iterator[Row]:
    """The kept rows of `table`, in the order of their key."""
    return session.rows(table.select, at_once=BULKY_AT_ONCE if table.bulky else ROWS_AT_ONCE)


def sums(session: Session, of: Shape) -> dict[str, Sum]:
    """The sums of all kept tables. It reads every row once."""
    tally = Tally()
    for table in of.kept:
        for row in read(session, table):
            tally.add(table.name, encode_row(row))
    return tally.sums(of)


def differences(wanted: Mapping[str, Sum], found: Mapping[str, Sum]) -> list[str]:
    """One line for each table whose content differs."""
    lines = []
    for name in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(name), found.get(name)
        if one != other:
            counts = f"{one.rows if one else 'no'} rows wanted, {other.rows if other else 'no'}"
            lines.append(f"{name}: {counts} found" + ("" if one is None else "; digests differ"))
    return lines


def refuse_occupied(session: Session, replace: bool | None) -> int:
    """The number of rows that the command would delete; at least 1 when they cannot be counted.

    replace: whether the user allows this; None when the command has no such option. Raises
    OfflineError when there are rows and the user has not allowed it.
    """
    foreign = foreign_tables(session)
    if foreign:
        raise OfflineError(
            f"{session.where} has tables of another program ({', '.join(sorted(foreign))}):"
            " give svcd a database of its own"
        )
    number = schema_of(session).number
    if replace and migrations.refusal(migrations.Version(number, number)):
        return 1
    rows = occupied(session)
    if rows and not replace:
        way = "" if replace is None else ", or say --replace to delete these rows first"
        raise OfflineError(f"{session.where} holds {rows} rows: name an empty one{way}")
    return rows


def load(
    session: Session,
    of: Shape,
    rows_of: Callable[[TableShape], Iterator[Row]],
    wanted: Callable[[], Mapping[str, Sum]],
    at: str,
) -> None:
    """Replace the content of the database by the given rows and verify them, in one transaction.

    rows_of: called once for each table, in the order of `of`. wanted: called after the last row.
    The caller has called `begin`, and commits. At the end the schema is upgraded to the newest.
    Raises OfflineError.
    """
    names = {each.name for each in shape(migrations.newest()).every}
    there = session.tables()
    for table in reversed(shape(migrations.newest()).every):
        if table.name in names & there:
            session.script(f"drop table {table.name};\n")
    upgrade(session, at, of.number)
    for table in of.kept:
        session.insert(table, rows_of(table))
    faults = differences(wanted(), sums(session, of))
    if faults:
        raise OfflineError(
            f"{session.where} holds other rows than svcd has written ({'; '.join(faults)}):"
            " nothing was changed; check the disk"
        )
    upgrade(session, at)
    session.settle(shape(migrations.newest()).kept)
