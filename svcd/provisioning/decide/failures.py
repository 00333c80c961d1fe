"""The texts of provisioning failures, and the codes for faults of a cloud. Pure.

The codes and their advice are in `svcd.model.failures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from svcd.model.failures import Code as Code
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

MOST_TEXT: Final = 2000
"""The longest `status_description`, in characters."""

_BY_FAULT: Final[Mapping[Fault, Code]] = {
    Fault.QUOTA: Code.QUOTA,
    Fault.BUSY: Code.CLOUD_BUSY,
    Fault.UNAUTHORIZED: Code.CREDENTIALS_EXPIRED,
    Fault.FORBIDDEN: Code.FORBIDDEN,
    Fault.REFUSED: Code.CLOUD_REFUSED,
    Fault.NOT_FOUND: Code.CLOUD_REFUSED,
}


def code_of(error: CloudError) -> Code:
    """The failure code of a cloud's fault."""
    return _BY_FAULT.get(error.kind, Code.CLOUD_UNAVAILABLE)


def describe(code: Code, reason: str) -> str:
    """`CODE: reason (advice)`, cut at MOST_TEXT characters; the advice, if any, is never cut."""
    advice = code.advice
    tail = f" ({advice})" if advice else ""
    head = f"{code}: {reason}"
    room = MOST_TEXT - len(tail)
    if len(head) > room:
        head = head[: room - 1] + "…"
    return head + tail
