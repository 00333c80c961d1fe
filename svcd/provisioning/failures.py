"""Why provisioning did not succeed: a closed list of codes, each with advice. Pure.

A code and its text appear in `status_description`, in events and in the log.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from svcd.ports import CloudError, Fault

MOST_TEXT: Final = 2000
"""Characters of a `status_description`."""


class Code(enum.StrEnum):
    """The closed list."""

    SERVER_ERROR = "SERVER_ERROR"
    SERVER_VANISHED = "SERVER_VANISHED"
    BOOT_TIMEOUT = "BOOT_TIMEOUT"
    SSH_TIMEOUT = "SSH_TIMEOUT"
    HOST_KEY_CHANGED = "HOST_KEY_CHANGED"
    VOLUME_ERROR = "VOLUME_ERROR"
    PREPARE_FAILED = "PREPARE_FAILED"
    COMMAND_FAILED = "COMMAND_FAILED"
    COMMAND_TIMEOUT = "COMMAND_TIMEOUT"
    MACHINE_UNREACHABLE = "MACHINE_UNREACHABLE"
    DAEMON_DIED = "DAEMON_DIED"
    DAEMON_TIMEOUT = "DAEMON_TIMEOUT"
    PHASE_TIMEOUT = "PHASE_TIMEOUT"
    QUOTA = "QUOTA"
    CREDENTIALS_EXPIRED = "CREDENTIALS_EXPIRED"
    FORBIDDEN = "FORBIDDEN"
    CLOUD_REFUSED = "CLOUD_REFUSED"
    CLOUD_UNAVAILABLE = "CLOUD_UNAVAILABLE"
    PLUGIN_GONE = "PLUGIN_GONE"
    LEFTOVERS = "LEFTOVERS"
    INTERNAL = "INTERNAL"


ADVICE: Final[Mapping[Code, str]] = {
    Code.SERVER_ERROR: "see the server's fault in the cloud; try another flavor or a smaller size",
    Code.SERVER_VANISHED: "somebody deleted the server; delete the cluster or make it anew",
    Code.BOOT_TIMEOUT: "see the server's console log; check image, network and cloud capacity",
    Code.SSH_TIMEOUT: "check that the image runs cloud-init and SSH, its registered username, "
    "and that svcd can reach the network (floating IPs, security groups)",
    Code.HOST_KEY_CHANGED: "another machine answers on this address; delete the cluster",
    Code.VOLUME_ERROR: "see the volume in the cloud; check the block storage service",
    Code.PREPARE_FAILED: "log in with the user's key pair and look; check sudo and free devices",
    Code.COMMAND_FAILED: "read the quoted output; retry with an empty resize once it is mended",
    Code.COMMAND_TIMEOUT: "the machine may be too small or too busy; retry with an empty resize",
    Code.MACHINE_UNREACHABLE: "check the machine and the network; retry with an empty resize",
    Code.DAEMON_DIED: "read the quoted log; correct the configuration or the flavor's memory",
    Code.DAEMON_TIMEOUT: "read the quoted log; the machine may be too small or too busy",
    Code.PHASE_TIMEOUT: "raise the deadline in section [provisioning] or use larger machines",
    Code.QUOTA: "free resources of the project or have its quota raised",
    Code.CREDENTIALS_EXPIRED: "the trust or token is no longer valid; delete the cluster with a "
    "fresh token, or with force=true",
    Code.FORBIDDEN: "the user lacks a role in the project that the cloud demands",
    Code.CLOUD_REFUSED: "the cloud refused the request; the quoted message says why",
    Code.CLOUD_UNAVAILABLE: "check the cloud's services; retry with an empty resize",
    Code.PLUGIN_GONE: "enable the plugin again in [plugins] enabled, then retry",
    Code.LEFTOVERS: "remove the named resources in the cloud, delete again, or use force=true",
    Code.INTERNAL: "a defect of svcd: report the incident id; the log carries it too",
}
"""What a person can do about each."""

_BY_FAULT: Final[Mapping[Fault, Code]] = {
    Fault.QUOTA: Code.QUOTA,
    Fault.UNAUTHORIZED: Code.CREDENTIALS_EXPIRED,
    Fault.FORBIDDEN: Code.FORBIDDEN,
    Fault.REFUSED: Code.CLOUD_REFUSED,
    Fault.NOT_FOUND: Code.CLOUD_REFUSED,
}


def code_of(error: CloudError) -> Code:
    """The code under which a cloud's fault is shown."""
    return _BY_FAULT.get(error.kind, Code.CLOUD_UNAVAILABLE)


def describe(code: Code, reason: str) -> str:
    """`CODE: reason (advice)`, cut at MOST_TEXT characters; the advice is never cut."""
    tail = f" ({ADVICE[code]})"
    head = f"{code}: {reason}"
    room = MOST_TEXT - len(tail)
    if len(head) > room:
        head = head[: room - 1] + "…"
    return head + tail
