"""Floods of wrong tokens: what they cost others, and what they are answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import SvcdError, Unauthorized
from svcd.model.ids import TenantId
from svcd.model.secret import Secret
from svcd.ports.cloud import Access, CloudError
from svcd.ports.faults import Fault
from tests.unit.embedded.cloud.rig import Rig


async def _fails_at_once(token: Secret) -> None:
    raise CloudError("identity", Fault.SERVER_ERROR, "no connection")


class FloodTests(SynchronousTestCase):
    """The identity service takes a second for each answer."""

    def setUp(self) -> None:
        self.rig = Rig()
        self.cloud = self.rig.client("svcd", "svcd", "service", calls_at_once=2)
        self.rig.run(self.cloud.ready())
        self.token = self.rig.token("alice", "alice", "alpha")
        self.count = 0

    def tearDown(self) -> None:
        self.rig.faults.clear()
        self.rig.clock.advance(600.0)  # no check outlives its test

    def begin(self, **settings: Any) -> None:
        """The identity port with these settings; alice's token is known."""
        self.identity = self.rig.identity(self.cloud, **settings)
        self.rig.run(self.identity.authenticate(self.token, lambda: "10.0.0.9"))
        self.rig.faults.add(where="identity", effect="delay", delay_s=1.0, times=100_000)

    def ask(self, token: Secret | None = None, address: str = "10.0.0.1") -> Deferred[Any]:
        """Authenticate `token`, by default one that has never been seen."""
        self.count += 1
        given = token or Secret(f"garbage-token-of-the-flood-{self.count}")
        return Deferred.fromCoroutine(self.identity.authenticate(given, lambda: address))

    def answers(self, asked: list[Deferred[Any]]) -> Counter[str]:
        """Names of the errors that have come at this moment; "waits" for the others."""
        found: Counter[str] = Counter()
        for each in asked:
            if not each.called:
                found["waits"] += 1
                each.addErrback(lambda _: None)
                continue
            error = self.failureResultOf(each, SvcdError).value
            assert isinstance(error, SvcdError)
            found[error.name] += 1
        return found

    def test_known_tokens_and_other_calls_do_not_wait(self) -> None:
        """While 400 wrong tokens come from four addresses."""
        self.begin()
        flood = [self.ask(address=f"10.0.0.{n % 4}") for n in range(400)]
        self.assertEqual(self.successResultOf(self.ask(self.token)).user_name, "alice")
        session = self.cloud.session(Access(tenant_id=TenantId("alpha"), token=self.token))
        self.rig.faults.clear()
        images = Deferred.fromCoroutine(session.images())
        self.rig.clock.advance(0.1)
        self.assertTrue(images.called)
        for each in [*flood, images]:
            each.addErrback(lambda _: None)

    def test_the_places_are_bounded(self) -> None:
        """Above that: 503 at once, and 429 for an address that has half of them."""
        self.begin(checks_at_once=2)
        self.assertEqual(
            self.answers([self.ask() for _ in range(400)]),
            {"waits": 10, "TOO_MANY_REQUESTS": 390},
        )
        self.assertEqual(
            self.answers([self.ask(address=f"10.1.0.{n}") for n in range(100)]),
            {"waits": 10, "SERVICE_UNAVAILABLE": 90},
        )
        self.rig.clock.advance(60.0)
        self.assertEqual(self.answers([self.ask()]), {"waits": 1})

    def test_an_address_with_many_wrong_tokens_has_to_wait(self) -> None:
        """Until the next minute, and without a call; its known tokens and others are served."""
        self.begin(refusals_per_minute=3)
        self.rig.faults.clear()
        self.rig.clock.advance(60.0 - self.rig.clock.seconds() % 60.0)
        for _ in range(3):
            self.failureResultOf(self.ask(), Unauthorized)
        calls = self.rig.cloud.calls.total()
        error = self.failureResultOf(self.ask(), SvcdError).value
        assert isinstance(error, SvcdError)
        self.assertEqual((error.status, error.headers["Retry-After"]), (429, "60"))
        self.assertIn("server.trusted_proxies", error.message)
        self.assertEqual(self.rig.cloud.calls.total(), calls)
        self.successResultOf(self.ask(self.token))
        self.failureResultOf(self.ask(address="10.0.0.2"), Unauthorized)
        self.rig.clock.advance(60.0)
        self.failureResultOf(self.ask(), Unauthorized)

    def test_callers_behind_an_unnamed_proxy_on_this_host_share_no_limit(self) -> None:
        """Wrong tokens of one shut out no other; the places of all together are bounded."""
        for address in ("127.0.0.1", "127.8.0.1", "::1", "unix"):
            self.begin(refusals_per_minute=1, checks_at_once=2)
            self.rig.faults.clear()
            for _ in range(5):
                self.failureResultOf(self.ask(address=address), Unauthorized)
            bob = self.rig.token("bob", "bob", "beta")
            self.assertEqual(self.successResultOf(self.ask(bob, address)).user_name, "bob")
            self.rig.faults.add(where="identity", effect="delay", delay_s=1.0, times=100)
            self.assertEqual(
                self.answers([self.ask(address=address) for _ in range(30)]),
                {"waits": 20, "SERVICE_UNAVAILABLE": 10},
            )
            self.rig.clock.advance(60.0)

    def test_an_ipv6_network_counts_as_one_address(self) -> None:
        """Its owner has all addresses of the /64."""
        self.begin(refusals_per_minute=1)
        self.rig.faults.clear()
        self.failureResultOf(self.ask(address="2001:db8::1"), Unauthorized)
        error = self.failureResultOf(self.ask(address="2001:db8::2"), SvcdError).value
        assert isinstance(error, SvcdError)
        self.assertEqual(error.status, 429)
        self.failureResultOf(self.ask(address="2001:db8:0:1::1"), Unauthorized)

    def test_wrong_tokens_evict_no_valid_one(self) -> None:
        """They are remembered apart, and as many as the setting says."""
        self.begin(cache_size=5, refusals_per_minute=0)
        self.rig.faults.clear()
        for _ in range(20):
            self.failureResultOf(self.ask(), Unauthorized)
        calls = self.rig.cloud.calls.total()
        self.successResultOf(self.ask(self.token))
        self.assertEqual(self.rig.cloud.calls.total(), calls)
        self.assertEqual((len(self.identity._known), len(self.identity._refused)), (1, 5))

    def test_checks_that_end_at_once_need_no_deep_stack(self) -> None:
        """When a slow check ends and all that waited fail before they send anything."""
        self.begin(checks_at_once=100, refusals_per_minute=0)
        asked = [self.ask(address=f"10.2.0.{n}") for n in range(900)]
        self.patch(self.identity._keystone, "validate", _fails_at_once)
        self.rig.clock.advance(60.0)
        found = self.answers(asked)
        self.assertEqual(found, {"UNAUTHORIZED": 100, "SERVICE_UNAVAILABLE": 800})
