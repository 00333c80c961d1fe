"""What the change feed must do on every driver: a mixin beside contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, cast

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.model.changes import Changes, Cursor
from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId, ExecutionId, JobId
from svcd.model.job import ExecutionStatus
from svcd.ports.store import Tx
from svcd.runtime.tasks import shielded
from svcd.store.store import SqlStore
from tests.contract.store.families import MAKE
from tests.contract.store.rows import OTHER, TENANT, at, cluster, execution, job

T = TypeVar("T")

_DAY_S = 86_400.0


def event(text: str) -> ClusterEvent:
    return ClusterEvent(at=at(1), generation=1, step="request", outcome="accepted", text=text)


async def settled(store: SqlStore) -> None:
    """Wait until the feed is bounded."""
    if store._bounding is not None:
        await shielded(store._bounding)


class ChangesContract:
    """Needs `self.store`, open and empty, and what raises NotImplementedError here."""

    store: SqlStore

    def result(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` comes to."""
        raise NotImplementedError

    def change(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """One transaction."""
        return self.result(cast("Coroutine[Any, Any, T]", self.store.tx(work)))

    def here(self) -> Cursor:
        """The cursor of now."""
        return self.result(self.store.read(lambda tx: tx.changes.here(1000.0)))

    def part(self, cursor: Cursor, limit: int = 100, tenant: str = TENANT) -> Changes | None:
        """What came after `cursor`."""

        async def read(tx: Tx) -> Changes | None:
            return await tx.changes.since(tenant, cursor, await tx.changes.here(2000.0), limit)

        return self.result(self.store.read(read))

    def after(self, cursor: Cursor) -> list[tuple[str, str, int, str]]:
        """Kind, id, version and word of each change after `cursor`."""
        part = self.part(cursor)
        self.assertIsNotNone(part)
        return [(c.kind, c.id, c.version, c.word) for c in cast("Changes", part).changes]

    def test_every_family_is_in_the_feed(self) -> None:
        """Created, then deleted; other tenants see nothing of it."""
        kinds = {"internals": "job_binary_internals", "executions": "job_executions"}
        for family, make in MAKE.items():
            start = self.here()
            made = make(1)
            if family == "internals":
                continue
            self.change(lambda tx, f=family, r=made: getattr(tx, f).add(r))
            kind, version = kinds.get(family, family), getattr(made, "version", 1)
            self.assertEqual(self.after(start), [(kind, made.id, version, "created")], family)
            then = self.here()
            self.assertEqual(self.after(then), [])
            if family in ("clusters", "executions"):
                self.change(lambda tx, f=family, r=made: getattr(tx, f).drop(r.id))
            else:
                self.change(lambda tx, f=family, r=made: getattr(tx, f).remove(TENANT, r.id))
            self.assertEqual(self.after(then), [(kind, made.id, version, "deleted")], family)
            other = self.part(start, tenant=OTHER)
            self.assertEqual(cast("Changes", other).changes, (), family)

    def test_uploads_are_in_the_feed(self) -> None:
        """When they are finished."""
        start = self.here()
        record = MAKE["internals"](1)
        self.change(lambda tx: tx.internals.begin("u-1", TENANT, 0))
        self.assertEqual(self.after(start), [])
        self.change(lambda tx: tx.internals.finish("u-1", record))
        self.assertEqual(self.after(start), [("job_binary_internals", record.id, 1, "created")])

    def test_the_newest_version_comes_once(self) -> None:
        """Earlier versions are left out; a reader that saw the creation sees an update."""
        start = self.here()
        first = cluster(1)
        self.change(lambda tx: tx.clusters.add(first))
        between = self.here()
        self.assertTrue(self.change(lambda tx: tx.clusters.save(first)))
        second = evolve(first, version=first.version + 1)
        self.assertTrue(self.change(lambda tx: tx.clusters.save(second)))
        newest = first.version + 2
        self.assertEqual(self.after(start), [("clusters", "c-1", newest, "created")])
        self.assertEqual(self.after(between), [("clusters", "c-1", newest, "updated")])

    def test_what_was_not_written_is_no_change(self) -> None:
        """A lost race, and a transaction that is rolled back."""
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        start = self.here()
        late = evolve(cluster(1), version=7)
        self.assertFalse(self.change(lambda tx: tx.clusters.save(late)))

        async def fails(tx: Tx) -> None:
            await tx.clusters.add(cluster(2))
            raise KeyError

        with self.assertRaises(KeyError):
            self.change(fails)
        self.assertEqual(self.after(start), [])

    def test_a_hidden_execution_counts_as_deleted(self) -> None:
        """Once, also when its row changes again and goes at last."""
        row = execution(1)
        self.change(lambda tx: tx.executions.add(row))
        start = self.here()
        hidden = evolve(row, delete_requested=True)
        self.change(lambda tx: tx.executions.save(hidden))
        version = row.version + 1
        self.assertEqual(self.after(start), [("job_executions", "e-1", version, "deleted")])
        then = self.here()
        again = evolve(hidden, version=version, status=ExecutionStatus.KILLED)
        self.change(lambda tx: tx.executions.save(again))
        self.change(lambda tx: tx.executions.drop(ExecutionId("e-1")))
        self.assertEqual(self.after(then), [])

    def test_events_come_with_their_numbers(self) -> None:
        """Each of them."""
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        start = self.here()
        id_ = ClusterId("c-1")
        self.change(lambda tx: tx.clusters.add_events(id_, [event("a"), event("b")]))
        then = self.here()
        self.change(lambda tx: tx.clusters.add_events(id_, [event("c")]))
        self.assertEqual(
            self.after(start),
            [("cluster_events", f"c-1/{n}", n, "created") for n in (1, 2, 3)],
        )
        self.assertEqual(self.after(then), [("cluster_events", "c-1/3", 3, "created")])

    def test_events_of_one_transaction_come_in_their_order(self) -> None:
        """The tenth after the ninth, also when a part ends between them."""
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        start = self.here()
        id_ = ClusterId("c-1")
        self.change(lambda tx: tx.clusters.add_events(id_, [event(str(n)) for n in range(12)]))
        for limit in (100, 4, 1):
            numbers, cursor, whole = list[int](), start, False
            while not whole and len(numbers) < 20:
                part = cast("Changes", self.part(cursor, limit))
                numbers += [each.version for each in part.changes]
                cursor, whole = part.cursor, part.whole
            self.assertEqual(numbers, list(range(1, 13)), limit)

    def test_parts_have_no_gap_and_no_repetition(self) -> None:
        """Also when rows change between two parts: they come once more, later."""
        start = self.here()

        async def five(tx: Tx) -> None:
            for number in range(1, 6):
                await tx.clusters.add(cluster(number))

        self.change(five)
        first = cast("Changes", self.part(start, 2))
        self.assertEqual([c.id for c in first.changes], ["c-1", "c-2"])
        self.assertFalse(first.whole)
        for number in (1, 4):
            self.change(lambda tx, n=number: tx.clusters.save(cluster(n)))
        self.change(lambda tx: tx.clusters.add(cluster(9)))
        cursor, found, parts = first.cursor, list(first.changes), 0
        while True:
            again = Cursor.parse(cursor.text)
            self.assertEqual(again, cursor)
            part = cast("Changes", self.part(cursor, 2))
            found += part.changes
            cursor = part.cursor
            parts += 1
            if part.whole:
                break
            self.assertLess(parts, 9)
        ids = [(c.id, c.version) for c in found]
        one = cluster(1).version
        self.assertEqual(
            sorted(ids),
            [("c-1", one), ("c-1", one + 1), ("c-2", one), ("c-3", one), ("c-4", one + 1),
             ("c-5", one), ("c-9", one)],
        )  # fmt: skip
        self.assertEqual(self.after(cursor), [])

    def test_a_reader_that_stops_in_a_part_goes_on_there(self) -> None:
        """The cursor of each change continues after this change."""
        start = self.here()

        async def three(tx: Tx) -> None:
            for number in range(1, 4):
                await tx.jobs.add(evolve(job(), id=JobId(f"j-{number}"), name=f"n-{number}"))

        self.change(three)
        part = cast("Changes", self.part(start))
        self.assertTrue(part.whole)
        self.change(lambda tx: tx.jobs.remove(TENANT, JobId("j-1")))
        middle = start.at(part.changes[1], part.until)
        rest = cast("Changes", self.part(middle))
        self.assertEqual([c.id for c in rest.changes], ["j-3"])
        self.assertFalse(rest.whole)
        self.assertEqual(self.after(rest.cursor), [("jobs", "j-1", 1, "deleted")])

    def test_cursors_of_elsewhere_are_refused(self) -> None:
        """Of another epoch, of the future, and what is no position at all."""
        here = self.here()
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        large = str((1 << 63) - 1)
        for strange in (
            evolve(here, epoch="other"),
            evolve(here, since=""),
            evolve(here, since="x' or 1=1 --"),
            evolve(here, since="-1"),
            evolve(here, since=large),
            evolve(here, since=f"{large}:{large}:"),
            evolve(here, since="9" * 400),
            evolve(here, since="\u0661"),
            evolve(here, since="5:3:4"),
            evolve(here, since="0:0:"),
            evolve(here, since="1:5:4,3"),
            evolve(here, since="3:5:1"),
            evolve(here, until="x", after=(1, "clusters", "c-1")),
        ):
            self.assertIsNone(self.part(strange), strange)

    def test_old_deletions_are_pruned(self) -> None:
        """After a day and an hour, and events too; rows that exist stay."""
        start = self.here()
        for number in (1, 2):
            self.change(lambda tx, n=number: tx.clusters.add(cluster(n)))
        self.change(lambda tx: tx.clusters.add_events(ClusterId("c-1"), [event("a")]))
        self.change(lambda tx: tx.clusters.drop(ClusterId("c-2")))
        begin = 1_767_225_600.0
        for hours in (0, 12, 24):
            self.swept(begin + hours * 3600)
            self.assertEqual(len(self.after(start)), 3, hours)
        self.change(lambda tx: tx.clusters.add(cluster(3)))
        self.change(lambda tx: tx.clusters.drop(ClusterId("c-3")))
        self.swept(begin + _DAY_S + 3600)
        self.assertEqual({c[1] for c in self.after(start)}, {"c-1", "c-3"})
        self.swept(begin + 2 * _DAY_S + 7200)
        self.assertEqual({c[1] for c in self.after(start)}, {"c-1"})

    def swept(self, now_s: float) -> int:
        """The number of parts of the hourly sweep."""
        self.result(self.store.sweep(now_s))
        parts = 0
        while self.result(self.store.prune_feed(now_s)):
            parts += 1
        return parts

    def rows(self) -> int:
        """Rows of the feed."""
        read = self.store._database.read(lambda sql: sql.one("select count(*) from changes"))
        return cast("int", self.result(cast("Coroutine[Any, Any, Any]", read))[0])

    def test_old_deletions_are_pruned_in_parts(self) -> None:
        """No transaction deletes more than about a thousand."""
        text = """
        insert into changes
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500)
        select 'jobs', 'j-' || i, 't1', -i, 0, 1, 1, 1 from n
        """
        write = self.store._database.tx(lambda sql: sql.run(text))
        self.result(cast("Coroutine[Any, Any, int]", write))
        begin = 1_767_225_600.0
        self.assertEqual(self.swept(begin), 0)
        self.assertEqual((self.swept(begin + _DAY_S + 3600), self.rows()), (3, 0))

    def test_deletions_and_events_of_a_tenant_are_bounded(self) -> None:
        """The oldest go. Cursors that may not have read them are refused; others go on."""
        store = SqlStore(self.store._database, self.store._sealer, feed_kept=10)
        id_ = ClusterId("c-1")
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        self.change(lambda tx: tx.clusters.add_events(id_, [event("first")]))
        start, cursors = self.here(), []
        for number in range(60):
            cursors.append(self.here())
            add = store.tx(lambda tx, n=number: tx.clusters.add_events(id_, [event(str(n))]))
            self.result(cast("Coroutine[Any, Any, None]", add))
            self.result(settled(store))
            self.assertLessEqual(self.rows(), 1 + 10 + 10)
        self.assertIsNone(self.part(start))
        self.assertIsNone(self.part(cursors[40]))
        self.assertEqual([c[1] for c in self.after(cursors[58])], ["c-1/60", "c-1/61"])
        self.assertEqual(cast("Changes", self.part(start, tenant=OTHER)).changes, ())
        begin = 1_767_225_600.0
        self.swept(begin)
        self.swept(begin + _DAY_S + 3600)
        self.assertEqual(self.rows(), 1)

    def test_a_change_does_not_wait_for_the_bound(self) -> None:
        """Nor does it fail when the oldest changes cannot be taken out of the feed."""
        store = SqlStore(self.store._database, self.store._sealer, feed_kept=1)
        asked: list[Deferred[None]] = []

        async def read(_: object) -> None:
            asked.append(Deferred())
            await asked[-1]

        self.change(lambda tx: tx.clusters.add(cluster(1)))
        patch = self.patch(store._database, "read", read)
        for number in range(4):
            add = store.tx(
                lambda tx, n=number: tx.clusters.add_events(ClusterId("c-1"), [event(str(n))])
            )
            self.result(cast("Coroutine[Any, Any, None]", add))
        self.assertEqual(len(asked), 1)
        asked[0].errback(KeyError("bug"))
        self.assertEqual(len(self.flushLoggedErrors(KeyError)), 1)
        patch.restore()
        self.change(lambda tx: tx.clusters.add_events(ClusterId("c-1"), [event("last")]))
        self.assertEqual(self.rows(), 6)
        add = store.tx(lambda tx: tx.clusters.add_events(ClusterId("c-1"), [event("more")]))
        self.result(cast("Coroutine[Any, Any, None]", add))
        self.result(settled(store))
        self.assertEqual(self.rows(), 2)

    def test_waiters_are_called_after_the_commit(self) -> None:
        """Those of the tenant only, and not after a rollback."""
        calls: list[str] = []
        end = self.store.on_change(TENANT, lambda: calls.append("on"))
        self.store.on_change(OTHER, lambda: calls.append("other"))

        async def fails(tx: Tx) -> None:
            await tx.clusters.add(cluster(1))
            raise KeyError

        with self.assertRaises(KeyError):
            self.change(fails)
        self.assertEqual(calls, [])
        self.change(lambda tx: tx.clusters.add(cluster(1)))
        self.assertEqual(calls, ["on"])
        self.change(lambda tx: tx.clusters.add(cluster(2)))
        self.assertEqual(calls, ["on", "on"])
        end()
        self.change(lambda tx: tx.clusters.add(cluster(3)))
        self.assertEqual(calls, ["on", "on"])
