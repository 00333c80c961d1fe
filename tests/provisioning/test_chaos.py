"""Whatever fails and whenever, a cluster comes to rest, and nothing is doubled or left behind.

Each seed is one story: faults of cloud and machines, lags, restarts, requests at odd moments.
"""

from __future__ import annotations

import os
import random

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule
from svcd.model.cluster import ClusterStatus
from svcd.ports import Fault
from svcd.provisioning import lifecycle
from tests.provisioning.support import Site, cluster, group
from tests.provisioning.test_controller import resize

S = ClusterStatus

METHODS = [
    "servers",
    "volumes",
    "floating_ips",
    "create_server",
    "create_volume",
    "create_floating_ip",
    "associate_floating_ip",
    "attach_volume",
    "delete_server",
    "delete_volume",
    "delete_floating_ip",
    "create_security_group",
    "find_security_groups",
    "delete_security_group",
    "create_server_group",
    "delete_server_group",
]
KINDS = [
    Fault.UNREACHABLE,
    Fault.TIMEOUT,
    Fault.SERVER_ERROR,
    Fault.BUSY,
    Fault.UNAUTHORIZED,
    Fault.NOT_FOUND,
    Fault.QUOTA,
    Fault.REFUSED,
]
SEEDS = range(int(os.environ.get("SVCD_CHAOS_SEEDS", "60")))


def story(seed: int) -> Site:
    """A cluster under trouble, left alone until it rests."""
    rng = random.Random(seed)
    site = Site()
    site.cloud.call_s = rng.choice([0.0, 0.02, 0.3])
    site.remote.latency_s = rng.choice([0.0, 0.1, 1.0])
    site.cloud.boot_s = rng.choice([0.0, 0.5, 8.0])
    site.cloud.lag_s = rng.choice([0.0, 0.0, 2.0, 20.0])
    site.cloud.delete_s = rng.choice([0.0, 0.5, 12.0])
    if rng.random() < 0.3:
        site.cloud.broken = {"demo-worker-001": rng.randint(1, 3)}
    for _ in range(rng.randint(0, 8)):
        kind = rng.choice(KINDS)
        unsure = kind in (Fault.TIMEOUT, Fault.SERVER_ERROR)  # only these may have been done
        site.cloud.fail(
            rng.choice(METHODS), kind, rng.randint(1, 4), after=unsure and rng.random() < 0.5
        )
    for _ in range(rng.randint(0, 3)):
        site.remote_faults.add(
            FaultRule(
                where="ssh",
                path=rng.choice(["svcd-facts", "as_root", "^configure", "^start", "^leave"]),
                times=rng.randint(1, 3),
                after=rng.randint(0, 2),
                effect=rng.choice([Effect.RESET_BEFORE, Effect.RESET_AFTER, Effect.ANSWER]),
                status=1,
            )
        )
    rich = rng.random() < 0.5
    site.add(
        cluster(
            group(
                volumes_per_node=rng.choice([1, 2]) if rich else 0,
                floating_ip_pool="public" if rich else None,
            ),
            anti_affinity=("datanode",) if rich else (),
        )
    )
    for _ in range(rng.randint(0, 6)):
        site.advance(rng.choice([0.0, 0.1, 1.0, 5.0, 30.0]))
        what = rng.random()
        if site.gone:
            break
        if what < 0.4:
            site.restart()
        elif what < 0.6 and site.row.status is S.ACTIVE:
            resize(site, worker=rng.choice([1, 2, 3, 4]))
        elif what < 0.75 and site.row.status is S.ERROR and lifecycle.is_settled(site.row):
            site.change(lambda r: lifecycle.retry(r, site.clock.seconds()))
        elif what < 0.85:
            site.change(lambda r: lifecycle.delete(r, False, site.clock.seconds()))
    site.advance(4000)
    return site


class ChaosTests(SynchronousTestCase):
    def test_every_story_ends(self) -> None:
        """Settled; Active means exactly the machines of the row; a clean Error or none, nothing."""
        for seed in SEEDS:
            site = story(seed)
            if site.gone:
                self.assertEqual(site.leftovers(), [], seed)
                continue
            row = site.row
            self.assertTrue(lifecycle.is_settled(row), seed)
            self.assertIn(row.status, (S.ACTIVE, S.ERROR), seed)
            if row.status is S.ACTIVE:
                self.assertEqual(
                    sorted(str(i.server_id) for i in row.instances()), sorted(site.cloud.made), seed
                )
                self.assertEqual(sum(g.count for g in row.node_groups), len(row.instances()), seed)
                wanted = sum(g.count * g.volumes_per_node for g in row.node_groups)
                self.assertEqual(len(site.cloud.disks), wanted, seed)
                addressed = sum(g.count for g in row.node_groups if g.floating_ip_pool)
                self.assertEqual(len(site.cloud.addresses), addressed, seed)

    def test_every_story_can_be_deleted(self) -> None:
        """Once the trouble is over."""
        for seed in SEEDS:
            site = story(seed)
            if site.gone:
                continue
            site.cloud.rules.clear()
            site.change(lambda r, s=site: lifecycle.delete(r, False, s.clock.seconds()))
            site.advance(300)
            self.assertTrue(site.gone, seed)
            self.assertEqual(site.leftovers(), [], seed)
