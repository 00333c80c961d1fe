"""One database for several simulated processes: SQLite in memory that behaves like a server.

A transaction is carried out at one moment, some time after it was sent; its answer comes some time
after that. Connections break: when the server goes away, when it ends those of a dead process, and
by fault rules for `store`. What was told in a transaction comes to all that listen at its commit.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from twisted.internet.interfaces import IReactorTime

from svcd.embedded.faults import Effect, Faults
from svcd.errors import ServiceUnavailable
from svcd.ports.store import DatabaseFigures
from svcd.runtime.tasks import shielded, sleep
from svcd.store.database import Sql
from svcd.store.sessions import Lost
from svcd.store.sqlite import SqliteDatabase
from tests.simulation.lease_rows import LOOKS, LeaseRows
from tests.simulation.lines import Line

T = TypeVar("T")

_SILENT_S = 3.0
"""Until a statement without an answer is given up."""
_AFTER = (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER)
_SILENT = (Effect.TIMEOUT_BEFORE, Effect.TIMEOUT_AFTER)
_UP_S = 1e6
_NOTICED_S = 1.0
"""Time until the end of a connection has arrived at its process."""

UNCHANGED = "the connection to the database broke (simulated); nothing was changed, try again"
UNKNOWN = "the connection to the database broke (simulated); whether it was changed is not known"


class Server:
    """delay: seconds that a message to or from the server takes, asked for each.

    away: nobody can connect.
    """

    def __init__(self, clock: IReactorTime, database: SqliteDatabase, rng: random.Random) -> None:
        self.clock = clock
        self.database = database
        self.rng = rng
        self.delay: Callable[[], float] = lambda: 0.0
        self.away = False
        self.executing: Session | None = None
        self._up_at = float(clock.seconds()) - _UP_S
        self._sessions: list[Session] = []
        self._ways: list[Way] = []
        self.rows = LeaseRows(
            database._connection,
            lambda: float(clock.seconds()),
            lambda: float(clock.seconds()) - self._up_at,
            self.end,
            self.tell,
        )

    def go_away(self) -> None:
        """Every connection breaks, and nobody can connect until `come_back`."""
        self.away = True
        for way in list(self._ways):
            way.broken()
        for session in list(self._sessions):
            session.broken("the server is going away (simulated)")

    def come_back(self) -> None:
        self.away = False
        self._up_at = float(self.clock.seconds())

    def end(self, names: Sequence[str]) -> None:
        """Close the connections of the processes with these names."""
        for way in list(self._ways):
            if way.name in names:
                way.broken()
        for session in list(self._sessions):
            if session.name in names and session is not self.executing:
                session.broken("terminated by an administrator (simulated)")

    def tell(self, text: str) -> None:
        """To all that listen."""
        for session in list(self._sessions):
            self.clock.callLater(self.delay(), session.hear, text)

    def open(self, way: Way) -> None:
        self._ways.append(way)

    def connect(self, session: Session) -> None:
        self._sessions.append(session)

    def close(self, who: Way | Session) -> None:
        """A process has closed it, or has died."""
        if isinstance(who, Way):
            self._ways = [each for each in self._ways if each is not who]
        else:
            self._sessions = [each for each in self._sessions if each is not who]


class Way:
    """One process's way to the database. Implements `Database`.

    name: of the process at the server. under_way: transactions that have no answer yet.
    """

    where = "the database"

    def __init__(self, server: Server, line: Line, faults: Faults, name: str) -> None:
        self.name = name
        self._server = server
        self._line = line
        self._faults = faults
        self._breaks = 0
        self._stale_until = float("-inf")
        self.under_way = 0
        server.open(self)

    async def tx(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        """A caller that is cancelled leaves it to run to its end."""
        return await shielded(self._call("tx", lambda: self._written(work)))

    async def read(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        return await shielded(self._call("read", lambda: self._server.database.read(work)))

    async def script(self, text: str) -> None:
        await self._server.database.script(text)

    async def close(self) -> None:
        """The rows stay for the next process."""
        self._server.close(self)

    def broken(self) -> None:
        """All connections are; what is under way fails, and so may the next one to use them.

        The pool looks at a connection before it gives it out, and so finds what broke before.
        """
        self._breaks += 1
        self._stale_until = self._server.clock.seconds() + _NOTICED_S

    async def _call(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        self.under_way += 1
        try:
            return await self._line.held(lambda: self._carried_out(kind, work), fenced=False)
        finally:
            self.under_way -= 1

    async def _written(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        telling: list[_Telling] = []

        async def heard(sql: Sql) -> T:
            telling[:] = [_Telling(sql)]
            return await work(telling[0])

        result = await self._server.database.tx(heard)
        for text in telling[0].told:
            self._server.tell(text)
        return result

    async def _carried_out(self, kind: str, work: Callable[[], Awaitable[T]]) -> T:
        server, breaks = self._server, self._breaks
        stale = server.clock.seconds() < self._stale_until
        self._stale_until = float("-inf")
        if server.away or (stale and server.rng.random() < 0.5):
            raise ServiceUnavailable(UNCHANGED)
        rule = self._faults.match("store", kind, "")
        wait_s = server.delay() + (0.0 if rule is None else rule.delay_s)
        if wait_s:
            await sleep(server.clock, wait_s)
            lost = not self._line.alive and server.rng.random() < 0.5  # its end was not sent
            if lost or server.away or self._breaks != breaks:
                raise ServiceUnavailable(UNCHANGED)
        if rule is not None and rule.effect not in (Effect.DELAY, Effect.LATE, *_AFTER):
            if rule.effect in _SILENT:
                await sleep(server.clock, _SILENT_S)
            raise ServiceUnavailable(UNCHANGED)
        result = await work()
        wait_s = server.delay()
        if wait_s:
            await sleep(server.clock, wait_s)
        if rule is not None and rule.effect in _AFTER:
            if rule.effect in _SILENT:
                await sleep(server.clock, _SILENT_S)
            raise ServiceUnavailable(UNKNOWN)
        if wait_s and (server.away or self._breaks != breaks):
            raise ServiceUnavailable(UNKNOWN)
        return result


class SharedWay(Way):
    """The same as a `Distant` one, as PostgreSQL is."""

    def soon(self, call: Callable[[], object]) -> object:
        """See Distant."""
        return self._line.callLater(0.0, call)

    def announce(self, tenants: Iterable[str]) -> None:
        """See Distant: nobody watches."""

    def figures(self) -> DatabaseFigures:
        """See Distant: there is no pool."""
        return DatabaseFigures(
            busy=0,
            idle=0,
            most=0,
            waiting=0,
            reachable=not self._server.away,
            opened=0,
            lost=0,
            refused=0,
            repeated=0,
            waits=0,
            waited_s=0.0,
        )


class _Telling:
    """Implements `Sql`; keeps what is told until the commit."""

    def __init__(self, sql: Sql) -> None:
        self.told: list[str] = []
        self.all = sql.all
        self.one = sql.one
        self.joined = sql.joined
        self.run = sql.run
        self.at_commit = sql.at_commit
        self.feed = sql.feed
        self.rooms = None

    async def notify(self, text: str) -> None:
        self.told.append(text)


class _Answer:
    """A cursor with rows."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None


class Session:
    """A lease keeper's connection. Implements what it uses of svcd.store.sessions.Session."""

    def __init__(
        self,
        server: Server,
        line: Line,
        faults: Faults,
        name: str,
        lost: Callable[[Any, str], None] | None,
    ) -> None:
        self.name = name
        self._server = server
        self._line = line
        self._faults = faults
        self._lost = lost
        self._open = True
        self._hear: Callable[[str], None] | None = None
        server.connect(self)

    def listen(self, hear: Callable[[str], None]) -> None:
        self._hear = hear

    def hear(self, text: str) -> None:
        """The server tells something."""
        hear = self._hear
        if self._open and hear is not None:
            self._line.deliver(lambda: hear(text))

    def broken(self, reason: str) -> None:
        """The server has closed it."""
        lost, self._lost = self._lost, None
        self.close()
        if lost is not None:
            self._line.deliver(lambda: lost(self, reason))

    def close(self) -> None:
        """By its process."""
        self._open = False
        self._server.close(self)

    async def execute(self, text: str, values: Mapping[str, Any] | None = None) -> Any:
        """Raises Lost."""
        return await self._line.held(lambda: self._carried_out(text, values or {}), fenced=False)

    async def _carried_out(self, text: str, values: Mapping[str, Any]) -> _Answer:
        server = self._server
        rule = None if text in LOOKS else self._faults.match("store", "lease", _kind(text))
        wait_s = server.delay() + (0.0 if rule is None else rule.delay_s)
        if wait_s:
            await sleep(server.clock, wait_s)
        before = rule is not None and rule.effect not in (Effect.DELAY, Effect.LATE, *_AFTER)
        if not self._open or not self._line.alive or before:
            self._break("closed")
        server.executing = self
        rows = server.rows.answer(text, values)
        server.executing = None
        wait_s = server.delay()
        if wait_s:
            await sleep(server.clock, wait_s)
        if not self._open or (rule is not None and rule.effect in _AFTER):
            self._break("reset by the peer")
        return _Answer(rows)

    def _break(self, reason: str) -> None:
        self._lost = None
        self.close()
        raise Lost(f"{reason} (simulated)")


def _kind(text: str) -> str:
    return " ".join(text.split()[:3])


class Sessions:
    """Implements what a lease keeper uses of svcd.store.sessions.Sessions."""

    def __init__(self, server: Server, line: Line, faults: Faults, name: str) -> None:
        self._server = server
        self._line = line
        self._faults = faults
        self._name = name

    async def open(
        self, lost: Callable[[Any, str], None], statement_s: float | None = None
    ) -> Session:
        """Raises Lost."""
        return await self._line.held(lambda: self._connect(lost), fenced=False)

    async def _connect(self, lost: Callable[[Any, str], None]) -> Session:
        wait_s = self._server.delay()
        if wait_s:
            await sleep(self._server.clock, wait_s)
        if self._server.away:
            raise Lost("no route to the server (simulated)")
        return Session(self._server, self._line, self._faults, self._name, lost)

    def close(self, session: Session) -> None:
        session.close()
