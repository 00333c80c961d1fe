"""Takes, renews and gives the leases of a daemon, when several daemons share one PostgreSQL.

Each living daemon has a row in `daemons`, which it renews by a heartbeat. `leases` names the holder
of each shard, and changes only when a shard changes hands. So a heartbeat conflicts with no other
statement, and a transaction can lock the row of its lease until it ends (`FENCE`).

Note: the server's clock. All other rows use times of the daemons, never of SQL. A lease is
different: daemons on several machines must agree when it ends, and the database's clock is the only
one that they share.

Note: how a daemon dies. Its row expires. The first daemon that notices this ends the connections of
the dead one (a suspended process may hold locks for ever). Then, in one statement, it deletes the
row and frees the leases. A late heartbeat finds no row, so its sender knows at once that it has
lost all leases. Delete and heartbeat lock the same row, so that exactly one of them wins.

Note: when the server's clock is set. Forward: rows of living daemons expire. Each daemon notices at
its heartbeat that more time has passed at the server than here. Then it declares no daemon dead for
one lease's time, in which the living daemons renew their rows. Back: a row seems to have hours
left, and a lease seems not to be free yet. Then the row is shortened to the longest plausible time,
and the lease counts as free from now on.

Note: after an outage. When no daemon could reach the database, the rows of all have expired. So the
first daemon that reaches it again waits for one lease's time before it declares another one dead.

Note: releases. An upgrade of the schema names the releases that can go on with it
(svcd.store.migrations). A daemon's row tells which schema its release knows. A daemon that is going
to upgrade the schema waits until no daemon lives whose release could not use it then, and gives up
after one lease. A daemon that finds a schema that it cannot use, at its heartbeat or when it enters
its row again, loses all leases and stops. Between the last look and the upgrade such a daemon may
start; its next heartbeat ends it.

Note: the same state folder. A daemon's name is derived from its state folder, which only one
process can lock. So a daemon that starts again after a kill knows that the former process is dead,
and continues at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import psycopg2
from attrs import frozen
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from svcd.runtime.fencing import LeaseLost, Term
from svcd.runtime.tasks import DeadlineExceeded, Loop, Waiters, shielded, sleep, with_deadline
from svcd.settings import Database as DatabaseSettings
from svcd.store import migrations
from svcd.store.database import SchemaError, Sql
from svcd.store.leases.holdings import Holdings, Taken
from svcd.store.leases.ownership import lock_shared
from svcd.store.leases.shares import share
from svcd.store.sessions import Lost, Session, Sessions, closing, line_of

log = Logger()

CHANNEL: Final = "svcd"
_LEASES: Final = "leases"
"""The notification after leases became free, or a daemon started or stopped."""

FENCE: Final = """
select 1 from leases where shard = :shard and holder = :holder and epoch = :epoch for share
"""
_STOP_S: Final = 5.0
"""Longest wait for the current turn at a stop."""
_SOON_S: Final = 0.1
"""Time until the next turn, when a turn must wait for work or connections to end."""
_OLDER_S: Final = 1.0
"""Added to the lease's time, for which an upgrade waits for the daemons of the older release."""
_TRY_S: Final = 0.25
"""Time between two looks at these daemons."""
_SKEW_S: Final = 3.0
"""Difference between this daemon's time and the server's from which it is logged."""
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
_IS_SHARED: Final = "select to_regclass('daemons') is not null"
"""Whether the database has the table. Without it, no daemon can live."""
_OTHERS: Final = f"""
select coalesce((select string_agg(about, '; ' order by about) from daemons
                  where id <> %(id)s and until_s > {_NOW} and knows < %(needed)s), '')
"""
"""The living daemons that an upgrade would shut out."""
_SERVES: Final = "(select max(serves) from schema_version)"
_REGISTER: Final = f"""
insert into daemons (id, about, until_s, knows)
select %(id)s, %(about)s, {_NOW} + %(lease_s)s, %(knows)s where {_SERVES} <= %(knows)s
on conflict (id) do update
  set about = excluded.about, until_s = excluded.until_s, knows = excluded.knows
returning id
"""
_ADOPT: Final = """
update leases set epoch = epoch + 1
 where holder = %(id)s and not shard = any(%(known)s::int[])
returning shard, epoch
"""
_BEAT: Final = f"""
update daemons set until_s = {_NOW} + %(lease_s)s where id = %(id)s
returning {_NOW},
          extract(epoch from clock_timestamp() - pg_postmaster_start_time())::double precision,
          (select max(number) from schema_version), {_SERVES}
"""
_DAEMONS: Final = f"select id, until_s - {_NOW} from daemons"
_HOLDERS: Final = """
select l.shard, coalesce(d.id, ''), l.epoch
  from leases l left join daemons d on d.id = l.holder
"""
_DECLARE_DEAD: Final = f"""
with dead as (
  delete from daemons where id = any(%(ids)s) and until_s < {_NOW} returning id, until_s
)
update leases l set holder = '', epoch = l.epoch + 1, free_s = dead.until_s
  from dead where l.holder = dead.id
returning l.shard
"""
_SHORTEN: Final = f"""
update daemons set until_s = {_NOW} + %(most_s)s where until_s > {_NOW} + %(most_s)s
"""
_TAKE: Final = f"""
update leases l set holder = %(id)s, epoch = l.epoch + 1
  from (select shard from leases
         where not exists (select 1 from daemons d where d.id = leases.holder)
         order by shard limit %(most)s for update skip locked) f
 where l.shard = f.shard and exists (select 1 from daemons where id = %(id)s)
returning l.shard, l.epoch, {_NOW} - l.free_s
"""
_GIVE: Final = f"""
update leases
   set holder = '', epoch = epoch + 1,
       free_s = case when shard = any(%(peaceful)s::int[]) then 0 else {_NOW} end
 where holder = %(id)s and shard = any(%(shards)s::int[])
"""
_LEAVE: Final = "delete from daemons where id = %(id)s"
_NOTIFY: Final = f"select pg_notify('{CHANNEL}', %(text)s)"


@frozen
class Me:
    """The identity of this daemon. name: its name in the database. about: host and process."""

    name: str
    about: str


async def require(sql: Sql, term: Term) -> None:
    """The first statement of a transaction under `term`.

    Raises LeaseLost when the term is not the newest. Until the transaction has ended, no other
    daemon can take the lease.
    """
    values = {"shard": term.shard, "holder": term.holder, "epoch": term.epoch}
    if await sql.one(FENCE, values) is None:
        raise LeaseLost(f"the lease of shard {term.shard} has been taken by another daemon")


class LeaseKeeper:
    """Keeps `holdings` up to date with the database.

    notified: called with each notification of another daemon (`Tx.notify`). declared_dead: called
    after this daemon has declared others dead. shut_out: called with one line when another daemon
    owns the database alone, or has upgraded its schema beyond this release. steady, wall: see
    `Holdings`. problem: why leases cannot be used now, else "".
    """

    def __init__(
        self,
        clock: IReactorTime,
        steady: Callable[[], float],
        sessions: Sessions,
        settings: DatabaseSettings,
        me: Me,
        shut_out: Callable[[str], None],
        wall: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._sessions = sessions
        self._settings = settings
        self._me = me
        self._shut_out = shut_out
        self.holdings = Holdings(clock, steady, me.name, settings.lease_s, settings.grace_s, wall)
        self.notified: Callable[[str], None] = _ignore
        self.declared_dead: Callable[[], None] = _nothing
        self.problem = "no lease was requested yet"
        self._session: Session | None = None
        self._declares_from = float("-inf")  # when it may declare others dead
        self._beat_at = self.holdings.now()
        self._ahead_s: float | None = None  # of the server's clock, at the last heartbeat
        self._entered = False
        self._skewed = False
        self._stopping = False
        self._turning = False
        self._turned = Waiters()
        self._soon: IDelayedCall | None = None
        self._most_s = _MOST_LEASES * settings.lease_s
        self._loop = Loop(clock, "leases", settings.renew_s, self._turn)

    # ---- owner's side ----

    async def open(self) -> None:
        """Connect, and end the connections of a former process with the same name.

        Raises Lost, and SchemaError: another daemon owns the database alone, this release cannot
        use the schema, or would upgrade it while daemons live that could not use it then.
        """
        self._session = session = await self._connect()
        await session.execute(_END, {"names": [self._me.name]})
        await self._until_upgradable(session)

    async def upgradable(self) -> None:
        """Wait while daemons live that could not use the schema after this one's upgrade.

        Raises SchemaError when they live on, and when the database does not answer.
        """
        if self._session is None:
            raise SchemaError(f"the schema was not changed: {self.problem}")
        try:
            await self._until_upgradable(self._session)
        except (Lost, psycopg2.Error) as error:
            raise SchemaError(f"the schema was not changed: {line_of(error)}") from None

    async def _until_upgradable(self, session: Session) -> None:
        if not (await session.execute(_IS_SHARED)).fetchone()[0]:
            return
        end = self._clock.seconds() + self._settings.lease_s + _OLDER_S
        waits = False
        while True:
            row = (await session.execute(migrations.CURRENT)).fetchone()
            version = migrations.version_of(row)
            if why := migrations.refusal(version):
                raise SchemaError(why)
            if version.number >= migrations.newest():
                return
            needed = {"id": self._me.name, "needed": migrations.needed()}
            (others,) = (await session.execute(_OTHERS, needed)).fetchone()
            if not others:
                return
            if self._clock.seconds() >= end:
                raise SchemaError(
                    f"daemons of an older release use the database ({others}): this release would"
                    f" upgrade its schema {version.number} to {migrations.newest()}, which they"
                    " cannot use; stop them, then start this daemon again"
                )
            if not waits:
                log.info("Waiting for the end of older daemons: {others}", others=others)
                waits = True
            await sleep(self._clock, _TRY_S)

    async def begin(self) -> None:
        """Register this daemon and take leases, now and repeatedly. `problem` shows failures."""
        await shielded(self._guarded())
        self._loop.start(now=False)

    async def stop(self) -> None:
        """Give up all leases and notify the other daemons. The caller has ended all work before."""
        self._stopping = True
        await self._loop.stop()
        if self._soon is not None and self._soon.active():
            self._soon.cancel()
        try:
            if self._turning:  # cancelling it would break the connection
                await with_deadline(self._clock, _STOP_S, "leases", self._turned.wait())
            await self._leave()
        except (DeadlineExceeded, Lost, psycopg2.Error) as error:
            log.warn("The leases were not given up and will expire: {why}", why=line_of(error))
        self.holdings.close()
        session, self._session = self._session, None
        if session is not None:
            self._sessions.close(session)

    async def _leave(self) -> None:
        session = self._session
        if session is not None:
            await self._give(session, list(self.holdings.epochs()))
            await session.execute(_LEAVE, {"id": self._me.name})
            await session.execute(_NOTIFY, {"text": _LEASES})

    # ---- connection ----

    async def _connect(self) -> Session:
        session = await self._sessions.open(self._broken, self._settings.renew_s)
        with closing(self._sessions, session):
            refusal = await lock_shared(self._clock, session)
            if refusal:
                raise SchemaError(refusal)
            await session.execute(_PREPARE)
            session.listen(self._hear)
        return session

    def _broken(self, session: Session, reason: str) -> None:
        if session is self._session:
            self._session = None
            self._declares_from = float("inf")
            self.problem = f"the connection for the leases was lost: {reason}"
            log.warn("The connection for the leases was lost: {reason}", reason=reason)
            self._loop.wake()

    def _hear(self, text: str) -> None:
        if text == _LEASES:
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
        return session

    # ---- a turn ----

    async def _turn(self) -> None:
        await shielded(self._guarded())

    async def _guarded(self) -> None:
        if self._turning:  # a cancelled loop leaves its last turn running
            return
        self._turning = True
        try:
            session = self._session or await self._again()
            if session is not None and not self._stopping:
                await self._renew(session)
        except (Lost, psycopg2.Error) as error:
            self.problem = f"the leases could not be renewed: {line_of(error)}"
            log.warn("The leases could not be renewed: {why}", why=line_of(error))
            if isinstance(error, Lost) and self._session is not None:
                session, self._session = self._session, None
                self._declares_from = float("inf")
                self._sessions.close(session)
        finally:
            self._turning = False
            self._turned.fire()

    async def _renew(self, session: Session) -> None:
        """Send one heartbeat, then take and give leases by the rows."""
        asked, asked_at = self.holdings.now(), self._clock.seconds()
        values = {"id": self._me.name, "lease_s": self._settings.lease_s}
        row = (await session.execute(_BEAT, values)).fetchone()
        if row is None or not self._entered:
            if row is None and self._entered:
                log.warn("Another daemon declared this one dead: all leases were lost")
            self.holdings.lose()
            if not await self._enter(session):
                return
        elif refusal := migrations.refusal(migrations.Version(row[2], row[3])):
            self._outdated(refusal)
            return
        else:
            self.holdings.renewed(asked)
            self.problem = ""
            self._compare_clocks(asked_at, row[0])
            passed = asked.longest_since(self._beat_at)
            stopped = passed > self._settings.lease_s
            if stopped or self._server_was_set(asked_at, row[0]):
                earliest = asked_at + self._settings.lease_s
                self._declares_from = max(self._declares_from, earliest)
            await self._declare_dead(session, row[1])
        self._beat_at = asked
        await self._settle(session)

    def _outdated(self, refusal: str) -> None:
        """Stop to work, because a newer release has upgraded the schema."""
        self.holdings.lose()
        self.problem = refusal
        self._shut_out(refusal)

    async def _enter(self, session: Session) -> bool:
        """Insert the row of this daemon, and adopt the leases of its former process.

        False: a newer release has upgraded the schema.
        """
        asked = self.holdings.now()
        values = {
            "id": self._me.name,
            "about": self._me.about,
            "lease_s": self._settings.lease_s,
            "knows": migrations.newest(),
        }
        if (await session.execute(_REGISTER, values)).fetchone() is None:
            self._outdated(
                f"a newer release has upgraded the schema of the database beyond"
                f" {migrations.newest()}, and this release cannot use it: run that release"
            )
            return False
        self.holdings.renewed(asked)
        self.problem = ""
        if not self._entered:  # the former process is dead: no grace time is needed
            rows = (await session.execute(_ADOPT, {"id": self._me.name, "known": []})).fetchall()
            calm = self._settings.grace_s
            self.holdings.took(Taken(shard=s, epoch=e, free_s=calm) for s, e in rows)
        self._entered = True
        await session.execute(_NOTIFY, {"text": _LEASES})
        return True

    async def _declare_dead(self, session: Session, server_up_s: float) -> None:
        """Declare the daemons dead whose rows have expired, and free their leases."""
        left = (await session.execute(_DAEMONS)).fetchall()
        if any(left_s > self._most_s for _, left_s in left):  # the server's clock was set back
            await session.execute(_SHORTEN, {"most_s": self._most_s})
        dead = [name for name, left_s in left if left_s <= 0]
        too_early = self._clock.seconds() < self._declares_from
        if not dead or too_early or server_up_s <= self._settings.lease_s:
            return
        await session.execute(_END, {"names": dead})
        try:
            freed = (await session.execute(_DECLARE_DEAD, {"ids": dead})).fetchall()
        except psycopg2.errors.LockNotAvailable:  # the connections of the dead have not ended yet
            self._again_soon()
            return
        names = ", ".join(dead)
        log.warn("Daemons {names} are dead, {n} leases are free", names=names, n=len(freed))
        self.declared_dead()

    async def _settle(self, session: Session) -> None:
        """Take free leases up to this daemon's share, and give those above the share."""
        name = self._me.name
        left = (await session.execute(_DAEMONS)).fetchall()
        living = [each for each, left_s in left if left_s > 0]
        rows = (await session.execute(_HOLDERS)).fetchall()
        known = self.holdings.epochs()
        mine = {shard: epoch for shard, holder, epoch in rows if holder == name}
        self.holdings.lose([s for s, epoch in known.items() if mine.get(s) != epoch])
        if mine.keys() - known.keys():  # the answer to a take was lost, or a give failed
            values = {"id": name, "known": list(known)}
            adopted = (await session.execute(_ADOPT, values)).fetchall()
            self.holdings.took(Taken(shard=s, epoch=e, free_s=0.0) for s, e in adopted)
        holders = {shard: holder for shard, holder, _ in rows}
        wanted = share(name, living, holders, self.holdings.busy())
        if wanted.take:
            most = {"id": name, "most": wanted.take}
            taken = (await session.execute(_TAKE, most)).fetchall()
            self.holdings.took(Taken(shard=s, epoch=e, free_s=free_s) for s, e, free_s in taken)
            log.info("Took {n} leases of {all}", n=len(taken), all=len(rows))
        if not wanted.give:
            self.holdings.resume()
            return
        given = self.holdings.park(wanted.give)
        if len(given) < len(wanted.give):  # cancelled work has not ended yet
            self._again_soon()
        if given:
            await self._give(session, given)
            await session.execute(_NOTIFY, {"text": _LEASES})
            log.info("Gave {n} leases to other daemons", n=len(given))

    async def _give(self, session: Session, shards: Sequence[int]) -> None:
        """Give up the leases of `shards`.

        This daemon forgets them first, because the answer may be lost. If the statement failed,
        `_ADOPT` takes them again.
        """
        peaceful = list(self.holdings.peaceful())
        values = {"id": self._me.name, "shards": shards, "peaceful": peaceful}
        self.holdings.given(shards)
        await session.execute(_GIVE, values)

    def _again_soon(self) -> None:
        if not self._stopping and (self._soon is None or not self._soon.active()):
            self._soon = self._clock.callLater(_SOON_S, self._loop.wake)

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


def _nothing() -> None:
    """The default of `declared_dead`: do nothing."""
