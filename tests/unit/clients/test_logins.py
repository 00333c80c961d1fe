"""Logins with a password at the embedded Keystone: what is counted, and what a refusal says."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.clients.logins import Tries
from svcd.embedded.faults import FaultRule
from svcd.errors import (
    Forbidden,
    PlatformTimeout,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
)
from svcd.model.cloud import LoggedIn
from svcd.model.requests import PasswordLogin
from svcd.runtime.clock import VirtualClock
from tests.unit.embedded.cloud.rig import Rig

ADDRESS = "192.0.2.7"


class LoginTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.rig = Rig()
        self.identity = self.rig.identity(self.rig.client("svcd", "svcd", "service"))

    def log_in(self, address: str = ADDRESS, **given: Any) -> LoggedIn:
        """alice of Default, unless `given` says something else."""
        known = {"user": "alice", "domain": "Default", "password": "alice", **given}
        return self.rig.run(self.identity.log_in(PasswordLogin(**known), address))

    def refused(self, error: type[Exception], **given: Any) -> str:
        return str(self.assertRaises(error, self.log_in, **given))

    def living(self) -> list[str | None]:
        """The projects of alice's valid tokens."""
        core = self.rig.cloud.core
        alice = core.users_by_name["alice"].id
        return [each.project_id for each in core.state.tokens.values() if each.user_id == alice]

    def test_one_token_of_a_login_stays(self) -> None:
        """Not the first one, which is for no project; nor one of a refused login."""
        self.log_in(project="alpha")
        self.refused(Forbidden, project="beta")
        self.assertEqual(self.living(), ["alpha"])
        self.log_in()
        self.assertEqual(self.living(), ["alpha", None])

    def test_a_token_that_cannot_be_revoked_does_not_stop_a_login(self) -> None:
        """It ends by itself; the login waits for five seconds at most."""
        for effect in ("refused", "timeout_before"):
            self.rig.faults.add(FaultRule(where="identity", method="DELETE", effect=effect))
            before = self.rig.clock.seconds()
            self.assertEqual(self.log_in(project="alpha").user_name, "alice")
            self.assertLess(self.rig.clock.seconds() - before, 6.0)

    def test_a_wrong_password_user_or_domain(self) -> None:
        """Keystone does not say which of them, on purpose."""
        for given in ({"password": "x"}, {"user": "nobody"}, {"domain": "elsewhere"}):
            text = self.refused(Unauthorized, **given)
            self.assertIn("the password is wrong, or there is no such user or domain", text)
            self.assertNotIn("alice:", text)

    def test_a_project_without_a_role(self) -> None:
        """The refusal names those with one; the password was right, so it is no wrong try."""
        for _ in range(10):
            self.assertEqual(
                self.refused(Forbidden, project="beta"),
                "you have no role in project 'beta'; you have one in alpha",
            )

    def test_a_user_without_any_project(self) -> None:
        """Nothing could be shown."""
        self.rig.cloud.core.users_by_name["alice"].roles.clear()
        self.assertIn("has a role in no project", self.refused(Forbidden))

    def test_an_outage_of_the_identity_service_is_no_wrong_password(self) -> None:
        """503, and 504 when it is silent, as often as it takes."""
        for effect, error in (
            ("reset_before", ServiceUnavailable),
            ("timeout_before", PlatformTimeout),
        ):
            handle = self.rig.faults.add(FaultRule(where="identity", effect=effect))
            for _ in range(6):
                self.assertIn("cannot log anybody in now", self.refused(error))
            handle.remove()
        self.assertEqual(self.log_in().user_name, "alice")

    def test_five_wrong_passwords_in_a_minute(self) -> None:
        """Then the right one waits too; other users and other addresses do not."""
        for _ in range(5):
            self.refused(Unauthorized, password="x")
            self.rig.clock.advance(2.0)
        error = self.assertRaises(TooManyRequests, self.log_in)
        wait_s = int(error.headers["Retry-After"])
        self.assertTrue(45 <= wait_s <= 50, wait_s)
        self.assertEqual(self.log_in(user="bob", password="bob").user_name, "bob")
        self.assertEqual(self.log_in(address="192.0.2.8").user_name, "alice")
        self.refused(TooManyRequests, user="ALICE ")
        self.rig.clock.advance(wait_s)
        self.assertEqual(self.log_in().user_name, "alice")

    def test_logins_side_by_side_are_no_way_around_the_limit(self) -> None:
        """Keystone hears of five."""
        wrong = PasswordLogin(user="alice", domain="Default", password="x")
        all_ = [Deferred.fromCoroutine(self.identity.log_in(wrong, ADDRESS)) for _ in range(20)]
        self.rig.clock.advance(60.0)
        kinds = [self.failureResultOf(each).type for each in all_]
        self.assertEqual(kinds, [Unauthorized] * 5 + [TooManyRequests] * 15)

    def test_logins_that_are_being_checked_are_no_wrong_passwords(self) -> None:
        """Their refusal says so; when the identity service answers again the user is let in."""
        handle = self.rig.faults.add(FaultRule(where="identity", effect="timeout_before"))
        right = PasswordLogin(user="alice", domain="Default", password="alice")
        all_ = [Deferred.fromCoroutine(self.identity.log_in(right, ADDRESS)) for _ in range(7)]
        self.rig.clock.run_due()
        for each in all_[5:]:
            error = self.failureResultOf(each, TooManyRequests).value
            self.assertEqual(
                (str(error), error.headers["Retry-After"]),
                (
                    "5 logins of user 'alice' from 192.0.2.7 are still being checked: try again in"
                    " 5 s",
                    "5",
                ),
            )
        self.rig.clock.advance(600.0)
        for each in all_[:5]:
            self.failureResultOf(each, PlatformTimeout)
        handle.remove()
        self.assertEqual(self.log_in().user_name, "alice")


class TriesTests(SynchronousTestCase):
    def test_the_spelling_of_a_name_is_no_way_around_the_limit(self) -> None:
        """Case, accents, width, invisible signs and spaces: databases take these as equal."""
        tries = Tries(VirtualClock())
        spellings = ("Zo\u00eb", "ZOE\u0308", "zoe ", "\uff5aoe", "z\u200boe\u200b")
        for user in spellings:
            with self.assertRaises(Unauthorized), tries.one(ADDRESS, "d", user):
                raise Unauthorized("no")
        for user in (*spellings, "zoe", " \u00adzo\u00e9"):
            with self.assertRaises(TooManyRequests), tries.one(ADDRESS, "d\u200b", user):
                pass
        with tries.one(ADDRESS, "d", "zo"):
            pass

    def test_good_logins_leave_nothing(self) -> None:
        """Nor do those that could not be checked."""
        tries = Tries(VirtualClock())
        with tries.one(ADDRESS, "d", "u"):
            pass
        with self.assertRaises(ServiceUnavailable), tries.one(ADDRESS, "d", "u"):
            raise ServiceUnavailable("away")
        self.assertEqual((len(tries._wrong), len(tries._under_way)), (0, 0))
