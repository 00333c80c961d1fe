"""Two controllers on one database: at each moment one drives, and hands over to the other."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import ClusterStatus
from svcd.model.ids import ClusterId
from svcd.provisioning.act.controller import Controller
from svcd.provisioning.decide import lifecycle
from svcd.store.lease.holding import Holding
from tests.unit.provisioning.cloud import POOL
from tests.unit.provisioning.support import Site, cluster, group, run

ID = ClusterId("c1")


class _Two(Site):
    """Both on one clock, one cloud and the same rows. The first one holds the lease."""

    def __init__(self) -> None:
        self.held: list[Holding] = []
        super().__init__()
        self.cloud.slow(0.05)
        self.remote.latency_s = 0.1
        self.cloud.set(boot_s=0.5)
        self.first = self.controller
        self.second = self.new_controller()
        for each in (self.first, self.second):
            run(each.start())
        self.give(0)

    def new_controller(self) -> Controller:
        holding = Holding(self.clock, self.clock.seconds, f"d{len(self.held)}", 1e9, 0.0)
        self.lease = holding
        made = super().new_controller()
        holding.watch(made.gained, made.forget)
        self.held.append(holding)
        return made

    def give(self, to: int, epoch: int = 1) -> None:
        """The lease to one of them, the other loses it."""
        self.held[1 - to].lose()
        self.held[to].renewed(self.held[to].now())
        self.held[to].took(epoch, 1.0)


class _Told:
    """A transaction that only remembers what was told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def notify(self, text: str) -> None:
        self.texts.append(text)


class HandoverTests(SynchronousTestCase):
    def rich(self) -> Any:
        return cluster(evolve(group(count=2), volumes_per_node=2, floating_ip_pool=POOL))

    def test_at_any_moment_of_a_create(self) -> None:
        """And back again: nothing is made twice or lost, and both remember nothing at the end."""
        for tenths in range(23):
            site = _Two()
            site.add(self.rich())
            site.advance(tenths / 10)
            before = site.row.status
            site.give(1, 2)
            site.advance(1.0)
            site.give(0, 3)
            site.advance(120)
            row = site.row
            self.assertEqual((row.status, len(site.cloud.made)), (ClusterStatus.ACTIVE, 2), tenths)
            self.assertEqual((len(site.cloud.disks), len(site.cloud.addresses)), (4, 2), tenths)
            self.assertEqual((site.first.active(), site.second.active()), (0, 0))
        self.assertEqual(before, ClusterStatus.ACTIVE)

    def test_who_lost_the_lease_stops_at_once(self) -> None:
        """In the middle of a command on a machine."""
        site = _Two()
        site.add(self.rich())
        while not site.commands():
            site.advance(0.05)
        site.held[0].lose()
        calls, commands = len(site.cloud.made), len(site.commands())
        self.assertEqual(site.first.active(), 0)
        site.advance(60)
        self.assertEqual((len(site.cloud.made), len(site.commands())), (calls, commands))
        self.assertNotEqual(site.row.status, ClusterStatus.ACTIVE)

    def test_wake_of_one_that_does_not_drive(self) -> None:
        """Is told to the other one, in the transaction of the request."""
        site, told = _Two(), _Told()
        tx: Any = told
        run(site.second.notify(tx, ID))
        site.second.wake(ID)
        self.assertEqual((told.texts, site.second.active()), ([f"cluster {ID}"], 0))
        run(site.first.notify(tx, ID))
        self.assertEqual(told.texts, [f"cluster {ID}"])

    def test_request_of_which_no_news_came(self) -> None:
        """A rescan finds that something newer is wanted, and interrupts what is waited for."""
        site = _Two()
        site.add(self.rich())
        site.advance(1.0)
        row = site.row
        now = site.clock.seconds()
        wanted = evolve(lifecycle.delete(row, False, now), version=row.version + 1)
        site.store.clusters.rows[ID] = wanted
        site.first.gained()
        site.advance(30)
        self.assertTrue(site.gone)
        self.assertEqual(site.leftovers(), [])
