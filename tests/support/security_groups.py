"""Enforces the rules of a security group in a server, for a platform that enforces none.

The rules are those that Neutron has. A packet filter of the server drops what they do not let in.
Needed in the server: `nft`, and a login with sudo.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectError
from twisted.internet.protocol import Factory, Protocol

from tests.support.processes import reactor

Run = Callable[[str, str], Awaitable[str]]
"""`run(address, command)`: what the command prints on the server."""

LIFT = "sudo nft delete table inet group"
_CONNECT_S = 5


def enforced(rules: Sequence[Mapping[str, Any]], members: Sequence[str]) -> str:
    """The command that enforces `rules`, of IPv4 and inwards. members: addresses of the group."""
    allowed = [_allowed(rule, members) for rule in rules if rule["ethertype"] == "IPv4"]
    lines = [
        "table inet group {",
        "chain input {",
        "type filter hook input priority 0; policy drop;",
        "iif lo accept",
        "ct state established,related accept",
        *allowed,
        "meta l4proto tcp reject with tcp reset",
        "}",
        "}",
    ]
    return "printf '%s\\n' " + " ".join(map(shlex.quote, lines)) + " | sudo nft -f -"


def _allowed(rule: Mapping[str, Any], members: Sequence[str]) -> str:
    parts = []
    if rule["remote_group_id"]:
        parts.append(f"ip saddr {{ {', '.join(members)} }}")
    elif rule["remote_ip_prefix"]:
        parts.append(f"ip saddr {rule['remote_ip_prefix']}")
    if rule["port_range_min"]:
        ports = f"{rule['port_range_min']}-{rule['port_range_max']}"
        parts.append(f"{rule['protocol']} dport {ports}")
    elif rule["protocol"]:
        parts.append(f"meta l4proto {rule['protocol']}")
    return " ".join([*parts, "accept"])


async def open_ports(address: str, run: Run) -> tuple[Sequence[int], Sequence[int]]:
    """The TCP ports on which a server listens, and those that this machine can connect to."""
    said = await run(address, "sudo ss -ltnH")
    rows = [line.split()[3].rpartition(":") for line in said.splitlines()]
    ports = sorted({int(port) for host, _, port in rows if host not in ("127.0.0.1", "[::1]")})
    connected = []
    for port in ports:
        endpoint = TCP4ClientEndpoint(reactor, address, port, _CONNECT_S)
        try:
            protocol = await endpoint.connect(Factory.forProtocol(Protocol))
        except ConnectError:
            continue
        protocol.transport.abortConnection()
        connected.append(port)
    return ports, connected
