"""Seals all stored secrets with the newest key of a key file.

A sealed text may be a column or a part of a record, so each text with such a part is read, and
written when it has changed. A part of the rows is one transaction: after any interruption each text
opens with one of the keys, and a second call continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from svcd.store import migrations
from svcd.store.offline.check import place_of, sealed_texts
from svcd.store.offline.session import OfflineError, OfflineSession, current
from svcd.store.offline.shape import TableShape, shape
from svcd.store.sealer import SEALED_LIKE, MemorySealer, SealerError

_AT_ONCE = 100
"""Rows of one transaction."""


@frozen(kw_only=True)
class Resealed:
    """A table with sealed texts. rows: the number of rows that were sealed anew."""

    table: str
    rows: int


def unopened(session: OfflineSession, sealer: MemorySealer) -> Sequence[str]:
    """The rows with a sealed text that no key opens, as `table key`. Raises OfflineError."""
    rows: list[str] = []
    for table in _tables(session):
        column = "record" if table.name == "clusters" else "sealed"
        if column not in table.columns:
            continue
        columns = (*table.key, column)
        text = f"select {', '.join(columns)} from {table.name} where {column} is not null"
        session.snapshot()
        for values in session.rows(f"{text} order by {', '.join(table.key)}"):
            row = dict(zip(columns, values, strict=True))
            if not all(_opens(sealed.text, sealer) for sealed in sealed_texts(table.name, row)):
                rows.append(place_of(table, row))
        session.rollback()
    return rows


def _opens(text: str, sealer: MemorySealer) -> bool:
    try:
        sealer.open(text)
    except SealerError:
        return False
    return True


def reseal(session: OfflineSession, sealer: MemorySealer) -> Iterator[Resealed]:
    """Yields each table with sealed texts after its last row. Raises OfflineError."""
    for table in _tables(session):
        keys = list(_keys(session, table))
        if not keys:
            continue
        rows = 0
        for start in range(0, len(keys), _AT_ONCE):
            session.begin()
            for key in keys[start : start + _AT_ONCE]:
                rows += _row(session, table, key, sealer)
            session.commit()
        yield Resealed(table=table.name, rows=rows)


def _tables(session: OfflineSession) -> Sequence[TableShape]:
    """The tables that may have sealed texts. A table without a key, as that of the lease, has none.

    The first one is the table by which a daemon checks its key at its start.
    """
    number = current(session)
    if number != migrations.newest():
        raise OfflineError(
            f"{session.where} has schema {number}, this release knows {migrations.newest()}:"
            " run svcd db upgrade first"
        )
    tables = [
        table for table in shape(number).every if table.key and "content" not in table.columns
    ]
    return sorted(tables, key=lambda table: table.name != "seals")


def _keys(session: OfflineSession, table: TableShape) -> Iterator[dict[str, object]]:
    """The keys of the rows with a text that may be sealed."""
    like = " or ".join(f"cast({column} as text) like :pattern" for column in table.columns)
    text = f"select {', '.join(table.key)} from {table.name} where {like}"
    session.snapshot()
    for row in session.rows(text, {"pattern": SEALED_LIKE}):
        yield dict(zip(table.key, row, strict=True))
    session.rollback()


def _row(
    session: OfflineSession, table: TableShape, key: dict[str, object], sealer: MemorySealer
) -> bool:
    """Whether the row had a text of a former key."""
    which = " and ".join(f"{column} = :{column}" for column in table.key)
    row = session.one(f"select {', '.join(table.columns)} from {table.name} where {which}", key)
    changed = {
        column: new
        for column, value in zip(table.columns, row or (), strict=row is not None)
        if isinstance(value, str) and (new := sealer.renewed(value)) != value
    }
    if changed:
        new = ", ".join(f"{column} = :new_{column}" for column in changed)
        values = {f"new_{column}": value for column, value in changed.items()}
        text = f"update {table.name} set {new} where {which} returning 1"
        session.one(text, {**key, **values})
    return bool(changed)
