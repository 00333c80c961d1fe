"""The kit, run on the distributions that come with svcd."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import NodeGroup
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.kit import DistributionKit, group
from svcd.provisioning.distributions.spi import IDistribution
from svcd.provisioning.distributions.vanilla import Vanilla

MASTER = ("namenode", "resourcemanager", "historyserver", "oozie")


class TestVanilla(DistributionKit, SynchronousTestCase):
    def distribution(self) -> IDistribution:
        return Vanilla()

    def groups(self, version: str) -> Sequence[NodeGroup]:
        return (
            group("master", 1, *MASTER),
            group("second", 1, "secondarynamenode"),
            group("worker", 2, "datanode", "nodemanager"),
        )


class TestFake(DistributionKit, SynchronousTestCase):
    def distribution(self) -> IDistribution:
        return Fake("http://127.0.0.1:8387/engine")

    def groups(self, version: str) -> Sequence[NodeGroup]:
        return (group("master", 1, *MASTER), group("worker", 2, "datanode", "nodemanager"))
