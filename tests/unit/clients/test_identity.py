"""Tokens: renewal, what a 401 means, and the memory of callers' tokens."""

from __future__ import annotations

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import FaultRule
from svcd.errors import PlatformTimeout, ServiceUnavailable, Unauthorized
from svcd.model.ids import TenantId
from svcd.model.secret import Secret
from svcd.ports.cloud import Access, CloudError
from svcd.ports.faults import Fault
from svcd.settings import Embedded
from tests.unit.embedded.cloud.rig import Rig

_ISSUE = "identity POST /v3/auth/tokens"
_VALIDATE = "identity GET /v3/auth/tokens"


class OwnTokenTests(SynchronousTestCase):
    """Tokens of svcd's own user."""

    def setUp(self) -> None:
        self.rig = Rig(Embedded(token_ttl_s=600.0))
        self.cloud = self.rig.client("demo", "demo", "demo")
        self.session = self.cloud.session(Access(tenant_id=TenantId("t")))

    def flavors(self) -> int:
        return len(self.rig.run(self.session.flavors()))

    def fault(self) -> CloudError:
        return self.assertRaises(CloudError, self.rig.run, self.session.flavors())

    def test_a_token_is_renewed_before_its_end(self) -> None:
        """Two minutes before."""
        self.flavors()
        self.rig.clock.advance(479.0)
        self.flavors()
        self.assertEqual(self.rig.cloud.calls[_ISSUE], 1)
        self.rig.clock.advance(2.0)
        self.flavors()
        self.assertEqual(self.rig.cloud.calls[_ISSUE], 2)

    def test_a_token_with_a_short_life_is_used_for_half_of_it(self) -> None:
        """Not a new one for each call."""
        self.rig = Rig(Embedded(token_ttl_s=40.0))
        cloud = self.rig.client("demo", "demo", "demo")
        self.session = cloud.session(Access(tenant_id=TenantId("t")))
        for after, issued in ((0.0, 1), (19.0, 1), (2.0, 2), (19.0, 2)):
            self.rig.clock.advance(after)
            self.flavors()
            self.assertEqual(self.rig.cloud.calls[_ISSUE], issued)

    def test_a_revoked_token_is_renewed_at_the_first_401(self) -> None:
        """The caller sees nothing of it."""
        self.flavors()
        for token in list(self.rig.cloud.core.state.tokens.values()):
            self.rig.cloud.core.state.tokens.remove(token.id)
        self.assertEqual(self.flavors(), 4)
        self.assertEqual(self.rig.cloud.calls[_ISSUE], 2)

    def test_a_401_while_keystone_is_down_is_not_believed(self) -> None:
        """Glance and Swift answer so when they cannot check the token."""
        self.flavors()
        self.rig.faults.add(FaultRule(where="compute", status=401))
        self.rig.faults.add(FaultRule(where="identity", status=503))
        self.assertEqual(self.fault().kind, Fault.SERVER_ERROR)

    def test_a_wrong_password_of_an_account_is_not_tried_again_and_again(self) -> None:
        """Each refusal doubles the pause; other passwords, and the right one, do not wait."""
        keystone = self.cloud._keystone
        logins: list[int] = []

        def login(password: str) -> str:
            try:
                self.rig.run(keystone.of_user("alice", password, "alpha"))
            except CloudError as error:
                self.assertEqual(error.kind, Fault.UNAUTHORIZED)
                return error.text
            return ""

        doubled = (0.0, 299.0, 2.0, 599.0, 2.0, 1199.0, 2.0)
        for wait_s in (*doubled, 1e6, 1e6, 1e6, 1e6, 21_599.0, 2.0):
            self.rig.clock.advance(wait_s)
            text = login("old")
            logins.append(self.rig.cloud.calls[_ISSUE])
        self.assertEqual(logins, [1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 9])
        self.assertIn("does not try this password again before", text)
        self.assertEqual((login("alice"), login("other")[:5]), ("", "ident"))
        self.assertEqual(self.rig.cloud.calls[_ISSUE], 11)

    def test_the_right_password_ends_the_pause(self) -> None:
        """The user has set the old one again."""
        keystone = self.cloud._keystone
        users = self.rig.cloud.core.users_by_name
        before = users["alice"]
        users["alice"] = evolve(before, password="new")
        with self.assertRaises(CloudError):
            self.rig.run(keystone.of_user("alice", "alice", "alpha"))
        users["alice"] = before
        with self.assertRaises(CloudError):
            self.rig.run(keystone.of_user("alice", "alice", "alpha"))
        self.rig.clock.advance(301.0)
        self.rig.run(keystone.of_user("alice", "alice", "alpha"))
        self.assertEqual(dict(keystone._pauses), {})

    def test_many_askers_log_in_once(self) -> None:
        """They share the one that is under way."""
        self.rig.faults.add(FaultRule(where="identity", effect="delay", delay_s=1.0))
        for _ in range(5):
            Deferred.fromCoroutine(self.session.flavors())
        self.rig.clock.advance(10.0)
        self.assertEqual(self.rig.cloud.calls[_ISSUE], 1)


class CallerTests(SynchronousTestCase):
    """The validation of callers' tokens."""

    def setUp(self) -> None:
        self.rig = Rig(Embedded(token_ttl_s=600.0))
        self.cloud = self.rig.client("svcd", "svcd", "service")
        self.identity = self.rig.identity(self.cloud, cache_s=300.0, negative_cache_s=10.0)
        self.token = self.rig.token("alice", "alice", "alpha")

    def ask(self, token: Secret | None = None) -> str:
        return self.rig.run(self.identity.authenticate(token or self.token)).tenant_id

    def test_a_good_token_is_believed_for_a_while(self) -> None:
        """cache_s, and never beyond its own end."""
        self.assertEqual(self.ask(), "alpha")
        self.rig.clock.advance(299.0)
        self.ask()
        self.assertEqual(self.rig.cloud.calls[_VALIDATE], 1)
        self.rig.clock.advance(2.0)
        self.ask()
        self.assertEqual(self.rig.cloud.calls[_VALIDATE], 2)
        self.rig.clock.advance(299.5)
        self.assertRaises(Unauthorized, self.ask)

    def test_a_bad_token_is_remembered_for_a_moment(self) -> None:
        """negative_cache_s."""
        for _ in range(3):
            self.assertRaises(Unauthorized, self.ask, Secret("bad"))
        self.assertEqual(self.rig.cloud.calls[_VALIDATE], 1)
        self.rig.clock.advance(11.0)
        self.assertRaises(Unauthorized, self.ask, Secret("bad"))
        self.assertEqual(self.rig.cloud.calls[_VALIDATE], 2)

    def test_identity_down_is_no_refusal(self) -> None:
        """503, and 504 when it is silent; asked again the next time."""
        handle = self.rig.faults.add(FaultRule(where="identity", effect="reset_before"))
        self.assertRaises(ServiceUnavailable, self.ask)
        handle.remove()
        handle = self.rig.faults.add(FaultRule(where="identity", effect="timeout_before"))
        self.assertRaises(PlatformTimeout, self.ask)
        handle.remove()
        self.assertEqual(self.ask(), "alpha")

    def test_many_requests_with_one_token_ask_once(self) -> None:
        """They share the question."""
        self.rig.faults.add(FaultRule(where="identity", effect="delay", delay_s=1.0))
        for _ in range(5):
            Deferred.fromCoroutine(self.identity.authenticate(self.token))
        self.rig.clock.advance(5.0)
        self.assertEqual(self.rig.cloud.calls[_VALIDATE], 1)

    def test_the_services_own_token_is_renewed(self) -> None:
        """A 401 at validation is about us, not about the caller."""
        self.ask()
        for token in list(self.rig.cloud.core.state.tokens.values()):
            if token.id != self.token.reveal():
                self.rig.cloud.core.state.tokens.remove(token.id)
        self.rig.clock.advance(301.0)
        self.assertEqual(self.ask(), "alpha")
