"""The machines of a cluster, and the address by which svcd reaches each. Pure.

Services name machines by names or internal addresses. The owner of a cluster controls its services,
so svcd follows a URL from a cluster only to the cluster's own machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

from svcd.model.cluster import Cluster
from svcd.workflow.engines import Endpoints


def addresses_of(cluster: Cluster, endpoints: Endpoints) -> Mapping[str, str]:
    """Every name and address of the cluster's machines -> the address to use."""
    found: dict[str, str] = {}
    for url in (endpoints.engine, endpoints.webhdfs, endpoints.history):
        host = urlsplit(url).hostname
        if host:
            found[host] = host
    for instance in cluster.instances():
        address = instance.management_ip or instance.internal_ip
        if address:
            names = (instance.instance_name, instance.internal_ip, instance.management_ip)
            found.update({name: address for name in names if name})
    manager = endpoints.resource_manager.rpartition(":")[0]
    found.setdefault(manager, manager)
    return found


def reachable(url: str, addresses: Mapping[str, str]) -> str | None:
    """`url` with the address to use for its host; None when the host is not the cluster's."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # no URL at all
        return None
    host = parts.hostname or ""
    address = addresses.get(host) or addresses.get(host.split(".")[0])
    if address is None or parts.scheme not in ("http", "https"):
        return None
    return urlunsplit(parts._replace(netloc=f"{address}{port}"))
