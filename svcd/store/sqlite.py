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

Note: one commit for several. A commit waits for the disk, and the reactor with it. So with a clock
the transactions of one turn of the reactor wait for its end, and share one commit. They run one
after the other, each between savepoints: its error takes back its own changes only. No caller hears
of its result before the commit, and no other statement runs in between, so uncommitted rows are
never read. An error that ends the whole transaction reaches all callers whose changes it takes
back.

Note: other writers. While another process writes, a transaction cannot begin. SQLite would wait,
and the reactor with it. So with a clock an attempt to begin fails at once, and the transactions
wait for the next attempt, each for two seconds at most. Reads go on: in WAL mode a writer does not
block them.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import Context, copy_context
from math import inf
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from svcd.errors import ServiceUnavailable
from svcd.runtime.tasks import sleep
from svcd.store.database import SchemaError
from svcd.store.sqlite_statements import RESERVE_BYTES, Statements, parted

T = TypeVar("T")

_JOURNAL_BYTES = 64 * 1024 * 1024
"""Size to which SQLite truncates the journal after a checkpoint."""
_MOST_TOGETHER = 64
"""Transactions that share one commit; those beyond it run in the next turn of the reactor."""
_BUSY_S = 2.0
"""Longest wait of a transaction for the end of another process's write."""
_AGAIN_S = 0.01
"""Time between two attempts of a daemon to begin meanwhile."""
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def _is_busy(error: BaseException | None) -> bool:
    """Whether another process holds the file, which passes."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


_Waiting: TypeAlias = tuple[Deferred[Any], Callable[[Statements], Awaitable[Any]], Context, float]
"""A transaction that waits to begin: its result, work and context, and its deadline."""


class SqliteDatabase:
    """A database in the file `path`, or in memory when `path` is None."""

    def __init__(
        self,
        path: Path | None,
        free_bytes: Callable[[], int] | None = None,
        clock: IReactorTime | None = None,
    ) -> None:
        """free_bytes: returns the free space of the file's disk; by default the system's figure.

        clock: the reactor, which transactions must not hold. Without it each transaction runs at
        once, and has a commit of its own. Raises SchemaError when the file cannot be opened.
        """
        self._path = path
        self.where = "the database" if path is None else f"the database {path}"
        self._clock = clock
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
                execute("pragma page_size=1024")  # each table and index takes a page at least
            else:
                execute("pragma page_size=8192")  # of a new file
                execute("pragma cache_size=-32768")  # KiB
                # the pages of savepoints stay in memory, not in a file of TMPDIR
                execute("pragma temp_store=memory")
                execute(f"pragma busy_timeout={_BUSY_S * 1000:.0f}")
                execute("pragma journal_mode=wal")
                execute("pragma synchronous=full")
                execute(f"pragma journal_size_limit={_JOURNAL_BYTES}")
        except sqlite3.Error as error:
            self._refuse_damage(error)
            raise SchemaError(f"cannot open the database {path}: {error}") from None
        if free_bytes is None:
            folder = None if path is None else path.absolute().parent

            def free_bytes() -> int:
                return RESERVE_BYTES if folder is None else shutil.disk_usage(folder).free

        self._statements = Statements(self._connection, free_bytes)

    async def tx(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Raises ServiceUnavailable when the file cannot be written (disk full, locked).

        A caller that is cancelled while its transaction waits for the end of the turn changes
        nothing; in PostgreSQL its change is made.
        """
        if self._clock is None:
            return self._committed(lambda: self._drive(work, writes=True))
        result: Deferred[T] = Deferred()
        if not self._waiting:
            self._clock.callLater(0.0, self._commit_waiting)
        patience = self._clock.seconds() + _BUSY_S
        self._waiting.append((result, work, copy_context(), patience))
        return await result

    def _committed(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in a transaction of the connection."""
        try:
            self._connection.execute("begin immediate")
            result = work()
            self._connection.execute("commit")
        except BaseException as error:
            self._statements.rooms.clear()
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            if isinstance(error, sqlite3.OperationalError):
                raise self._unavailable(error) from error
            raise
        return result

    def _commit_waiting(self) -> None:
        """Run the transactions that wait, commit them, and give their callers the results."""
        clock = self._clock
        if clock is None or not self._waiting:  # the database was closed
            return
        ran: list[tuple[Deferred[Any], Any]] = []
        delay_s = 0.0

        def run() -> None:
            while self._waiting and len(ran) < _MOST_TOGETHER:
                result, work, context, _ = self._waiting.popleft()
                if result.called:  # the caller has given up
                    continue
                ran.append((result, None))
                ran[-1] = result, context.run(self._apart, work)

        try:
            self._connection.execute("pragma busy_timeout=0")
            self._committed(run)
        except BaseException as error:
            failure = Failure(error)
            ran = [(result, failure) for result, _ in ran]
            if not ran:  # the transaction could not begin
                delay_s = _AGAIN_S
                now = clock.seconds() if _is_busy(error.__cause__) else inf
                while self._waiting and self._waiting[0][3] <= now:
                    ran.append((self._waiting.popleft()[0], failure))
        if self._waiting:
            clock.callLater(delay_s, self._commit_waiting)
        for result, value in ran:
            if not result.called:
                result.callback(value)

    def _apart(self, work: Callable[[Statements], Awaitable[T]]) -> T | Failure:
        """The result or the failure of one of several transactions with one commit.

        Raises the error that has ended the transaction of all of them.
        """
        execute = self._connection.execute
        execute("savepoint one")
        try:
            result = self._drive(work, writes=True)
        except BaseException as error:
            self._statements.rooms.clear()
            if not self._connection.in_transaction:
                raise
            execute("rollback to one")
            execute("release one")
            if isinstance(error, sqlite3.OperationalError):
                error = self._unavailable(error)
            return Failure(error)
        execute("release one")
        return result

    async def read(self, work: Callable[[Statements], Awaitable[T]]) -> T:
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
            for statement in parted(text):
                self._connection.execute(statement)
            self._connection.execute("commit")
        except BaseException as error:
            if self._connection.in_transaction:
                self._connection.execute("rollback")
            self._refuse_damage(error)
            if isinstance(error, sqlite3.OperationalError):
                raise SchemaError(
                    f"the schema of {self._path} cannot be changed: {error}"
                ) from None
            raise

    def copy_to(self, other: SqliteDatabase) -> None:
        """Replace the schema and the rows of `other` with those of this database."""
        self._connection.backup(other._connection)

    async def close(self) -> None:
        while self._clock is not None and self._waiting:
            self._commit_waiting()
            if self._waiting:
                await sleep(self._clock, _AGAIN_S)
        self._connection.close()

    def _drive(self, work: Callable[[Statements], Awaitable[T]], writes: bool = False) -> T:
        self._statements.writes = writes
        coroutine = cast("Coroutine[Any, Any, T]", work(self._statements))
        try:
            try:
                coroutine.send(None)
            except StopIteration as stop:
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
