"""The ways to the hosts that serve the jobs of a cluster. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from svcd.model.cluster import Cluster
from svcd.model.secret import Secret
from svcd.ports.engine import Endpoints
from svcd.ports.machines import Way, Ways, ways_of


def ways_to(cluster: Cluster, endpoints: Endpoints, key: Secret) -> Ways:
    """The ways to the cluster's machines, and to hosts of `endpoints` that are no machines."""
    ways = ways_of(cluster, key)
    urls = (endpoints.engine, endpoints.webhdfs, endpoints.history)
    manager = endpoints.resource_manager.rpartition(":")[0]
    for host in (*(urlsplit(url).hostname for url in urls), manager):
        if host:
            ways.setdefault(host, Way(host))
    return ways
