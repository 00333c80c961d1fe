"""PostgreSQL at its worst: many at once, killed, stopped, frozen, full, and owned by another."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve
from twisted.internet import reactor as _reactor  # noqa: TID251 - sockets
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SkipTest, TestCase

from svcd.errors import ClusterNameTaken, InvalidData, NotFound, ServiceUnavailable
from svcd.model.ids import ClusterId, JobBinaryInternalId
from svcd.ports.store import Page, Tx
from svcd.runtime.tasks import gather, sleep
from svcd.settings import Database
from svcd.store.database import Conflict, SchemaError, Sql
from svcd.store.lease.keeper import Me
from svcd.store.lease.lock import LOCK_KEY
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import MemorySealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import TENANT, at, cluster, internal
from tests.support.database.postgres_server import (
    PostgresServer,
    cut_owner,
    drop_database,
    execute,
    new_database,
    own_server,
    steal,
)
from tests.support.processes import until
from tests.support.sample import SLOW

skip = SLOW

reactor: Any = _reactor

_SETTINGS = Database(connections=8, connect_timeout_s=1.0, statement_timeout_s=5.0, wait_s=3.0)
_KILL = """
select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""
_COUNT = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""
_OWNER = """
select pid from pg_locks where locktype = 'advisory'
   and database = (select oid from pg_database where datname = current_database())
"""
_BUSY = """
select count(*) from pg_stat_activity
 where datname = current_database() and query like '%pg_sleep%' and pid <> pg_backend_pid()
   and state = 'active'
"""


class _PostgresCase(TestCase):
    timeout = 120

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        self.taken: list[str] = []
        self.sealer = MemorySealer()

    async def opened(self, **changes: Any) -> SqlStore:
        """A store on the test's database, which the test's end closes."""
        settings = evolve(_SETTINGS, **{"url": self.url, **changes})
        self.database = PostgresDatabase(reactor, settings, self.taken.append)
        await self.database.open()
        store = SqlStore(self.database, self.sealer)
        self.addCleanup(lambda: Deferred.fromCoroutine(store.close()))
        await store.open(at(0))
        await self.database.keeper.begin()
        return store

    async def fails(self, work: Awaitable[object], kind: type[Exception]) -> str:
        try:
            await work
        except kind as error:
            return str(error)
        raise AssertionError(f"{kind.__name__} was not raised")

    def server(self) -> PostgresServer:
        """One that can be stopped."""
        if not self.url.startswith("postgresql://svcd@"):
            raise SkipTest("the server of PGHOST is not ours to stop")
        return own_server()

    async def count(self) -> int:
        """Connections to the test's database."""
        return int(execute(self.url, _COUNT)[0][0])


class ManyAtOnceTests(_PostgresCase):
    """Transactions beside each other."""

    async def test_of_many_with_one_name_one_wins(self) -> None:
        """The others get the family's error."""
        store = await self.opened()

        def add(number: int) -> Callable[[], Any]:
            made = evolve(cluster(number), name="wanted")
            return lambda: store.tx(lambda tx: tx.clusters.add(made))

        results = await gather([add(n) for n in range(40)], 40)
        kinds = [type(r) for r in results]
        self.assertEqual((kinds.count(type(None)), kinds.count(ClusterNameTaken)), (1, 39))

    async def test_no_increment_is_lost(self) -> None:
        """Sixty read and write one row at once."""
        store = await self.opened(wait_s=20.0)
        await store.tx(lambda tx: tx.clusters.add(cluster(generation=0)))

        async def increment(tx: Tx) -> None:
            found = await tx.clusters.get(TENANT, ClusterId("c-1"))
            if not await tx.clusters.save(evolve(found, generation=found.generation + 1)):
                raise AssertionError("somebody came between")

        results = await gather([lambda: store.tx(increment)] * 60, 60)
        self.assertEqual([r for r in results if r is not None], [])
        found = await store.read(lambda tx: tx.clusters.get(TENANT, ClusterId("c-1")))
        self.assertEqual(found.generation, 60)

    async def test_two_that_would_break_a_rule_together_do_not(self) -> None:
        """Each may add when it has counted none; only one counts none."""
        store = await self.opened()

        def add_if_none(number: int) -> Callable[[], Any]:
            async def work(tx: Tx) -> bool:
                if await tx.clusters.page(TENANT, Page()):
                    return False
                await tx.clusters.add(cluster(number))
                return True

            return lambda: store.tx(work)

        results = await gather([add_if_none(n) for n in range(8)], 8)
        self.assertEqual(sorted(map(bool, results)), [False] * 7 + [True])

    async def test_read_of_several_statements_sees_one_moment(self) -> None:
        """What is committed in between does not show."""
        await self.opened()
        await self.database.script("create table t (n integer);\ninsert into t values (1);\n")
        seen: list[list[int]] = []

        async def look(sql: Sql) -> None:
            first = await sql.one("select n from t")
            again = await sql.one("select n from t")
            execute(self.url, "update t set n = n + 1")
            third = await sql.one("select n from t")
            assert first is not None and again is not None and third is not None
            seen.append([first[0], again[0], third[0]])

        await self.database.read(look)
        self.assertEqual(seen, [[1, 1, 1]])

    async def test_a_read_cannot_write(self) -> None:
        """The server refuses it too."""
        await self.opened()
        text = await self.fails(
            self.database.read(lambda sql: sql.all("delete from clusters returning id")),
            ServiceUnavailable,
        )
        self.assertIn("read-only", text)

    async def test_large_binary_is_streamed_through(self) -> None:
        """200 pieces of 256 KiB."""
        store = await self.opened()
        id_ = JobBinaryInternalId("jbi-1")
        await store.tx(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        for number in range(200):
            piece = bytes([number]) * 262_144
            await store.tx(lambda tx, n=number, p=piece: tx.internals.append("jbi-1", n, p))
        await store.tx(lambda tx: tx.internals.finish("jbi-1", internal()))
        for number in range(200):
            found = await store.read(lambda tx, n=number: tx.internals.piece(id_, n))
            self.assertEqual(found, bytes([number]) * 262_144)
        self.assertIsNone(await store.read(lambda tx: tx.internals.piece(id_, 200)))


class FreshnessTests(_PostgresCase):
    """Rows that many ask for at once are read together; nobody gets one of before his question."""

    async def test_what_was_committed_before_shows(self) -> None:
        """Whoever committed it: here a connection of another process, as of a second daemon."""
        store = await self.opened()
        for number in range(4):
            await store.tx(lambda tx, n=number: tx.clusters.add(cluster(n)))
        stop = False
        read = 0

        async def keep_reading(number: int) -> None:
            nonlocal read
            while not stop:
                await store.rendered("clusters", TENANT, f"c-{number % 4}")
                read += 1

        running = [Deferred.fromCoroutine(keep_reading(n)) for n in range(24)]
        for number in range(150):
            execute(self.url, f"update clusters set wire = '{number}' where id = 'c-{number % 4}'")
            found = await store.rendered("clusters", TENANT, f"c-{number % 4}")
            self.assertEqual(found, str(number).encode())
        stop = True
        for each in running:
            await each
        self.assertGreater(read, 150)

    async def test_two_daemons_see_each_other(self) -> None:
        """What one has acknowledged shows at the other at once, and the other way round."""
        members = []
        for name in ("one", "two"):
            me = Me(name, name, reactor.seconds)
            settings = evolve(_SETTINGS, url=self.url)
            database = PostgresDatabase(reactor, settings, self.taken.append, me=me)
            await database.open()
            members.append(SqlStore(database, MemorySealer()))
            self.addCleanup(lambda s=members[-1]: Deferred.fromCoroutine(s.close()))
        await members[0].open(at(0))
        held = cluster()
        await members[0].tx(lambda tx: tx.clusters.add(held))
        stop = False

        async def keep_reading(store: SqlStore) -> None:
            while not stop:
                await store.rendered("clusters", TENANT, "c-1")

        running = [Deferred.fromCoroutine(keep_reading(m)) for m in members * 8]
        for number in range(100):
            writer, reader = members[number % 2], members[1 - number % 2]
            later = evolve(held, description=f"version {number}")
            self.assertTrue(await writer.tx(lambda tx, r=later: tx.clusters.save(r)))
            found = json.loads(await reader.rendered("clusters", TENANT, "c-1"))
            self.assertEqual(found["description"], f"version {number}")
            held = evolve(later, version=later.version + 1)
        stop = True
        for each in running:
            await each

    async def test_what_is_deleted_is_not_found(self) -> None:
        """Nor is what belongs to another tenant, though it is read together with one's own."""
        store = await self.opened()
        for number in range(2):
            await store.tx(lambda tx, n=number: tx.clusters.add(cluster(n)))
        asked = [
            Deferred.fromCoroutine(store.rendered("clusters", tenant, id_))
            for tenant, id_ in ((TENANT, "c-0"), ("other", "c-1"), (TENANT, "c-2"))
        ]
        self.assertIn(b'"cluster-0"', await asked[0])
        for each in asked[1:]:
            self.assertIn("not found", await self.fails(each, NotFound))
        await store.tx(lambda tx: tx.clusters.drop(ClusterId("c-0")))
        await self.fails(store.rendered("clusters", TENANT, "c-0"), NotFound)


class MistakeTests(_PostgresCase):
    """What our own code or its callers do wrong."""

    async def test_nul_and_half_a_letter_are_refused(self) -> None:
        """The connection stays good."""
        store = await self.opened()
        for text in ("a\x00b", "a\ud800b"):
            await self.fails(
                self.database.tx(
                    lambda sql, t=text: sql.run("insert into uploads (id) values (:id)", {"id": t})
                ),
                InvalidData,
            )
        await store.tx(lambda tx: tx.clusters.add(cluster()))

    async def test_failed_statement_cannot_be_passed_over(self) -> None:
        """The server would take all back and say nothing."""
        await self.opened()

        async def work(sql: Sql) -> None:
            await sql.run("insert into uploads values ('u', '', 't', 0)")
            with contextlib.suppress(Conflict):
                await sql.run("insert into uploads values ('u', '', 't', 0)")

        await self.fails(self.database.tx(work), RuntimeError)
        self.assertEqual(execute(self.url, "select * from uploads"), [])

    async def test_lost_connection_cannot_be_passed_over(self) -> None:
        """Its statements did not happen, whatever the author makes of the error."""
        await self.opened()

        async def work(sql: Sql) -> None:
            await sql.run("insert into uploads values ('u', '', 't', 0)")
            execute(self.url, _KILL)
            with contextlib.suppress(ServiceUnavailable):
                await sql.one("select 1")

        text = await self.fails(self.database.tx(work), ServiceUnavailable)
        self.assertIn("nothing was changed", text)
        self.assertEqual(execute(self.url, "select * from uploads"), [])

    async def test_cancelled_caller_leaves_a_clean_connection(self) -> None:
        """The transaction runs to its end without it."""
        store = await self.opened(connections=1)

        async def work(sql: Sql) -> None:
            await sql.one("select pg_sleep(0.2)")
            await sql.run("insert into uploads values ('u', '', 't', 0)")

        running = Deferred.fromCoroutine(self.database.tx(work))
        await sleep(reactor, 0.05)
        running.cancel()
        await self.fails(running, CancelledError)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        self.assertEqual(execute(self.url, "select id from uploads"), [("u",)])

    async def test_statement_that_takes_too_long(self) -> None:
        """It is told apart from a cancel, and the connection goes on."""
        await self.opened(connections=1, statement_timeout_s=0.2)
        text = await self.fails(
            self.database.tx(lambda sql: sql.one("select pg_sleep(5)")), ServiceUnavailable
        )
        self.assertIn("took too long for a statement", text)
        await self.database.tx(lambda sql: sql.one("select 1"))

    async def test_no_free_connection(self) -> None:
        """503 after the wait; those who have one go on."""
        await self.opened(connections=2, wait_s=0.3)
        long = [
            Deferred.fromCoroutine(self.database.tx(lambda sql: sql.one("select pg_sleep(1)")))
            for _ in range(2)
        ]
        text = await self.fails(
            self.database.read(lambda sql: sql.one("select 1")), ServiceUnavailable
        )
        self.assertIn("2 are in use", text)
        for each in long:
            await each


class BrokenServerTests(_PostgresCase):
    """The server and its processes end, or stand still."""

    async def test_killed_idle_connections_are_replaced(self) -> None:
        """Nobody notices, and no error is logged."""
        store = await self.opened()
        await gather([lambda: self.database.tx(lambda s: s.one("select pg_sleep(0.1)"))] * 8, 8)
        self.assertGreaterEqual(await self.count(), 8)
        execute(self.url, _KILL)
        await sleep(reactor, 0.05)
        for number in range(12):
            await store.tx(lambda tx, n=number: tx.clusters.add(cluster(n)))
        self.assertEqual(self.taken, [])

    async def test_killed_in_a_statement(self) -> None:
        """The transaction fails, the next one goes well."""
        store = await self.opened()
        running = Deferred.fromCoroutine(
            self.database.tx(lambda sql: sql.one("select pg_sleep(20)"))
        )

        async def busy() -> bool:
            return bool(execute(self.url, _BUSY)[0][0])

        await until(busy, "the statement runs", 5.0)
        execute(self.url, _KILL)
        text = await self.fails(running, ServiceUnavailable)
        self.assertIn("nothing was changed", text)
        await store.tx(lambda tx: tx.clusters.add(cluster()))

    async def test_killed_between_statements(self) -> None:
        """What the transaction had written is not there."""
        store = await self.opened()

        async def work(tx: Tx) -> None:
            await tx.clusters.add(cluster())
            execute(self.url, _KILL)
            await tx.clusters.add(cluster(2))

        await self.fails(store.tx(work), ServiceUnavailable)
        self.assertEqual(await store.read(lambda tx: tx.clusters.page(TENANT, Page())), [])

    async def test_killed_before_the_commit(self) -> None:
        """It cannot be known whether the change was made."""
        store = await self.opened()

        async def work(tx: Tx) -> None:
            await tx.clusters.add(cluster())
            execute(self.url, _KILL)

        text = await self.fails(store.tx(work), ServiceUnavailable)
        self.assertIn("not known", text)

    async def test_server_stopped_and_started_under_load(self) -> None:
        """503 while it is away, each at once; within about a second after it is back all is well.

        What was acknowledged is there.
        """
        server = self.server()
        store = await self.opened()
        acknowledged: list[str] = []
        refused: list[float] = []
        stop = False

        async def load(number: int) -> None:
            count = 0
            while not stop:
                count += 1
                made = cluster(number * 100_000 + count)
                began = reactor.seconds()
                try:
                    await store.tx(lambda tx, m=made: tx.clusters.add(m))
                    acknowledged.append(made.id)
                except ServiceUnavailable:
                    refused.append(reactor.seconds() - began)
                await sleep(reactor, 0.01)

        running = [Deferred.fromCoroutine(load(n)) for n in range(10)]
        await sleep(reactor, 0.5)
        server.stop()
        await sleep(reactor, 1.0)
        self.assertIn("cannot be reached", await store.ready())
        server.start()
        back, had = reactor.seconds(), len(acknowledged)

        async def served() -> bool:
            return len(acknowledged) > had

        await until(served, "served again", 10.0, 0.01)
        self.assertLess(reactor.seconds() - back, 2.5)
        stop = True
        for each in running:
            await each
        self.assertGreater(len(refused), 10)
        self.assertEqual(await store.ready(), "")
        rows = await store.read(lambda tx: tx.clusters.page(TENANT, Page()))
        self.assertLessEqual(set(acknowledged), {r.id for r in rows})
        self.assertEqual(self.taken, [])

    async def test_frozen_server_is_given_up(self) -> None:
        """Each call ends in time; when the server goes on, so do we."""
        server = self.server()
        self.addCleanup(server.thaw)
        store = await self.opened(statement_timeout_s=0.5, wait_s=1.0)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        server.freeze()
        began = reactor.seconds()
        for _ in range(3):
            await self.fails(
                store.read(lambda tx: tx.clusters.page(TENANT, Page())), ServiceUnavailable
            )
        self.assertLess(reactor.seconds() - began, 12.0)
        server.thaw()

        async def well() -> bool:
            return await store.ready() == ""

        await until(well, "ready", 10.0)
        self.assertEqual(len(await store.read(lambda tx: tx.clusters.page(TENANT, Page()))), 1)


class OwnerTests(_PostgresCase):
    """One daemon a database."""

    async def test_second_daemon_is_refused(self) -> None:
        """With a line that says who has it; when the first has stopped, it may."""
        first = await self.opened()
        text = await self.fails(self.opened(), SchemaError)
        self.assertIn("another svcd has this database", text)
        await first.tx(lambda tx: tx.clusters.add(cluster()))
        await first.close()
        second = await self.opened()
        self.assertEqual(len(await second.read(lambda tx: tx.clusters.page(TENANT, Page()))), 1)

    async def test_lock_is_taken_again(self) -> None:
        """When only its connection was cut."""
        store = await self.opened()
        cut_owner(self.url)
        await sleep(reactor, 0.05)
        await store.tx(lambda tx: tx.clusters.add(cluster()))
        await self.fails(self.opened(), SchemaError)
        self.assertEqual(self.taken, [])

    async def test_lock_of_our_own_broken_connection(self) -> None:
        """The server has not noticed its end yet: that is no other daemon."""
        self.server()
        await self.opened(statement_timeout_s=0.2, wait_s=0.5)
        owner = int(execute(self.url, _OWNER)[0][0])
        os.kill(owner, signal.SIGSTOP)

        async def missed() -> bool:
            return "lease" in self.database.keeper.problem

        async def well() -> bool:
            return self.database.keeper.problem == ""

        try:
            await until(missed, "the lock is missed", 10.0)
            await sleep(reactor, 0.5)
        finally:
            os.kill(owner, signal.SIGCONT)
        await until(well, "the lock is held again", 5.0)
        self.assertEqual(self.taken, [])

    async def test_database_taken_over(self) -> None:
        """The first one is told, and begins nothing any more."""
        store = await self.opened(wait_s=0.3)
        self.addCleanup(steal(self.url, LOCK_KEY).close)

        async def told() -> bool:
            return bool(self.taken)

        await until(told, "told", 5.0)
        self.assertIn("another svcd has this database", self.taken[0])
        await self.fails(store.tx(lambda tx: tx.clusters.add(cluster())), ServiceUnavailable)

    async def test_lock_is_not_kept_on_a_newer_schema(self) -> None:
        """A newer release had the database while the connection was cut."""
        store = await self.opened(wait_s=0.3)
        execute(self.url, "insert into schema_version values (9999, 'later', 9999)")
        cut_owner(self.url)

        async def shut_out() -> bool:
            return bool(self.taken)

        await until(shut_out, "shut out", 5.0)
        self.assertIn("the database has schema 9999, this release knows", self.taken[0])
        await self.fails(store.tx(lambda tx: tx.clusters.add(cluster())), ServiceUnavailable)


class ClosingTests(_PostgresCase):
    async def test_at_any_moment(self) -> None:
        """Also while connections are being made; no error is logged, nothing is left."""
        for turns in range(12):
            settings = evolve(_SETTINGS, url=self.url)
            database = PostgresDatabase(reactor, settings, self.taken.append)
            await database.open()
            many = [
                Deferred.fromCoroutine(database.tx(lambda sql: sql.one("select 1")))
                for _ in range(4)
            ]
            for _ in range(turns):
                await sleep(reactor, 0.0)
            await database.close()
            for each in many:
                each.addErrback(lambda failure: failure.trap(ServiceUnavailable))
                await each

    async def test_start_that_is_cut_short(self) -> None:
        """As by SIGTERM at the start."""
        for turns in range(12):
            settings = evolve(_SETTINGS, url=self.url)
            database = PostgresDatabase(reactor, settings, self.taken.append)
            opening = Deferred.fromCoroutine(database.open())
            for _ in range(turns):
                await sleep(reactor, 0.0)
            opening.addErrback(lambda failure: failure.trap(CancelledError, SchemaError))
            opening.cancel()
            await opening
            await database.close()


class OpeningTests(_PostgresCase):
    """What is wrong at the start is said in a line, without the password."""

    async def refused(self, url: str) -> str:
        text = await self.fails(self.opened(url=url), SchemaError)
        self.assertNotIn("s3cret", text)
        self.assertNotIn("\n", text)
        return text

    async def test_unreachable_server(self) -> None:
        text = await self.refused("postgresql://u:s3cret@127.0.0.1:1/db")
        self.assertIn("refused", text)

    async def test_unknown_host(self) -> None:
        text = await self.refused("postgresql://u:s3cret@nowhere.invalid/db")
        self.assertIn("'nowhere.invalid' has no address", text)

    async def test_unknown_database(self) -> None:
        url = re.sub(r"/svcd_\w+", "/nowhere", self.url)
        text = await self.refused(url)
        self.assertIn('"nowhere" does not exist', text)

    async def test_url_that_is_none(self) -> None:
        text = await self.refused("postgresql://u:s3cret@host/db?nonsense=1")
        self.assertIn("database.url", text)

    async def test_user_without_rights(self) -> None:
        """With the remedy."""
        self.server()
        execute(self.url, "revoke all on schema public from public")
        execute(self.url, "drop role if exists nobody_much")
        execute(self.url, "create role nobody_much login")
        text = await self.refused(self.url.replace("svcd@", "nobody_much@"))
        self.assertIn("owner of the database", text)

    async def test_other_encoding(self) -> None:
        name = self.url.split("?")[0].rsplit("/", 1)[1] + "_latin"
        execute(self.url, f"create database {name} encoding 'LATIN1' template template0")
        self.addCleanup(drop_database, name)
        text = await self.refused(re.sub(r"/svcd_\w+", f"/{name}", self.url))
        self.assertIn("LATIN1", text)
