"""`python -m tests.support.database.dump [NUMBER]`: make the kept dumps of a schema.

Run it when a migration was added, and commit what it writes; never make a released one again: what
it holds is what that release wrote. The rows are those of `tests.support.database.life`, without
columns that came after NUMBER (the newest unless given). What is sealed in them is sealed with
`dumps/seal.key`.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
from twisted.internet.defer import Deferred

from svcd.model.cluster import ClusterEvent
from svcd.settings import Database
from svcd.store import migrations
from svcd.store.family import Family
from svcd.store.offline.postgres import PostgresSession
from svcd.store.offline.session import Session
from svcd.store.offline.shape import shape
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from tests.support.api import now
from tests.support.database.life import live
from tests.support.database.postgres_server import drop_database, execute, new_database

FOLDER = Path(__file__).with_name("dumps")
KINDS = ("sqlite", "postgresql")
_MADE = ("schema_version", "leases")
"""What a migration itself fills."""
_NOISE = ("--", "\\", "SET ", "SELECT pg_catalog.set_config")
_AT = "2026-01-01 00:00:00.000000"


def dump_file(number: int, kind: str) -> Path:
    """Where the dump of a schema lies."""
    return FOLDER / f"{number:04d}.{kind}.sql"


def fields_file(number: int) -> Path:
    """The fields of records that releases know which can use schema `number`."""
    return FOLDER / f"{number:04d}.fields.json"


def fields() -> dict[str, Any]:
    """What this release writes into records and stored answers: type -> its fields, or words."""
    tables = [family.table for family in Family.__subclasses__()]
    answers = [cast("Any", table.wire).__self__ for table in tables if table.wire]
    found = {}
    for kind, types in (("record", [*(t.record for t in tables), ClusterEvent]), ("wire", answers)):
        _, parts = msgspec.json.schema_components(types, schema_hook=lambda _: {"title": "any"})
        for name, part in parts.items():
            found[f"{kind} {name}"] = sorted(part.get("properties") or part["enum"])
    return found


def seal_key(folder: Path) -> Path:
    """A copy of the dumps' key in `folder` that nobody else may read, as the sealer wants it."""
    key = folder / "seal.key"
    shutil.copy(FOLDER / "seal.key", key)
    key.chmod(0o600)
    return key


def load_sqlite(number: int, path: Path) -> None:
    """Make the database of a dump."""
    connection = sqlite3.connect(path)
    try:
        connection.executescript(dump_file(number, "sqlite").read_text(encoding="utf-8"))
    finally:
        connection.close()


def load_postgresql(number: int, url: str) -> None:
    """Put a dump into an empty database."""
    execute(url, dump_file(number, "postgresql").read_text(encoding="utf-8"))


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else migrations.newest()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database = SqliteDatabase(folder / "life.sqlite")
        live(database, FernetSealer(seal_key(folder)))
        now(Deferred.fromCoroutine(database.close()))
        life = SqliteSession(folder / "life.sqlite", "look")
        draft = SqliteSession(folder / "draft.sqlite", "new")
        _fill(draft, life, number)
        draft.close()
        _write(number, "sqlite", _sqlite_lines(folder / "draft.sqlite"))
        url, database_name = new_database()
        target = PostgresSession(Database(url=url), "dump")
        _fill(target, life, number)
        target.close()
        life.close()
        _write(number, "postgresql", postgresql_lines(url))
        drop_database(database_name)
    known = fields_file(migrations.needed())
    text = json.dumps(fields(), indent=1, sort_keys=True) + "\n"
    if not known.exists():
        known.write_text(text, encoding="utf-8")
    elif known.read_text(encoding="utf-8") != text:
        raise SystemExit(
            f"records have other fields than {known.name} says: releases that the schema serves"
            " would lose them; the newest schema file must not have a line `serves`"
        )


def _fill(session: Session, life: Session, number: int) -> None:
    """All rows of the life, those that only a daemon needs too, in schema `number`."""
    session.begin()
    session.script(migrations.CREATE)
    for script in migrations.scripts(0, _AT, number):
        session.script(script)
    present = {each.name: each for each in shape(migrations.newest()).every}
    for table in shape(number).every:
        if table.name in _MADE:
            continue
        missing = set(table.columns) - set(present[table.name].columns)
        if missing:
            raise SystemExit(f"{table.name} has lost {missing}: an older checkout can dump it")
        keys = ", ".join(table.key)
        text = f"select {', '.join(table.columns)} from {table.name} order by {keys}"
        session.insert(table, life.rows(text))
    session.commit()


def _sqlite_lines(path: Path) -> Iterator[str]:
    connection = sqlite3.connect(path)
    try:
        yield from connection.iterdump()
    finally:
        connection.close()


def postgresql_lines(url: str) -> Iterator[str]:
    """The statements that make a database again."""
    command = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    for line in said.split("\n"):
        if line and not line.startswith(_NOISE):
            yield line


def _write(number: int, kind: str, lines: Iterator[str]) -> None:
    text = "\n".join(lines) + "\n"
    dump_file(number, kind).write_text(text, encoding="utf-8")
    print(f"{dump_file(number, kind)}: {len(text)} characters")


if __name__ == "__main__":
    main()
