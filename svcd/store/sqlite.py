# mypy: allow-untyped-calls
"""SQLite in the reactor thread: a transaction runs to its end without returning to the reactor.

Measured: a read costs about 15 us, a write to a file in WAL mode 60-170 us; a thread pool would
cost more than ten times a read. Statements are therefore indexed and bounded, never scans.

Note: pages. A thousand clusters need more than SQLite's default cache of 2 MiB: with that cache,
each list read every page from the file again, at four times the cost. Larger pages make storing
binaries cheaper.

Note: a full disk. Even a deletion needs space in the journal. So the driver refuses large values
while little space is left: the space for the daemon's own rows, and for the deletion of an upload,
stays free.

Note: one commit for several. A commit waits for the disk, and the reactor with it. So with `soon`
the transactions of one turn of the reactor wait for its end, and share one commit. They run one
after the other, each between savepoints: its error takes back its own changes only. No caller hears
of its result before the commit, and no other statement runs in between, so uncommitted rows are
never read. An error that ends the whole transaction reaches all callers whose changes it takes
back.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from svcd.errors import InvalidData, ServiceUnavailable
from svcd.store.changes import Feed
from svcd.store.database import (
    PART_BYTES,
    Conflict,
    Joined,
    Parameters,
    Refused,
    Rooms,
    Row,
    SchemaError,
)

T = TypeVar("T")

_LARGE_BYTES = 65_536
"""A larger value is refused while the disk has less than `_RESERVE_BYTES` left."""
_RESERVE_BYTES = 64 * 1024 * 1024
"""Disk space kept free for the daemon's own rows."""
_JOURNAL_BYTES = 64 * 1024 * 1024
"""Size to which SQLite truncates the journal after a checkpoint."""
_MOST_TOGETHER = 64
"""Transactions that share one commit; those beyond it run in the next turn of the reactor."""

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_INSTANCES = """(
  select coalesce(sum(json_extract(g.value, '$.count')), 0)
    from json_each(record, '$.node_groups') g
)"""
_TOKENS = {
    "{blob}": "blob",
    "{c}": "",
    "{bigint}": "integer",
    "{instances}": _INSTANCES,
    "{sqlite}": "",
}

_POSITION = re.compile(r"[0-9]{1,18}")


def usable(position: str, here: str) -> bool:
    """See Feed."""
    return bool(_POSITION.fullmatch(position)) and int(position) <= int(here)


FEED = Feed(
    number="(select number from feed)",
    bump="update feed set number = number + 1",
    position="cast(number as text)",
    mark="(select number + 1 from feed)",
    epoch="''",
    later="{column} > cast({position} as integer)",
    unsure="{column} > cast({position} as integer)",
    usable=usable,
)


def translate(text: str) -> str:
    """The common SQL text in SQLite's dialect."""
    for token, word in _TOKENS.items():
        text = text.replace(token, word)
    return text


class _Statements:
    """Implements `Sql`; each await returns at once. writes: not in a read."""

    feed = FEED

    def __init__(self, connection: sqlite3.Connection, free_bytes: Callable[[], int]) -> None:
        self._connection = connection
        self._free_bytes = free_bytes
        self._later: tuple[str, Parameters | None, Refused | None] | None = None
        self.rooms: Rooms | None = {}
        self.writes = False

    def flush(self) -> None:
        """Run the delayed write. Raises its Conflict, converted by `refused`."""
        if self._later is None:
            return
        (text, parameters, refused), self._later = self._later, None
        try:
            self._write(text, parameters)
        except Conflict as conflict:
            raise (conflict if refused is None else refused(conflict)) from None

    def forget(self) -> None:
        """Drop the delayed write, and the counts that a transaction took before its rollback."""
        self._later = None
        if self.rooms is not None:
            self.rooms.clear()

    def _execute(self, text: str, parameters: Parameters | None) -> sqlite3.Cursor:
        for value in parameters.values() if parameters else ():
            if isinstance(value, str) and "\0" in value:  # PostgreSQL cannot store it
                raise InvalidData("a text cannot be stored: it holds the character NUL")
        try:
            return self._connection.execute(text, cast("dict[str, Any]", parameters or {}))
        except sqlite3.IntegrityError as error:
            raise Conflict(str(error).split(": ", 1)[-1]) from error

    async def all(self, text: str, parameters: Parameters | None = None) -> Sequence[Row]:
        self.flush()
        return self._execute(text, parameters).fetchall()

    async def joined(
        self, column: str, rows: str, parameters: Parameters, limit: int
    ) -> Joined | None:
        """See Sql. The cursor reads no row before it is asked for, and a blob is not decoded."""
        self.flush()
        text = f"select cast({column} as blob), created_at, id {rows} order by created_at, id"
        cursor = self._execute(text, parameters)
        found: list[bytes] = []
        size, last = 0, None
        for each, created_at, id_ in cursor:
            found.append(each)
            size += len(each)
            if len(found) == limit or size >= PART_BYTES:
                last = created_at, id_
                break
        cursor.close()
        return (b",".join(found), len(found), last) if found else None

    async def one(self, text: str, parameters: Parameters | None = None) -> Row | None:
        self.flush()
        return cast("Row | None", self._execute(text, parameters).fetchone())

    async def ahead(self, _text: str, _parameters: Parameters) -> Row | None:
        """None: transactions run alone."""
        return None

    async def notify(self, text: str) -> None:
        """Do nothing: no other daemon uses the database."""

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        self.flush()
        return self._write(text, parameters)

    async def later(
        self, text: str, parameters: Parameters | None = None, refused: Refused | None = None
    ) -> None:
        """See Sql. The delay saves nothing here: it makes both drivers behave alike."""
        if not self.writes:
            raise RuntimeError("a read left a write for later")
        self.flush()
        self._later = text, parameters, refused

    def _write(self, text: str, parameters: Parameters | None) -> int:
        if parameters is not None and any(
            isinstance(each, bytes) and len(each) > _LARGE_BYTES for each in parameters.values()
        ):
            free = self._free_bytes()
            if free < _RESERVE_BYTES:
                raise sqlite3.OperationalError(
                    f"its disk has {free >> 20} MiB left, and svcd keeps {_RESERVE_BYTES >> 20} MiB"
                    " free: make room"
                )
        return self._execute(text, parameters).rowcount


_Waiting: TypeAlias = tuple[Deferred[Any], Callable[[_Statements], Awaitable[Any]], Context]
"""A transaction that waits for the end of the turn: its result, its work, and its context."""


class SqliteDatabase:
    """A database in the file `path`, or in memory when `path` is None."""

    def __init__(
        self,
        path: Path | None,
        free_bytes: Callable[[], int] | None = None,
        soon: Callable[[Callable[[], object]], object] | None = None,
    ) -> None:
        """free_bytes: returns the free space of the file's disk; by default the system's figure.

        soon: calls a function in the next turn of the reactor. Without it each transaction runs at
        once, and has a commit of its own. Raises SchemaError when the file cannot be opened.
        """
        self._path = path
        self._soon = soon
        self._waiting: deque[_Waiting] = deque()
        try:
            self._connection = sqlite3.connect(
                ":memory:" if path is None else path,
                isolation_level=None,
                cached_statements=512,
                check_same_thread=False,
            )
            execute = self._connection.execute
            execute("pragma foreign_keys=on")
            execute("pragma case_sensitive_like=on")
            if path is None:
                execute("pragma page_size=1024")  # each table and index takes one at least
            else:
                execute("pragma page_size=8192")  # of a new file
                execute("pragma cache_size=-32768")  # KiB
                execute("pragma temp_store=memory")  # what a savepoint keeps, else a file in TMPDIR
                execute("pragma busy_timeout=2000")
                execute("pragma journal_mode=wal")
                execute("pragma synchronous=full")
                execute(f"pragma journal_size_limit={_JOURNAL_BYTES}")
        except sqlite3.Error as error:
            self._refuse_damage(error)
            raise SchemaError(
                f"cannot open the database {path}: {error}; check the folder's owner and space"
            ) from None
        if free_bytes is None:
            folder = None if path is None else path.absolute().parent

            def free_bytes() -> int:
                return _RESERVE_BYTES if folder is None else shutil.disk_usage(folder).free

        self._statements = _Statements(self._connection, free_bytes)

    async def tx(self, work: Callable[[_Statements], Awaitable[T]]) -> T:
        """Raises ServiceUnavailable when the file cannot be written (disk full, locked).

        A caller that is cancelled while its transaction waits for the end of the turn changes
        nothing; in PostgreSQL its change is made.
        """
        if self._soon is None:
            return self._committed(lambda: self._drive(work, writes=True))
        result: Deferred[T] = Deferred()
        if not self._waiting:
            self._soon(self._commit_waiting)
        self._waiting.append((result, work, copy_context()))
        return await result

    def _committed(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a transaction of the connection."""
        try:
            self._connection.execute("begin immediate")
            result = work()
            self._connection.execute("commit")
        except BaseException as error:
            self._statements.forget()
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            if isinstance(error, sqlite3.OperationalError):
                raise self._unavailable(error) from error
            raise
        return result

    def _commit_waiting(self) -> None:
        """Run the transactions that wait, commit them, and give their callers the results."""
        if not self._waiting:  # the database was closed
            return
        ran: list[tuple[Deferred[Any], Any]] = []

        def run() -> None:
            while self._waiting and len(ran) < _MOST_TOGETHER:
                result, work, context = self._waiting.popleft()
                if result.called:  # its caller has given up
                    continue
                ran.append((result, None))
                ran[-1] = result, context.run(self._apart, work)

        try:
            self._committed(run)
        except BaseException as error:
            failure = Failure(error)
            ran = [(result, failure) for result, _ in ran]
            if not ran:  # the transaction could not begin
                ran = [(result, failure) for result, _, _ in self._waiting if not result.called]
                self._waiting.clear()
        if self._waiting and self._soon is not None:
            self._soon(self._commit_waiting)
        for result, value in ran:
            if not result.called:
                result.callback(value)

    def _apart(self, work: Callable[[_Statements], Awaitable[T]]) -> T | Failure:
        """The result or the failure of one of several transactions with one commit.

        Raises the error that has ended the transaction of all of them.
        """
        execute = self._connection.execute
        execute("savepoint one")
        try:
            result = self._drive(work, writes=True)
        except BaseException as error:
            self._statements.forget()
            if not self._connection.in_transaction:
                raise
            execute("rollback to one")
            execute("release one")
            if isinstance(error, sqlite3.OperationalError):
                error = self._unavailable(error)
            return Failure(error)
        execute("release one")
        return result

    async def read(self, work: Callable[[_Statements], Awaitable[T]]) -> T:
        """Run `work` without a transaction: nothing else can run between its statements."""
        try:
            return self._drive(work)
        except sqlite3.OperationalError as error:
            raise self._unavailable(error) from error

    async def script(self, text: str) -> None:
        """Statements separated by `;` at the end of a line, in one transaction.

        Raises SchemaError when the file is damaged or cannot be written (disk full, locked).
        """
        try:
            self._connection.execute("begin immediate")
            for statement in re.split(r";\s*\n", translate(text)):
                if statement.strip():
                    self._connection.execute(statement)
            self._connection.execute("commit")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            self._refuse_damage(error)
            if isinstance(error, sqlite3.OperationalError):
                raise SchemaError(
                    f"the schema of {self._path} cannot be changed: {error}; make room on its disk,"
                    " end other programs that use it, and start again"
                ) from None
            raise

    def copy_to(self, other: SqliteDatabase) -> None:
        """Replace the schema and the rows of `other` with those of this database."""
        self._connection.backup(other._connection)

    async def close(self) -> None:
        while self._waiting:
            self._commit_waiting()
        self._connection.close()

    def _drive(self, work: Callable[[_Statements], Awaitable[T]], writes: bool = False) -> T:
        self._statements.writes = writes
        coroutine = cast("Coroutine[Any, Any, T]", work(self._statements))
        try:
            try:
                coroutine.send(None)
            except StopIteration as stop:
                if writes:
                    self._statements.flush()
                return cast("T", stop.value)
        except sqlite3.DatabaseError as error:
            self._refuse_damage(error)
            raise
        coroutine.close()
        raise RuntimeError("a transaction may await only the statements of its own database")

    def _refuse_damage(self, error: BaseException) -> None:
        """Raises SchemaError when the file's content is not a sound database."""
        # Errors raised in Python, for example for a full disk, have no code.
        if getattr(error, "sqlite_errorcode", None) in _DAMAGED:
            raise SchemaError(
                f"the database {self._path} is damaged ({error}): restore a backup (svcd restore)"
            ) from error

    @staticmethod
    def _unavailable(error: sqlite3.Error) -> ServiceUnavailable:
        return ServiceUnavailable(
            f"the database cannot serve now: {error}; nothing was changed, try again"
        )
