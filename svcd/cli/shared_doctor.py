"""Checks of a shared database: its key, its schema, the clock, who lives. Reads only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from svcd.cli.finding import Finding, fail, ok
from svcd.settings import Settings
from svcd.store import migrations
from svcd.store.sealer import FernetSealer, SealerError, key_file, missing

_SKEW_S = 3.0
"""Largest difference between the clocks of this machine and of the database server."""
_CLOCK = "select extract(epoch from clock_timestamp())::double precision"
_DAEMONS = """
select about, knows from daemons
 where until_s > extract(epoch from clock_timestamp()) order by about
"""
SEAL = "select sealed from seals where id = 1"
_HAS_SCHEMA = "select to_regclass('schema_version') is not null"


def examine_shared(settings: Settings) -> Iterator[Finding]:
    """Findings about the clock, the key and the daemons of a PostgreSQL. Raises psycopg2.Error."""
    import psycopg2  # an optional dependency; preflight has found it

    limit_s = max(2, int(settings.database.connect_timeout_s))
    daemons: list[Any] = []
    sealed: list[Any] = []
    version = migrations.Version(0, 0)
    with contextlib.closing(
        psycopg2.connect(settings.database.url, connect_timeout=limit_s)
    ) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(_CLOCK)
            server_s = float(cursor.fetchone()[0])
            here_s = time.time()  # noqa: TID251 - a command has no clock but the system's
            cursor.execute(_HAS_SCHEMA)
            if cursor.fetchone()[0]:
                cursor.execute(migrations.CURRENT)
                version = migrations.version_of(cursor.fetchone())
            if version.number >= migrations.oldest():
                cursor.execute(_DAEMONS)
                daemons = cursor.fetchall()
                cursor.execute(SEAL)
                sealed = [row[0] for row in cursor.fetchall()]
    yield _clock(abs(here_s - server_s))
    yield key_finding(settings, sealed)
    yield _schema(version, daemons)
    if daemons:
        names = "; ".join(about for about, _ in daemons)
        yield ok("daemons", f"{len(daemons)} share the database: {names}")


def _schema(version: migrations.Version, daemons: Sequence[tuple[str, int]]) -> Finding:
    """daemons: what each says of itself, and the newest schema that it knows."""
    what, newest = "schema", migrations.newest()
    refusal = migrations.refusal(version)
    if refusal:
        return fail(what, refusal, "svcd db current")
    older = "; ".join(about for about, knows in daemons if knows < migrations.needed())
    if older and version.number < newest:
        return fail(
            what,
            f"{version.number}: the daemon would upgrade it to {newest}, which these cannot use:"
            f" {older}",
            "stop them first",
        )
    text = f"{version.number}, this release has {newest}" if version.number else "not made yet"
    return ok(what, text)


def _clock(off_s: float) -> Finding:
    text = f"differs by {off_s:.1f} s from the clock of the database server"
    if off_s <= _SKEW_S:
        return ok("clock", text)
    return fail(
        "clock",
        text,
        "run a time service (NTP) on both machines: daemons compare their clocks with it",
    )


def key_finding(settings: Settings, sealed: Sequence[str]) -> Finding:
    """Whether the seal key of this daemon opens what the database has. sealed: texts of it."""
    what = "seal key"
    path = key_file(settings)
    try:
        if not (path.exists() or path.is_symlink()):
            if not sealed:
                return ok(what, f"the daemon will create {path} at its start")
            text, _, remedy = str(missing(path)).partition(": ")
            return fail(what, text, remedy)
        sealer = FernetSealer(path)
        for each in sealed:
            sealer.open(each)
    except SealerError as error:
        return fail(what, str(error), f"ls -l {path}")
    except OSError as error:
        text = f"{path} cannot be read: {error.strerror}"
        return fail(what, text, "set another server.seal_key")
    return ok(what, f"{path} " + ("opens the sealed data" if sealed else "holds a key"))
