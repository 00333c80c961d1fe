"""Tokens and trusts of a real cloud: they end, are revoked, refused, and asked for sparingly.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from typing import Any

from svcd.embedded.faults import Effect
from svcd.testing import CLOUD_URL
from tests.support.cloud_watch import WatchedCloudTestCase

KEYSTONE = {"auth.mode": "keystone"}
KEYSTONE_AWAY = (
    '{"message": "The server is currently unavailable.", "code": "503 Service Unavailable", '
    '"title": "Service Unavailable"}'
)
GLANCE_401 = (
    "<html><head><title>401 Unauthorized</title></head><body><h1>401 Unauthorized</h1>This server "
    "could not verify that you are authorized to access the document you requested.</body></html>"
)
FORBIDDEN = (
    '{"error": {"code": 403, "message": "You are not authorized to perform the requested action: '
    'identity:create_trust.", "title": "Forbidden"}}'
)


class OwnTokenTests(WatchedCloudTestCase):
    """svcd's own tokens, with and without trusts."""

    settings = {"embedded.boot_s": "5", "embedded.volume_s": "3", "embedded.delete_s": "5"}

    def revoke(self) -> None:
        """All tokens end at once."""
        for token in list(self.state.tokens.values()):
            self.state.tokens.remove(token.id)

    def check_life(self) -> None:
        cluster_id = self.create(workers=2, volumes=1)
        self.stumble(20)
        self.active(cluster_id)
        self.scale(cluster_id, 3)
        self.stumble(20)
        self.active(cluster_id)
        self.api.delete(f"/clusters/{cluster_id}")
        self.stumble(20)
        self.gone(cluster_id)

    def stumble(self, times: int) -> None:
        for _ in range(times):
            self.revoke()
            self.svcd.advance(0.7)

    def test_tokens_that_are_revoked_or_live_shortly(self) -> None:
        """Again and again a fresh one is asked for, with and without a trust."""
        plain = self.settings
        for more in ({}, KEYSTONE):
            for life in ({}, {"embedded.token_ttl_s": "8"}):
                self.settings = {**plain, **more, **life}
                self.begin()
                self.check_life()


class TrustTests(WatchedCloudTestCase):
    """The cloud is used by a trust of the caller."""

    settings = {**KEYSTONE, "embedded.boot_s": "5", "embedded.delete_s": "3"}

    def lose_trusts(self) -> None:
        for trust in list(self.state.trusts.values()):
            self.state.trusts.remove(trust.id)

    def test_callers_token_ends_during_a_long_create(self) -> None:
        """The trust carries it to its end."""
        self.begin(embedded__token_ttl_s="200", embedded__boot_s="900")
        cluster_id = self.create(workers=2, volumes=1)
        self.svcd.advance(850)
        self.assertEqual(self.api.cluster(cluster_id)["status"], "Spawning")
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_identity_is_away_when_the_trust_is_used_first(self) -> None:
        """It goes on afterwards."""
        effects: tuple[dict[str, Any], ...] = (
            {"effect": Effect.REFUSED},
            {"effect": Effect.TIMEOUT_BEFORE},
            {"status": 503, "body": KEYSTONE_AWAY},
            {"effect": Effect.GARBAGE},
            {"effect": Effect.GARBAGE, "body": "{}"},
        )
        for effect in effects:
            self.begin()
            cluster_id = self.create()
            handle = self.fault("identity", **effect)
            self.svcd.advance(60)
            handle.remove()
            self.active(cluster_id)
            self.api.delete(f"/clusters/{cluster_id}")
            handle = self.fault("identity", **effect)
            self.svcd.advance(60)
            handle.remove()
            self.gone(cluster_id)

    def test_trust_lost_before_or_during_a_deletion(self) -> None:
        """The first deletion ends in Error within a minute, the second one succeeds."""
        for after_s in (-1.0, 1.0):
            self.begin()
            cluster_id = self.create(workers=2, volumes=1)
            self.active(cluster_id)
            if after_s < 0:
                self.lose_trusts()
            self.api.delete(f"/clusters/{cluster_id}")
            self.svcd.advance(abs(after_s))
            self.lose_trusts()
            self.svcd.advance(60)
            shown = self.api.cluster(cluster_id)
            self.assertEqual(shown["status"], "Error")
            self.assertIn("CREDENTIALS_EXPIRED", shown["status_description"])
            self.delete(cluster_id)

    def test_trust_lost_and_force(self) -> None:
        """The row goes; what is left is not hidden."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.lose_trusts()
        self.api.delete(f"/clusters/{cluster_id}?force=true")
        self.svcd.advance(60)
        self.api.get(f"/clusters/{cluster_id}", 404)
        self.assertEqual(len(self.servers()), 2)

    def test_trust_lost_before_a_scale(self) -> None:
        """It fails with the reason; a retry with a fresh token goes on."""
        cluster_id = self.create(workers=1)
        self.active(cluster_id)
        self.lose_trusts()
        self.scale(cluster_id, 2)
        self.svcd.advance(300)
        shown = self.api.cluster(cluster_id)
        self.assertEqual(shown["status"], "Error")
        self.assertIn("CREDENTIALS_EXPIRED", shown["status_description"])
        self.api.put(f"/clusters/{cluster_id}", {})
        self.active(cluster_id)
        self.scale(cluster_id, 2)
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_fresh_trust_that_was_not_written_is_given_back(self) -> None:
        """The deletion was refused; one whose commit was done and not answered is accepted."""
        cluster_id = self.create(workers=1)
        self.svcd.advance(2)
        self.lose_trusts()
        self.api.until_status(cluster_id, "Error", 120)
        self.fault("store", method="tx", effect="refused", times=1, after=1)
        self.api.delete(f"/clusters/{cluster_id}", 503)
        self.assertEqual(list(self.state.trusts.values()), [])
        self.fault("store", method="tx", effect="timeout_after", times=1, after=1)
        self.delete(cluster_id)
        self.check()

    def test_refused_trust(self) -> None:
        """A user who may not give one learns so at once, and nothing begins."""
        self.fault("identity", method="POST", path="/OS-TRUST/trusts$", status=403, body=FORBIDDEN)
        told = self.api.post("/clusters", self.body(), 403)
        self.assertEqual(told["error_name"], "FORBIDDEN")
        self.assertIn("identity:create_trust", told["error_message"])
        self.assertEqual(self.api.get("/clusters"), {"clusters": []})
        self.check()

    def test_token_of_a_trust(self) -> None:
        """It cannot give another one: 403 with advice."""
        bob = self.svcd.cloud.core.users_by_name["bob"].id
        alice = self.svcd.cloud.core.users_by_name["alice"].id
        trust = {
            "trustor_user_id": alice,
            "trustee_user_id": bob,
            "project_id": "alpha",
            "impersonation": True,
            "roles": [{"name": "member"}],
        }
        headers = {"X-Auth-Token": self.svcd.token("alice", project="alpha")}
        url = f"{CLOUD_URL}/identity/v3"
        made = self.svcd.call(
            "POST", f"{url}/OS-TRUST/trusts", json={"trust": trust}, headers=headers
        )
        trust_id = made.json["trust"]["id"]
        user = {"name": "bob", "password": "bob", "domain": {"id": "default"}}
        identity = {"methods": ["password"], "password": {"user": user}}
        auth = {"identity": identity, "scope": {"OS-TRUST:trust": {"id": trust_id}}}
        token = self.svcd.call("POST", f"{url}/auth/tokens", json={"auth": auth})
        told = self.api.ask(
            "POST",
            "/clusters",
            403,
            json=self.body(),
            headers={"X-Auth-Token": token.headers["X-Subject-Token"]},
        )
        self.assertEqual(told["error_name"], "FORBIDDEN")
        self.assertIn("log in with a password", told["error_message"])
        self.state.trusts.remove(trust_id)
        self.check()

    def test_unanswered_trust_is_adopted_if_it_was_made(self) -> None:
        """The request succeeds all the same, with one trust; else it fails, and leaves nothing."""
        made = (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER, Effect.GARBAGE)
        for effect in (*made, Effect.TIMEOUT_BEFORE, Effect.RESET_BEFORE, Effect.REFUSED):
            self.begin()
            rule = {"method": "POST", "path": "/OS-TRUST/trusts$", "effect": effect}
            handle = self.fault("identity", **rule, **({"times": 1} if effect in made else {}))
            if effect not in made:
                token = self.svcd.token("alice", project="alpha")
                answer = self.svcd.call(
                    "POST",
                    "/v1.1/alpha/clusters",
                    json=self.body(),
                    headers={"X-Auth-Token": token},
                )
                self.assertIn(answer.status, (502, 503, 504), answer.body)
                self.check()
                handle.remove()
            cluster_id = self.create(workers=1)
            self.active(cluster_id)
            self.delete(cluster_id)


class ValidationTests(WatchedCloudTestCase):
    """Callers' tokens: Keystone is asked once in a while."""

    settings = KEYSTONE

    def ask(self, token: str, path: str = "/clusters") -> Any:
        headers = {"X-Auth-Token": token}
        return self.svcd.call("GET", f"/v1.1/alpha{path}", headers=headers)

    def test_token_that_ends_while_it_is_remembered(self) -> None:
        """401 from its last second on."""
        self.begin(embedded__token_ttl_s="100")
        token = self.svcd.token("alice", project="alpha")
        self.assertEqual(self.ask(token).status, 200)
        self.svcd.advance(99)
        self.assertEqual(self.ask(token).status, 200)
        self.svcd.advance(2)
        answer = self.ask(token)
        self.assertEqual(answer.status, 401)
        self.assertIn("Keystone uri=", answer.headers["WWW-Authenticate"])

    def test_unauthorized_image_service(self) -> None:
        """Glance says 401 when Keystone is away: the caller's token is not to blame."""
        token = self.svcd.token("alice", project="alpha")
        self.assertEqual(self.ask(token, "/images").status, 200)
        glance = self.fault("image", status=401, body=GLANCE_401)
        self.assertEqual(self.ask(token, "/images").status, 502)
        keystone = self.fault("identity", status=503, body=KEYSTONE_AWAY)
        answer = self.ask(token, "/images")
        self.assertEqual(answer.status, 502)
        self.assertIn("identity", answer.json["error_message"])
        keystone.remove()
        glance.remove()
        self.assertEqual(self.ask(token, "/images").status, 200)

    def test_unauthorized_object_store(self) -> None:
        """The same of Swift, once: the second try succeeds."""
        swift = f"{CLOUD_URL}/object-store/v1/AUTH_alpha/jobs"
        headers = {"X-Auth-Token": self.svcd.token("alice", project="alpha")}
        self.svcd.call("PUT", swift, headers=headers)
        self.svcd.call("PUT", f"{swift}/a.pig", data=b"-- nothing", headers=headers)
        body = {
            "name": "a.pig",
            "url": "objstore-internal://jobs/a.pig",
            "extra": {"user": "alice", "password": "alice"},
        }
        made = self.api.post("/job-binaries", body)["job_binary"]
        path = f"/job-binaries/{made['id']}/data"
        token = headers["X-Auth-Token"]
        self.assertEqual(self.ask(token, path).body, b"-- nothing")
        self.fault("object-store", times=1, status=401, body=GLANCE_401)
        self.assertEqual(self.ask(token, path).body, b"-- nothing")
        self.fault("object-store", status=401, body=GLANCE_401)
        self.fault("identity", method="POST", status=503, body=KEYSTONE_AWAY)
        answer = self.ask(token, path)
        self.assertEqual(answer.status, 502)
        self.assertIn("identity", answer.json["error_message"])
