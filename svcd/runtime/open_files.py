"""Fits the number of API connections to the number of files that this process may open.

Without this limit many callers can take the last file descriptor, and the daemon can no longer
reach its cloud or its machines. The site decides what happens to a connection over the limit.
"""

from __future__ import annotations

import resource
import sys
from contextlib import suppress

from attrs import evolve, fields
from twisted.logger import Logger

from svcd.settings import Server, Settings

log = Logger()

OWN = 1536
"""File descriptors reserved for machines, cloud, database, and request bodies kept in files."""

MACHINES = 4096
"""Most file descriptors of the SSH servers of the embedded cloud's machines, beside `OWN`."""

_ENOUGH = 1000
"""Number of connections below which svcd warns when the settings ask for no number."""


def for_machines() -> int:
    """How many file descriptors the SSH servers of all loopback machines may take.

    Raises the soft limit of the process as far as needed and possible.
    """
    soft = _raised(OWN + MACHINES)
    return min(MACHINES, soft // 4)


def fitted(settings: Settings) -> Settings:
    """`settings` with `max_connections` lowered to the possible number.

    Raises the soft limit of the process as far as needed and possible. Logs the lower number: as a
    warning when the settings ask for more, or when it is small; else at level debug.
    """
    wanted = settings.server.max_connections
    own = OWN + MACHINES if settings.cloud.kind == "embedded" else OWN
    allowed = _allowed(wanted, own)
    if allowed == wanted:
        return settings
    by_default = wanted == fields(Server).max_connections.default
    write = log.debug if by_default and allowed >= _ENOUGH else log.warn
    write(
        "svcd accepts {allowed} of server.max_connections={wanted} connections: they need {needed} "
        "open files, and the hard limit of the process is {hard}; raise the hard limit "
        "(ulimit -Hn, systemd: LimitNOFILE=), or lower the setting",
        allowed=allowed,
        wanted=wanted,
        needed=wanted + own,
        hard=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
    )
    return evolve(settings, server=evolve(settings.server, max_connections=allowed))


def _allowed(wanted: int, own: int) -> int:
    soft = _raised(wanted + own)
    return min(wanted, soft - min(own, soft // 2))


def _raised(needed: int) -> int:
    """The soft limit, raised to `needed` as far as possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    if soft < needed:
        if hard != resource.RLIM_INFINITY:
            needed = min(needed, hard)
        with suppress(OSError, ValueError):  # the system may have a lower bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
            soft = needed
    return soft
