"""Applies the numbered SQL files, each once, in order, in one transaction each; forward only.

Each script first inserts its number. When two daemons start at the same time, the number is taken
for the slower one, which then skips the script.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources

from twisted.logger import Logger

from svcd.store.database import Conflict, Database, SchemaError, Sql

log = Logger()

CREATE = """
create table if not exists schema_version (
  number integer primary key,
  applied_at text not null
)
"""
CURRENT = "select coalesce(max(number), 0) from schema_version"


@functools.cache
def steps() -> tuple[tuple[int, str], ...]:
    """(number, SQL text) of the files `schema/NNNN_*.sql`, ascending."""
    found = []
    for entry in resources.files("svcd.store").joinpath("schema").iterdir():
        match = re.fullmatch(r"(\d{4})_\w+\.sql", entry.name)
        if match:
            found.append((int(match[1]), entry.read_text(encoding="utf-8")))
    return tuple(sorted(found))


def newest() -> int:
    """The number of the schema that this release uses."""
    return steps()[-1][0]


def scripts(current: int, at: str, last: int | None = None) -> Iterator[str]:
    """One script for each step after `current`, up to `last`. Each also records its number."""
    stamp = at.replace("'", "")
    for number, text in steps():
        if current < number <= (newest() if last is None else last):
            yield (
                "insert into schema_version (number, applied_at)"
                f" values ({number}, '{stamp}');\n{text}"
            )


def newer(current: int) -> str:
    """Why this release must not use the schema `current`; "" when it may.

    A release writes whole records, so it would lose what a newer release stores in them.
    """
    if current <= newest():
        return ""
    return (
        f"the database has schema {current}, this release knows {newest()}:"
        " run the release that wrote it, or a newer one"
    )


def refuse_newer(current: int) -> None:
    """Raises SchemaError when the database was written by a newer release."""
    refusal = newer(current)
    if refusal:
        raise SchemaError(refusal)


async def migrate(database: Database, at: str) -> int:
    """Bring the schema to the newest version and return its number.

    Raises SchemaError when the database was written by a newer release.
    """
    await database.script(CREATE)
    current = await database.read(_current)
    refuse_newer(current)
    applied = False
    for script in scripts(current, at):
        try:
            await database.script(script)
            applied = True
        except Conflict as conflict:  # another starting daemon was faster
            if "schema_version" not in str(conflict):
                raise
    if applied and current:
        log.info("Schema upgraded from {old} to {new}", old=current, new=newest())
    return newest()


async def _current(sql: Sql) -> int:
    row = await sql.one(CURRENT)
    return int(row[0]) if row else 0
