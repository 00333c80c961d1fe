"""The distributions, as far as jobs are concerned: the room of jobs knows no distribution."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.errors import NotFound
from svcd.model.cluster import Cluster
from svcd.model.job import JobType
from svcd.provisioning.decide.machines_view import machines, planned
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import Endpoints, Hint, IDistribution


class Engines:
    """Implements ports.engine.Engines by means of the distributions."""

    def __init__(self, distributions: Distributions) -> None:
        self._distributions = distributions

    def endpoints(self, cluster: Cluster) -> Endpoints | None:
        distribution = self._of(cluster)
        return None if distribution is None else distribution.endpoints(cluster, machines(cluster))

    def has_engine(self, cluster: Cluster) -> bool:
        distribution = self._of(cluster)
        return (
            distribution is not None
            and distribution.endpoints(cluster, planned(cluster)) is not None
        )

    def job_types(self, cluster: Cluster) -> Sequence[JobType]:
        distribution = self._of(cluster)
        return () if distribution is None else distribution.job_types(cluster.engine_version)

    def hints(self, job_type: JobType) -> Sequence[Hint]:
        hints: dict[str, Hint] = {}
        for distribution in self._distributions.all():
            for version in distribution.versions:
                for hint in distribution.hints(version, job_type):
                    hints.setdefault(hint.name, hint)
        return list(hints.values())

    def _of(self, cluster: Cluster) -> IDistribution | None:
        """The distribution of `cluster`; None when it is no longer enabled.

        Clusters of a disabled distribution can still be deleted.
        """
        try:
            return self._distributions.get(cluster.plugin_name)
        except NotFound:
            return None
