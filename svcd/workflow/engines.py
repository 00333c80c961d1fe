"""The facts of distributions that `workflow` needs, as Protocols: rooms never import each other.

`svcd.service` has the implementation: it finds the distribution of a cluster and makes the machines
for `IDistribution.endpoints`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from svcd.model.cluster import Cluster
from svcd.model.job import JobType


class Endpoints(Protocol):
    """See `svcd.provisioning.distributions.spi.Endpoints`, which has this shape."""

    @property
    def engine(self) -> str: ...
    @property
    def webhdfs(self) -> str: ...
    @property
    def name_node(self) -> str: ...
    @property
    def resource_manager(self) -> str: ...
    @property
    def history(self) -> str: ...
    @property
    def user(self) -> str: ...


class Advice(Protocol):
    """See `svcd.provisioning.distributions.spi.Hint`, which has this shape."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def description(self) -> str: ...


class Engines(Protocol):
    """The distributions, as far as jobs are concerned. All methods are pure and fast."""

    def endpoints(self, cluster: Cluster) -> Endpoints | None:
        """The addresses for jobs of an Active cluster; None when it has no engine."""
        ...

    def has_engine(self, cluster: Cluster) -> bool:
        """Whether the cluster has an engine once it is Active, by its node groups."""
        ...

    def job_types(self, cluster: Cluster) -> Sequence[JobType]:
        """The job types that the cluster's distribution can run."""
        ...

    def hints(self, job_type: JobType) -> Sequence[Advice]:
        """The hints of all enabled distributions for a type, in the order of distributions."""
        ...
