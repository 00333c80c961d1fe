"""`svcd doctor` for the stored clusters: those whose machines the settings refuse. Reads only."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence

from svcd.cli.database_target import of_settings
from svcd.cli.finding import Finding, fail, ok, warn
from svcd.model.choices import listed
from svcd.model.loopback import is_loopback_url
from svcd.settings import Settings
from svcd.store.offline.session import OfflineError

_WHAT = "cloud.ssh_ports"
_USUAL = 22
_CLUSTERS = "select name, tenant_id, record from clusters order by tenant_id, name, id"


def examine_clusters(settings: Settings) -> Iterator[Finding]:
    """One finding about the SSH ports of the clusters; none without a database or a real cloud."""
    if settings.cloud.kind != "openstack" or is_loopback_url(settings.cloud.auth_url):
        return  # svcd does not restrict the ports of a development cloud
    place = of_settings(settings)
    if place.path is not None and not place.path.exists():
        return  # the daemon has not run yet
    try:
        with contextlib.closing(place.reading("svcd doctor")) as session:
            session.snapshot()
            if "clusters" not in session.tables():
                return
            found = [
                (str(name), str(tenant), int(json.loads(record).get("ssh_port", _USUAL)))
                for name, tenant, record in session.rows(_CLUSTERS)
            ]
    except OfflineError as error:
        yield warn(_WHAT, f"clusters not checked: {error}", "svcd db current")
        return
    yield refused_ports(settings.cloud.ssh_ports, found)


def refused_ports(allowed: Sequence[str], clusters: Iterable[tuple[str, str, int]]) -> Finding:
    """The finding about `clusters`: name, project and SSH port of each."""
    ports = {int(each) for each in allowed}
    refused = [(name, tenant, port) for name, tenant, port in clusters if port not in ports]
    if not refused:
        return ok(_WHAT, f"{', '.join(allowed)}: every cluster uses one of them")
    wanted = [*allowed, *map(str, sorted({port for _, _, port in refused}))]
    names = [f"{name} (project {tenant}, port {port})" for name, tenant, port in refused]
    return fail(
        _WHAT,
        f"svcd refuses the machines of these clusters, whose images named another port in"
        f" _svc_ssh_port: {listed(names)}",
        f"--set {_WHAT}={','.join(wanted)}, if these ports are intended",
    )
