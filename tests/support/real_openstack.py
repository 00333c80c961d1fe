"""The real OpenStack that the environment names, for suites that need one.

SVCD_TEST_OS_PLATFORM: a platform.json of a running platform, from which all the rest is derived.
Or one by one, and each of these wins over the file: SVCD_TEST_OS_AUTH_URL, _USERNAME, _PASSWORD,
_PROJECT (an ordinary user and the project's name), _IMAGE (one that the user may change),
_KEYPAIR, _SERVICE_USERNAME, _SERVICE_PASSWORD, _SERVICE_PROJECT (svcd's own user, role service),
_REGION, _POOL (public), _FLAVOR (1: 512 MiB, one processor).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

TENANT = "alpha"
"""The tenant of a platform.json whose user, image and key pair are taken."""


@cache
def platform() -> Mapping[str, Any]:
    """The content of the file, {} when none is named."""
    path = os.environ.get("SVCD_TEST_OS_PLATFORM")
    if not path:
        return {}
    content: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return content


@cache
def _derived() -> Mapping[str, str]:
    known = platform()
    if not known:
        return {}
    tenant = known["tenants"][TENANT]
    return {
        "AUTH_URL": known["auth_url"],
        "USERNAME": tenant["user"],
        "PASSWORD": known["users"][tenant["user"]]["password"],
        "PROJECT": TENANT,
        "IMAGE": tenant["private_image"],
        "KEYPAIR": tenant["keypair"],
        "SERVICE_USERNAME": "svcd",
        "SERVICE_PASSWORD": known["users"]["svcd"]["password"],
        "SERVICE_PROJECT": known["users"]["svcd"]["project"],
        "POOL": known["external_network"]["name"],
        "FLAVOR": known["flavors"]["m1.tiny"],
    }


def given(name: str, otherwise: str = "") -> str:
    """The value of SVCD_TEST_OS_<name>, by itself or from the file."""
    return os.environ.get(f"SVCD_TEST_OS_{name}") or _derived().get(name, "") or otherwise


def missing(*names: str) -> str:
    """Why a suite that needs these cannot run; "" when it can."""
    lacking = [f"SVCD_TEST_OS_{name}" for name in names if not given(name)]
    if not lacking:
        return ""
    return f"no real OpenStack is named: {_joined(lacking)} not set, nor SVCD_TEST_OS_PLATFORM"


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names)
