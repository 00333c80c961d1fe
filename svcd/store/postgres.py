"""PostgreSQL through txpostgres, behind the same port as SQLite.

Note: transactions. In SQLite a transaction runs alone, and the families rely on that. Here each
transaction is SERIALIZABLE, which has the same effect: of two transactions in conflict the server
rolls one back, and `tx` runs that one again from its beginning, one at a time of those of this
daemon. `begin` is sent with the first statement; what is read `ahead` of it makes no conflict. The
writes of `at_commit` are sent with the commit.
A read of one statement needs no transaction. When a read asks for a second statement, it is run
again from its beginning on one snapshot.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import re
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, TypeVar, cast

import psycopg2
from attrs import frozen
from psycopg2 import errorcodes
from twisted.internet.defer import DeferredLock
from twisted.logger import Logger

from svcd.errors import InvalidData, ServiceUnavailable
from svcd.ports.store import DatabaseFigures
from svcd.runtime.tasks import DeadlineExceeded, Loop, shielded, sleep, with_deadline
from svcd.settings import Database as DatabaseSettings
from svcd.store.changes import Feed
from svcd.store.database import (
    PART_BYTES,
    Conflict,
    Joined,
    Parameters,
    Rooms,
    Row,
    SchemaError,
)
from svcd.store.lease.keeper import CHANNEL, LeaseKeeper, Me
from svcd.store.pool import RETRY_AFTER_S, Pool
from svcd.store.sessions import (
    ENCODING,
    Lost,
    Session,
    Sessions,
    encoding_refusal,
    line_of,
    remedy_of,
)

T = TypeVar("T")

log = Logger()

_TOKENS = {
    "{blob}": "bytea",
    "{c}": 'collate "C"',
    "{bigint}": "bigint",
    "{sqlite}": "-- ",  # begins a line that only SQLite needs
}
_QUOTED = re.compile(r"('(?:[^']|'')*')")
_NAME = re.compile(r"(?<!:):([a-z_][a-z0-9_]*)")
_WRITE = "begin isolation level serializable read write;"
_SNAPSHOT = "begin isolation level repeatable read read only;"
_SCRIPT = (
    "begin read write; set local statement_timeout = 0; select pg_advisory_xact_lock({key});"
    " set local lock_timeout = '1s';"
)
"""While a script waits for a table, all others wait for it too. So it gives way after a second."""
_SCRIPT_TRIES = 60
_SCRIPT_PAUSE_S = 0.5
_SCRIPT_KEY = 0x73766364
_ATTEMPTS = 25
"""Most runs of one transaction after conflicts with others."""
_PAUSE_S = 0.004
"""The random pause after attempt n is at most n times this."""
_AGAIN = frozenset({errorcodes.SERIALIZATION_FAILURE, errorcodes.DEADLOCK_DETECTED})
_IN_THE_WAY = _AGAIN | {errorcodes.LOCK_NOT_AVAILABLE}
_STOP_S = 5.0
"""Longest wait for current transactions at a stop."""
_NOTIFY = f"select pg_notify('{CHANNEL}', :text)"
_CHANGED = "changed"
_ANNOUNCE_S = 0.02
"""Time between the first change and its announcement, so that several changes share one."""
_IDLE_S = 3600.0
"""Time between two announcements without a change; they are empty."""
_ANNOUNCED = 64
"""Most tenants in one announcement: a notification has at most 8,000 bytes."""

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
    return int(low), int(high), [int(each) for each in running.split(",") if each]


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


class _Again(Exception):
    """The server rolled the transaction back in favour of another one: it can be repeated."""


class _Second(Exception):
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


class _Statements:
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
        found = (await self._execute(text, parameters, raw=True)).fetchall()
        if not found:
            return None
        texts = [row[0] for row in found]
        _, created_at, id_ = found[-1]
        more = len(found) == limit or sum(map(len, texts)) >= PART_BYTES
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
        await self.at_commit(_NOTIFY, {"text": text})

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


class _One(_Statements):
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
            raise _Second
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
    if code in _AGAIN:
        return _Again(line_of(error))
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


@frozen
class Sharing:
    """The identity and clocks of a daemon on a database.

    steady, wall: see svcd.store.lease.holding. wall None: the reactor's clock.
    """

    me: Me
    steady: Callable[[], float]
    wall: Callable[[], float] | None = None


class PostgresDatabase:
    """The database of `settings.url`.

    taken: called with one line when another daemon has the database alone, or has upgraded its
    schema. sharing: the identity of this daemon; None: it has the database alone, under a new name.
    """

    where = "the database"

    def __init__(
        self,
        reactor: Any,
        settings: DatabaseSettings,
        taken: Callable[[str], None],
        rng: random.Random | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        """Raises SchemaError when the URL cannot be understood."""
        self._clock = reactor
        self._settings = settings
        self._rng = rng or random.Random()
        if sharing is None:
            me = Me(f"svcd-{self._rng.randbytes(8).hex()}", "alone", alone=True)
            sharing = Sharing(me, reactor.seconds)
        self._me = sharing.me
        self._sessions = Sessions(reactor, settings, self._me.name)
        self._pool = Pool(reactor, self._sessions, max(1, settings.connections), settings.wait_s)
        self._taken = taken
        self.keeper = LeaseKeeper(
            reactor,
            sharing.steady,
            self._sessions,
            settings,
            self._me,
            self._shut_out,
            sharing.wall,
        )
        self.repeated = 0
        self._turns = DeferredLock()
        self._announced: set[str] = set()
        self._announcing = Loop(reactor, "announcements", _IDLE_S, self._announce)

    async def open(self) -> None:
        """Connect, and take the database alone or share it. Raises SchemaError."""
        self._sessions.start()
        try:
            await self.keeper.open()
            self._announcing.start(now=False)
            self._pool.start()
            if why := encoding_refusal(self.where, await self.read(_encoding)):
                raise SchemaError(why)
        except (Lost, ServiceUnavailable, psycopg2.Error) as error:
            await self.close()
            raise SchemaError(
                f"cannot open the database of database.url: {line_of(error)}; run svcd doctor"
            ) from None
        except BaseException:
            await self.close()
            raise

    def soon(self, call: Callable[[], object]) -> object:
        """See Distant."""
        return self._clock.callLater(0, call)

    def figures(self) -> DatabaseFigures:
        """See Distant."""
        return self._pool.figures(self.repeated)

    def announce(self, tenants: Iterable[str]) -> None:
        """See Distant. It does nothing when no other daemon shares the database."""
        if not self._me.alone:
            self._announced.update(tenants)
            self._announcing.wake()

    async def _announce(self) -> None:
        await sleep(self._clock, _ANNOUNCE_S)
        left, self._announced = sorted(self._announced), set()
        for first in range(0, len(left), _ANNOUNCED):
            text = " ".join([_CHANGED, self._me.name, *left[first : first + _ANNOUNCED]])
            await self.read(functools.partial(_notify, text=text))

    async def tx(self, work: Callable[[_Statements], Awaitable[T]]) -> T:
        """Raises ServiceUnavailable. A cancelled caller does not stop the transaction."""
        return await shielded(self._repeat(work, _WRITE))

    async def read(self, work: Callable[[_Statements], Awaitable[T]]) -> T:
        """Raises ServiceUnavailable. `work` may be run twice."""
        return await shielded(self._read(work))

    async def script(self, text: str) -> None:
        """One script at a time in the whole database. Raises SchemaError."""
        await shielded(self._script(text))

    async def close(self) -> None:
        """Wait for the current transactions, then release the database."""
        await self._announcing.stop()
        await self._pool.close(_STOP_S)
        await self.keeper.stop()
        await self._sessions.stop()

    async def _read(self, work: Callable[[_Statements], Awaitable[T]]) -> T:
        session = await self._pool.acquire()
        try:
            return await work(_One(session))
        except (_Second, _Again):
            pass
        finally:
            self._pool.release(session)
        return await self._repeat(work, _SNAPSHOT)

    async def _repeat(self, work: Callable[[_Statements], Awaitable[T]], begin: str) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            # the turn comes before the session: what waits for its turn holds no session
            async with self._turn() if attempt > 1 else contextlib.nullcontext():
                session = await self._pool.acquire()
                try:
                    return await _once(session, work, begin)
                except _Again:
                    self.repeated += 1
                finally:
                    self._pool.release(session)
            await sleep(self._clock, self._rng.random() * _PAUSE_S * attempt)
        raise ServiceUnavailable(
            f"the database rolled a change back {_ATTEMPTS} times in favour of others:"
            " nothing was changed, try again"
        )

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One at a time of those that were rolled back: side by side they would meet again."""
        try:
            waiting = self._turns.acquire()
            await with_deadline(self._clock, self._settings.wait_s, "turn", waiting)
        except DeadlineExceeded:
            raise ServiceUnavailable(
                f"the database rolled a change back, and others that it had rolled back took longer"
                f" than {self._settings.wait_s:g} s: nothing was changed, try again later",
                RETRY_AFTER_S,
            ) from None
        try:
            yield
        finally:
            # later, else those that wait and fail at once would nest until the stack is full
            self._clock.callLater(0.0, self._turns.release)

    async def _script(self, text: str) -> None:
        why: Exception | None = None
        for attempt in range(_SCRIPT_TRIES):
            if attempt:  # an older daemon may have started meanwhile
                await self.keeper.upgradable()
            try:
                await self._run_script(text)
                return
            except _Again as error:
                why = error
            if not attempt:
                log.warn("The schema waits for others who use its tables: {why}", why=why)
            await sleep(self._clock, _SCRIPT_PAUSE_S)
        raise SchemaError(
            f"the schema cannot be changed while others use its tables ({why}): end backups and"
            " long statements of other programs, then start this daemon again"
        )

    async def _run_script(self, text: str) -> None:
        """Raises _Again when others had locks that the script needs."""
        session = await self._pool.acquire()
        begin = _SCRIPT.format(key=_SCRIPT_KEY)
        try:
            await session.execute(f"{begin} {translate(text)[0]}", unlimited=True)
            await session.execute("commit", unlimited=True)
        except (psycopg2.Error, Lost) as error:
            await _Statements(session, "").rollback()
            if getattr(error, "pgcode", None) in _IN_THE_WAY:
                raise _Again(line_of(error)) from None
            if isinstance(error, psycopg2.IntegrityError):
                raise Conflict(error.diag.constraint_name or line_of(error)) from None
            raise SchemaError(
                f"the schema cannot be created: {line_of(error)}; {remedy_of(error)}"
            ) from None
        finally:
            self._pool.release(session)

    def _shut_out(self, reason: str) -> None:
        """Begin no transaction until the daemon has stopped."""
        self._pool.hold(reason)
        self._taken(reason)


async def _once(session: Session, work: Callable[[_Statements], Awaitable[T]], begin: str) -> T:
    sql = _Statements(session, begin)
    try:
        result = await work(sql)
        await sql.commit()
    except BaseException:
        await sql.rollback()
        raise
    return result


async def _notify(sql: _Statements, text: str) -> None:
    await sql.one(_NOTIFY, {"text": text})


async def _encoding(sql: _Statements) -> str:
    row = await sql.one(ENCODING)
    return str(row[0]) if row else ""
