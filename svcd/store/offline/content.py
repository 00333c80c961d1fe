"""All rows of a database as one stream, with counts and digests that both drivers agree on.

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
    number_of,
    occupied,
    strangers,
    upgrade,
)
from svcd.store.offline.shape import Shape, TableShape, shape

encode_row = msgspec.msgpack.Encoder().encode


@frozen
class Sum:
    """What a table holds: the number of its rows, and the digest over them in hex."""

    rows: int
    sha256: str


@mutable
class Tally:
    """Counts and digests as the rows go by, table after table."""

    rows: dict[str, int] = field(factory=dict)
    _digests: dict[str, hashlib._Hash] = field(factory=dict)

    def add(self, table: str, encoded: bytes) -> None:
        self.rows[table] = self.rows.get(table, 0) + 1
        self._digests.setdefault(table, hashlib.sha256()).update(encoded)

    def sums(self, of: Shape) -> dict[str, Sum]:
        """Of every table that is kept, the empty ones too."""
        empty = hashlib.sha256()
        return {
            each.name: Sum(
                self.rows.get(each.name, 0), self._digests.get(each.name, empty).hexdigest()
            )
            for each in of.kept
        }


def read(session: Session, table: TableShape) -> Iterator[Row]:
    """The rows of `table` that are kept, in the order of their key."""
    return session.rows(table.select, at_once=BULKY_AT_ONCE if table.bulky else ROWS_AT_ONCE)


def sums(session: Session, of: Shape) -> dict[str, Sum]:
    """Read everything once."""
    tally = Tally()
    for table in of.kept:
        for row in read(session, table):
            tally.add(table.name, encode_row(row))
    return tally.sums(of)


def differences(wanted: Mapping[str, Sum], found: Mapping[str, Sum]) -> list[str]:
    """One line for each table that is not what it should be."""
    lines = []
    for name in sorted(wanted.keys() | found.keys()):
        one, other = wanted.get(name), found.get(name)
        if one != other:
            counts = f"{one.rows if one else 'no'} rows wanted, {other.rows if other else 'no'}"
            lines.append(f"{name}: {counts} found" + ("" if one is None else "; digests differ"))
    return lines


def refuse_occupied(session: Session, replace: bool | None) -> int:
    """The number of rows that would be lost, more than 0 also when they cannot be counted.

    Raises OfflineError when there are any and nobody said that they may be. replace: None when it
    cannot be said.
    """
    foreign = strangers(session)
    if foreign:
        raise OfflineError(
            f"{session.where} has tables of another program ({', '.join(sorted(foreign))}):"
            " give svcd a database of its own"
        )
    if replace and number_of(session) > migrations.newest():
        return 1
    rows = occupied(session)
    if rows and not replace:
        way = "" if replace is None else ", or say --replace to put the others in their place"
        raise OfflineError(f"{session.where} holds {rows} rows: name an empty one{way}")
    return rows


def load(
    session: Session,
    of: Shape,
    rows_of: Callable[[TableShape], Iterator[Row]],
    wanted: Callable[[], Mapping[str, Sum]],
    at: str,
) -> None:
    """Put the rows in the place of what there is and look at them again: in one transaction.

    rows_of: asked once for each table, in the order of `of`. wanted: asked after the last row.
    The caller has called `begin`, and commits. The schema is brought to the newest at the end.
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
            f"{session.where} did not keep what was written to it ({'; '.join(faults)}):"
            " nothing was changed; look at the disk"
        )
    upgrade(session, at)
    session.settle(shape(migrations.newest()).kept)
