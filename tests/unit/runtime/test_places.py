"""Places: the shares of tenants, and the queue of those that wait."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.places import Places
from tests.support.turns import turn


class PlacesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.places = Places(16, lambda call: self.clock.callLater(0.0, call))
        self.taken: list[str] = []

    def take(self, tenant: str, thing: str, cluster: str) -> Deferred[None]:
        """The words in `taken` are those of the things that have a place."""

        async def take() -> None:
            await self.places.take((tenant, cluster), thing)
            self.taken.append(thing)

        return Deferred.fromCoroutine(take())

    def of(self, owner: str, most: int) -> int:
        """How many of so many things of a cluster, such as `a1`, get a place at once."""
        before = len(self.taken)
        for number in range(most):
            self.take(owner[0], f"{owner}.{number}", owner[1])
        return len(self.taken) - before

    def left(self, *things: str) -> list[str]:
        """The things that get a place after `things` have given back theirs, and some turns."""
        self.taken.clear()
        for thing in things:
            self.places.leave((thing[0], thing[1]), thing)
        for _ in range(len(things) + 1):
            turn(self.clock)
        return self.taken

    def test_a_cluster_gets_a_third(self) -> None:
        """There is a place for other clusters of the tenant, and more of them for other tenants."""
        numbers = [self.of(owner, 30) for owner in ("a1", "a2", "b1", "c1")]
        self.assertEqual(numbers, [6, 2, 3, 2])
        used = [self.places.used_by(owner) for owner in (("a",), ("a", "1"), ("a", "2"))]
        self.assertEqual(used, [8, 6, 2])

    def test_tenants_take_turns_and_their_clusters_too(self) -> None:
        """A tenant does not get more turns by more clusters."""
        for owner in ("a1", "a2", "a3", "b1"):
            self.of(owner, 8)
        things = ["a1.0", "a1.1", "a1.2", "a1.3", "a2.0", "b1.0", "b1.1"]
        self.assertEqual(self.left(*things), ["a1.6", "b1.3", "a2.2", "b1.4", "a3.0", "b1.5"])

    def test_a_thing_has_one_place_for_all_its_callers(self) -> None:
        """The last one of them frees it."""
        self.of("a1", 6)
        for thing in ("a1.0", "a1.6", "a1.6"):
            self.take("a", thing, "1")
        self.assertEqual((self.taken[6:], self.places.used()), (["a1.0"], 6))
        self.assertEqual(self.left("a1.0"), [])
        self.assertEqual((self.left("a1.0"), self.places.used()), (["a1.6", "a1.6"], 6))
