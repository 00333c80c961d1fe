"""The address of a caller: of its connection, or as a trusted proxy reports it."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

from attrs import frozen

from svcd.model.loopback import is_loopback
from svcd.settings import UNIX


@frozen(kw_only=True)
class Origin:
    """Where a request comes from.

    address: see `Addresses.of`. is_secure: the request came with TLS all the
    way, or from this machine.
    """

    address: str
    is_secure: bool


class Addresses:
    """Reads `X-Forwarded-For` of the proxies in `trusted` (`server.trusted_proxies`)."""

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._unix = UNIX in trusted
        self._networks = [ip_network(network) for network in trusted if network != UNIX]

    def of(self, request: Any) -> str:
        """The address of the caller of `request`; "unix" for an unknown one behind a socket file.

        Each trusted proxy has appended the address of its own peer. So the search begins at the
        connection, and ends at the first address that is no trusted proxy: its owner may have
        invented the addresses before it.
        """
        peer = getattr(request.getClientAddress(), "host", None)
        known = UNIX if peer is None else _plain(str(peer))
        given = request.requestHeaders.getRawHeaders("X-Forwarded-For") or ()
        entries = [part.strip() for line in given for part in line.split(",")]
        while entries and self._trusts(known):
            said = _plain(entries.pop())
            if _parsed(said) is None:
                break
            known = said
        return known

    def origin(self, request: Any) -> Origin:
        """The origin of `request`. It is private with TLS, and from this machine.

        A proxy on this machine may have received the request without TLS: then it is not private,
        if the proxy says so in `X-Forwarded-Proto`.
        """
        peer = getattr(request.getClientAddress(), "host", None)
        given = request.requestHeaders.getRawHeaders("X-Forwarded-Proto") or ()
        schemes = {part.strip().lower() for line in given for part in line.split(",")}
        own = request.isSecure() or peer is None or is_loopback(_plain(str(peer)))
        return Origin(address=self.of(request), is_secure=own and schemes <= {"https"})

    def _trusts(self, text: str) -> bool:
        if text == UNIX:
            return self._unix
        address = _parsed(text)
        return address is not None and any(address in network for network in self._networks)


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _plain(text: str) -> str:
    """An address in its usual form: an IPv4 address that is mapped into IPv6 as IPv4."""
    if ":" not in text and text[:1] != "[" and text[-1:] != "]":  # IPv4 has one form
        return text
    address = _parsed(text.removeprefix("[").removesuffix("]"))
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return text if address is None else str(address)
