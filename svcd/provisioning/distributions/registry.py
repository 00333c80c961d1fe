"""The distributions that this service offers: the built-in ones and the plug-ins.

A plug-in is an instance that provides `IDistribution` (and `IPlugin`) in a module of the package
`twisted.plugins`. svcd refuses to start when two distributions have the same name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from twisted.plugin import getPlugins

from svcd.errors import NotFound
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.spi import IDistribution
from svcd.provisioning.distributions.vanilla import Vanilla


class DistributionError(Exception):
    """svcd cannot offer the distributions. The text names the fault and the remedy in one line."""


class Distributions:
    """The enabled distributions, in the order of `enabled`.

    enabled: names, from the setting `plugins.enabled`. fake_engine_url: see `Fake`.
    found: the plug-ins; by default those that `twisted.plugin` finds.
    Raises `DistributionError` for an unknown name and for a name that two distributions have.
    """

    def __init__(
        self,
        enabled: Sequence[str],
        *,
        fake_engine_url: str = "",
        found: Iterable[IDistribution] | None = None,
    ) -> None:
        plugins = getPlugins(IDistribution) if found is None else found
        known = _by_name((Vanilla(), Fake(fake_engine_url), *plugins))
        unknown = [name for name in enabled if name not in known]
        if unknown:
            raise DistributionError(
                f"plugins.enabled names {', '.join(map(repr, unknown))}, "
                "but no distribution has this name; "
                f"there are {', '.join(known)}"
            )
        self._enabled: Mapping[str, IDistribution] = {name: known[name] for name in enabled}

    def all(self) -> Sequence[IDistribution]:
        """The enabled distributions, in their order."""
        return tuple(self._enabled.values())

    def get(self, name: str) -> IDistribution:
        """The enabled distribution `name`. Raises NotFound."""
        distribution = self._enabled.get(name)
        if distribution is None:
            raise NotFound(
                f"plugin {name!r} not found; there are {', '.join(self._enabled) or 'none'}"
            )
        return distribution

    def version(self, name: str, version: str) -> IDistribution:
        """The distribution `name`, if it has `version`. Raises NotFound for either of the two."""
        distribution = self.get(name)
        if version not in distribution.versions:
            raise NotFound(
                f"version {version!r} of plugin {name!r} not found; "
                f"there are {', '.join(distribution.versions)}"
            )
        return distribution


def _by_name(distributions: Iterable[IDistribution]) -> dict[str, IDistribution]:
    known: dict[str, IDistribution] = {}
    for distribution in distributions:
        if distribution.name in known:
            raise DistributionError(
                f"two distributions are named {distribution.name!r}: "
                f"{type(known[distribution.name]).__qualname__} and "
                f"{type(distribution).__qualname__}; "
                "remove one of the two plug-ins"
            )
        known[distribution.name] = distribution
    return known
