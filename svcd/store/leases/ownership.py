"""Who may use a database: one daemon alone, or several that share it by leases.

It is an advisory lock on a connection of its own: exclusive for a daemon whose cloud is inside it,
because nobody else can reach that; shared for those that keep leases (`svcd.store.leases.keeper`).

`Ownership` is the exclusive one. The lock goes with its connection; while it is not held, no
transaction begins. When the connection breaks, the lock is taken again as soon as the server
answers; when another daemon has it by then, this one must stop.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg2
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.runtime.tasks import Loop, sleep
from svcd.store.database import SchemaError
from svcd.store.sessions import Lost, Session, Sessions, closing, line_of

log = Logger()

_LOOK_S = 0.5
_BEAT_S = 2.0
_TRIES = 12  # a daemon that was killed a moment ago may still seem to be there
_TRY_S = 0.25
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
    """held: told with "" when the lock is had again, else with the reason why it is not.

    taken: told with a line when another daemon has the database now.
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
        self._process = 0  # the server's, which had the lock last
        self._beat_at = 0.0
        self._loop = Loop(clock, "database ownership", _LOOK_S, self._look)

    async def take(self) -> None:
        """Raises Lost, and SchemaError when another daemon has the database."""
        session = await self._sessions.open(self._lost)
        with closing(self._sessions, session):
            refusal = await self._lock(session)
            if refusal:
                raise SchemaError(refusal)
        self._session = session
        self._loop.start(now=False)

    async def stop(self) -> None:
        """Give the database up."""
        session, self._session = self._session, None
        await self._loop.stop()
        if session is not None:
            self._sessions.close(session)

    def _lost(self, session: Session, reason: str) -> None:
        if session is self._session:
            self._session = None
            log.warn("The connection with the database's lock was lost: {r}", r=reason)
            self._held("the lock on the database was lost and is being taken again")
            self._loop.poke()

    async def _look(self) -> None:
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
            log.warn("The database's lock was not taken: {reason}", reason=line_of(error))

    async def _again(self) -> None:
        session = await self._sessions.open(self._lost)
        with closing(self._sessions, session):
            refusal = await self._lock(session)
        if refusal:
            self._sessions.close(session)
            self._taken(refusal)
            return
        self._session = session
        log.info("The database's lock is held again")
        self._held("")

    async def _lock(self, session: Session) -> str:
        """Take the lock; a line that says who has it when that is another daemon."""
        tries = 0
        while True:
            locked, process = (await session.execute(_LOCK)).fetchone()
            if locked:
                self._process = process
                return ""
            owner = (await session.execute(_OWNER)).fetchone()
            if owner is not None and owner[0] == self._process:
                # Our own broken connection, whose end the server has not noticed yet.
                await session.execute(_END, {"pid": self._process})
            else:
                tries += 1
            if tries == _TRIES:
                return _refusal(owner)
            await sleep(self._clock, _TRY_S)


async def lock_shared(clock: IReactorTime, session: Session) -> str:
    """Take the lock beside others; a line that says who has it alone when that is so."""
    for _ in range(_TRIES):
        if (await session.execute(_LOCK_SHARED)).fetchone()[0]:
            return ""
        await sleep(clock, _TRY_S)
    return _refusal((await session.execute(_OWNER)).fetchone())


def _refusal(owner: tuple[int, str, str] | None) -> str:
    who = f"connection {owner[0]} from {owner[1]} since {owner[2][:19]}" if owner else "just gone"
    return (
        f"another svcd has this database ({who}): daemons can share it only when all of them use"
        " an OpenStack cloud (cloud.kind=openstack), the embedded one belongs to its daemon; stop"
        " the other one, or give this one a database of its own (database.url)"
    )
