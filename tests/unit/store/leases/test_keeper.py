"""The keeper while its server fails in the middle of a turn, on a server of a few rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.settings import Database
from svcd.store import migrations
from svcd.store.database import SchemaError
from svcd.store.leases.keeper import LeaseKeeper, Me
from svcd.store.leases.shares import SHARDS
from svcd.store.sessions import Lost

_SETTINGS = Database(lease_s=10.0, renew_s=1.0, grace_s=2.0)


class _Answer:
    def __init__(self, rows: Sequence[tuple[Any, ...]] = ()) -> None:
        self.fetchall = lambda: list(rows)
        self.fetchone = lambda: rows[0] if rows else None


class _Server:
    """Implements what the keeper uses of Sessions and Session. The other daemons never die.

    looks: called before each statement. drops: begins of statements whose answer is lost once.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reachable = True
        self.drops: list[str] = []
        self.looks: Any = lambda: None
        self.schema = migrations.Version(migrations.newest(), migrations.needed())
        self.daemons: dict[str, int] = {}
        self.holders = dict.fromkeys(range(SHARDS), ("", 0))

    async def open(self, lost: object, statement_s: float = 0.0) -> Any:
        if not self.reachable:
            raise Lost("no route")
        return self

    def close(self, session: object = None) -> None:
        """It has no state of its own."""

    def listen(self, hear: object) -> None:
        """Nobody tells anything."""

    def held_by(self, name: str) -> int:
        return sum(holder == name for holder, _ in self.holders.values())

    async def execute(self, text: str, values: Mapping[str, Any] | None = None) -> _Answer:
        self.looks()
        if not self.reachable:
            raise Lost("no route")
        statement = " ".join(text.split())
        answer = self._answered(statement, values or {})
        if any(statement.startswith(each) for each in self.drops):
            self.reachable = False
            raise Lost("reset by the peer")
        return answer

    def _answered(self, statement: str, values: Mapping[str, Any]) -> _Answer:
        match statement.split()[:3]:
            case ["select", first, *_] if first.startswith("pg_try_advisory_lock_shared"):
                return _Answer([(True,)])
            case ["select", first, *_] if first.startswith("to_regclass"):
                return _Answer([(True,)])
            case ["select", "*", *_]:
                return _Answer([(self.schema.number, "then", self.schema.serves)])
            case ["select", first, *_] if first.startswith("coalesce("):
                others = (n for n, knows in self.daemons.items() if knows < values["needed"])
                return _Answer([("; ".join(sorted(others)),)])
            case ["insert", "into", "daemons"]:
                if self.schema.serves > values["knows"]:
                    return _Answer()
                self.daemons[values["id"]] = values["knows"]
                return _Answer([(values["id"],)])
            case ["update", "daemons", _]:
                here = values["id"] in self.daemons
                schema = self.schema.number, self.schema.serves
                return _Answer([(self._clock.seconds(), 1e6, *schema)] if here else [])
            case ["select", "id,", _]:
                return _Answer([(name, 5.0) for name in sorted(self.daemons)])
            case ["select", "l.shard,", _]:
                return _Answer([(shard, *each) for shard, each in self.holders.items()])
            case ["update", "leases", "l"]:
                free = [shard for shard, (holder, _) in self.holders.items() if not holder]
                return _Answer(self._change(free[: values["most"]], values["id"]))
            case ["update", "leases", "set"] if "free_s" in statement:
                self._change(values["shards"], "other")  # who is waiting for them
            case ["update", "leases", "set"]:
                mine = [s for s, (holder, _) in self.holders.items() if holder == values["id"]]
                adopted = self._change(sorted({*mine} - {*values["known"]}), values["id"])
                return _Answer([each[:2] for each in adopted])
            case _:
                pass
        return _Answer()

    def _change(self, shards: Sequence[int], holder: str) -> list[tuple[Any, ...]]:
        for shard in shards:
            self.holders[shard] = holder, self.holders[shard][1] + 1
        return [(shard, self.holders[shard][1], 1000.0) for shard in shards]


class KeeperTests(SynchronousTestCase):
    """A lease of 10 s, believed in for 9, renewed each second."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.server = _Server(self.clock)
        sessions: Any = self.server
        self.keeper = LeaseKeeper(
            self.clock, self.clock.seconds, sessions, _SETTINGS, Me("me", "of the test"), self.fail
        )
        self.holdings = self.keeper.holdings
        self.successResultOf(Deferred.fromCoroutine(self.keeper.open()))
        self.successResultOf(Deferred.fromCoroutine(self.keeper.begin()))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.keeper.stop()))

    def advance(self, seconds: int) -> None:
        self.clock.pump([1.0] * seconds)

    def test_alone_it_holds_all(self) -> None:
        self.assertEqual((self.holdings.count(), self.server.held_by("me")), (64, 64))

    def test_what_may_have_been_given_is_never_used_again(self) -> None:
        """The answer was lost, the server was away until nothing was believed in any more."""
        over: list[tuple[int, int]] = []

        def look() -> None:
            used, mine = self.holdings.count(), self.server.held_by("me")
            if used > mine:
                over.append((used, mine))

        self.server.daemons["other"] = migrations.newest()
        self.server.drops = ["update leases set holder = ''"]
        self.advance(1)
        self.assertEqual(self.server.held_by("other"), 32)
        self.advance(10)
        self.assertEqual(self.holdings.count(), 0)
        self.server.looks, self.server.drops, self.server.reachable = look, [], True
        self.advance(2)
        self.assertEqual(over, [])
        self.assertEqual((self.holdings.count(), self.server.held_by("me")), (32, 32))

    def test_what_was_not_given_after_all_is_used_after_the_grace(self) -> None:
        """The statement never arrived, and nobody lacks the leases any more."""
        self.server.daemons["other"] = migrations.newest()
        self.server.looks = self.cut_before_giving
        self.advance(1)
        self.assertEqual(self.server.held_by("me"), 64)
        del self.server.daemons["other"]
        self.server.looks, self.server.reachable = lambda: None, True
        self.advance(1)
        self.assertEqual(self.holdings.count(), 32)
        self.advance(3)
        self.assertEqual((self.holdings.count(), self.server.held_by("me")), (64, 64))

    def cut_before_giving(self) -> None:
        if self.holdings.count() == 32:  # the others are parked
            self.server.reachable = False


class ReleaseTests(SynchronousTestCase):
    """Daemons of several releases on one database."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.server = _Server(self.clock)
        self.shut_out: list[str] = []
        sessions: Any = self.server
        self.keeper = LeaseKeeper(
            self.clock,
            self.clock.seconds,
            sessions,
            _SETTINGS,
            Me("me", "of the test"),
            self.shut_out.append,
        )
        self.addCleanup(lambda: Deferred.fromCoroutine(self.keeper.stop()))
        self.newest = migrations.newest()

    def open(self) -> Deferred[None]:
        return Deferred.fromCoroutine(self.keeper.open())

    def begin(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.keeper.begin()))

    def upgraded(self, number: int, serves: int) -> None:
        self.server.schema = migrations.Version(number, serves)

    def next_release(self, serves: int) -> None:
        """This daemon is of a release with one more schema file."""
        text = f"-- serves: {serves:04d}\nselect 1;"
        steps = (*migrations.steps(), (self.newest + 1, text))
        self.patch(migrations, "steps", lambda: steps)

    def test_a_newer_schema_ends_a_running_daemon(self) -> None:
        """It uses no lease from its next heartbeat on, and takes none."""
        self.successResultOf(self.open())
        self.begin()
        self.assertEqual(self.keeper.holdings.count(), SHARDS)
        self.upgraded(self.newest + 1, self.newest + 1)
        self.clock.pump([1.0] * 3)
        self.assertEqual(self.keeper.holdings.count(), 0)
        self.assertIn(
            f"the database has schema {self.newest + 1}, this release knows {self.newest}",
            self.shut_out[0],
        )
        self.assertEqual(self.keeper.problem, self.shut_out[0])

    def test_a_newer_schema_that_serves_this_release_changes_nothing(self) -> None:
        """It goes on, and may be started again."""
        self.successResultOf(self.open())
        self.begin()
        self.upgraded(self.newest + 2, self.newest)
        self.clock.pump([1.0] * 3)
        self.assertEqual((self.keeper.holdings.count(), self.shut_out), (SHARDS, []))
        self.successResultOf(self.open())

    def test_a_daemon_that_was_declared_dead_does_not_enter_a_newer_schema(self) -> None:
        """Its row stays away."""
        self.successResultOf(self.open())
        self.begin()
        self.upgraded(self.newest + 1, self.newest + 1)
        self.server.daemons.clear()
        self.clock.advance(1.0)
        self.assertEqual((self.server.daemons, self.keeper.holdings.count()), ({}, 0))
        self.assertIn("a newer release has upgraded the schema", self.shut_out[0])

    def test_a_newer_schema_is_refused_at_the_start(self) -> None:
        """At once."""
        self.upgraded(self.newest + 1, self.newest + 1)
        self.failureResultOf(self.open(), SchemaError)

    def test_a_development_version_is_refused_at_the_start(self) -> None:
        """Its daemons are not looked for: their rows have other columns."""
        self.upgraded(migrations.oldest() - 1, migrations.oldest() - 1)
        text = str(self.failureResultOf(self.open(), SchemaError).value)
        self.assertIn("the database has schema 18 of a development version", text)

    def test_an_upgrade_waits_for_the_end_of_older_daemons(self) -> None:
        """A daemon that stops or dies is gone after a lease."""
        self.next_release(serves=self.newest + 1)
        self.server.daemons["older"] = self.newest
        opened = self.open()
        self.clock.pump([0.25] * 20)
        self.assertNoResult(opened)
        self.server.daemons.clear()
        self.clock.advance(0.25)
        self.successResultOf(opened)

    def test_an_upgrade_is_refused_while_older_daemons_live(self) -> None:
        """The text names them and both schemas."""
        self.next_release(serves=self.newest + 1)
        self.server.daemons |= {"older": self.newest, "oldest": self.newest - 1}
        opened = self.open()
        self.clock.pump([0.25] * 43)
        self.assertNoResult(opened)
        self.clock.pump([0.25] * 2)
        text = str(self.failureResultOf(opened, SchemaError).value)
        self.assertIn("daemons of an older release use the database (older; oldest)", text)
        self.assertIn(f"upgrade its schema {self.newest} to {self.newest + 1}", text)

    def test_an_upgrade_that_serves_older_daemons_waits_for_none_of_them(self) -> None:
        """Two releases share the database."""
        self.next_release(serves=self.newest)
        self.server.daemons["older"] = self.newest
        self.successResultOf(self.open())

    def test_an_upgrade_waits_for_those_alone_that_it_does_not_serve(self) -> None:
        """Of three releases the oldest is in the way."""
        self.next_release(serves=self.newest)
        self.server.daemons |= {"older": self.newest, "oldest": self.newest - 1}
        opened = self.open()
        self.clock.pump([0.25] * 45)
        text = str(self.failureResultOf(opened, SchemaError).value)
        self.assertIn("daemons of an older release use the database (oldest)", text)

    def test_daemons_of_the_same_release_share_at_once(self) -> None:
        """Nothing is upgraded."""
        self.server.daemons["other"] = self.newest
        self.successResultOf(self.open())
