"""A PostgreSQL server that the tests start themselves, and databases in it.

Its data lie in a temporary folder, it listens on a UNIX socket there, and it ends with the process.
PGHOST and its like name another server instead, on which the user may create databases; tests that
stop or freeze the server need one of our own all the same.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from twisted.trial.unittest import SkipTest

try:
    import psycopg2
except ImportError:
    psycopg2 = None

_USER = "svcd"
_READY_S = 30.0
_SET_DEATH_SIGNAL = 1
_WAITS = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
_CUT_OWNER = """
select count(pg_terminate_backend(pid, 5000)) from pg_locks
 where locktype = 'advisory' and granted
   and database = (select oid from pg_database where datname = current_database())
"""
_FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")


def binaries() -> Path | None:
    """The newest server of this machine."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3])
    )
    if found:
        return found[-1].parent
    named = shutil.which("postgres")
    return Path(named).resolve().parent if named else None


class PostgresServer:
    """One server with its data. It can be stopped and started again."""

    def __init__(self) -> None:
        where = binaries()
        if where is None:
            raise SkipTest("PostgreSQL is not installed: apt-get install postgresql")
        self._bin = where
        self._as = _unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="svcd-pg-"))
        self._process: subprocess.Popen[bytes] | None = None
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
        self._run("initdb", "-D", str(self.folder / "data"), "-U", _USER, "--auth=trust",
                  "--no-sync", "--encoding=UTF8", "--locale=C", "--no-instructions")  # fmt: skip
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [f"-c{each}" for each in _FAST]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self.folder / "data"),
                 "-k", str(self.folder), "-clisten_addresses=", *settings],
                stdout=log, stderr=log, start_new_session=True, cwd="/",
                preexec_fn=_end_with_us, **self._as,
            )  # fmt: skip
        end = time.monotonic() + _READY_S
        while True:
            try:
                self.execute("select 1")
                return
            except psycopg2.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """End it at once, cutting all connections."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_READY_S)
            self._process = None

    def freeze(self) -> None:
        """Stop all its processes where they are."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """End it, and its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"postgresql://{_USER}@/{database}?host={quote(str(self.folder), safe='')}"

    def execute(self, text: str, database: str = "postgres") -> list[Any]:
        """The rows of one statement, outside of a transaction."""
        return execute(self.url(database), text)

    def _signal(self, number: int) -> None:
        if self._process is None:
            return
        main = self._process.pid
        try:
            children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        except FileNotFoundError:
            return
        for pid in (main, *map(int, children)):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as,
        )  # fmt: skip


def execute(url: str, text: str) -> list[Any]:
    """The rows of one statement on a connection of its own."""
    connection = psycopg2.connect(url, connect_timeout=5)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


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


@functools.cache
def own_server() -> PostgresServer:
    """The server of this process. Raises SkipTest."""
    if psycopg2 is None:
        raise SkipTest("psycopg2 is not installed: pip install 'svcd[postgresql]'")
    made = PostgresServer()
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


def _end_with_us() -> None:
    """In the server's process: it ends when the tests are killed."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGINT)


def _unprivileged() -> dict[str, Any]:
    """As whom the server runs: root may not."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
