"""The tables of a schema number: their columns and keys, read from the migrations themselves.

The migrations run on an empty SQLite database in memory, and the resulting tables are read back. So
every released schema is known without a second description of it.
"""

from __future__ import annotations

import functools
import sqlite3

from attrs import frozen

from svcd.store import migrations
from svcd.store.sqlite_statements import translate

TRANSIENT = frozenset(
    {
        "schema_version",
        "uploads",
        "daemons",
        "lease",
        "seals",
        "changes",
        "feed",
        "feed_marks",
        "feed_cuts",
    }
)
"""Tables that only running daemons need: not backed up, not copied, not counted."""

_OWNED = "exists (select 1 from internals i where i.upload_id = pieces.upload_id)"
_CONDITIONS = {"pieces": _OWNED}
_TABLES = """
select name from sqlite_schema where type = 'table' and name not like 'sqlite_%' order by rowid
"""


@frozen
class TableShape:
    """One table. key: the columns of its primary key, in order."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def select(self) -> str:
        """The statement that reads all kept rows in the order of the key, alike in both drivers."""
        condition = _CONDITIONS.get(self.name)
        where = f" where {condition}" if condition else ""
        return (
            f"select {', '.join(self.columns)} from {self.name}{where}"
            f" order by {', '.join(self.key)}"
        )


@frozen
class Shape:
    """A schema. every: all its tables; a table comes after the tables that it refers to."""

    number: int
    every: tuple[TableShape, ...]

    @property
    def kept(self) -> tuple[TableShape, ...]:
        """Tables whose rows are backed up, restored and copied."""
        return tuple(table for table in self.every if table.name not in TRANSIENT)


@functools.cache
def shape(number: int) -> Shape:
    """The tables of schema `number`, `schema_version` among them."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript(migrations.CREATE)
        for step, text in migrations.steps():
            if step <= number:
                connection.executescript(translate(text))
        names = [str(row[0]) for row in connection.execute(_TABLES)]
        return Shape(number, tuple(_table(connection, name) for name in names))
    finally:
        connection.close()


def _table(connection: sqlite3.Connection, name: str) -> TableShape:
    columns = connection.execute(f"pragma table_info({name})").fetchall()
    keyed = sorted((row[5], str(row[1])) for row in columns if row[5])
    return TableShape(
        name=name,
        columns=tuple(str(row[1]) for row in columns),
        key=tuple(column for _, column in keyed),
    )
