"""Databases for tests, in a PostgreSQL server that the tests start themselves.

PGHOST and its like name another server instead, on which the user may create databases; tests that
stop or freeze the server need one of our own all the same.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest

from benchmarks.postgres_server import FAST, NotInstalled, PostgresServer, binaries, execute

try:
    import psycopg2
except ImportError:
    psycopg2 = None

__all__ = [
    "FAST",
    "PostgresServer",
    "binaries",
    "cut_owner",
    "drop_database",
    "execute",
    "new_database",
    "new_server",
    "own_server",
    "steal",
]

_READY_S = 30.0
_WAITS = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
_CUT_OWNER = """
select count(pg_terminate_backend(pid, 5000)) from pg_locks
 where locktype = 'advisory' and granted
   and database = (select oid from pg_database where datname = current_database())
"""


def steal(url: str, key: int) -> Any:
    """A connection that has taken the lock on the database from its daemon.

    It waits for the lock before the daemon loses it: else the daemon might be the faster one.
    """
    connection = psycopg2.connect(url)
    connection.autocommit = True

    def lock() -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"select pg_advisory_lock({key}, hashtext(current_schema()))")

    waiting = threading.Thread(target=lock, daemon=True)
    waiting.start()
    end = time.monotonic() + _READY_S
    while not execute(url, _WAITS)[0][0] and time.monotonic() < end:
        time.sleep(0.01)
    execute(url, _CUT_OWNER)
    waiting.join(_READY_S)
    return connection


def cut_owner(url: str) -> None:
    """End the connection that holds the lock on the database."""
    execute(url, _CUT_OWNER)


def new_server(settings: Sequence[str] = FAST, place: Path | None = None) -> PostgresServer:
    """A server of the caller's own, who removes it. Raises SkipTest."""
    try:
        return PostgresServer(settings, place)
    except NotInstalled as missing:
        raise SkipTest(str(missing)) from None


@functools.cache
def own_server() -> PostgresServer:
    """The server of this process. Raises SkipTest."""
    made = new_server()
    atexit.register(made.remove)
    return made


def new_database() -> tuple[str, str]:
    """URL and name of a new database, to be given to `drop_database`. Raises SkipTest."""
    name = f"svcd_{uuid.uuid4().hex[:12]}"
    if os.environ.get("PGHOST") and psycopg2 is not None:
        execute(
            "postgresql:///postgres", f"create database {name} encoding 'UTF8' template template0"
        )
        return f"postgresql:///{name}", name
    own_server().execute(f"create database {name}")
    return own_server().url(name), name


def drop_database(name: str) -> None:
    """Remove it, whoever is connected."""
    text = f"drop database if exists {name} with (force)"
    if os.environ.get("PGHOST"):
        execute("postgresql:///postgres", text)
    else:
        own_server().execute(text)
