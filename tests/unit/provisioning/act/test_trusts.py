"""Trusts of clusters that go, of requests that die, and the sweep that deletes the latter.

Requests that fail are in tests/system/test_cloud_behaviour_tokens and _restarts.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve

from svcd.embedded.faults import Effect, FaultRule
from svcd.provisioning.act.trusts import DUE_S, SURE_S
from tests.support.cloud_watch import WatchedCloudTestCase

MAKE = {"method": "POST", "path": "/OS-TRUST/trusts$"}
LOOK_S = 61.0
"""At least one turn of the sweep."""


class DeletionTests(WatchedCloudTestCase):
    settings = {"auth.mode": "keystone"}

    def test_trust_that_is_called_missing_and_exists_is_deleted_before_the_cluster_goes(
        self,
    ) -> None:
        """A 404 alone does not prove that a trust is gone."""
        cluster_id = self.create()
        self.active(cluster_id)
        lies = self.fault("identity", method="DELETE", path="/OS-TRUST/trusts/", status=404)
        self.api.delete(f"/clusters/{cluster_id}")
        self.svcd.advance(120)
        self.assertGreater(lies.hits(), 1)
        self.assertEqual(self.api.cluster(cluster_id)["status"], "Deleting")
        lies.remove()
        self.gone(cluster_id)
        self.assertEqual(len(self.state.trusts.values()), 0)


class SweepTests(WatchedCloudTestCase):
    settings = {"auth.mode": "keystone"}

    def setUp(self) -> None:
        super().setUp()
        self.headers = {"X-Auth-Token": self.svcd.token("alice", project="alpha")}

    def ask(self) -> int:
        """The status of a request for a cluster."""
        path = "/v1.1/alpha/clusters"
        return self.svcd.call("POST", path, json=self.body(), headers=self.headers).status

    def lose(self) -> Any:
        """The trust of a request whose daemon died before it wrote the cluster."""
        died: list[str] = []

        def hear(where: str, method: str, path: str) -> FaultRule | None:
            if not died and where == "store" and method == "tx" and self.trusts():
                died.append(path)
                self.svcd.kill()
                return FaultRule(where="store", effect=Effect.REFUSED)
            return None

        self.svcd.faults.listen(hear)
        url = f"{self.svcd.url}/v1.1/alpha/clusters"
        asked = self.svcd.treq.post(url, json=self.body(), headers=self.headers)
        asked.addErrback(lambda _: None)
        self.until(lambda: died)
        self.svcd.restart()
        (trust,) = self.state.trusts.values()
        return trust

    def trusts(self) -> set[str]:
        return {trust.id for trust in self.state.trusts.values()}

    def figure(self, name: str) -> float:
        text = self.svcd.call("GET", "/metrics").body.decode()
        (line,) = (row for row in text.splitlines() if row.startswith(f"svcd_loose_trusts{name} "))
        return float(line.rpartition(" ")[2])

    def test_trust_of_a_dead_request_is_deleted(self) -> None:
        """Not before the request must be dead."""
        trust = self.lose()
        self.svcd.advance(DUE_S - 10)
        self.assertEqual(self.trusts(), {trust.id})
        self.svcd.advance(10 + LOOK_S)
        self.assertEqual(self.trusts(), set())
        self.assertEqual((self.figure(""), self.figure("_returned_total")), (0.0, 1.0))

    def test_trusts_of_others_are_left_alone(self) -> None:
        """With another mark, of another user, in another project: whosesoever they are."""
        trust = self.lose()
        for number, other in enumerate(
            ({"expires_at": trust.expires_at + 60}, {"trustor_id": "bob"}, {"project_id": "beta"})
        ):
            self.state.trusts.put(evolve(trust, id=f"other{number}", **other))
        self.svcd.advance(DUE_S + LOOK_S)
        self.assertEqual(self.trusts(), {"other0", "other1", "other2"})

    def test_trust_that_appears_late_is_found_by_a_second_search(self) -> None:
        """The identity service was stopped for a while, and went on with the call."""
        self.fault("identity", **MAKE, effect="late", delay_s=DUE_S + 120)
        self.assertIn(self.ask(), (502, 504))
        self.svcd.advance(DUE_S + LOOK_S)
        self.assertEqual(self.trusts(), set())
        self.svcd.advance(120)
        self.assertEqual(len(self.trusts()), 1)
        self.svcd.advance(SURE_S)
        self.assertEqual(self.trusts(), set())

    def test_deletion_that_fails_is_tried_again_more_and_more_seldom(self) -> None:
        """The user is disabled, say, and may come back."""
        trust = self.lose()
        refused = self.fault("identity", path="/OS-TRUST/trusts", status=403)
        self.svcd.advance(24 * 3600)
        self.assertEqual(self.trusts(), {trust.id})
        self.assertLess(refused.hits(), 40)
        self.assertGreater(self.figure("_failed_total"), 8)
        refused.remove()
        self.svcd.advance(7 * 3600)
        self.assertEqual(self.trusts(), set())

    def test_request_that_the_sweep_took_for_dead_writes_no_cluster(self) -> None:
        """No row ever names a trust that was deleted."""

        def hear(where: str, method: str, path: str) -> FaultRule | None:
            if where == "identity" and method == "POST" and path.endswith("/OS-TRUST/trusts"):
                self.svcd._database._connection.execute("update loose_trusts set doomed = true")
            return None

        self.svcd.faults.listen(hear)
        self.assertEqual(self.ask(), 503)
        self.assertEqual(self.api.get("/clusters")["clusters"], [])
        self.svcd.advance(DUE_S + LOOK_S)
        self.assertEqual(self.trusts(), set())
