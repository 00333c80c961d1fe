"""Who should hold which lease: literal cases, and that all daemons together come to rest."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.store.leases.shares import SHARDS, Share, due, shard_of, share


def held(**counts: int) -> dict[int, str]:
    """Shards in order: so many for each name; the rest is free."""
    names = [name for name, count in counts.items() for _ in range(count)]
    return dict(enumerate(names + [""] * (SHARDS - len(names))))


class ShardTests(SynchronousTestCase):
    def test_shard_is_the_same_for_ever(self) -> None:
        """A release that counts otherwise would drive what another one drives."""
        ids = ("c-1", "7a1f4d52-7a3e-4c52-9d0d-0f0c3b8a2f11", "")
        self.assertEqual([shard_of(id_) for id_ in ids], [62, 22, 0])

    def test_ids_are_spread(self) -> None:
        """No shard of 64 is left out, or has more than thrice its part, of 6,400 ids."""
        counts = [0] * SHARDS
        for number in range(6400):
            counts[shard_of(f"cluster-{number}")] += 1
        self.assertGreater(min(counts), 0)
        self.assertLess(max(counts), 300)


class ShareTests(SynchronousTestCase):
    def test_the_only_one_takes_all(self) -> None:
        self.assertEqual(share("a", ["a"], held(), ()), Share(take=64))

    def test_everybody_is_due_the_same(self) -> None:
        """The first by name have one more."""
        self.assertEqual(due(["c", "a", "b"]), {"a": 22, "b": 21, "c": 21})

    def test_one_that_is_not_listed_yet_counts_itself(self) -> None:
        self.assertEqual(share("b", ["a"], held(), ()), Share(take=32))

    def test_a_newcomer_waits_for_what_is_given(self) -> None:
        """Nothing is free."""
        self.assertEqual(share("b", ["a", "b"], held(a=64), ()), Share())

    def test_surplus_is_given_to_a_newcomer(self) -> None:
        """What has no work under way first."""
        given = share("a", ["a", "b"], held(a=64), busy={0, 1, 2})
        self.assertEqual(given, Share(give=tuple(range(3, 35))))

    def test_busy_ones_are_given_last(self) -> None:
        given = share("a", ["a", "b"], held(a=64), busy=range(60))
        self.assertEqual(given.give[:4], (60, 61, 62, 63))
        self.assertEqual(given.give[4:], tuple(range(28)))

    def test_no_more_is_given_than_others_lack(self) -> None:
        """They take what is free, too."""
        self.assertEqual(share("a", ["a", "b"], held(a=34), ()), Share(give=(0, 1)))
        self.assertEqual(share("b", ["a", "b", "c"], held(a=40, b=24), ()).give, (40, 41, 42))

    def test_leases_of_the_dead_are_shared(self) -> None:
        """They became free."""
        self.assertEqual(share("a", ["a", "b"], held(a=22, b=21), ()), Share(take=10))
        self.assertEqual(share("b", ["a", "b"], held(a=22, b=21), ()), Share(take=11))

    def test_leases_of_one_that_seems_dead_are_left_alone(self) -> None:
        """Until it has been declared so."""
        self.assertEqual(share("a", ["a"], held(a=32, b=32), ()), Share())

    def test_all_come_to_rest(self) -> None:
        """Whatever they begin with: everything is held, and nobody has two more than another."""
        living = ["a", "b", "c", "d", "e"]
        for start in (held(), held(a=64), held(a=1, e=60), held(b=30, c=30)):
            holders = dict(start)
            for _ in range(10):
                for name in living:
                    wanted = share(name, living, holders, ())
                    for shard in wanted.give:
                        holders[shard] = ""
                    free = [shard for shard, holder in holders.items() if not holder]
                    for shard in free[: wanted.take]:
                        holders[shard] = name
            counts = [list(holders.values()).count(name) for name in living]
            self.assertEqual(counts, [13, 13, 13, 13, 12])
