"""Applies the numbered SQL files, each once, in order, in one transaction each; forward only.

Each script first inserts its number. When two daemons start at the same time, the number is taken
for the slower one, which then skips the script.

Note: the first file. Its number is above those of the development versions before 0.3.0, whose
databases and backups are refused: they are not upgraded.

Note: two steps. A file that begins with `-- serves: NNNN` only adds what releases that know schema
NNNN can leave alone: tables, indexes, and columns with a default. So daemons of such a release go
on beside those of the new one, and can be started again after it. A change that removes something,
or the content of a record, comes in a later file, without that line: when svcd applies it, all
daemons must be of a release that knows it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import resources

from attrs import frozen
from twisted.logger import Logger

from svcd.store.database import Conflict, Database, Row, SchemaError, Sql

log = Logger()

CREATE = """
create table if not exists schema_version (
  number integer primary key,
  applied_at text not null,
  serves integer not null
)
"""
"""serves: a release can use the database when it knows the schema of this number or a later one."""
CURRENT = "select * from schema_version order by number desc limit 1"
"""The row for `version_of`. A development version may have made it without the third column."""
_AFRESH = (
    "move it away, or name an empty state folder (server.state_dir) or another database"
    " (database.url)"
)
_SERVES = re.compile(r"-- serves: (\d{4})\n")


@frozen
class Version:
    """The schema of a database. serves: the oldest schema of the releases that can use it."""

    number: int
    serves: int


def version_of(row: Row | None) -> Version:
    """The version by the row of `CURRENT`; 0 without a row."""
    number = int(row[0]) if row else 0
    return Version(number, int(row[2]) if row and number >= oldest() else number)


@functools.cache
def steps() -> tuple[tuple[int, str], ...]:
    """(number, SQL text) of the files `schema/NNNN_*.sql`, ascending."""
    numbered = []
    for entry in resources.files("svcd.store").joinpath("schema").iterdir():
        match = re.fullmatch(r"(\d{4})_\w+\.sql", entry.name)
        if match:
            numbered.append((int(match[1]), entry.read_text(encoding="utf-8")))
    return tuple(sorted(numbered))


def oldest() -> int:
    """The number of the first schema that can be used and upgraded."""
    return steps()[0][0]


def newest() -> int:
    """The number of the schema that this release uses."""
    return steps()[-1][0]


def serves(number: int, text: str) -> int:
    """The oldest schema that a release must know to use the database after this file."""
    found = _SERVES.match(text)
    return int(found[1]) if found else number


def needed() -> int:
    """The schema that daemons must know beside this release."""
    return serves(*steps()[-1])


def scripts(current: int, at: str, last: int | None = None) -> Iterator[str]:
    """One script for each step after `current`, up to `last`. Each also records its number."""
    stamp = at.replace("'", "")
    for number, text in steps():
        if current < number <= (newest() if last is None else last):
            values = f"{number}, '{stamp}', {serves(number, text)}"
            columns = "number, applied_at, serves"
            yield f"insert into schema_version ({columns}) values ({values});\n{text}"


def refusal(version: Version, where: str = "the database", remedy: str = _AFRESH) -> str:
    """The reason why this release must not use the database `where`, or "".

    A release writes whole records, so it would lose what a newer release stores in them. remedy:
    for the database of a development version.
    """
    if 0 < version.number < oldest():
        return (
            f"{where} has schema {version.number} of a development version of svcd, and this"
            f" release begins with schema {oldest()}: {remedy}"
        )
    if version.serves <= newest():
        return ""
    return (
        f"{where} has schema {version.number}, this release knows {newest()}:"
        " use the release that wrote it, or a newer one"
    )


async def migrate(database: Database, at: str) -> int:
    """Bring the schema to the newest version and return the database's number.

    It is above `newest` when a newer release has upgraded the database and still serves this one.
    Raises SchemaError when it does not, and for the schema of a development version.
    """
    await database.script(CREATE)  # the script does nothing when the table exists
    version = await database.read(_version)
    if why := refusal(version, database.where):
        raise SchemaError(why)
    current = version.number
    if current > newest():
        log.info(
            "The schema {number} of a newer release is used; this one knows {newest}",
            number=current, newest=newest(),
        )  # fmt: skip
        return current
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


async def _version(sql: Sql) -> Version:
    return version_of(await sql.one(CURRENT))
