"""One call for many: who shares which, and that nobody gets what is older than the question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import define
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import NotFound, ServiceUnavailable
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.runtime import fencing
from svcd.runtime.clock import VirtualClock
from svcd.runtime.coalesce import Batches, Coalescer


class BatchesTests(SynchronousTestCase):
    """`asked` are the calls; each is answered by hand."""

    def setUp(self) -> None:
        self.turns: list[Callable[[], object]] = []
        self.asked: list[list[str]] = []
        self.answers: list[Deferred[Mapping[str, int]]] = []
        self.batches: Batches[str, int] = Batches(self.ask, self.turns.append, most=3, at_once=2)

    def ask(self, keys: Sequence[str]) -> Deferred[Mapping[str, int]]:
        self.asked.append(list(keys))
        self.answers.append(Deferred())
        return self.answers[-1]

    def turn(self) -> None:
        """The next turn of the reactor."""
        due, self.turns[:] = list(self.turns), []
        for each in due:
            each()

    def test_one_turn_is_one_call(self) -> None:
        """Everybody gets what is of his key; a key is asked for once; what is not there is None."""
        found = [self.batches.get(key) for key in ("a", "b", "a")]
        self.assertEqual(self.asked, [])
        self.turn()
        self.assertEqual(self.asked, [["a", "b"]])
        self.answers[0].callback({"a": 1})
        self.assertEqual([self.successResultOf(f) for f in found], [1, None, 1])

    def test_who_asks_during_a_call_is_not_answered_by_it(self) -> None:
        """Though it is of the same key: it may have changed since the call began."""
        early = self.batches.get("a")
        self.turn()
        late = self.batches.get("a")
        self.answers[0].callback({"a": 1})
        self.assertEqual(self.successResultOf(early), 1)
        self.assertNoResult(late)
        self.turn()
        self.answers[1].callback({"a": 2})
        self.assertEqual(self.successResultOf(late), 2)

    def test_calls_are_bounded(self) -> None:
        """In keys, and in how many are under way; the rest waits for the end of one."""
        found = [self.batches.get(key) for key in "abcdefgh"]
        for _ in range(4):
            self.turn()
        self.assertEqual(self.asked, [["a", "b", "c"], ["d", "e", "f"]])
        self.answers[1].callback({})
        self.turn()
        self.assertEqual(self.asked[2:], [["g", "h"]])
        for each in (0, 2):
            self.answers[each].callback({})
        self.assertEqual([self.successResultOf(f) for f in found], [None] * 8)
        self.assertEqual(self.turns, [])

    def test_all_are_told_when_the_database_cannot_serve(self) -> None:
        """Those who wait for a later call would wait for the same refusal."""
        found = [self.batches.get(key) for key in "abcdefgh"]
        self.turn()
        self.turn()
        self.answers[0].errback(ServiceUnavailable("away"))
        for each in (*found[:3], *found[6:]):
            self.failureResultOf(each, ServiceUnavailable)
        self.assertNoResult(found[3])
        self.answers[1].callback({"d": 4})
        self.assertEqual(self.successResultOf(found[3]), 4)
        again = self.batches.get("a")
        self.turn()
        self.answers[2].callback({"a": 1})
        self.assertEqual(self.successResultOf(again), 1)

    def test_one_gives_up(self) -> None:
        """The others are answered."""
        first, second = self.batches.get("a"), self.batches.get("a")
        self.turn()
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.answers[0].callback({"a": 1})
        self.assertEqual(self.successResultOf(second), 1)


class FreshTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.shared = Coalescer(fresh_by=self.clock)
        self.calls: list[Deferred[int]] = []

    def call(self) -> Deferred[int]:
        self.calls.append(Deferred())
        return self.calls[-1]

    def test_who_asks_during_a_call_shares_the_next_one(self) -> None:
        """One that begins after all of them have asked."""
        first = self.shared.get("k", self.call)
        later = [self.shared.get("k", self.call) for _ in range(3)]
        self.assertEqual(len(self.calls), 1)
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(first), 1)
        self.assertEqual(len(self.calls), 2)
        self.calls[1].callback(2)
        self.assertEqual([self.successResultOf(each) for each in later], [2, 2, 2])

    def test_slow_call_is_not_waited_for(self) -> None:
        """Who asks a second later begins one of his own, for all who wait."""
        slow = self.shared.get("k", self.call)
        waiting = self.shared.get("k", self.call)
        self.clock.advance(1.5)
        late = self.shared.get("k", self.call)
        self.calls[1].callback(2)
        self.assertEqual([self.successResultOf(d) for d in (waiting, late)], [2, 2])
        self.assertNoResult(slow)
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(slow), 1)
        again = self.shared.get("k", self.call)
        self.calls[2].callback(3)
        self.assertEqual(self.successResultOf(again), 3)


class JoinedTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.shared = Coalescer()
        self.calls: list[Deferred[int]] = []
        self.terms: list[object] = []

    def call(self) -> Deferred[int]:
        self.terms.append(fencing.current())
        self.calls.append(Deferred())
        return self.calls[-1]

    def test_who_asks_during_a_call_gets_its_result(self) -> None:
        """Who asks after it begins another."""
        asked = [self.shared.get("k", self.call) for _ in range(3)]
        self.calls[0].callback(1)
        self.assertEqual([self.successResultOf(each) for each in asked], [1, 1, 1])
        later = self.shared.get("k", self.call)
        self.assertNoResult(later)
        self.calls[1].callback(2)
        self.assertEqual(self.successResultOf(later), 2)

    def test_call_goes_on_when_its_askers_give_up(self) -> None:
        """Who asks afterwards joins it."""
        first = self.shared.get("k", self.call)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        second = self.shared.get("k", self.call)
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(second), 1)

    def test_call_runs_under_no_term(self) -> None:
        """It does not fail with the lease of the first asker, whose work goes on under it."""

        async def ask() -> tuple[int, object]:
            return await self.shared.get("k", self.call), fencing.current()

        term = _Term()
        asked = Deferred.fromCoroutine(fencing.under(term, ask()))
        self.assertEqual(self.terms, [None])
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(asked), (1, term))

    def test_failure_that_nobody_gets_is_logged(self) -> None:
        """When it is a bug; a refusal of the peer is forgotten."""
        for error in (NotFound("no"), CloudError("identity", Fault.TIMEOUT, "late"), KeyError("x")):
            asked = self.shared.get("k", self.call)
            asked.cancel()
            self.failureResultOf(asked, CancelledError)
            self.calls.pop().errback(error)
        self.assertEqual([f.type for f in self.flushLoggedErrors()], [KeyError])


@define
class _Term:
    holder: str = "me"
    epoch: int = 1

    def check(self) -> None:
        """It is held."""
