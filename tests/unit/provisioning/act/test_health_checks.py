"""Which clusters are looked at and when, on a virtual clock."""

from __future__ import annotations

import random
from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import evolve
from twisted.logger import LogEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, ClusterStatus
from svcd.model.ids import ClusterId
from svcd.ports.cloud import Access
from svcd.ports.faults import Fault
from svcd.provisioning.act.health_checks import AT_ONCE, HealthChecks
from svcd.provisioning.decide import lifecycle
from svcd.runtime.fencing import LeaseLost
from svcd.runtime.tasks import sleep
from tests.unit.provisioning.support import NOW, Site, cluster, group, instance, run

T = TypeVar("T")


class _Lease:
    """Implements ports.Lease. held: set by the test."""

    held = True

    async def drive(self, work: Coroutine[Any, Any, T]) -> T:
        if not self.held:
            work.close()
            raise LeaseLost
        return await work


def named(number: int) -> Cluster:
    """Active, with one server that is gone."""
    worker = instance(1, server_id=f"s{number}", status="ACTIVE", step=lifecycle.STARTED)
    return evolve(
        cluster(group(instances=[worker])),
        id=ClusterId(f"c{number}"),
        name=f"demo{number}",
        status=ClusterStatus.ACTIVE,
        settled_generation=1,
    )


class _Hanging:
    """Implements ports.Cloud, and its session: the list of servers hangs but for cluster c24."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def session(self, access: Access) -> Any:
        self._session = self._site.cloud.client.session(access)
        return self

    async def servers(self, cluster_id: ClusterId, prefix: str) -> Any:
        if cluster_id != "c24":
            await sleep(self._site.clock, 100)
        return await self._session.servers(cluster_id, prefix)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)


class LooksTests(SynchronousTestCase):
    def begin(self, count: int, **settings: Any) -> None:
        self.site = site = Site(**settings)
        for number in range(count):
            row = named(number)
            site.store.clusters.rows[row.id] = row
        self.lease = _Lease()
        self.checks = HealthChecks(
            site.ports(), site.clock, site.settings, random.Random(1), self.lease
        )
        self.checks.start()
        self.addCleanup(lambda: run(self.checks.stop()))

    def told(self) -> list[str]:
        """Ids of the clusters that say what was found."""
        rows = self.site.store.clusters.rows.values()
        return sorted(r.id for r in rows if r.explained())

    def lists(self) -> int:
        return self.site.cloud.calls["servers"]

    def test_the_first_looks_are_spread(self) -> None:
        """One hundred clusters soon after the start, because rows may be old; not all at once."""
        self.begin(100)
        counts = []
        for _ in range(6):
            before = len(self.told())
            self.site.advance(10)
            counts.append(len(self.told()) - before)
        self.assertLess(max(counts), 50)
        self.assertEqual(len(self.told()), 100, counts)
        self.assertEqual(self.checks.unwell(), 100)

    def test_nothing_is_looked_at_without_the_lease(self) -> None:
        """What was remembered is forgotten when it is lost."""
        self.begin(4)
        self.lease.held = False
        self.checks.wake(ClusterId("c0"))
        self.site.advance(320)
        self.assertEqual(self.told(), [])
        self.lease.held = True
        self.site.advance(320)
        self.assertEqual((len(self.told()), self.checks.unwell()), (4, 4))
        self.checks.forget()
        self.assertEqual(self.checks.unwell(), 0)

    def test_few_looks_are_under_way_at_once(self) -> None:
        """Also when all are due."""
        self.begin(60, health_poll_s=5.0)
        self.site.cloud.slow(1.0)
        most = 0
        for _ in range(80):
            began = self.lists()
            self.site.advance(0.5)
            most = max(most, self.lists() - began)
        self.assertGreater(most, 1)
        self.assertLessEqual(most, AT_ONCE)

    def test_a_silent_cloud_is_told_once_and_left_alone(self) -> None:
        """One line, not one a cluster; no more requests than usual; afterwards all are checked."""
        said: list[str] = []

        def observe(event: LogEvent) -> None:
            if "Active clusters" in str(event.get("log_format")):
                said.append(str(event["log_format"]))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.begin(50)
        self.site.cloud.fail("servers", Fault.UNREACHABLE, times=10**6)
        self.site.advance(1200)
        self.assertEqual(said, ["The health of Active clusters cannot be checked now: {why}"])
        self.assertEqual(self.told(), [])
        self.assertLessEqual(self.lists(), 200)
        self.site.cloud.faults.clear()
        self.site.advance(400)
        self.assertEqual(said[1], "The cloud shows the servers of Active clusters again")
        self.assertEqual(len(self.told()), 50)

    def test_one_that_the_cloud_does_not_show_does_not_hold_the_others(self) -> None:
        """Its project is out of order, say."""
        self.begin(6)
        self.site.cloud.faults.add(where="compute", path=r"/servers/detail.*demo3-", status=500)
        self.site.advance(700)
        self.assertEqual(self.told(), ["c0", "c1", "c2", "c4", "c5"])

    def test_checks_that_hang_delay_no_other(self) -> None:
        """Each cluster has a check of its own; a turn waits for none of them."""
        self.begin(25)
        self.checks._ports = evolve(self.site.ports(), cloud=_Hanging(self.site))
        self.site.advance(40)
        self.assertEqual(self.told(), ["c24"])

    def test_a_cloud_that_refuses_svcd_itself_says_nothing_of_clusters(self) -> None:
        """Without a trust the credentials are svcd's own."""
        self.begin(1)
        self.site.cloud.faults.add(where="compute", status=401)
        self.site.cloud.faults.add(where="identity", status=401)
        self.site.advance(700)
        self.assertEqual(self.told(), [])

    def test_asked_for_a_look_comes_soon_and_not_often(self) -> None:
        """As jobs that wait in vain ask, each of them."""
        self.begin(1, health_poll_s=3000.0)
        self.site.advance(1)
        self.checks.wake(ClusterId("c0"))
        self.site.advance(1)
        self.assertEqual((self.told(), self.lists()), (["c0"], 1))
        for _ in range(25):
            self.checks.wake(ClusterId("c0"))
            self.site.advance(1)
        self.assertEqual(self.lists(), 1)
        self.site.advance(20)
        self.assertEqual(self.lists(), 2)

    def test_one_that_is_being_worked_on_is_left_alone(self) -> None:
        """Neither asked about nor written."""
        self.begin(1)
        row = lifecycle.delete(named(0), False, NOW)
        self.site.store.clusters.rows[row.id] = row
        self.checks.wake(row.id)
        self.site.advance(700)
        self.assertEqual((self.lists(), self.told()), (0, []))

    def test_a_row_that_has_changed_meanwhile_is_not_written(self) -> None:
        """The next look sees it as it is then."""
        self.begin(1)
        changed = [lambda row: evolve(row, description="new")]
        self.site.store.clusters.conflict_next = list(changed)
        self.site.advance(310)
        self.assertEqual(self.told(), [])
        self.assertEqual(self.site.store.clusters.events[ClusterId("c0")], [])
        self.site.advance(310)
        self.assertEqual(self.told(), ["c0"])

    def test_a_distribution_that_is_gone_is_told(self) -> None:
        """Nobody knows then what to ask its daemons; the servers are looked at."""
        self.begin(1)
        rows = self.site.store.clusters.rows
        rows[ClusterId("c0")] = evolve(rows[ClusterId("c0")], plugin_name="other")
        self.site.advance(400)
        text = rows[ClusterId("c0")].explained()
        self.assertIn("SERVER_VANISHED: ", text)
        self.assertIn("PLUGIN_GONE: ", text)

    def test_very_many_lost_servers_are_not_all_asked_for_at_once(self) -> None:
        """Each look asks for some; those that are found gone are asked for again."""
        self.begin(1)
        workers = [
            instance(n, server_id=f"s{n}", status="ACTIVE", step=lifecycle.STARTED)
            for n in range(1, 101)
        ]
        row = evolve(named(0), node_groups=(group(instances=workers),))
        self.site.store.clusters.rows[row.id] = row
        self.site.advance(310)
        self.assertLessEqual(self.site.cloud.calls["server"], 20 * self.lists())
        self.site.advance(400)
        found = self.site.store.clusters.rows[row.id]
        self.assertEqual({i.status for i in found.instances()}, {"DELETED"})
        self.assertIn("; and 40 more", found.explained())
        self.site.advance(1000)
        self.assertEqual(self.site.store.clusters.rows[row.id], found)
