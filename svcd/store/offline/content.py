"""Copies all rows of a database into another one, and compares the digests of both.

The digest of a table is the SHA-256 of its rows, each as MessagePack, in the order of their key. It
is the same in both drivers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec
from attrs import field, frozen, mutable

from svcd.store import migrations
from svcd.store.database import Row
from svcd.store.offline.session import (
    OfflineError,
    OfflineSession,
    current,
    schema_of,
    upgrade,
)
from svcd.store.offline.shape import Shape, TableShape, shape

_encode = msgspec.msgpack.Encoder().encode


@frozen
class Sum:
    """The content of a table: the number of its rows, and their digest in hex."""

    rows: int
    sha256: str


@mutable
class _Tally:
    """Counts and digests the rows of a table while another reads them."""

    rows: int = 0
    _digest: hashlib._Hash = field(factory=hashlib.sha256)

    def counted(self, rows: Iterator[Row]) -> Iterator[Row]:
        for row in rows:
            self.rows += 1
            self._digest.update(_encode(row))
            yield row

    @property
    def sum(self) -> Sum:
        return Sum(self.rows, self._digest.hexdigest())


def sums(session: OfflineSession, of: Shape) -> dict[str, Sum]:
    """The sums of all kept tables. It reads every row once."""
    return {table.name: _sum(session, table) for table in of.kept}


def _sum(session: OfflineSession, table: TableShape) -> Sum:
    tally = _Tally()
    for _ in tally.counted(session.rows(table.select)):
        pass
    return tally.sum


def refuse_occupied(session: OfflineSession, replace: bool | None) -> int:
    """The number of rows that the command would delete; at least 1 when they cannot be counted.

    replace: whether the user allows this; None when the command has no such option. Raises
    OfflineError when there are rows and the user has not allowed it.
    """
    names = session.tables()
    if "schema_version" not in names:
        foreign = names & {table.name for table in shape(migrations.newest()).every}
        if foreign:
            raise OfflineError(
                f"{session.where} has tables of another program ({', '.join(sorted(foreign))}):"
                " give svcd a database of its own"
            )
        return 0
    number = schema_of(session).number
    if replace and migrations.refusal(migrations.Version(number, number)):
        return 1
    rows = 0
    for table in shape(current(session)).kept:
        rows += (session.one(f"select count(*) from {table.name}") or (0,))[0]
    if rows and not replace:
        way = "" if replace is None else ", or say --replace to delete these rows first"
        raise OfflineError(f"{session.where} holds {rows} rows: name an empty one{way}")
    return rows


def copy(source: OfflineSession, target: OfflineSession, at: str) -> dict[str, Sum]:
    """Replace the content of `target` by the rows of `source`, and read them again to compare them.

    The schema of `target` becomes that of `source`. The caller has begun both transactions, and
    commits. Returns the sums of the kept tables. Raises OfflineError.
    """
    of = shape(current(source))
    there = target.tables()
    for table in reversed(shape(migrations.newest()).every):
        if table.name in there:
            target.script(f"drop table {table.name};\n")
    upgrade(target, at, of.number)
    copied: dict[str, Sum] = {}
    for table in of.kept:
        tally = _Tally()
        target.insert(table, tally.counted(source.rows(table.select)))
        copied[table.name] = tally.sum
    faults = _differences(copied, sums(target, of))
    if faults:
        raise OfflineError(
            f"{target.where} holds other rows than svcd has written ({'; '.join(faults)}):"
            " nothing was changed; check the disk"
        )
    return copied


def _differences(written: Mapping[str, Sum], there: Mapping[str, Sum]) -> list[str]:
    """One line for each table whose content differs."""
    return [
        f"{name}: {content.rows} rows written, {there[name].rows} there, or their digests differ"
        for name, content in written.items()
        if content != there[name]
    ]
