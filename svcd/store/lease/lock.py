"""The lock on a database: one daemon has it alone, or several daemons share it.

It is an advisory lock on the connection of the lease (`svcd.store.lease.keeper`), and the server
releases it when that connection ends. A daemon with an embedded cloud takes it exclusively, because
no other daemon can reach that cloud. Daemons with an OpenStack take it shared.
"""

from __future__ import annotations

from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.runtime.tasks import sleep
from svcd.store.sessions import Session

_TRIES: Final = 12
"""Attempts to take the lock: the server may still list a daemon that was killed a moment ago."""
_TRY_S: Final = 0.25
"""Time between two of these attempts."""
LOCK_KEY: Final = 0x73766364  # "svcd": first key of the advisory lock
_KEYS: Final = f"{LOCK_KEY}, hashtext(coalesce(current_schema(), ''))"
LOCK: Final = f"select pg_try_advisory_lock({_KEYS})"
LOCK_SHARED: Final = f"select pg_try_advisory_lock_shared({_KEYS})"
_OWNERS: Final = f"""
  from pg_locks l join pg_stat_activity a on a.pid = l.pid
 where l.locktype = 'advisory' and l.classid = {LOCK_KEY} and l.granted
   and l.database = (select oid from pg_database where datname = current_database())
"""
_OWNER: Final = f"""
select a.pid, coalesce(host(a.client_addr), 'this host'), a.backend_start::text {_OWNERS}
"""
_END_OWN: Final = f"""
select pg_terminate_backend(a.pid) {_OWNERS}
   and a.application_name = %(name)s and a.pid <> pg_backend_pid()
"""
"""Ends broken connections of this daemon whose end the server has not noticed yet."""


async def take_lock(clock: IReactorTime, session: Session, name: str, alone: bool) -> str:
    """Take the lock. Returns "", or one line that names the daemon that is in the way.

    name: of this daemon in the database.
    """
    tries = 0
    while tries < _TRIES:
        if (await session.execute(LOCK if alone else LOCK_SHARED)).fetchone()[0]:
            return ""
        if (await session.execute(_END_OWN, {"name": name})).fetchone() is None:
            tries += 1
        await sleep(clock, _TRY_S)
    return _refusal((await session.execute(_OWNER)).fetchone())


def _refusal(owner: tuple[int, str, str] | None) -> str:
    who = f"connection {owner[0]} from {owner[1]} since {owner[2][:19]}" if owner else "now ended"
    return (
        f"another svcd has this database ({who}): daemons can share it only when all of them use"
        " an OpenStack cloud (cloud.kind=openstack), because an embedded cloud belongs to its"
        " daemon; stop the other svcd, or give this one a database of its own (database.url)"
    )
