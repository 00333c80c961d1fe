"""Trusts of requests that end well, badly, or not at all; and the sweep that gives them back."""

from __future__ import annotations

from collections.abc import Coroutine
from itertools import count
from typing import Any, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import ServiceUnavailable
from svcd.model import ownership_tags
from svcd.model.cloud import Caller
from svcd.model.ids import ClusterId, TenantId, timestamp
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust, LooseTrust
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.provisioning.act.trusts import DUE_S, LOOK_S, SURE_S, Trusts, TrustSweep, released
from tests.unit.provisioning.support import NOW, TENANT, Site, cluster, run

T = TypeVar("T")

CALLER = Caller(tenant_id=TENANT, user_id="u1", token=Secret("tok"))
CLUSTER = ClusterId("c1")


class Few:
    """ports.Leases of these keys."""

    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def holds(self, key: str) -> bool:
        return key in self._keys

    async def drive(self, key: str, work: Coroutine[Any, Any, T]) -> T:
        return await work


class TrustTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.site = Site()
        self.cloud, self.clock = self.site.cloud, self.site.clock
        self.rows = self.site.store.loose_trusts
        numbers = count(1)
        store: Any = self.site.store
        cloud: Any = self.cloud
        self.trusts = Trusts(store, cloud, self.clock, lambda: f"id{next(numbers)}")
        self.sweep = TrustSweep(store, cloud, self.clock)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.sweep.stop()))

    def ask(self) -> Any:
        return run(self.trusts.ask(CALLER, CLUSTER))

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
        self.assertRaises(CloudError, self.ask)
        self.assertEqual(
            list(self.rows.rows.values()),
            [
                LooseTrust(
                    id="id1",
                    cluster_id=CLUSTER,
                    tenant_id=TENANT,
                    trustor_id="u1",
                    expires_at=ownership_tags.trust_end("id1"),
                    asked_at=timestamp(NOW),
                    due_at=timestamp(NOW + DUE_S),
                )
            ],
        )

    def test_note_goes_with_the_write_of_the_row(self) -> None:
        """Taken in its transaction."""
        new = self.ask()
        self.assertEqual((new.id, new.trustor_id), ("trust-1", "u1"))
        self.assertEqual(list(self.rows.rows), ["id1"])
        self.take(new)
        self.assertEqual(self.rows.rows, {})

    def test_refused_trust_leaves_no_note(self) -> None:
        """Nothing was made: there is nothing to look for."""
        for kind in (Fault.FORBIDDEN, Fault.UNREACHABLE, Fault.BUSY):
            self.cloud.fail("create_trust", kind)
            self.assertRaises(CloudError, self.ask)
            self.assertEqual(self.rows.rows, {})

    def test_unanswered_trust_stays_noted(self) -> None:
        """It may have been made."""
        for number, kind in enumerate((Fault.TIMEOUT, Fault.SERVER_ERROR), 1):
            self.cloud.fail("create_trust", kind)
            self.assertRaises(CloudError, self.ask)
            self.assertEqual(len(self.rows.rows), number)

    def test_without_tokens_nothing_is_noted(self) -> None:
        """auth.mode none."""
        self.assertIsNone(run(self.trusts.ask(evolve(CALLER, token=None), CLUSTER)))
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
        run(self.trusts.give_back(new))
        self.assertEqual((self.cloud.trusts, list(self.rows.rows)), ({"trust-1"}, ["id1"]))
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
    def lose(self) -> None:
        """A request that died between the trust and its row."""
        self.ask()
        self.assertEqual(self.cloud.trusts, {"trust-1"})

    def test_trust_of_a_dead_request_is_given_back(self) -> None:
        """Not before it must be dead."""
        self.lose()
        self.swept(DUE_S - 1)
        self.assertEqual((self.cloud.trusts, self.figures()), ({"trust-1"}, (0, 0, 0)))
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
        self.lose()
        mine = self.cloud.given["trust-1"]
        for id_, change in (
            ("other-mark", {"expires_at": ownership_tags.trust_end("other")}),
            ("other-user", {"trustor_id": "u2"}),
            ("other-project", {"tenant_id": TenantId("t2")}),
        ):
            self.cloud.given[id_] = evolve(mine, id=id_, **change)
            self.cloud.trusts.add(id_)
        self.swept(DUE_S)
        self.assertEqual(self.cloud.trusts, {"other-mark", "other-user", "other-project"})

    def test_trust_that_appears_late(self) -> None:
        """It is looked for once more, when no call can be on its way any longer."""
        self.cloud.fail("create_trust", Fault.TIMEOUT)
        self.assertRaises(CloudError, self.ask)
        self.swept(DUE_S)
        (row,) = self.rows.rows.values()
        self.assertEqual((row.doomed, row.due_at), (True, timestamp(NOW + SURE_S)))
        self.cloud.given["late"] = GivenTrust(
            id="late", tenant_id=TENANT, trustor_id="u1", expires_at=ownership_tags.trust_end("id1")
        )
        self.cloud.trusts.add("late")
        self.swept(SURE_S - DUE_S)
        self.assertEqual((self.cloud.trusts, self.rows.rows), (set(), {}))

    def test_trust_that_was_never_made(self) -> None:
        """Forgotten after the second look."""
        self.cloud.fail("create_trust", Fault.TIMEOUT)
        self.assertRaises(CloudError, self.ask)
        self.swept(DUE_S)
        self.swept(SURE_S - DUE_S)
        self.assertEqual((self.rows.rows, self.cloud.calls["given_trusts"]), ({}, 2))

    def test_cloud_that_does_not_answer(self) -> None:
        """Tried again, more and more seldom, and told."""
        self.lose()
        for wait_s in (60.0, 120.0, 240.0):
            self.cloud.fail("given_trusts", Fault.UNREACHABLE)
            self.swept(DUE_S if wait_s == LOOK_S else wait_s / 2)
            (row,) = self.rows.rows.values()
            self.assertEqual(row.due_at, timestamp(self.clock.seconds() + wait_s))
        self.assertEqual((row.tries, row.trouble), (3, "cloud: out of order"))
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
        row = cluster(trust_id="t", trustor_id="u1")
        loose = released(row, self.clock.seconds())
        assert loose is not None
        self.cloud.trusts |= {"t", "kept"}
        self.rows.add(loose)
        self.swept(LOOK_S)
        self.assertEqual((self.cloud.trusts, self.rows.rows), ({"kept"}, {}))
        self.assertEqual(self.cloud.calls, {"delete_trust": 1})

    def test_cluster_without_a_trust_releases_none(self) -> None:
        """auth.mode none."""
        self.assertIsNone(released(cluster(), NOW))

    def test_each_daemon_looks_after_its_own_clusters(self) -> None:
        """By the leases."""
        self.lose()
        store: Any = self.site.store
        cloud: Any = self.cloud
        for leases, left in ((Few(), {"trust-1"}), (Few(CLUSTER), set())):
            self.sweep = TrustSweep(store, cloud, self.clock, leases)
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
