"""How many files this process may open, and how many connections of the API fit among them.

Without this a crowd at the door takes the last one, and the daemon can reach neither its cloud nor
its machines any more. Nothing here decides what becomes of a connection too many: the site does.
"""

from __future__ import annotations

import resource
from contextlib import suppress

from attrs import evolve
from twisted.logger import Logger

from svcd.settings import Settings

log = Logger()

OWN = 512
"""Kept for machines, cloud, database, and for bodies that wait in files."""


def fitted(settings: Settings) -> Settings:
    """`settings` with as many connections as there can be; a warning when those are fewer.

    The soft limit of the process is raised as far as needed and possible.
    """
    wanted = settings.server.max_connections
    allowed = _allowed(wanted)
    if allowed == wanted:
        return settings
    log.warn(
        "Only {allowed} of server.max_connections={wanted} connections will be taken: the process "
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
        with suppress(OSError, ValueError):  # the system may know a lower bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
            soft = needed
    return min(wanted, soft - min(OWN, soft // 2))
