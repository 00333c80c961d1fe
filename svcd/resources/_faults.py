"""One table: the error that a caller gets for a fault of the cloud, the engine or a deadline.

Source: behaviour, Part I 3.
"""

from __future__ import annotations

import math

from svcd.errors import (
    Forbidden,
    InvalidReference,
    NotFound,
    PlatformError,
    PlatformTimeout,
    QuotaExceeded,
    ServiceUnavailable,
    SvcdError,
    Unauthorized,
)
from svcd.ports.faults import Fault, PortError
from svcd.runtime.tasks import DeadlineExceeded

_RETRY_AFTER_S = 5
"""`Retry-After` of a 503 when the peer gave none."""


def as_answerable(error: BaseException) -> SvcdError | None:
    """The SvcdError that reports `error`; None for a bug."""
    if isinstance(error, SvcdError):
        return error
    if isinstance(error, PortError):
        return of_port(error)
    if isinstance(error, DeadlineExceeded):
        return PlatformTimeout(f"{error.args[0]} took longer than {error.args[1]:g} s; try again")
    return None


def of_port(error: PortError) -> SvcdError:
    """The SvcdError for a fault of a peer."""
    text = error.text
    match error.kind:
        case Fault.NOT_FOUND:
            return NotFound(text if "not found" in text else f"{text} (not found)")
        case Fault.UNAUTHORIZED:
            return Unauthorized(f"{text}: the token was refused; get a new one")
        case Fault.FORBIDDEN:
            return Forbidden(text)
        case Fault.QUOTA:
            return QuotaExceeded(text)
        case Fault.REFUSED:
            return InvalidReference(text)
        case Fault.TIMEOUT:
            return PlatformTimeout(f"{text}; it may have succeeded: check before you try again")
        case Fault.UNREACHABLE | Fault.BUSY:
            return ServiceUnavailable(f"{text}; try again", _retry_after(error))
        case Fault.SERVER_ERROR | Fault.HOST_KEY:
            return PlatformError(text)


def _retry_after(error: PortError) -> int:
    if error.retry_after_s is None:
        return _RETRY_AFTER_S
    return max(1, min(3600, math.ceil(error.retry_after_s)))
