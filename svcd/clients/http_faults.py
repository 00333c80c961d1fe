"""Maps failures of an HTTP exchange to the kinds of faults of the peer. Pure.

UNREACHABLE: the peer did not get the request. TIMEOUT and SERVER_ERROR: it may have carried it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from twisted.internet.defer import CancelledError
from twisted.internet.error import (
    ConnectError,
    ConnectionClosed,
    DNSLookupError,
    UserError,
)
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.python.failure import Failure
from twisted.web.client import (
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)
from twisted.web.error import SchemeNotSupported
from twisted.web.http import PotentialDataLoss

from svcd.clients.bodies import BodyTooLarge
from svcd.clients.connections import ForwardingForbidden, HeadersTooLarge
from svcd.model.redaction import hidden, shown_url
from svcd.model.secret import Secret
from svcd.ports.faults import Fault
from svcd.ports.machines import RemoteError
from svcd.runtime.tasks import DeadlineExceeded


class NotSent(Exception):
    """The request was not sent. args[0]: the reason."""


_NOT_SENT: Final = (
    ConnectError,
    ConnectTimeout,
    DNSLookupError,
    NotSent,
    RemoteError,
    SchemeNotSupported,
)
BROKEN: Final = (ResponseNeverReceived, RequestTransmissionFailed, ConnectionClosed)
"""The connection broke before an answer: perhaps the peer was closing it while it was idle."""
FAULTS: Final = (
    *_NOT_SENT,
    *BROKEN,
    DeadlineExceeded,
    BodyTooLarge,
    HeadersTooLarge,
    UserError,
    RequestGenerationFailed,
    ResponseFailed,
    PotentialDataLoss,
    CancelledError,
)
"""The exceptions of an exchange that are faults of the peer, or of the caller who cancelled it."""


def fault_of(
    where: str, error: BaseException, sent: Sequence[Secret], setting: str
) -> tuple[Fault, str]:
    """The kind and the text of one of `FAULTS`. where: method and URL, without secrets.

    sent: the secrets of the request. setting: of the largest body; "": there is none.
    """
    if isinstance(error, DeadlineExceeded):
        return Fault.TIMEOUT, f"{where} had no complete answer within {error.args[1]:g} s"
    if isinstance(error, HeadersTooLarge):
        text = f"{where} was answered with more than {error.args[0]} bytes of headers"
        return Fault.SERVER_ERROR, text
    if isinstance(error, BodyTooLarge):
        part = f" ({setting})" if setting else ""
        return (
            Fault.SERVER_ERROR,
            f"{where} was answered with more than {error.args[0]} bytes{part}",
        )
    if isinstance(error, RemoteError):  # the machine is the reason, not the service on it
        return Fault.UNREACHABLE, f"{error.text.rstrip('.')} (for {where})"
    why = shown_url(hidden(_why(error), sent))
    if isinstance(error, ForwardingForbidden):
        return Fault.FORBIDDEN, f"{where}: {why}"
    if isinstance(error, _NOT_SENT):
        return Fault.UNREACHABLE, f"{where}: {why}"
    return Fault.SERVER_ERROR, f"{where} broke off: {why}"


def _why(error: BaseException) -> str:
    for reason in getattr(error, "reasons", None) or ():
        if isinstance(reason, Failure) and reason.value is not None:
            return str(reason.value).rstrip(".") or type(reason.value).__name__
    return str(error).rstrip(".") or type(error).__name__


def kind_of(status: int) -> Fault:
    """The kind of a refusal by its status alone; the body of a service may tell another kind."""
    match status:
        case 401:
            return Fault.UNAUTHORIZED
        case 403:
            return Fault.FORBIDDEN
        case 404:
            return Fault.NOT_FOUND
        case 408 | 429:
            return Fault.BUSY
    return Fault.SERVER_ERROR if status >= 500 or status < 400 else Fault.REFUSED
