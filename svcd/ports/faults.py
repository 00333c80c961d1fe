"""Faults of the peers: their kinds, and the base of the ports' errors.

Retry rules are written over the kinds; a port never raises a library's own exception for a fault of
its peer.
"""

from __future__ import annotations

import enum


class Fault(enum.StrEnum):
    """What kind of fault a peer had; retry rules are written over these."""

    UNREACHABLE = "unreachable"  # refused, reset, no route: nothing was done
    TIMEOUT = "timeout"  # no answer in time: it may have been done
    SERVER_ERROR = "server_error"  # 5xx or an answer that makes no sense: it may have been done
    BUSY = "busy"  # 409, 413/429 with Retry-After, "in use": try later
    UNAUTHORIZED = "unauthorized"  # 401
    FORBIDDEN = "forbidden"  # 403 by policy
    QUOTA = "quota"  # 403/409/413 over quota
    NOT_FOUND = "not_found"  # 404
    REFUSED = "refused"  # other 4xx: the request itself is wrong
    HOST_KEY = "host_key"  # SSH: not the pinned key


class PortError(Exception):
    """A fault of a peer. kind: decides; text: one line for a person, without secrets."""

    def __init__(self, kind: Fault, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same call can succeed later without anybody's help."""
        return self.kind in {Fault.UNREACHABLE, Fault.TIMEOUT, Fault.SERVER_ERROR, Fault.BUSY}
