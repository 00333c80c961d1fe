"""The store on PostgreSQL: the contract, the same as on SQLite, on a reactor of its own.

Then the whole daemon: its interface and its life do not depend on the database. What goes wrong
with a server is in test_postgres_faults.py.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.epollreactor import EPollReactor
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import IdempotencyKeyReused, QuotaExceeded
from svcd.model.changes import Changes, Cursor
from svcd.model.ids import ClusterId
from svcd.ports.store import Page, Tx
from svcd.runtime.tasks import sleep
from svcd.settings import Database, Limits
from svcd.store.changes import _part as feed_part
from svcd.store.changes import cut, excess
from svcd.store.database import Sql
from svcd.store.postgres import PostgresDatabase
from svcd.store.postgres_statements import FEED, translate
from svcd.store.sealer import MemorySealer
from svcd.store.sessions import Lost, Session, connection_text
from svcd.store.store import SqlStore
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import run
from tests.conformance.targets import FAKE_FEATURES, OverHttp
from tests.contract.store.changes import event, settled
from tests.contract.store.kept_answers import keyed, source
from tests.contract.store.rows import TENANT, at, cluster, execution
from tests.contract.store.whole import WholeStoreContract
from tests.live import test_daemon
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.processes import Daemon, DaemonCase
from tests.support.processes import reactor as global_reactor

T = TypeVar("T")

_LIMIT_S = 60.0
_TABLES = """
select tablename from pg_tables where schemaname = 'public' and tablename <> 'schema_version'
"""
_reactors: list[Any] = []


def drive(work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which runs on the reactor of these tests."""
    reactor, done = own_reactor(), []
    Deferred.fromCoroutine(work).addBoth(done.append)
    end = reactor.seconds() + _LIMIT_S
    while not done:
        if reactor.seconds() > end:
            raise AssertionError(f"no result within {_LIMIT_S:.0f} s")
        reactor.iterate(0.05)
    if isinstance(done[0], Failure):
        done[0].raiseException()
    return done[0]


def own_reactor() -> Any:
    """One that no test runner spins."""
    if not _reactors:
        _reactors.append(EPollReactor())
    return _reactors[0]


async def _awaited(deferred: Deferred[T]) -> T:
    return await deferred


@functools.cache
def shared_database() -> str:
    """The URL of one that lives as long as the process. Raises SkipTest."""
    url, name = new_database()
    atexit.register(drop_database, name)
    return url


class OpeningTests(SynchronousTestCase):
    def test_connection_closed_between_its_last_answer_and_its_use(self) -> None:
        """As at its deadline. The opening ends as any that fails: nothing else is raised."""
        reactor, settings = own_reactor(), Database(url=shared_database())
        session, ended = Session(reactor, 5.0), []
        opening = Deferred.fromCoroutine(session.open(connection_text(settings), 5.0))
        opening.addBoth(ended.append)
        while session._connection._pollingD is not None:  # a later turn delivers the last answer
            reactor.iterate(0.05)
        self.assertEqual(ended, [])
        session.close()
        reactor.iterate(0.0)
        self.assertIsInstance(ended[0].value, Lost)


class PostgresStoreTests(SynchronousTestCase, WholeStoreContract):
    """The contract, on one database that each test finds empty."""

    def setUp(self) -> None:
        self.url = shared_database()
        self.database = PostgresDatabase(own_reactor(), Database(url=self.url), self.fail)
        self.store = SqlStore(self.database, MemorySealer())
        drive(self._open())

    def tearDown(self) -> None:
        drive(self.store.close())
        named = ", ".join(row[0] for row in execute(self.url, _TABLES))
        execute(self.url, f"truncate {named}")

    async def _open(self) -> None:
        await self.database.open()
        await self.store.open(at(0))

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return drive(self.store.tx(work))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        return drive(work)

    def fails(self, work: Callable[[Tx], Awaitable[object]], kind: type[Exception]) -> str:
        with self.assertRaises(kind) as raised:
            drive(self.store.tx(work))
        return str(raised.exception)

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        return drive(work)

    def test_a_slow_transaction_is_not_passed(self) -> None:
        """It begins before a younger one and is committed after it; a reader between gets both."""

        async def run() -> None:
            gate: Deferred[None] = Deferred()
            begun: Deferred[None] = Deferred()

            async def slow(tx: Tx) -> None:
                await tx.clusters.add(cluster(1))
                await tx.clusters.find(ClusterId("c-1"))  # sends the insert
                if not begun.called:
                    begun.callback(None)
                await gate

            async def read(tx: Tx) -> tuple[Changes | None, Cursor]:
                here = await tx.changes.here(0.0)
                return await tx.changes.since(TENANT, cursor, here, 9), here

            cursor = await self.store.read(lambda tx: tx.changes.here(0.0))
            older = Deferred.fromCoroutine(self.store.tx(slow))
            await begun
            await self.store.tx(lambda tx: tx.clusters.add(cluster(2)))
            found, here = await self.store.read(read)
            assert found is not None
            self.assertEqual([c.id for c in found.changes], ["c-2"])
            self.assertEqual(found.cursor, here)
            gate.callback(None)
            await older
            cursor = found.cursor
            found, here = await self.store.read(read)
            assert found is not None
            self.assertEqual([(c.id, c.word) for c in found.changes], [("c-1", "created")])
            cursor = found.cursor
            found, here = await self.store.read(read)
            assert found is not None
            self.assertEqual(found.changes, ())

        drive(run())

    def test_a_reader_that_a_slow_transaction_has_passed_is_refused_after_a_cut(self) -> None:
        """Its change is older than one that the reader has read, and both have gone."""

        async def delete(sql: Sql, id_: str) -> None:
            text = (
                f"insert into changes values ('jobs', :id, '{TENANT}', txid_current(), 0, 1, 1, 1)"
            )
            await sql.run(text, {"id": id_})

        async def run() -> tuple[Changes | None, Changes | None]:
            gate: Deferred[None] = Deferred()
            begun: Deferred[None] = Deferred()

            async def slow(sql: Sql) -> None:
                await delete(sql, "j-slow")
                begun.callback(None)
                await gate

            older = Deferred.fromCoroutine(self.database.tx(slow))
            await begun
            await self.database.tx(lambda sql: delete(sql, "j-fast"))
            cursor = await self.store.read(lambda tx: tx.changes.here(0.0))
            gate.callback(None)
            await older
            before = await self.store.read(lambda tx: tx.changes.since(TENANT, cursor, cursor, 9))
            await self.database.tx(lambda sql: delete(sql, "j-last"))
            number = await self.database.read(lambda sql: excess(sql, TENANT, 1))
            assert number is not None
            await self.database.tx(lambda sql: cut(sql, TENANT, number))
            after = await self.store.read(lambda tx: tx.changes.since(TENANT, cursor, cursor, 9))
            return before, after

        before, after = drive(run())
        assert before is not None
        self.assertEqual([c.id for c in before.changes], ["j-slow"])
        self.assertIsNone(after)
        self.assertEqual(execute(self.url, "select id from changes"), [("j-last",)])

    def test_a_cut_refuses_no_cursor_of_now(self) -> None:
        """While a transaction stays open, in another database of the server; it delays the cut."""
        other, name = new_database()
        self.addCleanup(drop_database, name)
        database = PostgresDatabase(own_reactor(), Database(url=other), self.fail)
        store = SqlStore(self.database, MemorySealer(), feed_kept=2)

        async def add(text: str) -> None:
            events = [event(text)]
            await store.tx(lambda tx: tx.clusters.add_events(ClusterId("c-1"), events))
            await settled(store)

        async def run() -> tuple[list[Changes | None], Changes | None]:
            gate: Deferred[None] = Deferred()
            begun: Deferred[None] = Deferred()

            async def slow(sql: Sql) -> None:
                await sql.one("select txid_current()")
                begun.callback(None)
                await gate

            async def read(tx: Tx) -> Changes | None:
                return await tx.changes.since(TENANT, cursor, await tx.changes.here(0.0), 9)

            found = []
            await store.tx(lambda tx: tx.clusters.add(cluster(1)))
            start = cursor = await store.read(lambda tx: tx.changes.here(0.0))
            open_ = Deferred.fromCoroutine(database.tx(slow))
            await begun
            for number in range(8):
                cursor = await store.read(lambda tx: tx.changes.here(0.0))
                await add(str(number))
                found.append(await store.read(read))
            gate.callback(None)
            await open_
            for number in range(8, 10):
                await add(str(number))
            cursor = start
            return found, await store.read(read)

        drive(database.open())
        try:
            found, old = drive(run())
        finally:
            drive(database.close())
        self.assertEqual(
            [None if each is None else [c.id for c in each.changes] for each in found],
            [[f"c-1/{number}"] for number in range(1, 9)],
        )
        self.assertIsNone(old)
        kept = execute(self.url, "select id from changes where expires = 1 order by number")
        self.assertEqual(kept, [("c-1/9",), ("c-1/10",)])

    def test_the_feed_reads_an_index(self) -> None:
        """Whatever the number of rows that have not changed."""
        here = drive(self.store.read(lambda tx: tx.changes.here(0.0)))
        execute(
            self.url,
            "insert into changes select 'jobs', 'j-' || n, 't' || n % 9, 3, 0, 1, 0, 0"
            " from generate_series(1, 20000) n",
        )
        execute(self.url, "analyze changes")
        text, _ = translate(feed_part(FEED, False))
        values = {"tenant_id": "'t1'", "since": f"'{here.since}'", "limit": 500}
        plan = str(execute(self.url, "explain " + text % values))
        self.assertIn("changes_feed", plan)
        self.assertIn("number >=", plan)

    def test_one_of_two_requests_at_once_has_the_key(self) -> None:
        """At two daemons, in transactions that overlap; no row of the other one stays."""
        other = SqlStore(self.database, self.store._sealer)
        refused: list[str] = []

        def request(number: int, store: SqlStore) -> Deferred[None]:
            async def work(tx: Tx) -> None:
                await tx.data_sources.add(source(number))
                await tx.kept_answers.add(keyed(), b"%d" % number)

            async def run() -> None:
                try:
                    await store.tx(work)
                except IdempotencyKeyReused:
                    refused.append(str(number))

            return Deferred.fromCoroutine(run())

        for turn in range(10):
            refused.clear()
            both = gatherResults([request(1, self.store), request(2, other)])
            drive(_awaited(both))
            kept = self.tx(lambda tx: tx.kept_answers.find(keyed())) or b""
            self.assertEqual(sorted([*refused, kept.decode()]), ["1", "2"], turn)
            left = [each.id for each in self.tx(lambda tx: tx.data_sources.page(TENANT, Page()))]
            self.assertEqual(left, [f"s-{kept.decode()}"])
            execute(self.url, "truncate data_sources, kept_answers")

    def test_what_is_read_before_an_addition_makes_no_conflict(self) -> None:
        """When the limit is asked for first, as by the requests that add jobs and executions."""
        store = SqlStore(self.database, self.store._sealer, limits=Limits())
        self.put("clusters", cluster())
        runs: list[int] = []

        async def work(tx: Tx, number: int) -> None:
            runs.append(number)
            await tx.executions.refuse_if_full(TENANT)
            await tx.clusters.get(TENANT, ClusterId("c-1"))
            await tx.executions.add(execution(number))

        async def all_of_them() -> None:
            await gatherResults(
                Deferred.fromCoroutine(store.tx(functools.partial(work, number=number)))
                for number in range(20)
            )

        drive(all_of_them())
        self.assertEqual(sorted(runs), list(range(20)))

    def test_additions_at_once_do_not_exceed_the_limit(self) -> None:
        """Near the limit each counts within its transaction."""
        store = SqlStore(self.database, self.store._sealer, limits=Limits(rows=5))
        refused: list[int] = []

        async def add(number: int) -> None:
            try:
                await store.tx(lambda tx: tx.data_sources.add(source(number)))
            except QuotaExceeded:
                refused.append(number)

        drive(_awaited(gatherResults([Deferred.fromCoroutine(add(n)) for n in range(12)])))
        self.assertEqual(len(refused), 7)
        self.assertEqual(len(self.tx(lambda tx: tx.data_sources.page(TENANT, Page()))), 5)

    async def add_at_once(self, count: int) -> tuple[list[object], int]:
        """`count` transactions that read the tenant's rows before one of them has added its own.

        Returns what each ended with, and how many ran again at the same time at the most.
        """
        begun, again, most = 0, 0, 0

        def request(number: int) -> Deferred[object]:
            runs = 0

            async def work(tx: Tx) -> None:
                nonlocal begun, again, most, runs
                runs += 1
                if runs > 1:
                    again += 1
                    most = max(most, again)
                try:
                    await tx.data_sources.add(source(number))
                    await tx.data_sources.page(TENANT, Page())  # sends the insert
                    if runs == 1:
                        begun += 1
                        while begun < count:
                            await sleep(own_reactor(), 0.01)
                finally:
                    again -= runs > 1

            return Deferred.fromCoroutine(self.store.tx(work)).addErrback(lambda f: f.value)

        ended = await gatherResults([request(number) for number in range(count)])
        return ended, most

    def test_those_that_were_rolled_back_run_one_at_a_time(self) -> None:
        """All of them succeed, though each has read the rows of the tenant."""
        ended, most = drive(self.add_at_once(4))
        self.assertEqual((ended, most), ([None] * 4, 1))
        self.assertEqual(len(self.tx(lambda tx: tx.data_sources.page(TENANT, Page()))), 4)

    def test_the_wait_for_a_turn_ends(self) -> None:
        """Nothing of the others is in the database."""
        settings = Database(url=self.url, wait_s=3.0)
        drive(self.database.close())
        self.database = PostgresDatabase(own_reactor(), settings, self.fail)
        self.store = SqlStore(self.database, self.store._sealer)
        drive(self._open())
        self.database._turns.acquire()
        ended, _ = drive(self.add_at_once(3))
        refused = [str(each) for each in ended if each is not None]
        self.assertIn(len(refused), (1, 2))
        for each in refused:
            self.assertIn("took longer than 3 s: nothing was changed", each)
        rows = self.tx(lambda tx: tx.data_sources.page(TENANT, Page()))
        self.assertEqual(len(rows), 3 - len(refused))

    def dump(self, table: str) -> str:
        rows = execute(self.url, f"select * from {table}")
        plain = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in r) for r in rows]
        return str(plain)


class _DaemonCase(DaemonCase):
    timeout = 300

    def setUp(self) -> None:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)

    def daemon(self, kind: str = "svcd", **settings: str) -> Daemon:
        return super().daemon(kind, **{"database__url": self.url, **settings})


class PostgresLifeTests(_DaemonCase, test_daemon.LifeTests):
    """What holds on SQLite holds here: kills, restarts, a cluster from first to last."""


class PostgresConformanceTests(_DaemonCase):
    async def test_every_chapter(self) -> None:
        """The interface does not depend on the database."""
        api = await self.daemon().start()
        image = next(i for i in api["images"] if i["name"] == "plain")
        values = {
            "tenant": api["tenant"],
            "image_id": image["id"],
            "flavor_id": "2",
            "keypair": "demo",
            "plugin": "fake",
            "version": "0.1",
            "username": image["username"],
        }
        faults: list[str] = []
        for number, (name, rows) in enumerate(CHAPTERS.items()):
            target = OverHttp(
                global_reactor, api["api"], {**values, "run": f"r{number}"}, FAKE_FEATURES, {}
            )
            faults += [f"{name}: {fault}" for fault in await run(rows, target)]
        if faults:
            self.fail("\n".join(["", *faults]))
