"""A PostgreSQL database on a blocking connection of a command.

Note: waits. libpq waits for ever for a server that does not answer. So the connection is an
asynchronous one, and every wait for its socket has a deadline. Cursors are declared in SQL, because
the library offers no cursors on such connections. Each statement handles one batch of rows, so a
deadline does not depend on the size of the database.
"""

from __future__ import annotations

import contextlib
import itertools
import select
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg2
from attrs import evolve
from psycopg2 import errorcodes, extensions

from svcd.model.redaction import without_passwords
from svcd.settings import Database as DatabaseSettings
from svcd.store.database import Row, SchemaError
from svcd.store.lease.lock import LOCK, LOCK_KEY
from svcd.store.offline.session import ROWS_AT_ONCE, OfflineError
from svcd.store.offline.shape import TableShape
from svcd.store.postgres_statements import translate
from svcd.store.sessions import (
    AWAKE,
    ENCODING,
    connection_text,
    encoding_refusal,
    line_of,
    remedy_of,
)

_STATEMENT_S = 120.0
"""Longest time for one statement."""
_SLACK_S = 2.0
"""Added to that deadline: a server that answers applies its own time-out first."""
_LOCK_S = 10.0
"""Longest wait for the lock of a table."""
_SNAPSHOT = "begin isolation level repeatable read read only"
_TABLES = "select tablename from pg_tables where schemaname = current_schema()"
_DAEMONS = f"""
select a.pid, coalesce(host(a.client_addr), 'this host'), a.backend_start::text
  from pg_stat_activity a
 where a.datname = current_database() and a.pid <> pg_backend_pid()
   and (a.application_name = %(name)s
        or a.application_name ~ '^svcd-[0-9a-f]{{16}}$'
        or a.pid in (select l.pid from pg_locks l
                      where l.locktype = 'advisory' and l.classid = {LOCK_KEY} and l.granted
                        and l.database = (select oid from pg_database
                                           where datname = current_database())))
 order by a.backend_start limit 1
"""
"""Daemons that share the database have an application_name of `svcd.service`. The name is
checked too, because such a daemon may briefly not hold its lock."""


class PostgresSession:
    """Implements OfflineSession. command: the application_name at the server (`svcd backup`)."""

    def __init__(
        self, settings: DatabaseSettings, command: str, statement_s: float = _STATEMENT_S
    ) -> None:
        """Raises OfflineError."""
        self.where = f"the database {without_passwords(settings.url)}"
        self._limit_s = statement_s + _SLACK_S
        self._cursors = itertools.count(1)
        try:
            given = extensions.parse_dsn(
                connection_text(evolve(settings, statement_timeout_s=statement_s))
            )
        except SchemaError as error:
            raise OfflineError(str(error)) from None
        self._daemons_name = given.get("application_name", "svcd")
        given["application_name"] = command
        given["options"] += f" -c lock_timeout={int(_LOCK_S * 1000)}"
        with self._named():
            self._connection = psycopg2.connect(extensions.make_dsn(**given), async_=1)
        try:
            self._wait(max(1.0, settings.connect_timeout_s))
            self._execute(AWAKE)  # the session that has the lock waits while others work
            if why := encoding_refusal(self.where, self._execute(ENCODING).fetchone()[0]):
                raise OfflineError(why)
        except BaseException:
            self._connection.close()
            raise

    def alone(self) -> None:
        """Take the exclusive lock. Raises OfflineError while a daemon uses the database."""
        locked = self._execute(LOCK).fetchone()[0]
        daemon = self._execute(_DAEMONS, {"name": self._daemons_name}).fetchone()
        if daemon is not None or not locked:
            who = (
                f"process {daemon[0]} of the server, connected from {daemon[1]}"
                f" since {daemon[2][:19]}"
                if daemon
                else "its connection has ended by now"
            )
            raise OfflineError(f"a daemon has {self.where} ({who}): stop it first")

    def snapshot(self) -> None:
        self._execute(_SNAPSHOT)

    def begin(self) -> None:
        self._execute("begin read write")

    def commit(self) -> None:
        self._execute("commit")

    def rollback(self) -> None:
        if not self._connection.closed and not self._connection.isexecuting():
            with contextlib.suppress(OfflineError):  # the server rolls back when we disconnect
                self._execute("rollback")

    def close(self) -> None:
        self._connection.close()

    def rows(self, text: str, parameters: Mapping[str, object] | None = None) -> Iterator[Row]:
        name = f"svcd_{next(self._cursors)}"
        sql, _ = translate(text)
        self._execute(f"declare {name} no scroll cursor for {sql}", parameters or None)
        while True:
            rows = self._execute(f"fetch {ROWS_AT_ONCE} from {name}").fetchall()
            yield from map(_plain, rows)
            if len(rows) < ROWS_AT_ONCE:
                break
        self._execute(f"close {name}")

    def one(self, text: str, parameters: Mapping[str, object] | None = None) -> Row | None:
        row = self._execute(translate(text)[0], parameters or None).fetchone()
        return None if row is None else _plain(row)

    def script(self, text: str) -> None:
        self._execute(translate(text)[0])

    def insert(self, table: TableShape, rows: Iterable[Sequence[Any]]) -> None:
        values = f"({', '.join(['%s'] * len(table.columns))})"
        start = f"insert into {table.name} ({', '.join(table.columns)}) values ".encode()
        cursor, left = self._connection.cursor(), iter(rows)
        while batch := tuple(itertools.islice(left, ROWS_AT_ONCE)):
            with self._named():
                filled = [cursor.mogrify(values, tuple(row)) for row in batch]
            self._execute(start + b", ".join(filled))

    def tables(self) -> frozenset[str]:
        return frozenset(str(row[0]) for row in self._execute(_TABLES).fetchall())

    def faults(self) -> Iterator[str]:
        """No faults: the server checks the rows that it reads, and the caller reads every row."""
        return iter(())

    def _execute(self, sql: str | bytes, parameters: Mapping[str, object] | None = None) -> Any:
        with self._named():
            cursor = self._connection.cursor()
            cursor.execute(sql, parameters)
            self._wait(self._limit_s)
            return cursor

    def _wait(self, limit_s: float) -> None:
        end = time.monotonic() + limit_s
        with self._named():
            while (state := self._connection.poll()) != extensions.POLL_OK:
                file = [self._connection.fileno()]
                wanted = (file, []) if state == extensions.POLL_READ else ([], file)
                ready = select.select(*wanted, [], max(0.0, end - time.monotonic()))
                if not any(ready):
                    self._connection.close()
                    raise OfflineError(
                        f"{self.where} did not answer within {limit_s:.0f} s; nothing was changed"
                    )

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except psycopg2.Error as error:
            remedy = remedy_of(error)
            if error.pgcode == errorcodes.LOCK_NOT_AVAILABLE:
                remedy = "another program uses its tables: stop that program first"
            raise OfflineError(
                f"{self.where} cannot be used: {line_of(error)}; {remedy}"
            ) from error
        except (ValueError, UnicodeError) as error:
            raise OfflineError(f"{self.where} cannot store a text: {error}") from error


def _plain(row: Sequence[Any]) -> Row:
    return tuple(bytes(v) if isinstance(v, memoryview) else v for v in row)
