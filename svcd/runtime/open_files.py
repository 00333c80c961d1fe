"""Fits the number of API connections to the number of files that this process may open.

Without this limit many callers can take the last file descriptor, and the daemon can no longer
reach its cloud or its machines. The site decides what happens to a connection over the limit.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from attrs import evolve
from twisted.logger import Logger

from svcd.settings import Settings

log = Logger()

OWN = 1536
"""File descriptors reserved for machines, cloud, database, and request bodies kept in files."""


def fitted(settings: Settings) -> Settings:
    """`settings` with `max_connections` lowered to the possible number, with a logged warning.

    Raises the soft limit of the process as far as needed and possible.
    """
    wanted = settings.server.max_connections
    allowed = _allowed(wanted)
    if allowed == wanted:
        return settings
    log.warn(
        "svcd accepts only {allowed} of server.max_connections={wanted} connections: the process "
        "may open too few files; raise ulimit -n (systemd: LimitNOFILE=), or lower the setting",
        allowed=allowed,
        wanted=wanted,
    )
    return evolve(settings, server=evolve(settings.server, max_connections=allowed))


def _allowed(wanted: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return wanted
    needed = wanted + OWN
    if soft < needed:
        if hard != resource.RLIM_INFINITY:
            needed = min(needed, hard)
        with suppress(OSError, ValueError):  # the system may have a lower bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
            soft = needed
    return min(wanted, soft - min(OWN, soft // 2))
