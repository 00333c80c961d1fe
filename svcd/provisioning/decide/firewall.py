"""The open ports of a cluster's security group: SSH, and web pages where the operator allows it.

Members of the group reach all ports of each other; `EnsureSecurityGroup` adds this. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from attrs import frozen

from svcd.model.cloud import Opening

ANYWHERE: Final = "0.0.0.0/0"


@frozen(kw_only=True)
class Firewall:
    """The networks that may reach machines: cloud.ssh_cidrs and cloud.web_cidrs."""

    ssh_cidrs: tuple[str, ...] = (ANYWHERE,)
    web_cidrs: tuple[str, ...] = ()

    def openings(self, ssh_port: int, web_ports: Collection[int]) -> tuple[Opening, ...]:
        """The openings of a group, in order. web_ports: of the distribution."""
        found = {Opening(ssh_port, cidr) for cidr in self.ssh_cidrs}
        found |= {Opening(port, cidr) for cidr in self.web_cidrs for port in web_ports}
        return tuple(sorted(found))
