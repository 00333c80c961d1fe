"""Decides to which addresses and ports svcd opens connections to machines. Pure.

Nova and the metadata of an image name the address and the SSH port of a machine, and tenants can
choose both: the address of a port, the property of an image. svcd sits where a tenant may not
reach, so these values must not lead it to its own host or to a metadata service.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from attrs import frozen

_Network = IPv4Network | IPv6Network

_SPECIAL: Final[Sequence[tuple[_Network, str]]] = [
    (ip_network(network), what)
    for network, what in (
        ("127.0.0.0/8", "a loopback address"),
        ("::1/128", "a loopback address"),
        ("169.254.0.0/16", "a link-local address"),
        ("fe80::/10", "a link-local address"),
        ("0.0.0.0/8", "no address of a machine"),
        ("::/128", "no address of a machine"),
        ("224.0.0.0/4", "a multicast address"),
        ("ff00::/8", "a multicast address"),
        ("255.255.255.255/32", "a broadcast address"),
    )
]


@frozen(kw_only=True)
class ConnectRules:
    """The settings `cloud.machine_cidrs` (empty: any network) and `cloud.ssh_ports`."""

    cidrs: tuple[_Network, ...]
    ports: frozenset[int]

    @classmethod
    def of(cls, cidrs: Sequence[str], ports: Sequence[str]) -> ConnectRules:
        """From the texts of the settings. Raises ValueError."""
        return cls(
            cidrs=tuple(ip_network(cidr) for cidr in cidrs),
            ports=frozenset(int(port) for port in ports),
        )

    def refusal(self, address: str, port: int, is_own: bool) -> str:
        """The reason, with the setting, why svcd must not connect to an SSH server, or "".

        is_own: whether the address belongs to svcd's own host. Such an address, and one of a
        special kind, needs a network in `cloud.machine_cidrs` that holds nothing else.
        """
        if port not in self.ports:
            return (
                f"port {port} is not one of cloud.ssh_ports: the image names it in _svc_ssh_port;"
                " add it there if your images listen on it"
            )
        try:
            address_ = _plain(ip_address(address))
        except ValueError:
            return f"{address[:80]!r} is no IP address"
        what = next((kind for network, kind in _SPECIAL if address_ in network), "")
        if is_own and not what:
            what = "an address of svcd's own host"
        matching = [network for network in self.cidrs if address_ in network]
        if what:
            if any(_is_narrow(network) for network in matching):
                return ""
            return f"{address} is {what}; cloud.machine_cidrs allows it when it names {address_}"
        if self.cidrs and not matching:
            return f"{address} is in no network of cloud.machine_cidrs; add the network of machines"
        return ""


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """An IPv4 address that is written as an IPv6 address, as such."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_narrow(network: _Network) -> bool:
    """Whether a network is one address, or part of a special one."""
    return network.num_addresses == 1 or any(
        network.version == special.version and network.subnet_of(special)  # type: ignore[arg-type]
        for special, _ in _SPECIAL
    )
