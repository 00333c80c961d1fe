"""Takes, renews and gives up the lease of a daemon on PostgreSQL.

Each living daemon has a row in `daemons`, which it renews by a heartbeat. The one row of `lease`
names the daemon that does the work, and changes only when that is another one. So a heartbeat
conflicts with no other statement, and a transaction of the work can lock the row of the lease until
it ends (`FENCE`).

Note: the server's clock. All other rows use times of the daemons, never of SQL. The lease is
different: daemons on several machines must agree when it ends, and the database's clock is the only
one that they share.

Note: how a daemon dies. Its row expires. The first daemon that notices this ends the connections of
the dead one (a suspended process may hold locks for ever). Then, in one statement, it deletes the
row and frees the lease. A late heartbeat finds no row, so its sender knows at once that it has
lost the lease. Delete and heartbeat lock the same row, so that exactly one of them wins.

Note: who takes the lease. Each daemon reads the lease's epoch with its heartbeat, and takes a free
lease only while the epoch is still the same. So exactly one of them wins.

Note: when the server's clock is set. Forward: rows of living daemons expire. Each daemon notices at
its heartbeat that more time has passed at the server than here. Then it declares no daemon dead for
one lease's time, in which the living daemons renew their rows. Back: a row seems to have hours
left, and the lease seems not to be free yet. Then the row is shortened to the longest plausible
time, and the lease counts as free from now on.

Note: after an outage. When no daemon could reach the database, the rows of all have expired. So the
first daemon that reaches it again waits for one lease's time before it declares another one dead.

Note: releases. Before it upgrades the schema, a daemon waits for those that could not use it then
(`svcd.store.lease.upgrades`). A daemon that finds a schema that it cannot use, at its heartbeat or
when it enters its row again, loses the lease and stops. Between the last look and the upgrade such
a daemon may start; its next heartbeat ends it.

Note: the same state folder. A daemon's name is derived from its state folder, which only one
process can lock. So a daemon that starts again after a kill knows that the former process is dead,
and continues at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psycopg2
from attrs import frozen
from twisted.internet.defer import DeferredLock
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.runtime.fencing import LeaseLost, Term
from svcd.runtime.tasks import DeadlineExceeded, Loop, shielded, with_deadline
from svcd.settings import Database as DatabaseSettings
from svcd.store import migrations
from svcd.store.database import SchemaError, Sql
from svcd.store.lease.holding import Holding
from svcd.store.lease.lock import take_lock
from svcd.store.lease.upgrades import until_upgradable
from svcd.store.sessions import Lost, Session, Sessions, closing, line_of

log = Logger()

CHANNEL: Final = "svcd"
_FREE: Final = "lease"
"""The notification after a daemon gave the lease up."""

FENCE: Final = "select 1 from lease where holder = :holder and epoch = :epoch for share"
_STOP_S: Final = 5.0
"""Longest wait for the current turn at a stop."""
_SKEW_S: Final = 3.0
"""Seconds. svcd logs a larger difference between this daemon's time and the server's."""
_MOST_LEASES: Final = 6
"""A daemon's row that lasts longer than this many leases was written before the server's clock was
set back. The number is above 1 because another daemon may have a longer `database.lease_s`."""
_NOW: Final = "extract(epoch from clock_timestamp())::double precision"
_PREPARE: Final = f"""
set default_transaction_read_only = off;
set lock_timeout = '500ms';
listen {CHANNEL};
"""
_END: Final = """
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and usename = current_user
   and application_name = any(%(names)s) and pid <> pg_backend_pid()
"""
_SERVES: Final = "(select max(serves) from schema_version)"
_LEASE: Final = "(select holder from lease), (select epoch from lease)"
_REGISTER: Final = f"""
insert into daemons (id, about, until_s, knows)
select %(id)s, %(about)s, {_NOW} + %(lease_s)s, %(knows)s where {_SERVES} <= %(knows)s
on conflict (id) do update
  set about = excluded.about, until_s = excluded.until_s, knows = excluded.knows
returning {_LEASE}
"""
_BEAT: Final = f"""
update daemons set until_s = {_NOW} + %(lease_s)s where id = %(id)s
returning {_LEASE}, {_NOW},
          extract(epoch from clock_timestamp() - pg_postmaster_start_time())::double precision,
          (select max(number) from schema_version), {_SERVES}
"""
_DAEMONS: Final = f"select id, until_s - {_NOW} from daemons"
_DECLARE_DEAD: Final = f"""
with dead as (
  delete from daemons where id = any(%(ids)s) and until_s < {_NOW} returning id, until_s
)
update lease set holder = '', epoch = epoch + 1, free_s = dead.until_s
  from dead where holder = dead.id
returning epoch
"""
_SHORTEN: Final = f"""
update daemons set until_s = {_NOW} + %(most_s)s where until_s > {_NOW} + %(most_s)s
"""
_TAKE: Final = f"""
update lease set holder = %(id)s, epoch = epoch + 1
 where epoch = %(epoch)s and exists (select 1 from daemons where id = %(id)s)
returning epoch, {_NOW} - free_s
"""
_LEAVE: Final = f"""
with gone as (delete from daemons where id = %(id)s)
update lease set holder = '', epoch = epoch + 1, free_s = {_NOW} - %(quiet_s)s
 where holder = %(id)s
"""
_NOTIFY: Final = f"select pg_notify('{CHANNEL}', %(text)s)"


@frozen
class Me:
    """The identity and the clocks of this daemon.

    name: its name in the database. about: host and process. steady, wall: see Holding. alone: no
    other daemon may use the database, see `lock`.
    """

    name: str
    about: str
    steady: Callable[[], float]
    wall: Callable[[], float] | None = None
    alone: bool = False


async def require(sql: Sql, term: Term) -> None:
    """The first statement of a transaction under `term`.

    Raises LeaseLost when the term is not the newest. Until the transaction has ended, no other
    daemon can take the lease.
    """
    if await sql.one(FENCE, {"holder": term.holder, "epoch": term.epoch}) is None:
        raise LeaseLost("the lease has been taken by another daemon")


class LeaseKeeper:
    """Keeps `holding` up to date with the database.

    notified: called with each notification of another daemon (`Tx.notify`). shut_out: called with
    one line when another daemon owns the database alone, or has upgraded its schema beyond this
    release. problem: why the lease cannot be used or taken now, else "".
    """

    def __init__(
        self,
        clock: IReactorTime,
        sessions: Sessions,
        settings: DatabaseSettings,
        me: Me,
        shut_out: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._sessions = sessions
        self._settings = settings
        self._me = me
        self._shut_out = shut_out
        self.holding = Holding(
            clock, me.steady, me.name, settings.lease_s, settings.grace_s, me.wall
        )
        self.notified: Callable[[str], None] = _ignore
        self.problem = "the database was not asked for the lease yet"
        self._session: Session | None = None
        self._declares_from = float("-inf")  # when it may declare others dead
        self._beat_at = self.holding.now()
        self._ahead_s: float | None = None  # of the server's clock, at the last heartbeat
        self._entered = False
        self._skewed = False
        self._stopping = False
        self._turns = DeferredLock()  # a stopped loop leaves its last turn running
        self._most_s = _MOST_LEASES * settings.lease_s
        self._loop = Loop(clock, "lease", settings.renew_s, self._turn)

    # ---- owner's side ----

    async def open(self) -> None:
        """Connect, and end the connections of a former process with the same name.

        Raises Lost, and SchemaError: another daemon owns the database alone, this release cannot
        use the schema, or would upgrade it while daemons live that could not use it then.
        """
        self._session = session = await self._connect()
        await session.execute(_END, {"names": [self._me.name]})
        await until_upgradable(self._clock, session, self._me.name, self._settings.lease_s)

    async def upgradable(self) -> None:
        """Wait while daemons live that could not use the schema after this one's upgrade.

        Raises SchemaError when they live on, and when the database does not answer.
        """
        if self._session is None:
            raise SchemaError(f"the schema was not changed: {self.problem}")
        try:
            await until_upgradable(
                self._clock, self._session, self._me.name, self._settings.lease_s
            )
        except (Lost, psycopg2.Error) as error:
            raise SchemaError(f"the schema was not changed: {line_of(error)}") from None

    async def begin(self) -> None:
        """Register this daemon and take the lease when it is free. `problem` shows failures."""
        await shielded(self._guarded())
        self._loop.start(now=False)

    async def stop(self) -> None:
        """Give up the lease and notify the other daemons. The caller has ended all work before."""
        self._stopping = True
        await self._loop.stop()
        try:
            # cancelling the current turn would break the connection
            await with_deadline(self._clock, _STOP_S, "lease", self._turns.acquire())
            await self._leave()
        except (DeadlineExceeded, Lost, psycopg2.Error) as error:
            log.warn("The lease was not given up and will expire: {why}", why=line_of(error))
        self.holding.close()
        session, self._session = self._session, None
        if session is not None:
            self._sessions.close(session)

    async def _leave(self) -> None:
        quiet_s = self.holding.quiet_s()
        self.holding.close()
        if self._session is not None and self._entered:
            await self._session.execute(_LEAVE, {"id": self._me.name, "quiet_s": quiet_s})
            await self._session.execute(_NOTIFY, {"text": _FREE})

    # ---- connection ----

    async def _connect(self) -> Session:
        session = await self._sessions.open(self._broken, self._settings.renew_s)
        with closing(self._sessions, session):
            refusal = await take_lock(self._clock, session, self._me.name, self._me.alone)
            if refusal:
                raise SchemaError(refusal)
            await session.execute(_PREPARE)
            session.listen(self._hear)
        return session

    def _broken(self, session: Session, reason: str) -> None:
        if session is self._session:
            self._session = None
            self._declares_from = float("inf")
            self.problem = f"the connection for the lease was lost: {reason}"
            log.warn("The connection for the lease was lost: {reason}", reason=reason)
            self._loop.wake()

    def _hear(self, text: str) -> None:
        if text == _FREE:
            self._loop.wake()
        else:
            self.notified(text)

    async def _again(self) -> Session | None:
        try:
            session = await self._connect()
        except SchemaError as error:
            self.problem = str(error)
            self._shut_out(str(error))
            return None
        self._session = session
        self._declares_from = self._clock.seconds() + self._settings.lease_s
        self.holding.search()
        return session

    # ---- a turn ----

    async def _turn(self) -> None:
        await shielded(self._guarded())

    async def _guarded(self) -> None:
        async with self._turns:
            try:
                session = self._session or await self._again()
                if session is not None and not self._stopping:
                    await self._renew(session)
            except (Lost, psycopg2.Error) as error:
                self.problem = f"the lease could not be renewed: {line_of(error)}"
                log.warn("The lease could not be renewed: {why}", why=line_of(error))
                if isinstance(error, Lost) and self._session is not None:
                    session, self._session = self._session, None
                    self._declares_from = float("inf")
                    self._sessions.close(session)

    async def _renew(self, session: Session) -> None:
        """Send one heartbeat, then take the lease if it is free."""
        asked, asked_at = self.holding.now(), self._clock.seconds()
        values = {"id": self._me.name, "lease_s": self._settings.lease_s}
        row = (await session.execute(_BEAT, values)).fetchone()
        if row is None or not self._entered:
            if row is None and self._entered:
                log.warn("Another daemon declared this one dead: the lease was lost")
            self.holding.lose()
            await self._enter(session)
            self._beat_at = asked
            return
        holder, epoch, server_s, server_up_s, number, serves = row
        if refusal := migrations.refusal(migrations.Version(number, serves)):
            self._outdated(refusal)
            return
        self.holding.renewed(asked)
        self.problem = ""
        self._compare_clocks(asked_at, server_s)
        stopped = asked.longest_since(self._beat_at) > self._settings.lease_s
        if stopped or self._server_was_set(asked_at, server_s):
            earliest = asked_at + self._settings.lease_s
            self._declares_from = max(self._declares_from, earliest)
        self._beat_at = asked
        if freed := await self._declare_dead(session, server_up_s):
            holder, epoch = "", freed
        await self._settle(session, holder, epoch)

    def _outdated(self, refusal: str) -> None:
        """Stop all work, because a newer release has upgraded the schema."""
        self.holding.lose()
        self.problem = refusal
        self._shut_out(refusal)

    async def _enter(self, session: Session) -> None:
        """Insert the row of this daemon, and continue the work of its former process."""
        asked = self.holding.now()
        values = {
            "id": self._me.name,
            "about": self._me.about,
            "lease_s": self._settings.lease_s,
            "knows": migrations.newest(),
        }
        row = (await session.execute(_REGISTER, values)).fetchone()
        if row is None:
            self._outdated(
                f"a newer release has upgraded the schema of the database beyond"
                f" {migrations.newest()}, and this release cannot use it: run that release"
            )
            return
        self.holding.renewed(asked)
        self.problem = ""
        # the former process is dead: no grace time is needed
        quiet_s = 0.0 if self._entered else self._settings.grace_s
        await self._settle(session, row[0], row[1], quiet_s)
        self._entered = True

    async def _declare_dead(self, session: Session, server_up_s: float) -> int:
        """Declare the daemons dead whose rows have expired.

        Returns the epoch of the lease that became free; 0: none of them had it.
        """
        left = (await session.execute(_DAEMONS)).fetchall()
        if any(left_s > self._most_s for _, left_s in left):  # the server's clock was set back
            await session.execute(_SHORTEN, {"most_s": self._most_s})
        dead = [name for name, left_s in left if left_s <= 0]
        too_early = self._clock.seconds() < self._declares_from
        if not dead or too_early or server_up_s <= self._settings.lease_s:
            return 0
        await session.execute(_END, {"names": dead})
        try:
            freed = (await session.execute(_DECLARE_DEAD, {"ids": dead})).fetchone()
        except psycopg2.errors.LockNotAvailable:  # their connections end before the next heartbeat
            return 0
        work = " and the lease is free" if freed else ""
        log.warn("Daemons {names} are dead{work}", names=", ".join(dead), work=work)
        return freed[0] if freed else 0

    async def _settle(
        self, session: Session, holder: str, epoch: int, mine_quiet_s: float = 0.0
    ) -> None:
        """Take the lease if it is free, or if it is this daemon's and the daemon does not know it.

        holder, epoch: of the lease's row. mine_quiet_s: the quiet time of a lease of this daemon.
        """
        if self.holding.epoch is not None and (holder, epoch) != (
            self._me.name,
            self.holding.epoch,
        ):
            log.warn("Another daemon has taken the lease")
            self.holding.lose()
        is_mine = holder == self._me.name
        if self.holding.epoch is not None or not (is_mine or holder == ""):
            return
        values = {"id": self._me.name, "epoch": epoch}
        taken = (await session.execute(_TAKE, values)).fetchone()
        if taken is not None:
            log.info("Took the lease: this daemon does the work now")
            self.holding.took(taken[0], mine_quiet_s if is_mine else taken[1])

    def _server_was_set(self, asked_at: float, server_s: float) -> bool:
        """Whether much more time has passed at the server than here since the last heartbeat."""
        before, self._ahead_s = self._ahead_s, server_s - asked_at
        return before is not None and self._ahead_s - before > 0.5 * self._settings.lease_s

    def _compare_clocks(self, asked_at: float, server_s: float) -> None:
        """Warn once when this daemon's time and the server's differ.

        Daemons compare times that others have written, so their clocks must agree.
        """
        answered = self._clock.seconds()
        off_s = max(asked_at - server_s, server_s - answered)
        skewed = off_s > _SKEW_S
        if skewed and not self._skewed:
            log.warn(
                "The time of this svcd differs by {s:.1f} s from the database server's: run a time"
                " service (NTP) on both machines, because daemons compare their times; restart"
                " svcd to use the time of this machine",
                s=off_s,
            )
        self._skewed = skewed


def _ignore(_: str) -> None:
    """The default of `notified`: ignore the notification."""
