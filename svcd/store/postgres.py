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
import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
)
from typing import Any, TypeVar

import psycopg2
from psycopg2 import errorcodes
from twisted.internet.defer import DeferredLock
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.ports.store import DatabaseFigures
from svcd.runtime.tasks import DeadlineExceeded, Loop, shielded, sleep, with_deadline
from svcd.settings import Database as DatabaseSettings
from svcd.store.database import (
    Conflict,
    SchemaError,
)
from svcd.store.lease.keeper import LeaseKeeper, Me
from svcd.store.pool import RETRY_AFTER_S, Pool
from svcd.store.postgres_statements import (
    AGAIN,
    NOTIFY,
    Again,
    OneStatement,
    Second,
    Statements,
    translate,
)
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
_IN_THE_WAY = AGAIN | {errorcodes.LOCK_NOT_AVAILABLE}
_STOP_S = 5.0
"""Longest wait for current transactions at a stop."""
_CHANGED = "changed"
_ANNOUNCE_S = 0.02
"""Time between the first change and its announcement, so that several changes share one."""
_IDLE_S = 3600.0
"""Time between two announcements without a change; they are empty."""
_ANNOUNCED = 64
"""Most tenants in one announcement: a notification has at most 8,000 bytes."""


class PostgresDatabase:
    """The database of `settings.url`.

    taken: called with one line when another daemon has the database alone, or has upgraded its
    schema. me: this daemon; None: it has the database alone, under a new name.
    """

    where = "the database"

    def __init__(
        self,
        reactor: Any,
        settings: DatabaseSettings,
        taken: Callable[[str], None],
        rng: random.Random | None = None,
        me: Me | None = None,
    ) -> None:
        """Raises SchemaError when the URL cannot be understood."""
        self._clock = reactor
        self._settings = settings
        self._rng = rng or random.Random()
        if me is None:
            name = f"svcd-{self._rng.randbytes(8).hex()}"
            me = Me(name, "alone", reactor.seconds, alone=True)
        self._me = me
        self._sessions = Sessions(reactor, settings, self._me.name)
        self._pool = Pool(reactor, self._sessions, max(1, settings.connections), settings.wait_s)
        self._taken = taken
        self.keeper = LeaseKeeper(reactor, self._sessions, settings, me, self._shut_out)
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

    async def tx(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        """Raises ServiceUnavailable. A cancelled caller does not stop the transaction."""
        return await shielded(self._repeat(work, _WRITE))

    async def read(self, work: Callable[[Statements], Awaitable[T]]) -> T:
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

    async def _read(self, work: Callable[[Statements], Awaitable[T]]) -> T:
        session = await self._pool.acquire()
        try:
            return await work(OneStatement(session))
        except (Second, Again):
            pass
        finally:
            self._pool.release(session)
        return await self._repeat(work, _SNAPSHOT)

    async def _repeat(self, work: Callable[[Statements], Awaitable[T]], begin: str) -> T:
        for attempt in range(1, _ATTEMPTS + 1):
            # the turn comes before the session: a transaction that waits for its turn holds no
            # session
            async with self._turn() if attempt > 1 else contextlib.nullcontext():
                session = await self._pool.acquire()
                try:
                    return await _once(session, work, begin)
                except Again:
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
        """The turn of a transaction that was rolled back: beside others it would conflict again."""
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
            # in a later turn: waiting transactions that fail at once would nest until the stack is
            # full
            self._clock.callLater(0.0, self._turns.release)

    async def _script(self, text: str) -> None:
        why: Exception | None = None
        for attempt in range(_SCRIPT_TRIES):
            if attempt:  # an older daemon may have started meanwhile
                await self.keeper.upgradable()
            try:
                await self._run_script(text)
                return
            except Again as error:
                why = error
            if not attempt:
                log.warn("The schema waits for others who use its tables: {why}", why=why)
            await sleep(self._clock, _SCRIPT_PAUSE_S)
        raise SchemaError(
            f"the schema cannot be changed while others use its tables ({why}): end backups and"
            " long statements of other programs, then start this daemon again"
        )

    async def _run_script(self, text: str) -> None:
        """Raises Again when others had locks that the script needs."""
        session = await self._pool.acquire()
        begin = _SCRIPT.format(key=_SCRIPT_KEY)
        try:
            await session.execute(f"{begin} {translate(text)[0]}", unlimited=True)
            await session.execute("commit", unlimited=True)
        except (psycopg2.Error, Lost) as error:
            await Statements(session, "").rollback()
            if getattr(error, "pgcode", None) in _IN_THE_WAY:
                raise Again(line_of(error)) from None
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


async def _once(session: Session, work: Callable[[Statements], Awaitable[T]], begin: str) -> T:
    sql = Statements(session, begin)
    try:
        result = await work(sql)
        await sql.commit()
    except BaseException:
        await sql.rollback()
        raise
    return result


async def _notify(sql: Statements, text: str) -> None:
    await sql.one(NOTIFY, {"text": text})


async def _encoding(sql: Statements) -> str:
    row = await sql.one(ENCODING)
    return str(row[0]) if row else ""
