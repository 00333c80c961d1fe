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
from svcd.store.lease.keeper import LeaseKeeper, Me
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
        self.quiet_s = 0.0
        self.holder, self.epoch = "", 0

    async def open(self, lost: object, statement_s: float = 0.0) -> Any:
        if not self.reachable:
            raise Lost("no route")
        return self

    def close(self, session: object = None) -> None:
        """It has no state of its own."""

    def listen(self, hear: object) -> None:
        """Nobody tells anything."""

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
                return _Answer([(self.holder, self.epoch)])
            case ["update", "daemons", _]:
                here = values["id"] in self.daemons
                row = self.holder, self.epoch, self._clock.seconds(), 1e6
                return _Answer([(*row, self.schema.number, self.schema.serves)] if here else [])
            case ["select", "id,", _]:
                return _Answer([(name, 5.0) for name in sorted(self.daemons)])
            case ["update", "lease", "set"] if values["epoch"] == self.epoch:
                self.change(values["id"])
                return _Answer([(self.epoch, 1000.0)])
            case ["with", "gone", *_]:
                self.change("")
                self.quiet_s = values["quiet_s"]
            case _:
                pass
        return _Answer()

    def change(self, holder: str) -> None:
        """The holder of the lease."""
        self.holder, self.epoch = holder, self.epoch + 1


class KeeperTests(SynchronousTestCase):
    """A lease of 10 s, believed in for 9, renewed each second."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.server = _Server(self.clock)
        sessions: Any = self.server
        self.keeper = LeaseKeeper(
            self.clock,
            sessions,
            _SETTINGS,
            Me("me", "of the test", self.clock.seconds),
            self.fail,
        )
        self.holding = self.keeper.holding
        self.successResultOf(Deferred.fromCoroutine(self.keeper.open()))
        self.successResultOf(Deferred.fromCoroutine(self.keeper.begin()))
        self.addCleanup(lambda: Deferred.fromCoroutine(self.keeper.stop()))

    def advance(self, seconds: int) -> None:
        self.clock.pump([1.0] * seconds)

    def test_lease_that_another_daemon_took_is_lost_at_the_next_heartbeat(self) -> None:
        self.server.change("other")
        self.advance(1)
        self.assertEqual((self.holding.epoch, self.server.holder), (None, "other"))

    def test_lease_that_another_daemon_gave_up_is_taken(self) -> None:
        """At the next heartbeat, or at the notification."""
        self.server.change("other")
        self.advance(1)
        self.server.change("")
        self.advance(1)
        self.assertEqual((self.holding.epoch, self.server.epoch), (4, 4))

    def test_lease_whose_taking_was_not_answered_is_used_after_the_grace(self) -> None:
        """The server was away until the daemon was sure of nothing any more."""
        self.server.change("other")
        self.advance(1)
        self.server.change("")
        self.server.drops = ["update lease set holder"]
        self.advance(1)
        self.assertEqual((self.holding.epoch, self.server.holder), (None, "me"))
        self.server.drops, self.server.reachable = [], True
        self.advance(1)
        self.assertEqual(self.holding.epoch, self.server.epoch)
        self.assertFalse(self.holding.held)
        self.advance(2)
        self.assertTrue(self.holding.held)

    def test_stop_gives_the_lease_up(self) -> None:
        """Nothing was cut short, so the next holder need not wait."""
        self.successResultOf(Deferred.fromCoroutine(self.keeper.stop()))
        self.assertEqual(self.server.holder, "")
        self.assertGreater(self.server.quiet_s, _SETTINGS.grace_s)
        self.assertFalse(self.holding.held)


class ReleaseTests(SynchronousTestCase):
    """Daemons of several releases on one database."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.server = _Server(self.clock)
        self.shut_out: list[str] = []
        sessions: Any = self.server
        self.keeper = LeaseKeeper(
            self.clock,
            sessions,
            _SETTINGS,
            Me("me", "of the test", self.clock.seconds),
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

    def test_a_newer_schema_that_serves_this_release_changes_nothing(self) -> None:
        """It goes on, and may be started again."""
        self.successResultOf(self.open())
        self.begin()
        self.upgraded(self.newest + 2, self.newest)
        self.clock.pump([1.0] * 3)
        self.assertEqual((self.keeper.holding.held, self.shut_out), (True, []))
        self.successResultOf(self.open())

    def test_a_daemon_that_was_declared_dead_does_not_enter_a_newer_schema(self) -> None:
        """Its row stays away."""
        self.successResultOf(self.open())
        self.begin()
        self.upgraded(self.newest + 1, self.newest + 1)
        self.server.daemons.clear()
        self.clock.advance(1.0)
        self.assertEqual((self.server.daemons, self.keeper.holding.epoch), ({}, None))
        self.assertIn("a newer release has upgraded the schema", self.shut_out[0])

    def test_an_upgrade_waits_for_those_alone_that_it_does_not_serve(self) -> None:
        """Of three releases the oldest is in the way."""
        self.next_release(serves=self.newest)
        self.server.daemons |= {"older": self.newest, "oldest": self.newest - 1}
        opened = self.open()
        self.clock.pump([0.25] * 45)
        text = str(self.failureResultOf(opened, SchemaError).value)
        self.assertIn("daemons of an older release use the database (oldest)", text)
