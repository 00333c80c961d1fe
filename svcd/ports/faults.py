"""Faults of the peers: their kinds, and the base of the ports' errors.

Retry rules depend on the kinds. A port never raises a library's own exception for a fault of its
peer.
"""

from __future__ import annotations

import enum


class Fault(enum.StrEnum):
    """The kind of a peer's fault; retry rules depend on it."""

    UNREACHABLE = "unreachable"  # refused, reset, no route: the peer has done nothing
    TIMEOUT = "timeout"  # no answer in time: the peer may have done the request
    SERVER_ERROR = "server_error"  # 5xx or an unreadable answer: it may have done the request
    BUSY = "busy"  # 409, 413/429 with Retry-After, "in use": try later
    UNAUTHORIZED = "unauthorized"  # 401
    FORBIDDEN = "forbidden"  # 403 by policy
    QUOTA = "quota"  # 403/409/413 over quota
    NOT_FOUND = "not_found"  # 404
    REFUSED = "refused"  # other 4xx: the request itself is wrong
    HOST_KEY = "host_key"  # SSH: not the pinned key


class PortError(Exception):
    """A fault of a peer. kind: for retry rules; text: one line for people, without secrets."""

    def __init__(self, kind: Fault, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.retry_after_s = retry_after_s

    @property
    def passing(self) -> bool:
        """Whether the same call can succeed later without a change by a person."""
        return self.kind in {Fault.UNREACHABLE, Fault.TIMEOUT, Fault.SERVER_ERROR, Fault.BUSY}
