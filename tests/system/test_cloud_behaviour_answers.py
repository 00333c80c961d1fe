"""Answers of a real cloud that make no sense, and compute services of several ages.

Each test ends by comparing what is in the cloud with what the API shows
(`tests.support.cloud_watch`).
"""

from __future__ import annotations

from typing import Any

from svcd.embedded.faults import Effect
from tests.support.cloud_watch import WatchedCloudTestCase

SHAPES = (
    "",  # bytes that are no text
    "{}",
    "[]",
    '{"server": null, "volume": 1, "floatingip": [], "server_group": "x", "limits": [], '
    '"servers": {}, "volumes": null, "floatingips": [7], "server_groups": 5, "flavors": [{}], '
    '"keypair": [], "networks": [[]], "security_groups": [{"id": {}, '
    '"security_group_rules": 5}], "security_group": {}, "quota": 7, "ports": [{"id": 1, '
    '"fixed_ips": [7]}], "volumeAttachment": {"device": []}, "version": {"version": 7}, '
    '"id": [], "token": {"user": 7}, "trust": [], "catalog": {"a": 1}}',
)
"""Each kind of nonsense once; tests.fuzz.test_answers has the others."""
CALLS = (
    ("compute", "GET", r"/v2.1/$"),
    ("compute", "GET", r"/flavors/detail"),
    ("compute", "GET", r"/os-keypairs/"),
    ("compute", "GET", r"/limits$"),
    ("compute", "GET", r"/servers/detail"),
    ("compute", "POST", r"/servers$"),
    ("compute", "DELETE", r"/servers/"),
    ("compute", "GET", r"/os-server-groups"),
    ("compute", "POST", r"/os-server-groups$"),
    ("compute", "DELETE", r"/os-server-groups/"),
    ("compute", "POST", r"/os-volume_attachments$"),
    ("image", "GET", r"/images/"),
    ("network", "GET", r"/networks"),
    ("network", "GET", r"/security-groups"),
    ("network", "POST", r"/security-groups$"),
    ("network", "POST", r"/security-group-rules$"),
    ("network", "DELETE", r"/security-groups/"),
    ("network", "GET", r"/floatingips"),
    ("network", "POST", r"/floatingips$"),
    ("network", "PUT", r"/floatingips/"),
    ("network", "DELETE", r"/floatingips/"),
    ("network", "GET", r"/ports"),
    ("network", "GET", r"/quotas/"),
    ("volume", "GET", r"/volumes/detail"),
    ("volume", "GET", r"/limits$"),
    ("volume", "POST", r"/volumes$"),
    ("volume", "DELETE", r"/volumes/"),
    ("identity", "POST", r"/auth/tokens"),
)


class SenselessAnswerTests(WatchedCloudTestCase):
    """Every call that the daemon makes, answered by something else."""

    def persist(self, method: str, path: str, body: object = None) -> Any:
        """Ask until it is accepted; meanwhile the answers blame the cloud."""
        for _ in range(10):
            answer = self.svcd.call(method, f"/v1.1/{self.svcd.tenant}{path}", json=body)
            if answer.status in (202, 204):
                return answer.json
            self.assertIn(answer.status, (502, 503, 504), answer.body)
            self.svcd.advance(1)
        raise AssertionError(f"{method} {path} is never accepted: {answer.body!r}")

    def check_life(self, where: str, method: str, path: str, **fault: Any) -> None:
        self.begin()
        handle = self.fault(where, method=method, path=path, times=3, **fault)
        body = self.body(workers=1, volumes=1, pool="public", anti_affinity=["datanode"])
        cluster_id = self.persist("POST", "/clusters", body)["cluster"]["id"]
        self.active(cluster_id)
        more = {"resize_node_groups": [{"name": "worker", "count": 2}]}
        self.persist("PUT", f"/clusters/{cluster_id}", more)
        self.active(cluster_id)
        self.persist("DELETE", f"/clusters/{cluster_id}")
        self.gone(cluster_id)
        self.assertEqual(self.made("compute POST /v2.1/servers"), 3)
        if "auth" not in path:
            self.assertGreater(handle.hits(), 0, (where, method, path))

    def test_answers_of_another_shape(self) -> None:
        """It was done, but what came back is useless: the life of a cluster goes on."""
        for where, method, path in CALLS:
            for body in SHAPES:
                self.check_life(where, method, path, effect=Effect.GARBAGE, body=body)


class MicroversionTests(WatchedCloudTestCase):
    """Compute services of several ages speak with the same client."""

    def check_life(self, newest: tuple[int, int]) -> None:
        self.begin()
        self.svcd.cloud.core.newest_compute = newest
        cluster_id = self.create(workers=2, volumes=1, pool="public", anti_affinity=["datanode"])
        self.active(cluster_id)
        self.scale(cluster_id, 3)
        self.active(cluster_id)
        self.delete(cluster_id)

    def test_ages(self) -> None:
        """Each call works, whatever the newest version of the service is."""
        for newest in ((2, 1), (2, 38), (2, 60), (2, 63), (2, 64), (2, 79), (2, 93)):
            self.check_life(newest)
