"""The lock on a database: one daemon owns it alone, or several daemons share it by leases.

The lock is an advisory lock on a connection of its own. A daemon with an embedded cloud takes it
exclusively, because no other daemon can reach that cloud. Daemons that keep leases
(`svcd.store.lease.keeper`) take it shared.

`Ownership` is the exclusive lock. The server releases it when its connection ends; while this
daemon does not hold it, no transaction begins. When the connection breaks, the daemon takes the
lock again as soon as the server answers. If another daemon has taken it meanwhile, or has upgraded
the schema beyond this release, this one stops.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg2
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.runtime.tasks import Loop, sleep
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.sessions import Lost, Session, Sessions, closing, line_of

log = Logger()

_CHECK_S = 0.5
"""Time between two attempts to take a lost lock again."""
_BEAT_S = 2.0
"""Time between two checks of the connection that holds the lock."""
_TRIES = 12
"""Attempts to take the lock: the server may still list a daemon that was killed a moment ago."""
_TRY_S = 0.25
"""Time between two of these attempts."""
LOCK_KEY = 0x73766364  # "svcd": first key of the advisory lock
_LOCK = f"""
select pg_try_advisory_lock({LOCK_KEY}, hashtext(coalesce(current_schema(), ''))),
       pg_backend_pid()
"""
_LOCK_SHARED = f"""
select pg_try_advisory_lock_shared({LOCK_KEY}, hashtext(coalesce(current_schema(), '')))
"""
_OWNER = f"""
select a.pid, coalesce(host(a.client_addr), 'this host'), a.backend_start::text
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'advisory' and l.classid = {LOCK_KEY} and l.granted
   and l.database = (select oid from pg_database where datname = current_database())
"""
_END = "select pg_terminate_backend(%(pid)s)"


class Ownership:
    """The exclusive lock on the database.

    held: called with "" when the lock is held again, else with the reason why it is not held.
    taken: called with one line when another daemon has the database now, or had it meanwhile and
    upgraded its schema.
    """

    def __init__(
        self,
        clock: IReactorTime,
        sessions: Sessions,
        held: Callable[[str], None],
        taken: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._sessions = sessions
        self._held = held
        self._taken = taken
        self._session: Session | None = None
        self._process = 0  # server process of the connection that held the lock last
        self._beat_at = 0.0
        self._loop = Loop(clock, "database ownership", _CHECK_S, self._check)

    async def take(self) -> None:
        """Take the lock. Raises Lost, and SchemaError when another daemon has the database."""
        session = await self._sessions.open(self._lost)
        with closing(self._sessions, session):
            refusal = await self._lock(session)
            if refusal:
                raise SchemaError(refusal)
        self._session = session
        self._loop.start(now=False)

    async def stop(self) -> None:
        """Release the lock."""
        session, self._session = self._session, None
        await self._loop.stop()
        if session is not None:
            self._sessions.close(session)

    def _lost(self, session: Session, reason: str) -> None:
        if session is self._session:
            self._session = None
            log.warn("The connection that holds the database lock was lost: {r}", r=reason)
            self._held("the lock on the database was lost and is being taken again")
            self._loop.wake()

    async def _check(self) -> None:
        now = self._clock.seconds()
        if self._session is not None and now < self._beat_at + _BEAT_S:
            return
        self._beat_at = now
        try:
            if self._session is None:
                await self._again()
            else:
                await self._session.execute("select 1")
        except Lost as error:
            if self._session is not None:
                self._lost(self._session, str(error))
        except psycopg2.Error as error:
            log.warn("The database lock was not taken: {reason}", reason=line_of(error))

    async def _again(self) -> None:
        session = await self._sessions.open(self._lost)
        with closing(self._sessions, session):
            refusal = await self._lock(session)
            if not refusal:
                row = (await session.execute(migrations.CURRENT)).fetchone()
                refusal = migrations.refusal(migrations.version_of(row))
        if refusal:
            self._sessions.close(session)
            self._taken(refusal)
            return
        self._session = session
        log.info("The database lock was taken again")
        self._held("")

    async def _lock(self, session: Session) -> str:
        """Take the lock. Returns "", or one line that names the daemon that has it."""
        tries = 0
        while True:
            locked, process = (await session.execute(_LOCK)).fetchone()
            if locked:
                self._process = process
                return ""
            owner = (await session.execute(_OWNER)).fetchone()
            if owner is not None and owner[0] == self._process:
                # This daemon's broken connection: the server has not noticed its end yet.
                await session.execute(_END, {"pid": self._process})
            else:
                tries += 1
            if tries == _TRIES:
                return _refusal(owner)
            await sleep(self._clock, _TRY_S)


async def lock_shared(clock: IReactorTime, session: Session) -> str:
    """Take the shared lock. Returns "", or one line that names the daemon that owns it alone."""
    for _ in range(_TRIES):
        if (await session.execute(_LOCK_SHARED)).fetchone()[0]:
            return ""
        await sleep(clock, _TRY_S)
    return _refusal((await session.execute(_OWNER)).fetchone())


def _refusal(owner: tuple[int, str, str] | None) -> str:
    who = f"connection {owner[0]} from {owner[1]} since {owner[2][:19]}" if owner else "now ended"
    return (
        f"another svcd has this database ({who}): daemons can share it only when all of them use"
        " an OpenStack cloud (cloud.kind=openstack), because an embedded cloud belongs to its"
        " daemon; stop the other svcd, or give this one a database of its own (database.url)"
    )
