"""Which Active clusters are checked and when, in a whole service on the virtual clock.

The findings themselves are in tests/system/test_health.py, and by literals in decide/test_health.
"""

from __future__ import annotations

from typing import Any

from twisted.logger import LogEvent, globalLogPublisher

from tests.support.cloud_watch import WatchedCloudTestCase


class ChecksTests(WatchedCloudTestCase):
    def clusters(self, count: int) -> None:
        """Active clusters c-0, c-1, … of one machine, all of whose servers are gone."""
        group = {"name": "master", "count": 1, "node_processes": ["namenode"]}
        groups = [{**group, "flavor_id": self.svcd.flavor_id}]
        for number in range(count):
            self.create(name=f"c-{number}", node_groups=groups, cluster_configs={})
        self.until(lambda: {c["status"] for c in self.shown()} == {"Active"}, by=5.0)
        for server in self.servers():
            self.ask_cloud("DELETE", f"/compute/v2.1/servers/{server.id}")

    def shown(self) -> Any:
        return self.api.get("/clusters")["clusters"]

    def told(self) -> list[str]:
        """The names of the clusters that tell what was found."""
        return sorted(c["name"] for c in self.shown() if c["status_description"])

    def test_cloud_that_is_away_is_logged_once_and_left_alone(self) -> None:
        """One line, not one a cluster; no more requests than usual; afterwards all are checked."""
        said: list[str] = []

        def observe(event: LogEvent) -> None:
            if "Active clusters" in str(event.get("log_format")):
                said.append(str(event["log_format"]))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.clusters(4)
        away = self.fault("compute", effect="refused")
        self.svcd.advance(1200)
        self.assertEqual(said, ["The health of Active clusters cannot be checked now: {why}"])
        self.assertEqual(self.told(), [])
        self.assertLessEqual(away.hits(), 20)
        away.remove()
        self.svcd.advance(400)
        self.assertEqual(said[1:], ["The cloud shows the servers of Active clusters again"])
        self.assertEqual(len(self.told()), 4)

    def test_check_that_fails_or_hangs_holds_no_other(self) -> None:
        """The project of one cluster is out of order, and the servers of another come late."""
        self.clusters(5)
        self.fault("compute", path="/servers/detail.*c-1-", status=500)
        self.fault("compute", path="/servers/detail.*c-2-", effect="delay", delay_s=5000.0)
        self.svcd.advance(700)
        self.assertEqual(self.told(), ["c-0", "c-3", "c-4"])

    def test_cloud_that_refuses_svcd_itself_says_nothing_of_clusters(self) -> None:
        """Without a trust the credentials are svcd's own."""
        self.clusters(1)
        self.fault("compute", status=401)
        self.fault("identity", status=401)
        self.svcd.advance(700)
        self.assertEqual(self.told(), [])

    def test_distribution_that_is_gone_is_told_beside_the_servers(self) -> None:
        """Nobody knows then what to ask the daemons."""
        self.clusters(1)
        self.svcd.restart({"plugins.enabled": "vanilla"})
        self.svcd.advance(400)
        text = self.shown()[0]["status_description"]
        self.assertIn("SERVER_VANISHED: ", text)
        self.assertIn("PLUGIN_GONE: ", text)
