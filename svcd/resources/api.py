"""Builds the API: the door with all resources, and the site that listens for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from twisted.internet.interfaces import IReactorTime

from svcd.model.requests import Limits
from svcd.resources._addresses import Addresses
from svcd.resources._policy import Needs, Policy
from svcd.resources._rest import Options, Rest
from svcd.resources._route import JSON_BODY, rows_of
from svcd.resources._site import ApiSite
from svcd.resources.cloud_offer import CloudOffers
from svcd.resources.cluster_templates import ClusterTemplates
from svcd.resources.clusters import Clusters
from svcd.resources.console import Console
from svcd.resources.console_login import ConsoleLogin
from svcd.resources.data_sources import DataSources
from svcd.resources.dependencies import ApiServices
from svcd.resources.images import Images
from svcd.resources.job_binaries import JobBinaries
from svcd.resources.job_binary_internals import JobBinaryInternals
from svcd.resources.job_executions import JobExecutions
from svcd.resources.jobs import Jobs
from svcd.resources.node_group_templates import NodeGroupTemplates
from svcd.resources.ownership_tags import OwnershipTags
from svcd.resources.plugins import Plugins
from svcd.resources.system import System, Telemetry
from svcd.resources.watch import Watch
from svcd.runtime.same_origin import SameOrigin
from svcd.web.routing import HasRoutes

__all__ = ["ApiServices", "ApiSite", "Needs", "Rest", "build", "policy"]

_CONVERT_BYTES = 262_144
"""Limits the configuration file that `convert-config` accepts."""
_LOGIN_BYTES = 4096
"""Limits the body of a login: anybody may send one."""


FAMILIES = (
    System,
    Telemetry,
    Console,
    ConsoleLogin,
    Plugins,
    Images,
    NodeGroupTemplates,
    ClusterTemplates,
    Clusters,
    DataSources,
    JobBinaryInternals,
    JobBinaries,
    Jobs,
    JobExecutions,
    CloudOffers,
    OwnershipTags,
    Watch,
)
"""The classes of all resources, in the order of their routes."""


def policy() -> Sequence[tuple[str, str, Needs]]:
    """Method, path and need of every route."""
    return list(rows_of((Rest, *FAMILIES)))


def build(
    services: ApiServices, more: Iterable[HasRoutes] = (), clock: IReactorTime | None = None
) -> tuple[Rest, ApiSite]:
    """The API as a leaf resource (for in-memory agents) and as a site (for listening).

    With `server.admin_listen` the metrics are not a part of it, see `build_admin`; without
    `console.enabled` the console is not. more: further resources. clock: that of the connections
    when it is another than that of the services.
    """
    server = services.settings.server
    left_out: list[type] = [Telemetry] if server.admin_listen else []
    if not services.settings.console.enabled:
        left_out += [Console, ConsoleLogin]
    resources: list[Any] = [family(services) for family in FAMILIES if family not in left_out]
    return _built(services, [*resources, *more], server.listen, clock)


def build_admin(services: ApiServices) -> ApiSite:
    """The site of `server.admin_listen`: health and metrics."""
    resources = (System(services), Telemetry(services))
    return _built(services, resources, services.settings.server.admin_listen)[1]


def _built(
    services: ApiServices,
    resources: Iterable[HasRoutes],
    listens: str,
    clock: IReactorTime | None = None,
) -> tuple[Rest, ApiSite]:
    """The resource and the site of `resources`, which listens at `listens`.

    Only the site has the parts that need a connection: deadlines of header and body, limits before
    the body arrives, streaming of uploads, draining.
    """
    server = services.settings.server
    provisioning = services.settings.provisioning
    rest = Rest(
        services.clock,
        services.metrics,
        services.identity,
        services.store,
        Options(
            policy=Policy.of(services.settings, anonymous=services.identity is None),
            same_origin=SameOrigin.at(listens, server.hosts),
            addresses=Addresses(server.trusted_proxies),
            audit=services.audit,
            request_timeout_s=server.request_timeout_s,
            stall_s=server.idle_timeout_s,
            limits=Limits(groups=provisioning.max_groups, nodes=provisioning.max_nodes),
            access_log=services.settings.log.access,
            sizes={
                JSON_BODY: server.max_json_bytes,
                "binary": server.max_binary_bytes,
                "convert": _CONVERT_BYTES,
                "login": _LOGIN_BYTES,
            },
        ),
        resources,
    )
    site = ApiSite(
        rest,
        clock or services.clock,
        header_deadline_s=server.header_deadline_s,
        min_body_rate_bytes=server.min_body_rate_bytes,
        idle_timeout_s=server.idle_timeout_s,
        max_connections=server.max_connections,
    )
    return rest, site
