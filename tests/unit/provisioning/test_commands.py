"""Requests on clusters that lose a race or meet a fault: nothing is stored or made in vain.

The answers to good requests are in tests/conformance, the rules in decide/test_rules.
"""

from __future__ import annotations

from typing import Any

from svcd.embedded.cloud.core import PRIVATE_NETWORK_ID
from tests.support.cloud_watch import WatchedCloudTestCase


class CreateTests(WatchedCloudTestCase):
    settings = {"auth.mode": "keystone"}

    def refused(self, status: int, **more: Any) -> str:
        """The message of a refusal that leaves nothing behind: no row, no server, no trust."""
        answer = self.api.post("/clusters", self.body(**more), status)
        self.assertEqual(self.api.get("/clusters")["clusters"], [])
        self.check()
        return str(answer["error_message"])

    def test_refusals_leave_nothing_behind(self) -> None:
        """A trust that cannot be given, a cloud that cannot be read, a quota that is too small."""
        fault = self.fault("identity", method="POST", path="/OS-TRUST/trusts$", status=403)
        self.refused(403)
        fault.remove()
        fault = self.fault("compute", path="/flavors/detail", status=503)
        self.refused(502)
        self.begin(embedded__quota_instances="2")
        self.assertIn("instances: needed 3, left 2", self.refused(400))

    def test_network_is_found_when_nothing_else_needs_networks(self) -> None:
        """For a cluster or a template of clusters that has no floating IPs."""
        body = self.body(neutron_management_network=PRIVATE_NETWORK_ID)
        cluster_id = self.api.post("/clusters", body)["cluster"]["id"]
        self.active(cluster_id)
        template = {name: value for name, value in body.items() if name != "user_keypair_id"}
        self.api.post("/cluster-templates", template)

    def test_refusal_names_what_may_be_chosen(self) -> None:
        """The registered images, and the key pairs of the user."""
        told = self.refused(400, default_image_id="gone", user_keypair_id="gone")
        self.assertEqual(
            told.split("\n"),
            [
                "$.default_image_id: image 'gone' not found;"
                f" registered images: {self.svcd.image_id} (plain)",
                "$.user_keypair_id: key pair 'gone' not found; available: demo",
            ],
        )

    def test_choices_that_cannot_be_read_are_not_told(self) -> None:
        """The refusal is the same."""
        self.fault("image", path=r"/images(\?|$)", status=403)
        self.fault("compute", path="/os-keypairs$", effect="refused")
        told = self.refused(400, default_image_id="gone", user_keypair_id="gone")
        self.assertEqual(
            told.split("\n"),
            [
                "$.default_image_id: image 'gone' not found; registered images: none",
                "$.user_keypair_id: key pair 'gone' not found; available: none",
            ],
        )

    def test_name_that_is_taken_meanwhile_gives_the_trust_back(self) -> None:
        """The insert decides about the name, after the trust was made."""
        cluster_id = self.create()
        self.active(cluster_id)
        told = self.api.post("/clusters", self.body(), 400)
        self.assertEqual(told["error_name"], "CLUSTER_NAME_ALREADY_EXISTS")
        self.check(cluster_id)


class LimitTests(WatchedCloudTestCase):
    def test_sizes_that_others_save_meanwhile_count(self) -> None:
        """The other cluster grows while the cloud is asked about the first one."""
        self.begin(limits__instances="7")
        ids = [self.create(name=name) for name in ("one", "two")]
        for cluster_id in ids:
            self.api.until_status(cluster_id, "Active")
        self.fault("compute", path="/flavors/detail", times=1, effect="delay", delay_s=5.0)
        url = f"{self.svcd.url}/v1.1/{self.svcd.tenant}/clusters/{ids[0]}"
        change = {"resize_node_groups": [{"name": "worker", "count": 3}]}
        first = self.svcd.treq.put(url, json=change)
        self.scale(ids[1], 3)
        told = self.svcd.result_of(self.svcd.result_of(first).json())
        self.assertIn("other clusters have 4; all together may have 7", told["error_message"])
        counts = [self.api.cluster(c)["node_groups"][1]["count"] for c in ids]
        self.assertEqual(counts, [2, 3])


class DeleteTests(WatchedCloudTestCase):
    def test_second_delete_changes_nothing(self) -> None:
        """Deleting twice is one deletion."""
        cluster_id = self.create()
        self.active(cluster_id)
        for _ in range(2):
            self.api.delete(f"/clusters/{cluster_id}")
        events = self.api.get(f"/clusters/{cluster_id}/events")["events"]
        self.assertEqual([e["text"] for e in events if e["step"] == "request"][1:], ["delete"])
        self.gone(cluster_id)
