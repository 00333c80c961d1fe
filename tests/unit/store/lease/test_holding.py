"""The lease as a daemon holds it, on two virtual clocks."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime import fencing
from svcd.runtime.fencing import LeaseLost
from svcd.runtime.tasks import sleep
from svcd.store.lease.holding import Holding


class HoldingTests(SynchronousTestCase):
    """A lease of 10 s, believed in for 9, with a grace of 2."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.steady = 100.0
        self.jumped = 0.0
        self.told: list[str] = []
        self.holding = Holding(
            self.clock,
            lambda: self.steady,
            "me",
            10.0,
            2.0,
            lambda: self.clock.seconds() + self.jumped,
        )
        self.holding.watch(lambda: self.told.append("gained"), lambda: self.told.append("lost"))

    def advance(self, seconds: float) -> None:
        """Both clocks, in small steps."""
        for _ in range(round(seconds * 10)):
            self.steady += 0.1
            self.clock.advance(0.1)

    def take(self, quiet_s: float = 1000.0, epoch: int = 1) -> None:
        self.holding.renewed(self.holding.now())
        self.holding.took(epoch, quiet_s)

    def drive(self, work: Any) -> Deferred[Any]:
        return Deferred.fromCoroutine(self.holding.drive(work))

    async def wait(self, log: list[str]) -> None:
        """Work that takes 100 s."""
        try:
            await sleep(self.clock, 100.0)
        finally:
            log.append("ended")

    def test_what_became_free_just_now_is_used_after_the_grace(self) -> None:
        """What its former holder sent may still be on its way."""
        self.take(quiet_s=0.5)
        self.assertEqual((self.holding.held, self.told), (False, []))
        self.advance(1.4)
        self.assertEqual((self.holding.held, self.told), (False, []))
        self.advance(0.2)
        self.assertEqual((self.holding.held, self.told), (True, ["gained"]))

    def test_belief_is_counted_from_before_the_question(self) -> None:
        """The answer took 3 s: 6 of 9 are left."""
        asked = self.holding.now()
        self.advance(3.0)
        self.holding.renewed(asked)
        self.holding.took(1, 1000.0)
        self.advance(5.9)
        self.assertTrue(self.holding.held)
        self.advance(0.2)
        self.assertFalse(self.holding.held)

    def test_answer_that_came_too_late_is_none(self) -> None:
        asked = self.holding.now()
        self.advance(9.1)
        self.holding.renewed(asked)
        self.assertFalse(self.holding.in_force())

    def test_wall_set_forward_ends_the_belief_until_the_next_heartbeat(self) -> None:
        """The lease is the same; what was turned away meanwhile is looked for."""
        self.take()
        self.jumped = 3600.0
        self.assertFalse(self.holding.held)
        self.advance(1.0)
        self.holding.renewed(self.holding.now())
        self.assertTrue(self.holding.held)
        self.assertEqual(self.told, ["gained", "gained"])

    def test_wall_set_back_leaves_the_belief_to_the_steady_clock(self) -> None:
        """It ends after 9 s all the same, and is prolonged as ever."""
        self.take()
        self.jumped = -3600.0
        self.advance(8.9)
        self.assertTrue(self.holding.held)
        self.holding.renewed(self.holding.now())
        self.advance(8.9)
        self.assertTrue(self.holding.held)
        self.advance(0.2)
        self.assertFalse(self.holding.held)
        self.assertEqual(self.told, ["gained", "lost"])

    def test_lease_that_seems_to_become_free_in_an_hour_waits_for_its_grace_only(self) -> None:
        """The clock of the database's server was set back."""
        self.take(quiet_s=-3600.0)
        self.advance(1.9)
        self.assertFalse(self.holding.held)
        self.advance(0.2)
        self.assertTrue(self.holding.held)

    def test_steady_clock_ends_the_belief_when_wall_time_is_set_back(self) -> None:
        self.take()
        self.steady += 9.0
        self.assertFalse(self.holding.held)

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
            term.check()
            seen.append((term.holder, term.epoch))
            return "done"

        self.assertEqual(self.successResultOf(self.drive(work())), "done")
        self.assertEqual(seen, [("me", 7)])
        self.assertIsNone(fencing.current())

    def test_lapse_ends_work_and_renewal_resumes(self) -> None:
        """The lease is the same, the term is a new one."""
        self.take()
        log: list[str] = []
        running = self.drive(self.wait(log))
        self.advance(9.1)
        self.failureResultOf(running, LeaseLost)
        self.assertEqual((log, self.told), (["ended"], ["gained", "lost"]))
        self.assertEqual(self.holding.epoch, 1)
        self.holding.renewed(self.holding.now())
        self.assertTrue(self.holding.held)
        self.assertEqual(self.told, ["gained", "lost", "gained"])

    def test_lost_lease_ends_its_work(self) -> None:
        self.take()
        log: list[str] = []
        running = self.drive(self.wait(log))
        self.holding.lose()
        self.failureResultOf(running, LeaseLost)
        self.assertEqual((self.holding.epoch, self.told), (None, ["gained", "lost"]))

    def test_work_that_ended_by_itself_leaves_no_request_behind(self) -> None:
        """Its rows tell what it has done; the next holder need not wait."""
        self.take()

        async def work() -> None:
            await sleep(self.clock, 1.0)

        running = self.drive(work())
        self.assertEqual(self.holding.quiet_s(), 0.0)
        self.advance(1.1)
        self.successResultOf(running)
        self.assertGreater(self.holding.quiet_s(), 1000.0)

    def test_quiet_is_counted_from_the_work_that_was_cut_short(self) -> None:
        """Its last call may still have an effect: by a stop, by a lapse."""
        for cut in (lambda work: work.cancel(), lambda _: self.holding.lapse()):
            self.take()
            running = self.drive(self.wait([]))
            self.advance(1.0)
            cut(running)
            self.failureResultOf(running)
            self.advance(1.5)
            self.assertAlmostEqual(self.holding.quiet_s(), 1.5)

    def test_work_that_does_not_end_is_never_quiet(self) -> None:
        """Neither in the term of a renewed lease."""
        self.take()
        hold: Deferred[None] = Deferred()

        async def stubborn() -> None:
            try:
                await sleep(self.clock, 100.0)
            finally:
                await hold

        running = self.drive(stubborn())
        self.advance(9.1)
        self.holding.renewed(self.holding.now())
        self.advance(5.0)
        self.assertEqual(self.holding.quiet_s(), 0.0)
        hold.callback(None)
        self.failureResultOf(running, LeaseLost)

    def test_lease_of_the_dead_is_not_quiet_at_once(self) -> None:
        """What its former holder sent may be on its way, though nothing was done here."""
        self.take(quiet_s=0.5)
        self.advance(1.0)
        self.assertAlmostEqual(self.holding.quiet_s(), 1.5)
