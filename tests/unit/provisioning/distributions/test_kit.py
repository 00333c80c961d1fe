"""The kit, run on the distributions that come with svcd and on the example of the docs."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import Cluster, NodeGroup
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.kit import DistributionKit, group
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import HttpProbe, IDistribution, Machine, Plan
from svcd.provisioning.distributions.vanilla import Vanilla

PAGE = Path(__file__).parents[4] / "docs" / "distributions.md"


@functools.cache
def example() -> types.ModuleType:
    """The first Python block of the page as a module."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    module = types.ModuleType("pages_distribution")
    exec(compile(found[1], str(PAGE), "exec"), vars(module))
    return module


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


class TestExample(DistributionKit, SynchronousTestCase):
    """The worked example of docs/distributions.md."""

    def distribution(self) -> IDistribution:
        found: IDistribution = example().Pages()
        return found

    def groups(self, version: str) -> Sequence[NodeGroup]:
        return (group("head", 1, "index"), group("more", 2, "page"))

    def test_it_is_offered_beside_the_built_in_ones(self) -> None:
        """What the page says about `plugins.enabled`."""
        offered = Distributions(["vanilla", "pages"], found=[example().pages])
        self.assertEqual([d.name for d in offered.all()], ["vanilla", "pages"])


class Cheat(Vanilla):
    """A distribution whose daemons do not prove whose they are."""

    def __init__(self, change: Callable[[HttpProbe], HttpProbe]) -> None:
        self._change = change

    def check(self, cluster: Cluster, machines: Sequence[Machine]) -> Plan:
        """The health check with changed probes."""
        return tuple(
            evolve(
                stage,
                chains=tuple(
                    tuple(self._change(a) if isinstance(a, HttpProbe) else a for a in chain)
                    for chain in stage.chains
                ),
            )
            for stage in super().check(cluster, machines)
        )


class CheatTests(SynchronousTestCase):
    """The kit refuses distributions that cannot tell their daemons from those of others."""

    def refusal(self, change: Callable[[HttpProbe], HttpProbe]) -> str:
        class Case(TestVanilla):
            def distribution(self) -> IDistribution:
                return Cheat(change)

        case = Case("test_kit_daemons_prove_whose_they_are")
        error = self.assertRaises(AssertionError, case.test_kit_daemons_prove_whose_they_are)
        return str(error)

    def test_a_daemon_without_an_identity_is_refused(self) -> None:
        """Its host and port are named."""
        self.assertIn("203.0.113.2:11000", self.refusal(without("oozie")))


def without(what: str) -> Callable[[HttpProbe], HttpProbe]:
    return lambda probe: evolve(probe, identity="") if probe.what == what else probe
