"""The instance hours of a cluster, from its first machine to the total of its tenant."""

from __future__ import annotations

import re
from typing import Any

from tests.system.test_health import HealthTestCase

HOUR = 3600.0


class UsageTests(HealthTestCase):
    def usage(self) -> Any:
        return self.shown()["usage"]

    def hours(self) -> float:
        """The hours of the only flavor, an exact minute after the last change."""
        self.svcd.advance(60.0)
        [flavor] = self.usage()["flavors"]
        return float(flavor["instance_hours"])

    def passed(self) -> float:
        """Machines by the growth of the hours in an hour."""
        before = self.hours()
        self.svcd.advance(HOUR - 60.0)
        return round(self.hours() - before, 3)

    def total_s(self) -> float:
        """The tenant's seconds in the metrics."""
        self.svcd.advance(10.0)
        text = self.svcd.call("GET", "/metrics").body.decode()
        [found] = re.findall(r'^svcd_instance_seconds_total{tenant="demo"} (\S+)$', text, re.M)
        return float(found)

    def test_a_life(self) -> None:
        """Built, scaled, with a lost machine, repaired, shrunk, deleted."""
        self.assertEqual(self.usage()["flavors"][0]["machines"], 3)
        self.assertEqual(self.passed(), 3.0)
        path = f"/clusters/{self.cluster_id}"
        self.api.put(path, {"resize_node_groups": [{"name": "worker", "count": 4}]})
        self.api.until_status(self.cluster_id, "Active")
        self.assertEqual(self.passed(), 5.0)
        self.take("mine-worker-003")
        self.svcd.advance(600.0)  # a health check notices it
        self.assertEqual(self.usage()["flavors"][0]["machines"], 4)
        self.assertEqual(self.passed(), 4.0)
        self.api.put(path, {})
        self.api.until_status(self.cluster_id, "Active")
        self.assertEqual(self.passed(), 5.0)
        self.svcd.restart()
        self.assertEqual(self.passed(), 5.0)
        self.api.put(path, {"resize_node_groups": [{"name": "worker", "count": 1}]})
        self.api.until_status(self.cluster_id, "Active")
        self.assertEqual(self.passed(), 2.0)
        hours, total_s = self.hours(), self.total_s()
        self.assertTrue(0.0 <= total_s / HOUR - hours < 0.05, (total_s, hours))
        self.api.delete(path)
        self.svcd.advance(600.0)
        self.api.get(path, 404)
        last = self.total_s()
        self.assertTrue(total_s < last < total_s + 600.0, (total_s, last))
        self.svcd.advance(HOUR)
        self.assertEqual(self.total_s(), last)

    def test_only_the_answer_to_get_by_v1_1_has_it(self) -> None:
        """It is the same for a minute, and needs no machine."""
        self.svcd.advance(60.0 - self.svcd.clock.seconds() % 60.0)
        one = self.usage()
        self.svcd.advance(59.0)
        self.assertEqual(self.usage(), one)
        self.svcd.advance(1.0)
        self.assertNotEqual(self.usage(), one)
        path = f"/clusters/{self.cluster_id}"
        changed = self.api.put(path, {"resize_node_groups": [{"name": "worker", "count": 3}]})
        [listed] = self.api.get("/clusters")["clusters"]
        old = self.svcd.call("GET", f"/v1.0/{self.svcd.tenant}{path}").json
        for cluster in (changed["cluster"], listed, old["cluster"]):
            self.assertNotIn("usage", cluster)
        made = self.api.new_cluster("second")
        self.assertEqual(self.api.cluster(made)["usage"]["flavors"], [])
