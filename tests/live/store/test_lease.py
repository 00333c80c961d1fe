"""The lease on a real PostgreSQL: fenced, taken from the dead, and told of.

Whole daemons are in tests/live/test_daemons.py.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import psycopg2
from attrs import evolve
from twisted.internet import reactor as _reactor  # noqa: TID251 - sockets
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest, TestCase

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ClusterId
from svcd.ports.store import Page, Sealer
from svcd.runtime.clock import steady_seconds
from svcd.runtime.fencing import LeaseLost
from svcd.runtime.tasks import gather, sleep
from svcd.settings import Database
from svcd.store.database import SchemaError
from svcd.store.lease.keeper import Me, require
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import MemorySealer, SealerError
from svcd.store.store import SqlStore
from tests.contract.store.rows import TENANT, at, cluster
from tests.support.database.postgres_server import drop_database, execute, new_database, own_server
from tests.support.database.releases import NEWEST, become
from tests.support.processes import until

reactor: Any = _reactor

_SETTINGS = Database(lease_s=3.0, renew_s=0.2, grace_s=0.5, wait_s=3.0)
_SOON_S = 30.0
_KEY = ClusterId("c-1")
_STEAL = "update lease set holder = 'thief', epoch = epoch + 1"


class Member:
    """One daemon's part: the store, and the keeper of the lease."""

    def __init__(self, url: str, name: str, sealer: Sealer) -> None:
        settings = evolve(_SETTINGS, url=url)
        me = Me(name, f"{name} of the tests", steady_seconds)
        self.shut_out: list[str] = []
        self.heard: list[str] = []
        self.changes: list[str] = []
        self.database = PostgresDatabase(reactor, settings, self.shut_out.append, me=me)
        self.keeper = self.database.keeper
        self.holding = self.keeper.holding
        self.holding.watch(
            lambda: self.changes.append("gained"), lambda: self.changes.append("lost")
        )
        self.keeper.notified = self.heard.append
        self.store = SqlStore(self.database, sealer, name, require)

    async def start(self) -> None:
        await self.database.open()
        await self.store.open(at(0))
        await self.keeper.begin()

    async def sleep(self) -> None:
        """Show no sign of life any more, as a stopped process."""
        await self.keeper._loop.stop()

    def wake(self) -> None:
        self.keeper._loop.start()


class LeaseCase(TestCase):
    timeout = 120

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.sealer: Sealer = MemorySealer()

    def member(self, name: str, sealer: Sealer | None = None) -> Member:
        """Not started yet."""
        made = Member(self.url, name, sealer or self.sealer)
        self.addCleanup(lambda: Deferred.fromCoroutine(made.store.close()))
        return made

    async def started(self, *names: str) -> list[Member]:
        """They begin at once, and share."""
        made = [self.member(name) for name in names]
        for error in await gather([each.start for each in made], len(made)):
            if isinstance(error, BaseException):
                raise error
        return made

    async def working(self, *names: str) -> list[Member]:
        """As `started`, one after the other: the first one has the lease."""
        made = [(await self.started(name))[0] for name in names]
        await self.until_held(made[0])
        return made

    async def until_held(self, member: Member) -> None:
        """Until this one holds the lease, and the database says so."""

        async def so() -> bool:
            rows = execute(self.url, "select holder from lease")
            return rows == [(member.holding.name,)] and member.holding.held

        await until(so, f"held by {member.holding.name}", _SOON_S)

    async def fails(self, work: Awaitable[object], kind: type[Exception]) -> str:
        try:
            await work
        except kind as error:
            return str(error)
        raise AssertionError(f"{kind.__name__} was not raised")


class SharingTests(LeaseCase):
    async def test_daemons_that_start_at_once(self) -> None:
        """Each migration is run once, and one of them has the lease."""
        made = await self.started("a", "b", "c")
        self.assertEqual([m.holding.held for m in made].count(True), 1)
        numbers = execute(self.url, "select number from schema_version order by number")
        self.assertEqual(len(numbers), len({n for (n,) in numbers}))
        for each in made:
            self.assertEqual(each.keeper.problem, "")

    async def test_stopped_daemon_is_replaced_at_once(self) -> None:
        """The other one hears of it, and waits for no grace."""
        first, second = await self.working("a", "b")
        began = reactor.seconds()
        await first.store.close()
        await self.until_held(second)
        self.assertLess(reactor.seconds() - began, _SETTINGS.lease_s)
        self.assertEqual(execute(self.url, "select id from daemons"), [("b",)])

    async def test_alone_and_shared_exclude_each_other(self) -> None:
        """With a line that says why."""
        (first,) = await self.started("a")
        settings = evolve(_SETTINGS, url=self.url)
        refused = PostgresDatabase(reactor, settings, self.fail)
        text = await self.fails(refused.open(), SchemaError)
        self.assertIn("cloud.kind=openstack", text)
        await first.store.close()
        alone = PostgresDatabase(reactor, settings, self.fail)
        await alone.open()
        self.addCleanup(lambda: Deferred.fromCoroutine(alone.close()))
        text = await self.fails(self.member("b").start(), SchemaError)
        self.assertIn("another svcd has this database", text)

    async def test_other_key_is_refused(self) -> None:
        """Though nothing has been sealed yet."""
        await self.started("a")
        text = await self.fails(self.member("b", MemorySealer()).start(), SealerError)
        self.assertIn("copy of the seal.key", text)


class ReleaseTests(LeaseCase):
    """Two releases: the other one is played by its rows, or is the next one."""

    newer = f"insert into schema_version values ({NEWEST + 1}, 'later', {NEWEST + 1})"

    older_starts = (
        "insert into daemons (id, about, until_s, knows) values ('older', 'host1, process 7',"
        f" extract(epoch from clock_timestamp())::double precision + 3600, {NEWEST})"
    )

    async def next_release(self) -> None:
        """The database has been in use, and this process is of a release that changes a table."""
        (first,) = await self.started("a")
        await first.store.close()
        become(self, "alter table daemons add column more integer;")

    async def beside_an_older_daemon(self) -> None:
        await self.next_release()
        execute(self.url, self.older_starts)

    def schema(self) -> int:
        return int(execute(self.url, "select max(number) from schema_version")[0][0])

    async def test_running_daemons_stop_when_a_newer_release_upgrades(self) -> None:
        """They use no lease, begin no transaction, and say why."""
        made = await self.started("a", "b")
        execute(self.url, self.newer)

        async def out() -> bool:
            return all(each.shut_out for each in made)

        await until(out, "both are shut out", _SOON_S)
        for each in made:
            self.assertIn(f"this release knows {NEWEST}", each.shut_out[0])
            self.assertFalse(each.holding.held)
            work = each.store.tx(lambda tx: tx.clusters.add(cluster()))
            await self.fails(work, ServiceUnavailable)
        self.assertEqual(execute(self.url, "select count(*) from clusters"), [(0,)])

    async def test_an_upgrade_is_refused_while_an_older_daemon_lives(self) -> None:
        """The schema stays; the text names the daemon. After its end the upgrade is made."""
        await self.beside_an_older_daemon()
        text = await self.fails(self.member("b").start(), SchemaError)
        self.assertIn("daemons of an older release use the database (host1, process 7)", text)
        self.assertEqual(self.schema(), NEWEST)
        execute(self.url, "delete from daemons where id = 'older'")
        await self.member("b").start()
        self.assertEqual(self.schema(), NEWEST + 1)

    async def test_a_daemon_that_starts_during_an_upgrade_is_seen(self) -> None:
        """The upgrade waits for a table; before it tries again it looks who lives."""
        await self.beside_an_older_daemon()
        execute(self.url, "delete from daemons")
        reader = psycopg2.connect(self.url)
        self.addCleanup(reader.close)
        reader.cursor().execute("select 1 from daemons")
        starting = Deferred.fromCoroutine(self.member("b").start())
        await sleep(reactor, 0.5)
        execute(self.url, self.older_starts)
        reader.rollback()
        text = await self.fails(starting, SchemaError)
        self.assertIn("daemons of an older release use the database (host1, process 7)", text)
        self.assertEqual(self.schema(), NEWEST)

    async def test_daemons_of_the_newer_release_upgrade_together(self) -> None:
        """None of them takes another one for an older daemon."""
        await self.next_release()
        await self.started("a", "b", "c")
        self.assertEqual(self.schema(), NEWEST + 1)


class FenceTests(LeaseCase):
    async def driven(self, member: Member, work: Any) -> Any:
        """Run `work` under the lease."""

        async def under() -> Any:
            return await member.store.tx(work)

        return await member.holding.drive(under())

    async def test_late_holder_cannot_write(self) -> None:
        """The daemon still treats its lease as in force; the database refuses it."""
        (member,) = await self.started("a")
        await member.sleep()
        execute(self.url, _STEAL)
        self.assertTrue(member.holding.held)
        await self.fails(self.driven(member, lambda tx: tx.clusters.add(cluster())), LeaseLost)
        found = await member.store.read(lambda tx: tx.clusters.page(TENANT, Page()))
        self.assertEqual(found, [])

    async def test_lease_taken_during_the_transaction(self) -> None:
        """The thief waits for the end; the next transaction is refused."""
        (member,) = await self.started("a")
        await member.sleep()
        await self.driven(member, lambda tx: tx.clusters.add(cluster()))
        execute(self.url, _STEAL)
        await self.fails(self.driven(member, lambda tx: tx.clusters.drop(_KEY)), LeaseLost)
        await member.store.tx(lambda tx: tx.clusters.add(cluster(2)))  # a request may


class DeathTests(LeaseCase):
    async def test_server_whose_clock_was_set_back(self) -> None:
        """The dead seem to have an hour left: they are given up after six leases at most."""
        first, second = await self.working("a", "b")
        await first.sleep()
        execute(self.url, "update daemons set until_s = until_s + 3600 where id = 'a'")
        execute(self.url, "update lease set free_s = free_s + 3600")
        await self.until_held(second)
        self.assertTrue(second.holding.in_force())

    async def test_locks_of_the_dead_are_taken_away(self) -> None:
        """It was stopped in the middle of a transaction."""
        first, second = await self.working("a", "b")
        entered: Deferred[None] = Deferred()
        hold: Deferred[None] = Deferred()

        async def work(sql: Any) -> None:
            await sql.one("select 1 from lease for share")
            entered.callback(None)
            await hold
            await sql.one("select 1")

        running = Deferred.fromCoroutine(first.database.tx(work))
        await entered
        await first.sleep()
        await self.until_held(second)
        hold.callback(None)
        await self.fails(running, Exception)

    async def test_started_again_in_the_same_place(self) -> None:
        """Its former process is known to be dead: it goes on at once, in a term of its own."""
        (first,) = await self.started("a")
        before = first.holding.epoch or 0
        await first.sleep()
        await first.database._pool.close(1.0)
        second = self.member("a")
        await second.start()
        self.assertTrue(second.holding.held)
        self.assertEqual(second.holding.epoch, before + 1)

    async def test_restarted_server(self) -> None:
        """Nobody acts while nobody can know; then the same one works as before."""
        if not self.url.startswith("postgresql://svcd@"):
            raise SkipTest("the server of PGHOST is not ours to stop")
        made = await self.working("a", "b")
        before = made[0].holding.epoch
        own_server().stop()

        async def lapsed() -> bool:
            return not any(each.holding.in_force() for each in made)

        try:
            await until(lapsed, "no daemon is sure of anything", _SOON_S)
            self.assertIn("lost", made[0].changes)
        finally:
            own_server().start()

        async def resumed() -> bool:
            works = made[0].holding.held
            return works and not any(each.keeper.problem for each in made)

        await until(resumed, "all is as before", _SOON_S)
        self.assertEqual([each.holding.epoch for each in made], [before, None])

    async def test_uploads_of_the_living_stay(self) -> None:
        """Those of the dead go."""
        first, second = await self.started("a", "b")
        await first.store.tx(lambda tx: tx.internals.begin("u-a", TENANT, 0))
        await first.store.tx(lambda tx: tx.internals.append("u-a", 0, b"piece"))
        await self.started("c")
        self.assertEqual(execute(self.url, "select id from uploads"), [("u-a",)])
        await first.sleep()

        async def dead() -> bool:
            return ("a",) not in execute(self.url, "select id from daemons")

        await until(dead, "the death is noticed", _SOON_S)
        await second.store.sweep(reactor.seconds())
        self.assertEqual(execute(self.url, "select id from uploads"), [])
        self.assertEqual(execute(self.url, "select upload_id from pieces"), [])


class TellTests(LeaseCase):
    async def test_others_hear_which_tenants_changed(self) -> None:
        """Soon after the commit; the daemon itself does not hear its own announcement."""
        first, second = await self.started("a", "b")
        for number in (1, 2):
            await first.store.tx(lambda tx, n=number: tx.clusters.add(cluster(n)))

        async def heard() -> bool:
            return bool(second.heard)

        await until(heard, "the news", _SOON_S)
        line = f"changed {first.holding.name} acme"
        self.assertEqual(second.heard[0], line)
        calls: list[str] = []
        for member in (first, second):
            member.store.on_change(TENANT, lambda m=member: calls.append(m.holding.name))
            _, sender, *tenants = line.split()
            member.store.heard(sender, tenants)
        self.assertEqual(calls, [second.holding.name])
