"""Recognises hosts that are this machine alone."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit


def is_loopback(host: str) -> bool:
    """Whether `host` is a loopback address or localhost. IPv6 addresses without brackets."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower().removesuffix(".") == "localhost"


def is_loopback_url(url: str) -> bool:
    """Whether the host of `url` is loopback. False for a text that is no URL."""
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
