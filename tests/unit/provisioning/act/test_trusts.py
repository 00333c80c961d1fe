"""Trusts of requests that end well, badly, or not at all; and the sweep that gives them back."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect
from svcd.errors import ServiceUnavailable
from svcd.model import ownership_tags
from svcd.model.ids import ClusterId, timestamp
from svcd.model.trust import LooseTrust
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.provisioning.act.trusts import DUE_S, LOOK_S, SURE_S, Trusts, TrustSweep, released
from svcd.runtime.fencing import Alone, LeaseLost
from tests.support.api import now
from tests.unit.provisioning.cloud import CALLS, TIMEOUT_S
from tests.unit.provisioning.support import NOW, TENANT, Site, cluster, run

T = TypeVar("T")

CLUSTER = ClusterId("c1")


class Lost:
    """ports.Lease that another daemon holds."""

    held = False

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        work.close()
        raise LeaseLost


class TrustTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.site = Site()
        self.cloud, self.clock = self.site.cloud, self.site.clock
        self.rows = self.site.store.loose_trusts
        numbers = count(1)
        store: Any = self.site.store
        self.caller = self.cloud.caller()
        client = self.cloud.client
        self.trusts = Trusts(store, client, self.clock, lambda: f"id{next(numbers)}")
        self.sweep = TrustSweep(store, client, self.clock)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.sweep.stop()))

    def done(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work that may wait for one call in vain."""
        waiting = Deferred.fromCoroutine(work)
        self.clock.advance(TIMEOUT_S)
        return now(waiting)  # type: ignore[no-any-return]

    def ask(self) -> Any:
        return run(self.trusts.ask(self.caller, CLUSTER))

    def ask_in_vain(self) -> None:
        with self.assertRaises(CloudError):
            self.done(self.trusts.ask(self.caller, CLUSTER))

    def take(self, made: Any) -> None:
        """As the transaction does that writes the cluster's row."""
        run(self.site.store.tx(lambda tx: self.trusts.take(tx, made)))

    def swept(self, seconds: float) -> None:
        """So many seconds later, after a look."""
        self.clock.advance(seconds)
        self.sweep.start()
        self.sweep.wake()
        run(self.sweep.stop())

    def figures(self) -> tuple[int, int, int]:
        found = self.sweep.figures
        return found.loose, found.returned, found.failed


class RequestTests(TrustTestCase):
    def test_trust_is_noted_before_it_is_asked_for(self) -> None:
        """With the mark that it is asked for with, the giver, and when to look."""
        self.cloud.fail("create_trust", Fault.TIMEOUT)
        self.ask_in_vain()
        self.assertEqual(
            list(self.rows.rows.values()),
            [
                LooseTrust(
                    id="id1",
                    cluster_id=CLUSTER,
                    tenant_id=TENANT,
                    trustor_id=self.caller.user_id,
                    expires_at=ownership_tags.trust_end("id1"),
                    asked_at=timestamp(NOW),
                    due_at=timestamp(NOW + DUE_S),
                )
            ],
        )

    def test_note_goes_with_the_write_of_the_row(self) -> None:
        """Taken in its transaction."""
        new = self.ask()
        self.assertEqual(({new.id}, new.trustor_id), (self.cloud.trusts, self.caller.user_id))
        self.assertEqual(list(self.rows.rows), ["id1"])
        self.take(new)
        self.assertEqual(self.rows.rows, {})

    def test_refused_trust_leaves_no_note(self) -> None:
        """Nothing was made: there is nothing to look for."""
        for kind in (Fault.FORBIDDEN, Fault.UNREACHABLE, Fault.BUSY):
            self.cloud.fail("create_trust", kind)
            self.ask_in_vain()
            self.assertEqual(self.rows.rows, {})

    def test_unanswered_trust_stays_noted(self) -> None:
        """It may have been made."""
        for number, kind in enumerate((Fault.TIMEOUT, Fault.SERVER_ERROR), 1):
            self.cloud.fail("create_trust", kind)
            self.ask_in_vain()
            self.assertEqual(len(self.rows.rows), number)

    def test_without_tokens_nothing_is_noted(self) -> None:
        """auth.mode none."""
        self.assertIsNone(run(self.trusts.ask(evolve(self.caller, token=None), CLUSTER)))
        self.assertEqual((self.rows.rows, self.cloud.calls), ({}, {}))

    def test_trust_that_is_being_given_back_cannot_be_taken(self) -> None:
        """The request has taken too long, and its row is refused."""
        new = self.ask()
        self.rows.doom("id1")
        with self.assertRaises(ServiceUnavailable):
            self.take(new)

    def test_given_back_at_once(self) -> None:
        """Trust and note go."""
        run(self.trusts.give_back(self.ask()))
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_given_back_later(self) -> None:
        """The cloud does not let it go: the note stays, and the sweep finds it by its mark."""
        new = self.ask()
        self.cloud.fail("delete_trust", Fault.TIMEOUT)
        self.done(self.trusts.give_back(new))
        self.assertEqual((self.cloud.trusts, list(self.rows.rows)), ({new.id}, ["id1"]))
        self.swept(DUE_S)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_commit_in_doubt(self) -> None:
        """Done: the note is gone. Not done: the note is doomed, so that it never will be."""
        done = self.ask()
        self.take(done)
        self.assertTrue(run(self.trusts.was_taken(done)))
        lost = self.ask()
        self.assertFalse(run(self.trusts.was_taken(lost)))
        with self.assertRaises(ServiceUnavailable):
            self.take(lost)


class SweepTests(TrustTestCase):
    def lose(self) -> str:
        """The trust of a request that died between the trust and its row."""
        new = self.ask()
        self.assertEqual(self.cloud.trusts, {new.id})
        return str(new.id)

    def test_trust_of_a_dead_request_is_given_back(self) -> None:
        """Not before it must be dead."""
        trust = self.lose()
        self.swept(DUE_S - 1)
        self.assertEqual((self.cloud.trusts, self.figures()), ({trust}, (0, 0, 0)))
        self.swept(1)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))
        self.assertEqual(self.figures(), (1, 1, 0))

    def test_slow_request_loses_against_the_sweep(self) -> None:
        """No row is ever written with a trust that was given back."""
        new = self.ask()
        self.swept(DUE_S)
        with self.assertRaises(ServiceUnavailable):
            self.take(new)

    def test_trusts_of_others_are_left_alone(self) -> None:
        """With another mark, of another user, in another project: whosesoever they are."""
        mine = self.cloud.state.trusts.get(self.lose())
        assert mine is not None
        others = {
            self.cloud.give(),
            self.cloud.give("bob", expires_at=mine.expires_at),
            self.cloud.give(expires_at=mine.expires_at, project_id="alpha"),
        }
        self.swept(DUE_S)
        self.assertEqual(self.cloud.trusts, others)

    def test_trust_that_appears_late(self) -> None:
        """It is looked for once more, when no call can be on its way any longer."""
        where, method, path = CALLS["create_trust"]
        late = {"where": where, "method": method, "path": path, "effect": Effect.LATE}
        self.cloud.faults.add(**late, delay_s=DUE_S + 60)
        self.ask_in_vain()
        self.swept(DUE_S)
        (row,) = self.rows.rows.values()
        self.assertEqual((row.doomed, row.due_at), (True, timestamp(NOW + SURE_S)))
        self.assertEqual(self.cloud.trusts, set())
        self.clock.advance(60)
        self.assertEqual(len(self.cloud.trusts), 1)
        self.swept(SURE_S - DUE_S - 60)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_trust_that_was_never_made(self) -> None:
        """Forgotten after the second look."""
        self.cloud.fail("create_trust", Fault.TIMEOUT)
        self.ask_in_vain()
        self.cloud.calls.clear()
        self.swept(DUE_S)
        self.swept(SURE_S - DUE_S)
        self.assertEqual((self.rows.rows, self.cloud.calls), ({}, {"given_trusts": 2}))

    def test_cloud_that_does_not_answer(self) -> None:
        """Tried again, more and more seldom, and told."""
        self.lose()
        for wait_s in (60.0, 120.0, 240.0):
            self.cloud.fail("given_trusts", Fault.UNREACHABLE)
            self.swept(DUE_S if wait_s == LOOK_S else wait_s / 2)
            (row,) = self.rows.rows.values()
            self.assertEqual(row.due_at, timestamp(self.clock.seconds() + wait_s))
        self.assertEqual(row.tries, 3)
        self.assertIn("identity: GET http://cloud.memory/identity/v3/OS-TRUST/trusts", row.trouble)
        self.assertIn("connection refused", row.trouble)
        self.assertEqual(self.figures(), (1, 0, 3))
        self.swept(240.0)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_trust_whose_giver_is_disabled(self) -> None:
        """The service refuses its token: it is kept in mind, for the user may come back."""
        self.lose()
        for _ in range(20):
            self.cloud.fail("delete_trust", Fault.FORBIDDEN)
            self.swept(6 * 3600.0)
        (row,) = self.rows.rows.values()
        self.assertEqual(row.due_at, timestamp(self.clock.seconds() + 6 * 3600.0))
        self.swept(6 * 3600.0)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_released_trust_goes_by_its_id(self) -> None:
        """No list is asked for."""
        trust, kept = self.cloud.give(), self.cloud.give()
        self.cloud.calls.clear()
        row = cluster(trust_id=trust, trustor_id=self.caller.user_id)
        loose = released(row, self.clock.seconds())
        assert loose is not None
        self.rows.add(loose)
        self.swept(LOOK_S)
        self.assertEqual((self.cloud.trusts, self.rows.rows), ({kept}, {}))
        self.assertEqual(self.cloud.calls, {"delete_trust": 1})

    def test_cluster_without_a_trust_releases_none(self) -> None:
        """auth.mode none."""
        self.assertIsNone(released(cluster(), NOW))

    def test_only_the_daemon_that_works_looks_after_them(self) -> None:
        """By the lease."""
        trust = self.lose()
        store: Any = self.site.store
        for lease, left in ((Lost(), {trust}), (Alone(), set())):
            self.sweep = TrustSweep(store, self.cloud.client, self.clock, lease)
            self.swept(DUE_S)
            self.assertEqual(self.cloud.trusts, left)

    def test_database_that_is_away(self) -> None:
        """The next turn comes all the same."""
        self.lose()
        self.site.store.down = ServiceUnavailable("away")
        self.sweep.start()
        self.clock.advance(DUE_S)
        self.site.store.down = None
        self.clock.advance(LOOK_S)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))
