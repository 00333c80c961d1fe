"""The dependencies of the resources: the ports, and the commands of other rooms."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping

from attrs import Factory, field, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.model.cluster_token import ClusterTokens
from svcd.ports.cloud import Cloud, Identity, ObjectStore
from svcd.ports.store import Store
from svcd.provisioning.commands import Clusters, Templates
from svcd.provisioning.distributions.registry import Distributions
from svcd.resources._feeds import Feeds
from svcd.resources._lists import Lists
from svcd.resources._waits import Waits
from svcd.runtime.audit import Audit
from svcd.runtime.metrics import Metrics
from svcd.settings import Settings
from svcd.workflow.commands import Jobs


async def _always_ready() -> Mapping[str, str]:
    return {}


@frozen(kw_only=True)
class ApiServices:
    """All dependencies of the API.

    identity: None with `auth.mode=none`. readiness: part -> "" when it is ready, else the reason.
    new_id: makes the ids of the records that the resources create. installation: see
    svcd.model.ownership_tags. audit: None when it is off. tokens: shows the tokens of clusters.
    """

    store: Store
    identity: Identity | None
    cloud: Cloud
    object_store: ObjectStore
    clusters: Clusters
    templates: Templates
    jobs: Jobs
    distributions: Distributions
    clock: IReactorTime
    settings: Settings
    tokens: ClusterTokens
    metrics: Metrics = field(factory=Metrics)
    readiness: Callable[[], Awaitable[Mapping[str, str]]] = _always_ready
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    installation: str = ""
    audit: Audit | None = None
    feeds: Feeds = field(
        default=Factory(
            lambda self: Feeds(self.store, self.clock, self.tokens, self.settings.limits.watchers),
            takes_self=True,
        )
    )
    lists: Lists = field(
        default=Factory(lambda self: Lists(self.store, self.clock), takes_self=True)
    )
    waits: Waits = field(
        default=Factory(lambda self: Waits(self.store, self.clock), takes_self=True)
    )
