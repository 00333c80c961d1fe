"""The statements of a transaction on PostgreSQL, and its dialect of the common SQL text.

This module decides the error that a caller gets for a failure of the server. `svcd.store.postgres`
decides which transactions run again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import psycopg2
from psycopg2 import errorcodes
from twisted.logger import Logger

from svcd.errors import InvalidData, ServiceUnavailable
from svcd.store.changes import Feed
from svcd.store.database import PART_BYTES, Conflict, Joined, Parameters, Rooms, Row
from svcd.store.lease.keeper import CHANNEL
from svcd.store.sessions import Lost, Session, line_of

log = Logger()

_TOKENS = {
    "{blob}": "bytea",
    "{c}": 'collate "C"',
    "{bigint}": "bigint",
    "{sqlite}": "-- ",  # begins a line that only SQLite needs
}
_QUOTED = re.compile(r"('(?:[^']|'')*')")
_NAME = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
AGAIN: Final = frozenset({errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED})
"""The codes of a transaction that the server rolled back in favour of another one."""
NOTIFY = f"select pg_notify('{CHANNEL}', :text)"

_POSITION = re.compile(r"[0-9]{1,19}:[0-9]{1,19}:([0-9]{1,19}(,[0-9]{1,19})*)?")
_MOST_XID = (1 << 63) - 1


def usable(position: str, here: str) -> bool:
    """See Feed. The server accepts only snapshots whose numbers are in order."""
    if not _POSITION.fullmatch(position):
        return False
    low, high, running = _snapshot(position)
    ordered = all(one < other for one, other in itertools.pairwise(running))
    inside = not running or (low <= running[0] and running[-1] < high)
    return 0 < low <= high <= min(_snapshot(here)[1], _MOST_XID) and ordered and inside


def _snapshot(position: str) -> tuple[int, int, list[int]]:
    low, high, running = position.split(":")
    return int(low), int(high), [int(part) for part in running.split(",") if part]


FEED = Feed(
    number="txid_current()",
    bump="",
    position="txid_current_snapshot()::text",
    mark="txid_snapshot_xmin(txid_current_snapshot())",
    epoch=(
        "'-' || (select system_identifier from pg_control_system())"
        " || '-' || (select oid from pg_database where datname = current_database())"
        " || '-' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
    ),
    later=(
        "({column} >= txid_snapshot_xmin({position}::txid_snapshot)"
        " and not txid_visible_in_snapshot({column}, {position}::txid_snapshot))"
    ),
    unsure="{column} >= txid_snapshot_xmin({position}::txid_snapshot)",
    usable=usable,
)
"""The epoch holds the server, the database and the timeline of its log. The functions with `txid`
have newer names, which PostgreSQL 12 does not know."""


class Again(Exception):
    """The server rolled the transaction back in favour of another one: it can be repeated."""


class Second(Exception):
    """A read without a transaction asked for a second statement."""


@functools.lru_cache(maxsize=2000)
def translate(text: str) -> tuple[str, bool]:
    """The common SQL text in PostgreSQL's dialect, and whether it has parameters."""
    for token, word in _TOKENS.items():
        text = text.replace(token, word)
    parts = _QUOTED.split(text)
    if not any(_NAME.search(part) for part in parts[::2]):
        return text, False
    doubled = [part.replace("%", "%%") for part in parts]
    doubled[::2] = [_NAME.sub(r"%(\1)s", part) for part in doubled[::2]]
    return "".join(doubled), True


class Statements:
    """Implements `Sql` on one session. begin: sent with the first statement."""

    feed = FEED
    rooms: Rooms | None = None

    def __init__(self, session: Session, begin: str) -> None:
        self._session = session
        self._begin = begin
        self._begun = False
        self._ahead: dict[tuple[object, ...], Row | None] = {}
        self._last: list[bytes] = []

    async def all(self, text: str, parameters: Parameters | None = None) -> Sequence[Row]:
        return cast("Sequence[Row]", (await self._execute(text, parameters)).fetchall())

    async def joined(
        self, column: str, rows: str, parameters: Parameters, limit: int
    ) -> Joined | None:
        """See Sql. The daemon joins the texts: string_agg costs the server more time."""
        inner = (
            f"select {column} as part, created_at, id, sum(octet_length({column})) over"
            " (order by created_at, id rows unbounded preceding) - octet_length"
            f"({column}) as before {rows} order by created_at, id limit {limit}"
        )
        text = (
            f"select part, created_at, id from ({inner}) as parts where before < {PART_BYTES}"
            " order by created_at, id"
        )
        records = (await self._execute(text, parameters, raw=True)).fetchall()
        if not records:
            return None
        texts = [row[0] for row in records]
        _, created_at, id_ = records[-1]
        more = len(records) == limit or sum(map(len, texts)) >= PART_BYTES
        return b",".join(texts), len(texts), (created_at.decode(), id_.decode()) if more else None

    async def one(self, text: str, parameters: Parameters | None = None) -> Row | None:
        return cast("Row | None", (await self._execute(text, parameters)).fetchone())

    async def ahead(self, text: str, parameters: Parameters) -> Row | None:
        key = text, *parameters.values()
        if key not in self._ahead and not self._begun:
            begin, self._begin = self._begin, ""
            try:
                self._ahead[key] = await self.one(text, parameters)
            finally:
                self._begin, self._begun = begin, False
        return self._ahead.get(key)

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        return cast("int", (await self._execute(text, parameters)).rowcount)

    async def at_commit(self, text: str, parameters: Parameters | None = None) -> None:
        """See Sql. It saves a round trip to the server."""
        sql, has_parameters = translate(text)
        with _texts():
            try:
                filled = self._session.filled(sql, parameters if has_parameters else None)
            except Lost as lost:
                raise _unchanged(lost) from lost
        self._last.append(filled)

    async def notify(self, text: str) -> None:
        await self.at_commit(NOTIFY, {"text": text})

    async def commit(self) -> None:
        """Commit. Raises RuntimeError when the transaction ignored a failed statement."""
        if not self._session.in_transaction:
            if self._begun:
                raise _unchanged(Lost("closed"))
            if not self._last:
                return
        if self._session.failed:
            await self.rollback()
            raise RuntimeError("the transaction ignored a failed statement")
        try:
            await self._send(b";".join([*self._last, b"commit"]))
        except Lost as lost:
            raise ServiceUnavailable(
                f"the connection to the database broke: {lost}; it is not known whether the change"
                " was made: check this first, then try again"
            ) from lost

    async def rollback(self) -> None:
        """Roll back. It never fails: a session that cannot roll back is closed."""
        if self._session.in_transaction:
            try:
                await self._session.execute("rollback")
            except (psycopg2.Error, Lost) as error:
                log.info("A rollback failed: {reason}", reason=line_of(error))
                self._session.close()

    async def _execute(self, text: str, parameters: Parameters | None, raw: bool = False) -> Any:
        sql, has_parameters = translate(text)
        try:
            return await self._send(sql, parameters if has_parameters else None, raw)
        except Lost as lost:
            raise _unchanged(lost) from lost

    def _next(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        return self._begin

    async def _send(
        self,
        sql: str | bytes,
        parameters: Mapping[str, object] | None = None,
        raw: bool = False,
    ) -> Any:
        """Run `sql`, after the transaction's `begin` when it is the first statement."""
        begin = self._next()
        text = begin + sql if isinstance(sql, str) else begin.encode() + sql
        with _texts():
            try:
                return await self._session.execute(text, parameters, raw=raw)
            except psycopg2.Error as error:
                raise _meaning(error) from error


class OneStatement(Statements):
    """Implements `Sql` for a read of one statement, which needs no transaction."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, "")
        self._used = False

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        """Raises RuntimeError: a read must not write."""
        raise RuntimeError("a read must not write")

    async def at_commit(self, text: str, parameters: Parameters | None = None) -> None:
        """Raises RuntimeError: a read must not write."""
        raise RuntimeError("a read must not write")

    def _next(self) -> str:
        if self._used:
            raise Second
        self._used = True
        return ""


@contextlib.contextmanager
def _texts() -> Iterator[None]:
    """Raises InvalidData for a text that the database cannot store."""
    try:
        yield
    except (ValueError, UnicodeError) as error:
        raise InvalidData(f"a text cannot be stored: {error}") from error


def _unchanged(lost: Lost) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"the connection to the database broke: {lost}; nothing was changed, try again"
    )


def _meaning(error: psycopg2.Error) -> Exception:
    """The error that the callers of a transaction get for an error of the server."""
    code = error.pgcode or ""
    if code in AGAIN:
        return Again(line_of(error))
    if isinstance(error, psycopg2.IntegrityError):
        return Conflict(error.diag.constraint_name or line_of(error))
    if isinstance(error, psycopg2.DataError):
        return InvalidData(f"a value cannot be stored: {line_of(error)}")
    if code == errorcodes.QUERY_CANCELED:
        return ServiceUnavailable(
            "the database took too long for a statement; nothing was changed, try again"
        )
    read_only = code == errorcodes.READ_ONLY_SQL_TRANSACTION
    if read_only or isinstance(error, (psycopg2.OperationalError, psycopg2.InterfaceError)):
        return ServiceUnavailable(
            f"the database cannot serve now: {line_of(error)}; nothing was changed, try again"
        )
    return cast("Exception", error)
