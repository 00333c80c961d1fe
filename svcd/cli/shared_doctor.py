"""Checks that daemons with one database have the same seal key and the same time. Reads only."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from svcd.cli.finding import Finding
from svcd.settings import Settings
from svcd.store.sealer import FernetSealer, SealerError, key_file

_SKEW_S = 3.0
"""Largest difference between the clocks of this machine and of the database server."""
_CLOCK = "select extract(epoch from clock_timestamp())::double precision"
_DAEMONS = """
select about from daemons where until_s > extract(epoch from clock_timestamp()) order by about
"""
_SEAL = "select sealed from seals where id = 1"
_HAS = "select to_regclass('seals') is not null"


def examine_shared(settings: Settings) -> Iterator[Finding]:
    """Findings about the clock, the key and the daemons of a PostgreSQL. Raises psycopg2.Error."""
    import psycopg2  # an optional dependency; preflight has found it

    limit_s = max(2, int(settings.database.connect_timeout_s))
    daemons: list[Any] = []
    sealed: list[Any] = []
    with contextlib.closing(
        psycopg2.connect(settings.database.url, connect_timeout=limit_s)
    ) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(_CLOCK)
            server_s = float(cursor.fetchone()[0])
            here_s = time.time()  # noqa: TID251 - a command has no clock but the system's
            cursor.execute(_HAS)
            if cursor.fetchone()[0]:
                cursor.execute(_DAEMONS)
                daemons = [row[0] for row in cursor.fetchall()]
                cursor.execute(_SEAL)
                sealed = [row[0] for row in cursor.fetchall()]
    yield _clock(abs(here_s - server_s))
    yield _key(settings, sealed)
    if daemons:
        yield Finding("daemons", True, f"{len(daemons)} share the database: {'; '.join(daemons)}")


def _clock(off_s: float) -> Finding:
    text = f"differs by {off_s:.1f} s from the clock of the database server"
    if off_s <= _SKEW_S:
        return Finding("clock", True, text)
    return Finding(
        "clock", False, text,
        "run a time service (NTP) on both machines: daemons compare their clocks with it",
    )  # fmt: skip


def _key(settings: Settings, sealed: list[str]) -> Finding:
    """Whether the seal key of this daemon opens the data that the other daemons sealed."""
    what = "seal key"
    path = key_file(settings)
    if not path.exists():
        if not sealed:
            return Finding(what, True, f"the daemon will create {path} at its start")
        return Finding(
            what, False, f"{path} is missing, but the database has data that was sealed with a key",
            f"copy seal.key from a daemon that uses this database: install -m 600 KEY {path}",
        )  # fmt: skip
    try:
        sealer = FernetSealer(path)
        for each in sealed:
            sealer.open(each)
    except SealerError as error:
        return Finding(what, False, str(error), f"ls -l {path}")
    return Finding(what, True, f"{path} opens the sealed data")
