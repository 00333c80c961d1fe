"""Services of a real cloud that are away, hang, or take a call without saying so.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

from svcd.embedded.faults import Effect
from tests.support.cloud_watch import WatchedCloudTestCase

SERVICES = ("identity", "compute", "image", "network", "volume")
COMPUTE_FAULT = (
    '{"computeFault": {"code": 500, "message": "Unexpected API Error. Please report this at '
    "http://bugs.launchpad.net/nova/ and attach the Nova API log if possible.\\n<class "
    "'keystoneauth1.exceptions.connection.ConnectFailure'>\"}}"
)
KEYSTONE_AWAY = (
    '{"message": "The server is currently unavailable. Please try again at a later time.<br /><br '
    '/>\\nThe Keystone service is temporarily unavailable.\\n\\n", "code": "503 Service '
    'Unavailable", "title": "Service Unavailable"}'
)
CREATES = (
    ("compute", r"/servers$"),
    ("compute", r"/os-server-groups$"),
    ("compute", r"/os-volume_attachments$"),
    ("volume", r"/volumes$"),
    ("network", r"/floatingips$"),
    ("network", r"/security-groups$"),
    ("network", r"/security-group-rules$"),
)


class OutageTests(WatchedCloudTestCase):
    """One service is away for a minute, in the middle of the work."""

    settings = {
        "embedded.boot_s": "3",
        "embedded.volume_s": "2",
        "embedded.delete_s": "3",
        "embedded.token_ttl_s": "130",  # own tokens are renewed after ten seconds
    }
    effects: tuple[dict[str, Any], ...] = (
        {"effect": Effect.REFUSED},
        {"effect": Effect.TIMEOUT_BEFORE},
        {"status": 503, "body": KEYSTONE_AWAY},
    )

    def outage(self, after_s: float, effect: dict[str, Any], *services: str) -> None:
        self.svcd.advance(after_s)
        handles = [self.fault(where, **effect) for where in services]
        self.svcd.advance(60)
        for handle in handles:
            handle.remove()

    def test_service_that_is_away_for_a_minute(self) -> None:
        """Each, or all as when the network is cut: early and late in the work, it goes on."""
        creating, deleting = cycle((0.0, 2.0, 6.0, 12.0)), cycle((0.0, 2.0, 4.0))
        for services in (*((where,) for where in SERVICES), SERVICES):
            for effect in self.effects:
                self.begin()
                cluster_id = self.create(2, 1, "public", anti_affinity=["datanode"])
                self.outage(next(creating), effect, *services)
                self.active(cluster_id)
                for workers, after_s in ((4, 0.0), (1, 0.0), (3, 5.0), (1, 2.0)):
                    self.scale(cluster_id, workers)
                    self.outage(after_s, effect, *services)
                    shown = self.active(cluster_id)
                    self.assertEqual(shown["status_description"], "")
                    self.assertEqual(len(self.names(cluster_id)), workers + 1)
                self.api.delete(f"/clusters/{cluster_id}")
                self.outage(next(deleting), effect, *services)
                self.gone(cluster_id)


class RequestTests(WatchedCloudTestCase):
    """Requests while a service is away."""

    def test_request_names_the_service(self) -> None:
        """Within half a minute, and nothing has begun; a deletion needs no cloud to be accepted."""
        self.begin(embedded__token_ttl_s="130", provisioning__health_poll_s="0")
        path = f"/v1.1/{self.svcd.tenant}/clusters"
        cluster_id = self.create(name="other")
        self.active(cluster_id)
        body = self.body(volumes=1, pool="public")
        for where in SERVICES:
            for effect in (Effect.REFUSED, Effect.TIMEOUT_BEFORE, Effect.GARBAGE):
                self.svcd.advance(150)  # our own token must be renewed
                handle = self.fault(where, effect=effect)
                before = self.svcd.clock.seconds()
                answer = self.svcd.call("POST", path, json=body)
                handle.remove()
                expected = {Effect.REFUSED: 503, Effect.TIMEOUT_BEFORE: 504, Effect.GARBAGE: 502}
                self.assertEqual(answer.status, expected[effect], answer.body)
                if effect is not Effect.TIMEOUT_BEFORE:
                    self.assertIn(f"{where}: ", answer.json["error_message"])
                self.assertLessEqual(self.svcd.clock.seconds() - before, 30)
        self.assertEqual(len(self.api.get("/clusters")["clusters"]), 1)
        handles = [self.fault(where, effect=Effect.REFUSED) for where in SERVICES]
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(30)
        for handle in handles:
            handle.remove()
        self.gone(cluster_id)


class TroubledComputeTests(WatchedCloudTestCase):
    """Nova's answers when the services behind it are away."""

    def test_reason_of_a_fault_is_shown(self) -> None:
        """While it is tried again, the story says why."""
        self.fault("compute", method="POST", path="/servers$", status=500, body=COMPUTE_FAULT)
        cluster_id = self.create(workers=1)
        self.svcd.advance(60)
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        told = [e["text"] for e in events if e["outcome"] == "retry"]
        self.assertIn("was answered 500: Unexpected API Error.", told[0])

    def test_deletes_that_fail(self) -> None:
        """Each kind of delete, repeated until it is done."""
        for where, path in (
            ("compute", "/servers/"),
            ("compute", "/os-server-groups/"),
            ("volume", "/volumes/"),
            ("network", "/floatingips/"),
            ("network", "/security-groups/"),
        ):
            effects: tuple[dict[str, Any], ...] = (
                {"status": 500, "body": COMPUTE_FAULT},
                {"effect": Effect.RESET_AFTER},
                {"status": 409, "body": '{"NeutronError": {"type": "SecurityGroupInUse"}}'},
            )
            for effect in effects:
                self.begin()
                cluster_id = self.create(volumes=1, pool="public", anti_affinity=["datanode"])
                self.active(cluster_id)
                handle = self.fault(where, method="DELETE", path=path, times=3, **effect)
                self.delete(cluster_id)
                self.assertGreater(handle.hits(), 0)


class UnansweredCreateTests(WatchedCloudTestCase):
    """A call took effect, and its answer never came."""

    def check_adopted(self, where: str, path: str, effect: Effect) -> None:
        self.begin()
        handle = self.fault(where, method="POST", path=path, times=2, effect=effect)
        cluster_id = self.create(workers=2, volumes=2, pool="public", anti_affinity=["datanode"])
        self.active(cluster_id)
        self.assertEqual(handle.hits(), 2 if "group" not in path or "rule" in path else 1)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 3)
        self.assertEqual(self.made("volume POST /v3/<project>/volumes"), 4)
        self.assertEqual(self.made("network POST /v2.0/floatingips"), 2)
        self.assertEqual(self.made("compute POST /v2.1/os-server-groups"), 1)
        self.assertEqual(self.made("network POST /v2.0/security-groups"), 1)
        self.delete(cluster_id)

    def test_creates_without_an_answer(self) -> None:
        """It never comes, breaks off or has no sense: what was made is used, and made once."""
        for where, path in CREATES:
            for effect in (Effect.TIMEOUT_AFTER, Effect.RESET_AFTER, Effect.GARBAGE):
                self.check_adopted(where, path, effect)

    def test_deleted_before_it_is_found(self) -> None:
        """A deletion finds what an unanswered call has made."""
        for where, path in CREATES:
            for after_s in (1.0, 35.0):
                self.begin()
                handle = self.fault(where, method="POST", path=path, effect="timeout_after")
                cluster_id = self.create(volumes=1, pool="public", anti_affinity=["datanode"])
                self.svcd.advance(after_s)
                handle.remove()
                self.delete(cluster_id)
