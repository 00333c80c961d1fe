"""kill -9 of the daemon while it works on a real OpenStack: the small form of `make kills`.

One kill in each of three phases; see tests/kills for many at random moments. Needed: see
openstack_case. A minute on two cores.
"""

from __future__ import annotations

import random
from pathlib import Path

from twisted.internet.defer import Deferred

from svcd.runtime.tasks import sleep
from tests.kills.lives import Lives
from tests.kills.real import RealCloud
from tests.kills.service import Service
from tests.kills.things import check_said
from tests.support.openstack_case import OpenStackCase, instances
from tests.support.processes import reactor, until

_SEEN_S = 120.0


class Once(random.Random):
    """No kill is followed by another one."""

    def random(self) -> float:
        return 0.999


class KillTests(OpenStackCase):
    """One service and one cluster."""

    timeout = 600

    async def test_a_cluster_outlives_its_daemon(self) -> None:
        """Killed with servers in BUILD, after an answered resize, and amid the delete."""
        service = Service(Path(self.mktemp()), RealCloud(), Once(0))
        self.addCleanup(lambda: Deferred.fromCoroutine(service.end()))
        await service.begin()
        user = Lives(service, "killed", random.Random(0))
        await user.register("fake")
        body = user.body(user.new_name(), 1, anti_affinity=["datanode"])
        made = await service.tenant.done("POST", "/clusters", body)
        cluster_id = str(made["cluster"]["id"])

        async def building() -> bool:
            shown = instances(await service.tenant.cluster(cluster_id))
            return all(i.get("server_id") for i in shown)  # no answer is lost: that takes a minute

        await until(building, "servers that were asked for", _SEEN_S)
        await service.killed(0.0)
        await user.active(cluster_id, {"master": 1, "worker": 1})
        await service.tenant.scale(cluster_id, 2)
        await service.killed(0.0)
        await user.active(cluster_id, {"master": 1, "worker": 2})
        await service.tenant.done("DELETE", f"/clusters/{cluster_id}")
        await sleep(reactor, 1.0)
        await service.killed(0.0)
        await service.tenant.until_gone(cluster_id, _SEEN_S)
        await service.check_cluster(cluster_id)
        self.assertEqual(await service.check(), set())
        self.assertEqual(service.kills, 3)
        check_said(service.daemon.said)
