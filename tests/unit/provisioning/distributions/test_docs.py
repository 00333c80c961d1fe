"""The worked example of docs/distributions.md, taken from the page and run through the kit."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Sequence
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import NodeGroup
from svcd.provisioning.distributions.kit import DistributionKit, group
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import IDistribution

PAGE = Path(__file__).parents[4] / "docs" / "distributions.md"


@functools.cache
def example() -> types.ModuleType:
    """The first Python block of the page as a module."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    module = types.ModuleType("pages_distribution")
    exec(compile(found[1], str(PAGE), "exec"), vars(module))
    return module


class TestExample(DistributionKit, SynchronousTestCase):
    def distribution(self) -> IDistribution:
        found: IDistribution = example().Pages()
        return found

    def groups(self, version: str) -> Sequence[NodeGroup]:
        return (group("head", 1, "index"), group("more", 2, "page"))

    def test_it_is_offered_beside_the_built_in_ones(self) -> None:
        """What the page says about `plugins.enabled`."""
        offered = Distributions(["vanilla", "pages"], found=[example().pages])
        self.assertEqual([d.name for d in offered.all()], ["vanilla", "pages"])
