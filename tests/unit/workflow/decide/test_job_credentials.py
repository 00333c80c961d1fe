"""Which application credentials a job needs, and how long svcd tries to delete them."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.ids import timestamp
from svcd.model.job import Credentials
from svcd.model.job_credential import ApplicationCredential, JobCredential
from svcd.model.secret import Secret
from svcd.workflow.decide.job_credentials import (
    Login,
    Refused,
    accounts_of,
    after_deletion,
    after_fault,
    is_due,
    is_usable,
    keys_of,
    wanted,
)
from tests.unit.workflow.decide.rows import execution, source

ANN = Credentials(user="ann", password="a")
BOB = Credentials(user="bob", password="b")
MADE = ApplicationCredential(id="ac", secret=Secret("s"))
ROW = execution()


def noted(now: float = 1000.0, life_s: float = 7200.0) -> JobCredential:
    (made,) = wanted(ROW, [source("objstore://in/a", ANN)], "here", now, life_s)
    return made


class WantedTests(SynchronousTestCase):
    def test_each_account_of_the_object_store_has_one(self) -> None:
        """In the order of the data sources; two of one account share one."""
        sources = [source("objstore://in/a", ANN), source("objstore://out/b", BOB)]
        self.assertEqual(accounts_of(sources), [ANN, BOB])
        self.assertEqual(accounts_of([sources[0], sources[0], None]), [ANN])
        self.assertEqual(accounts_of([source("/a", ANN), source("objstore://in/a", None)]), [])

    def test_the_name_says_whose_it_is(self) -> None:
        """Cluster, installation, execution, and the number of the account."""
        sources = [source("objstore://in/a", ANN), source("objstore://out/b", BOB)]
        found = wanted(ROW, sources, "here", 1000.0, 60.0)
        self.assertEqual([f.name for f in found], ["svcd:c1:here:e:1", "svcd:c1:here:e:2"])
        self.assertEqual([f.account for f in found], [ANN, BOB])
        self.assertEqual({f.expires_at for f in found}, {timestamp(1060.0)})

    def test_one_with_half_of_its_life_is_used_again(self) -> None:
        """Not one that was never confirmed, nor one of another account."""
        made = evolve(noted(), made=MADE)
        self.assertEqual(is_usable(made, noted(4599.0)), True)
        self.assertEqual(is_usable(made, noted(4600.0)), False)
        self.assertEqual(is_usable(noted(), noted()), False)
        self.assertEqual(is_usable(made, evolve(noted(), account=BOB)), False)


class KeyTests(SynchronousTestCase):
    def test_keys_of_a_login(self) -> None:
        """The application credential; a reason; or the account itself."""
        login = Login(credential=MADE, expires="2026-01-01T00:00:00Z")
        self.assertEqual(
            keys_of(ANN, {ANN: login}),
            {
                "credential.expires": "2026-01-01T00:00:00Z",
                "credential.id": "ac",
                "credential.secret": "s",
            },
        )
        self.assertEqual(keys_of(ANN, {ANN: Refused(text="no")}), {"refused": "no"})
        self.assertEqual(keys_of(ANN, {BOB: login}), {"password": "a", "username": "ann"})


class DeletionTests(SynchronousTestCase):
    def test_one_that_was_found_is_done(self) -> None:
        """Nothing is left to do."""
        self.assertEqual(after_deletion(noted(), True, 1000.0), None)

    def test_one_that_was_not_found_is_searched_once_more(self) -> None:
        """A call without an answer may take effect within an hour."""
        later = after_deletion(noted(), False, 1100.0)
        self.assertEqual(later, evolve(noted(), due_at=timestamp(4600.0)))
        self.assertEqual(after_deletion(noted(), False, 4600.0), None)

    def test_one_that_was_requested_again_is_searched_once_more(self) -> None:
        """By its name: the first request may take effect after the deletion of the second's."""
        row = evolve(noted(), made=MADE, again=True)
        later = after_deletion(row, True, 1100.0)
        self.assertEqual(later, evolve(row, made=None, due_at=timestamp(4600.0)))
        self.assertEqual(after_deletion(row, True, 4600.0), None)

    def test_a_clock_that_was_set_back_delays_the_search_by_an_hour_at_most(self) -> None:
        later = after_deletion(noted(100_000.0), False, 1000.0)
        self.assertEqual(later and later.due_at, timestamp(4600.0))

    def test_the_pauses_between_tries_grow(self) -> None:
        """To six hours, and never beyond the end."""
        week = noted(0.0, 604_800.0)
        waits = []
        for tries in (0, 1, 5, 9, 20):
            later = after_fault(evolve(week, tries=tries), "away", 0.0)
            assert later is not None
            self.assertEqual((later.tries, later.trouble), (tries + 1, "away"))
            waits.append(later.due_at)
        self.assertEqual(waits, [timestamp(s) for s in (60.0, 120.0, 1920.0, 21600.0, 21600.0)])
        refused = after_fault(week, "wrong password", 0.0, True)
        self.assertEqual(refused and refused.due_at, timestamp(21_600.0))
        last = after_fault(evolve(noted(), tries=20), "away", 8000.0)
        self.assertEqual(last and last.due_at, timestamp(8200.0))

    def test_one_that_has_ended_is_done(self) -> None:
        """It is no login any more."""
        self.assertEqual(after_fault(noted(), "away", 8200.0), None)

    def test_what_is_due(self) -> None:
        """Also a time so far away that a wrong clock wrote it."""
        row = evolve(noted(), due_at=timestamp(1000.0))
        self.assertEqual([is_due(row, now) for now in (999.0, 1000.0)], [False, True])
        self.assertEqual(is_due(evolve(row, due_at=timestamp(90_000.0)), 1000.0), True)
