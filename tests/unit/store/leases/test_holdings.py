"""The leases that a daemon holds, on two virtual clocks."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime import fencing
from svcd.runtime.fencing import LeaseLost
from svcd.runtime.tasks import sleep
from svcd.store.leases.holdings import Holdings, Taken
from svcd.store.leases.shares import shard_of

KEY = "c-1"
SHARD = shard_of(KEY)


class HoldingsTests(SynchronousTestCase):
    """A lease of 10 s, believed in for 9, with a grace of 2."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.steady = 100.0
        self.jumped = 0.0
        self.told: list[str] = []
        self.holdings = Holdings(
            self.clock,
            lambda: self.steady,
            "me",
            10.0,
            2.0,
            lambda: self.clock.seconds() + self.jumped,
        )
        self.holdings.watch(lambda: self.told.append("gained"), lambda: self.told.append("lost"))

    def advance(self, seconds: float) -> None:
        """Both clocks, in small steps."""
        for _ in range(round(seconds * 10)):
            self.steady += 0.1
            self.clock.advance(0.1)

    def take(self, free_s: float = 1000.0, epoch: int = 1, shard: int = SHARD) -> None:
        self.holdings.renewed(self.holdings.now())
        self.holdings.took([Taken(shard=shard, epoch=epoch, free_s=free_s)])

    def drive(self, work: Any) -> Deferred[Any]:
        return Deferred.fromCoroutine(self.holdings.drive(KEY, work))

    async def wait(self, log: list[str]) -> None:
        """Work that takes 100 s."""
        try:
            await sleep(self.clock, 100.0)
        finally:
            log.append("ended")

    def test_nothing_is_held_at_first(self) -> None:
        """Work is not even begun."""
        log: list[str] = []
        self.assertFalse(self.holdings.holds(KEY))
        self.failureResultOf(self.drive(self.wait(log)), LeaseLost)
        self.assertEqual((log, self.told), ([], []))

    def test_what_was_free_for_long_is_used_at_once(self) -> None:
        self.take()
        self.assertTrue(self.holdings.holds(KEY))
        self.assertEqual((self.told, self.holdings.count()), (["gained"], 1))

    def test_what_became_free_just_now_is_used_after_the_grace(self) -> None:
        """What its former holder sent may still be on its way."""
        self.take(free_s=0.5)
        self.assertEqual((self.holdings.holds(KEY), self.told), (False, []))
        self.advance(1.4)
        self.assertEqual((self.holdings.holds(KEY), self.told), (False, []))
        self.advance(0.2)
        self.assertEqual((self.holdings.holds(KEY), self.told), (True, ["gained"]))

    def test_belief_is_counted_from_before_the_question(self) -> None:
        """The answer took 3 s: 6 of 9 are left."""
        asked = self.holdings.now()
        self.advance(3.0)
        self.holdings.renewed(asked)
        self.holdings.took([Taken(shard=SHARD, epoch=1, free_s=1000.0)])
        self.advance(5.9)
        self.assertTrue(self.holdings.holds(KEY))
        self.advance(0.2)
        self.assertFalse(self.holdings.holds(KEY))

    def test_answer_that_came_too_late_is_none(self) -> None:
        asked = self.holdings.now()
        self.advance(9.1)
        self.holdings.renewed(asked)
        self.assertFalse(self.holdings.in_force())

    def test_wall_set_forward_ends_the_belief_until_the_next_heartbeat(self) -> None:
        """The leases are the same; what was turned away meanwhile is looked for."""
        self.take()
        self.jumped = 3600.0
        self.assertFalse(self.holdings.holds(KEY))
        self.advance(1.0)
        self.holdings.renewed(self.holdings.now())
        self.assertTrue(self.holdings.holds(KEY))
        self.assertEqual(self.told, ["gained", "gained"])

    def test_wall_set_back_leaves_the_belief_to_the_steady_clock(self) -> None:
        """It ends after 9 s all the same, and is prolonged as ever."""
        self.take()
        self.jumped = -3600.0
        self.advance(8.9)
        self.assertTrue(self.holdings.holds(KEY))
        self.holdings.renewed(self.holdings.now())
        self.advance(8.9)
        self.assertTrue(self.holdings.holds(KEY))
        self.advance(0.2)
        self.assertFalse(self.holdings.holds(KEY))
        self.assertEqual(self.told, ["gained", "lost"])

    def test_lease_that_seems_to_become_free_in_an_hour_waits_for_its_grace_only(self) -> None:
        """The clock of the database's server was set back."""
        self.take(free_s=-3600.0)
        self.advance(1.9)
        self.assertFalse(self.holdings.holds(KEY))
        self.advance(0.2)
        self.assertTrue(self.holdings.holds(KEY))

    def test_steady_clock_ends_the_belief_when_wall_time_is_set_back(self) -> None:
        self.take()
        self.steady += 9.0
        self.assertFalse(self.holdings.holds(KEY))

    def test_wall_time_ends_the_belief_when_the_machine_slept(self) -> None:
        """The work of before is refused before anything else runs, and cancelled then."""
        self.take()
        log: list[str] = []
        terms: list[Any] = []

        async def work() -> None:
            terms.append(fencing.current())
            await self.wait(log)

        running = self.drive(work())
        self.clock.rightNow += 60.0  # no timer has run yet
        self.assertRaises(LeaseLost, terms[0].check)
        self.clock.advance(0.0)
        self.failureResultOf(running, LeaseLost)
        self.assertEqual((log, self.told), (["ended"], ["gained", "lost"]))

    def test_work_runs_under_its_term(self) -> None:
        """Nothing of it shows outside."""
        self.take(epoch=7)
        seen: list[Any] = []

        async def work() -> str:
            term = fencing.current()
            assert term is not None
            fencing.check()
            seen.append((term.shard, term.holder, term.epoch))
            return "done"

        self.assertEqual(self.successResultOf(self.drive(work())), "done")
        self.assertEqual(seen, [(SHARD, "me", 7)])
        self.assertIsNone(fencing.current())
        fencing.check()

    def test_lapse_ends_work_and_renewal_resumes(self) -> None:
        """The lease is the same, the term is a new one."""
        self.take()
        log: list[str] = []
        running = self.drive(self.wait(log))
        self.assertEqual(self.holdings.busy(), {SHARD})
        self.advance(9.1)
        self.failureResultOf(running, LeaseLost)
        self.assertEqual((log, self.told), (["ended"], ["gained", "lost"]))
        self.assertEqual((self.holdings.busy(), self.holdings.epochs()), (set(), {SHARD: 1}))
        self.holdings.renewed(self.holdings.now())
        self.assertTrue(self.holdings.holds(KEY))
        self.assertEqual(self.told, ["gained", "lost", "gained"])

    def test_renewals_keep_it(self) -> None:
        self.take()
        for _ in range(30):
            self.advance(1.0)
            self.holdings.renewed(self.holdings.now())
        self.assertTrue(self.holdings.holds(KEY))
        self.assertEqual(self.told, ["gained"])

    def test_lost_lease_ends_its_work_only(self) -> None:
        other = (SHARD + 1) % 64
        self.take()
        self.take(shard=other)
        log: list[str] = []
        running = self.drive(self.wait(log))
        self.holdings.lose([other])
        self.assertNoResult(running)
        self.holdings.lose([SHARD])
        self.failureResultOf(running, LeaseLost)
        self.assertEqual(self.holdings.epochs(), {})

    def test_faults_of_work_are_its_own(self) -> None:
        self.take()

        async def work() -> None:
            raise KeyError("mine")

        self.failureResultOf(self.drive(work()), KeyError)

    def test_parked_until_work_has_ended(self) -> None:
        """Not given before; what is not to be given any more is used again."""
        self.take()
        hold: Deferred[None] = Deferred()

        async def stubborn() -> None:
            try:
                await sleep(self.clock, 100.0)
            finally:
                await hold

        running = self.drive(stubborn())
        self.assertEqual(self.holdings.park([SHARD]), [])
        self.assertFalse(self.holdings.holds(KEY))
        hold.callback(None)
        self.failureResultOf(running, LeaseLost)
        self.assertEqual(self.holdings.park([SHARD]), [SHARD])
        self.holdings.resume()
        self.assertTrue(self.holdings.holds(KEY))
        self.assertEqual(self.told, ["gained", "lost", "gained"])

    def test_peace_comes_a_grace_after_the_last_work(self) -> None:
        """Before that, a call may be on its way though nothing runs."""
        self.take()
        self.assertEqual(self.holdings.peaceful(), {SHARD})
        log: list[str] = []
        running = self.drive(self.wait(log))
        self.holdings.park([SHARD])
        self.failureResultOf(running, LeaseLost)
        self.advance(1.9)
        self.assertEqual(self.holdings.peaceful(), set())
        self.advance(0.2)
        self.assertEqual(self.holdings.peaceful(), {SHARD})

    def test_lease_of_the_dead_is_not_given_on_in_peace(self) -> None:
        """What its former holder sent may be on its way, though nothing was done here."""
        self.take(free_s=0.5)
        self.assertEqual(self.holdings.peaceful(), set())
        self.advance(1.6)
        self.assertEqual(self.holdings.peaceful(), {SHARD})

    def test_work_from_before_a_lapse_counts_after_it(self) -> None:
        """The renewed lease is not given while that has not ended, nor in peace just after."""
        self.take()
        hold: Deferred[None] = Deferred()

        async def stubborn() -> None:
            try:
                await sleep(self.clock, 100.0)
            finally:
                await hold

        running = self.drive(stubborn())
        self.advance(9.1)
        self.holdings.renewed(self.holdings.now())
        self.assertEqual(self.holdings.busy(), {SHARD})
        self.assertEqual(self.holdings.park([SHARD]), [])
        hold.callback(None)
        self.failureResultOf(running, LeaseLost)
        self.assertEqual(self.holdings.park([SHARD]), [SHARD])
        self.assertEqual(self.holdings.peaceful(), set())
        self.advance(2.1)
        self.assertEqual(self.holdings.peaceful(), {SHARD})

    def test_closed_it_leaves_no_timer(self) -> None:
        self.take(free_s=0.0)
        self.holdings.close()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertFalse(self.holdings.in_force())
