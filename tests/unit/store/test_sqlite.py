"""The store on SQLite, in memory and in a file."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock, deferLater
from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.model.secret import Secret
from svcd.store import clusters, data, executions, templates
from svcd.store.database import SchemaError, Sql
from svcd.store.migrations import CREATE, scripts
from svcd.store.sealer import MemorySealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.sqlite_statements import translate
from svcd.store.store import FAMILIES, SqlStore
from tests.contract.store.job_credentials import noted
from tests.contract.store.rows import TENANT, StoreContract, at, cluster, internal
from tests.contract.store.whole import WholeStoreContract
from tests.support.api import now
from tests.support.turns import turn

T = TypeVar("T")


class _Sqlite(SynchronousTestCase):
    path: Path | None = None

    def setUp(self) -> None:
        self.database = SqliteDatabase(self.path)
        self.sealer = MemorySealer()
        self.store = SqlStore(self.database, self.sealer)
        self.successResultOf(Deferred.fromCoroutine(self.store.open(at(0))))

    def tearDown(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        return cast("T", now(Deferred.fromCoroutine(work)))

    def dump(self, table: str) -> str:
        return str(self.database._connection.execute(f"select * from {table}").fetchall())


class MemoryStoreTests(_Sqlite, WholeStoreContract):
    """`:memory:`, as the in-process fake uses it."""

    def test_unreadable_cluster_can_be_dropped(self) -> None:
        """The feed has its tenant and its version."""
        self.tx(lambda tx: tx.clusters.add(cluster()))
        self.database._connection.execute("update clusters set record = '{', version = 3")
        self.tx(lambda tx: tx.clusters.drop(cluster().id))
        self.assertEqual(self.dump("clusters"), "[]")
        self.assertIn(f"'{TENANT}'", self.dump("changes"))

    def test_damaged_job_credential_is_skipped_and_logged(self) -> None:
        """The sweep deletes those of the others; the log names the row."""
        for number in (1, 2, 3):
            self.tx(lambda tx, n=number: tx.job_credentials.add(noted(n, of=n)))
        wrong = self.sealer.seal(Secret('{"user": "ann"}'))
        for name, sealed in ((noted(3, of=3).name, "f1:x"), (noted(2, of=2).name, wrong)):
            self.database._connection.execute(
                "update job_credentials set sealed = ? where name = ?", (sealed, name)
            )
        logged: list[str] = []

        def note(event: LogEvent) -> None:
            logged.append(formatEvent(event))

        globalLogPublisher.addObserver(note)
        self.addCleanup(globalLogPublisher.removeObserver, note)
        self.assertEqual(self.loose(), [noted(1)])
        (line,) = logged
        self.assertIn("Skipped 2 rows of job_credentials", line)
        self.assertIn(f"The first is {noted(3, of=3).name}: a stored secret cannot be op", line)

    def test_sweep_of_a_lone_daemon_keeps_its_uploads(self) -> None:
        """No row of a daemon says that it lives."""
        self.tx(lambda tx: tx.internals.begin("u", TENANT, 10))
        self.result(self.store.sweep(0.0))
        self.tx(lambda tx: tx.internals.append("u", 0, b"piece"))
        self.assertIn("piece", self.dump("pieces"))

    def test_awaiting_anything_else_in_a_transaction_is_refused(self) -> None:
        """It would hold a connection over a remote call; the transaction is taken back."""

        async def work(tx: object) -> None:
            await deferLater(Clock(), 1.0)

        failure = self.failureResultOf(Deferred.fromCoroutine(self.store.tx(work)), RuntimeError)
        self.assertIn("may await only", str(failure.value))
        self.now(lambda tx: tx.clusters.add(cluster()))


class FileStoreTests(_Sqlite, StoreContract):
    """A file without a clock, as the commands use it."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        super().setUp()

    def test_large_values_leave_room_on_the_disk(self) -> None:
        """Pieces are refused before it is full; what is there can still be deleted."""
        free = [100 << 20]
        database = SqliteDatabase(Path(self.mktemp()), lambda: free[0])
        store = SqlStore(database, MemorySealer())
        self.successResultOf(Deferred.fromCoroutine(store.open(at(0))))

        begin = store.tx(lambda tx: tx.internals.begin("u", TENANT, 0))
        self.successResultOf(Deferred.fromCoroutine(begin))

        def append(number: int, size: int) -> Deferred[None]:
            return Deferred.fromCoroutine(
                store.tx(lambda tx: tx.internals.append("u", number, b"x" * size))
            )

        self.successResultOf(append(0, 262_144))
        free[0] = 60 << 20
        refused = self.failureResultOf(append(1, 262_144), ServiceUnavailable)
        self.assertIn("its disk has 60 MiB left, and svcd keeps 64 MiB free", str(refused.value))
        self.successResultOf(append(1, 1000))
        abandon = store.tx(lambda tx: tx.internals.abandon("u"))
        self.successResultOf(Deferred.fromCoroutine(abandon))
        self.successResultOf(Deferred.fromCoroutine(store.close()))

    def _again(self) -> SqlStore:
        return SqlStore(SqliteDatabase(self.path), self.sealer)

    def test_rows_outlive_the_process(self) -> None:
        """What was acknowledged is there for the next opener."""
        self.now(lambda tx: tx.clusters.add(cluster()))
        later = self._again()
        self.successResultOf(Deferred.fromCoroutine(later.open(at(1))))
        found = self.successResultOf(
            Deferred.fromCoroutine(later.tx(lambda tx: tx.clusters.get(TENANT, "c-1")))
        )
        self.assertEqual(found, cluster())
        self.successResultOf(Deferred.fromCoroutine(later.close()))

    def test_interrupted_upload_is_swept_at_start(self) -> None:
        """Pieces that no record owns go; those of a finished upload stay."""
        self.now(lambda tx: tx.internals.begin("lost", TENANT, 0))
        self.now(lambda tx: tx.internals.append("lost", 0, b"lost"))
        self.now(lambda tx: tx.internals.begin("jbi-1", TENANT, 0))
        self.now(lambda tx: tx.internals.append("jbi-1", 0, b"kept"))
        self.now(lambda tx: tx.internals.finish("jbi-1", internal()))
        later = self._again()
        self.successResultOf(Deferred.fromCoroutine(later.open(at(1))))
        self.assertIn("kept", self.dump("pieces"))
        self.assertNotIn("lost", self.dump("pieces"))
        self.successResultOf(Deferred.fromCoroutine(later.close()))

    def test_damaged_file_is_named(self) -> None:
        """A page of nonsense in the middle is one clear error at the start."""
        for number in range(1, 200):
            self.now(lambda tx, n=number: tx.clusters.add(cluster(n)))
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))
        size = self.path.stat().st_size
        with self.path.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xa5" * (size - 8192))
        with self.assertRaises(SchemaError) as raised:
            self._again()
        self.assertIn(f"{self.path} is damaged", str(raised.exception))
        self.assertIn("restore a backup", str(raised.exception))
        self.path.unlink()
        FileStoreTests.setUp(self)

    def test_unwritable_folder_is_named(self) -> None:
        """The error says which file."""
        with self.assertRaises(SchemaError) as raised:
            SqliteDatabase(Path("/nonexistent/folder/db"))
        self.assertIn("/nonexistent/folder/db", str(raised.exception))


class TogetherStoreTests(_Sqlite, WholeStoreContract):
    """A file whose transactions wait for the end of the turn, as in a daemon."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.database = SqliteDatabase(Path(self.mktemp()), clock=self.clock)
        self.sealer = MemorySealer()
        self.store = SqlStore(self.database, self.sealer)
        self.result(self.store.open(at(0)))

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        return cast("T", now(self._later(Deferred.fromCoroutine(work))))

    wait = result

    def successResultOf(self, deferred: Any) -> Any:
        return super().successResultOf(self._later(deferred))

    def failureResultOf(self, deferred: Any, *expected: Any) -> Any:
        return super().failureResultOf(self._later(deferred), *expected)

    def _later(self, deferred: Deferred[T]) -> Deferred[T]:
        """`deferred`, after as many turns as there are."""
        while self.clock.calls:
            turn(self.clock)
        return deferred


async def _count(sql: Sql) -> Any:
    return await sql.one("select count(*) from t")


_NUMBER: ContextVar[int] = ContextVar("number", default=0)


class TogetherTests(SynchronousTestCase):
    """Transactions of one turn of the reactor, and their commit."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.path = Path(self.mktemp())
        self.database = SqliteDatabase(self.path, clock=self.clock)
        self.successResultOf(Deferred.fromCoroutine(self.database.script("create table t (n)")))
        self.ran: list[str] = []
        self.database._connection.set_trace_callback(self.ran.append)
        self.other = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(self.other.close)

    def tearDown(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.database.close()))

    def add(self, number: int, then: Callable[[], object] = int) -> Deferred[int]:
        """A transaction that adds a row and calls `then`; its result is the number."""

        async def work(sql: Sql) -> int:
            await sql.run("insert into t (n) values (:n)", {"n": number})
            await sql.one("select 1")
            then()
            return number

        return Deferred.fromCoroutine(self.database.tx(work))

    def pass_s(self, seconds: float) -> None:
        """Let time pass in the steps of a reactor."""
        self.clock.pump([0.01] * round(seconds / 0.01))

    def result(self, deferred: Deferred[T]) -> T:
        """The result after the next turns."""
        self.pass_s(0.02)
        return cast("T", self.successResultOf(deferred))

    def rows(self) -> list[int]:
        """The rows that another process reads."""
        return [n for (n,) in self.other.execute("select n from t order by rowid")]

    def test_nobody_hears_of_a_result_before_the_commit(self) -> None:
        """The first caller that hears of its row could read all of them in another process."""
        seen: list[list[int]] = []
        for number in (1, 2, 3):
            self.add(number).addCallback(lambda _: seen.append(self.rows()))
        turn(self.clock)
        self.assertEqual(seen, [[1, 2, 3]] * 3)

    def test_nobody_reads_what_waits_for_its_commit(self) -> None:
        """A read before the end of the turn runs before the transaction."""
        added = self.add(1)
        self.assertEqual(now(Deferred.fromCoroutine(self.database.read(_count))), (0,))
        turn(self.clock)
        self.successResultOf(added)
        self.assertEqual(now(Deferred.fromCoroutine(self.database.read(_count))), (1,))

    def test_an_error_takes_back_only_its_own_changes(self) -> None:
        """The others are committed, and have their results."""

        def fail() -> None:
            raise KeyError("mine")

        first, second, third = self.add(1), self.add(2, fail), self.add(3)
        turn(self.clock)
        self.assertEqual(self.successResultOf(first), 1)
        self.assertEqual(self.failureResultOf(second, KeyError).value.args, ("mine",))
        self.assertEqual(self.successResultOf(third), 3)
        self.assertEqual(self.rows(), [1, 3])

    def test_the_reactor_does_not_wait_for_another_process(self) -> None:
        """Transactions wait for its end, for two seconds each, and reads go on."""
        self.result(self.add(1))
        self.other.execute("begin immediate")
        second = self.add(2)
        self.pass_s(1.5)
        third = self.add(3)
        self.assertEqual(self.result(Deferred.fromCoroutine(self.database.read(_count))), (1,))
        self.ran.clear()
        self.pass_s(0.5)
        error = self.failureResultOf(second, ServiceUnavailable).value
        self.assertIn("database is locked; nothing was changed, try again", str(error))
        self.assertLess(self.ran.count("begin immediate"), 60)
        self.assertNoResult(third)
        self.other.execute("commit")
        self.assertEqual(self.result(third), 3)
        self.assertEqual(self.rows(), [1, 3])
        self.assertEqual(self.clock.calls, [])

    def test_a_stop_waits_for_another_process(self) -> None:
        """What waits is committed after its end, or refused in time."""
        self.other.execute("begin immediate")
        added = self.add(1)
        closed = Deferred.fromCoroutine(self.database.close())
        self.pass_s(1.0)
        self.assertNoResult(closed)
        self.other.execute("commit")
        self.assertEqual(self.result(added), 1)
        self.result(closed)
        self.assertEqual(self.rows(), [1])

    def test_a_commit_that_fails_is_unavailable_for_all(self) -> None:
        """A constraint that SQLite checks at the commit stands for a disk that fails there."""
        execute = self.database._connection.execute
        execute("create table child (n references t (n) deferrable initially deferred)")
        execute("create unique index one_n on t (n)")

        def orphan() -> None:
            execute("insert into child (n) values (99)")

        both = [self.add(1), self.add(2, orphan)]
        turn(self.clock)
        for each in both:
            self.failureResultOf(each, sqlite3.IntegrityError)
        self.assertEqual(self.rows(), [])
        third = self.add(3)
        turn(self.clock)
        self.assertEqual(self.successResultOf(third), 3)

    def test_a_full_file_takes_back_the_changes_of_all_before(self) -> None:
        """SQLite ends the whole transaction. Those behind it run in the next turn."""
        execute = self.database._connection.execute
        (pages,) = execute("pragma page_count").fetchone()
        execute(f"pragma max_page_count={pages}")

        def fill() -> None:
            execute("insert into t (n) values (zeroblob(100000))")

        first, second, third = self.add(1), self.add(2, fill), self.add(3)
        turn(self.clock)
        for each in (first, second):
            error = self.failureResultOf(each, ServiceUnavailable).value
            self.assertIn("full; nothing was changed, try again", str(error))
        self.assertNoResult(third)
        turn(self.clock)
        self.assertEqual(self.successResultOf(third), 3)
        self.assertEqual(self.rows(), [3])

    def test_sixty_four_share_a_commit(self) -> None:
        """The reactor serves others before the next ones."""
        many = [self.add(number) for number in range(65)]
        turn(self.clock)
        self.assertEqual(self.rows(), list(range(64)))
        self.assertNoResult(many[64])
        turn(self.clock)
        self.assertEqual([self.successResultOf(each) for each in many], list(range(65)))
        self.assertEqual(self.ran.count("commit"), 2)

    def test_a_caller_that_gives_up_before_the_turn_changes_nothing(self) -> None:
        """The transaction of the other one runs."""
        first, second = self.add(1), self.add(2)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        turn(self.clock)
        self.assertEqual(self.successResultOf(second), 2)
        self.assertEqual(self.rows(), [2])

    def test_work_has_the_context_of_its_caller(self) -> None:
        """Its log lines have the id of their own request."""
        seen: list[int] = []
        for number in (1, 2):
            token = _NUMBER.set(number)
            self.add(number, lambda: seen.append(_NUMBER.get()))
            _NUMBER.reset(token)
        turn(self.clock)
        self.assertEqual(seen, [1, 2])

    def test_close_commits_those_that_wait(self) -> None:
        """A stop does not lose them, and the turn that comes after it does nothing."""
        added = self.add(1)
        self.successResultOf(Deferred.fromCoroutine(self.database.close()))
        self.assertEqual(self.successResultOf(added), 1)
        turn(self.clock)
        self.assertEqual(self.rows(), [1])
        self.database = SqliteDatabase(self.path)


class PlanTests(SynchronousTestCase):
    """Statements run in the reactor: their cost must not grow with what is over and done."""

    def setUp(self) -> None:
        self.connection = sqlite3.connect(":memory:")
        self.addCleanup(self.connection.close)
        for text in (CREATE, *scripts(0, "then")):
            self.connection.executescript(translate(text))

    def plan(self, text: str) -> list[str]:
        """The lines of SQLite's plan for a statement."""
        named = dict.fromkeys(re.findall(r":(\w+)", text), "x")
        return [row[3] for row in self.connection.execute("explain query plan " + text, named)]

    def test_every_read_uses_an_index(self) -> None:
        """All named texts that select, on the newest schema."""
        texts = [
            (f"{module.__name__}.{name}", text)
            for module in (clusters, data, executions, templates)
            for name, text in vars(module).items()
            if isinstance(text, str) and text.strip().startswith("select")
        ]
        self.assertGreater(len(texts), 15)
        for name, text in texts:
            scans = [
                line for line in self.plan(text) if line.startswith("SCAN") and "INDEX" not in line
            ]
            self.assertEqual(scans, [], name)

    def test_a_tick_reads_no_row_that_has_not_changed(self) -> None:
        """Rows are large: their versions are read from an index, in the order of the result."""
        lines = self.plan(executions._HEADS)
        self.assertIn("SCAN executions USING COVERING INDEX executions_unfinished", lines)
        self.assertNotIn("USE TEMP B-TREE FOR ORDER BY", lines)

    def test_ended_executions_cost_nothing(self) -> None:
        """Limits do not count them; pruning reads only those that are old enough."""
        for family in FAMILIES.values():
            counted = [line for line in self.plan(family.count_text()) if "counted" not in line]
            self.assertIn("SEARCH", counted[0])
        counted = self.plan(executions.Executions.count_text())
        self.assertIn("INDEX executions_open (tenant_id=?)", " ".join(counted))
        (reads,) = [line for line in self.plan(executions._ENDED) if line.startswith("SEARCH")]
        self.assertTrue(reads.startswith("SEARCH executions USING INDEX executions_ended ("), reads)
        self.assertIn("created_at<?", reads)
        deletes = [
            line for line in self.plan(executions._PRUNE) if line.startswith(("SCAN", "SEARCH"))
        ]
        self.assertEqual(len(deletes), 3)  # the row, its cluster, its logins
        self.assertTrue(all(line.startswith("SEARCH ") for line in deletes), deletes)
