"""Neutron v2.0: networks, security groups, floating IPs and their quota."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from attrs import frozen

from svcd.clients.rest import Rest, RestError, shaped, usage
from svcd.model.cloud import FloatingIp, Network, Opening, Usage
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

T = TypeVar("T")

_OWNERSHIP = ("device_id", "device_owner", "security_groups")


class Networks:
    """One tenant's networks. tenant_id: restricts the lists, which show all tenants to an admin."""

    def __init__(self, rest: Rest, tenant_id: str) -> None:
        self._rest = rest
        self._tenant_id = tenant_id

    async def networks(self) -> Sequence[Network]:
        """The tenant's own networks, and the shared and external ones."""
        return await self._rest.pages("/networks", "networks", _network)

    # ---- security groups ----

    async def find_security_groups(self, name: str) -> Sequence[str]:
        """The ids of the tenant's security groups with that name."""
        return [group_id for group_id, _ in await self._groups(name)]

    async def create_security_group(
        self,
        name: str,
        description: str,
        openings: Sequence[Opening],
        others: Sequence[int] = (),
    ) -> str:
        """Create a security group, or correct an existing one of that name, and return its id.

        Its rules are `openings`, and all traffic between members. A rule that exists already is no
        fault. Of an existing group it removes the other rules for the ports of `openings` and for
        the ports `others`, and leaves rules for further ports alone.
        """
        groups = await self._groups(name)
        if groups:
            group_id, rules = groups[0]
        else:
            new = {"name": name, "description": description}
            body = await self._rest.call("POST", "/security-groups", {"security_group": new})
            group_id, rules = _part(body, "security_group", _group)
        for opening in openings:
            if opening not in [rule.opening for rule in rules]:
                await self._add_rule(group_id, _ether_type(opening.cidr), _of_opening(opening))
        if not any(rule.members == group_id for rule in rules):
            await self._add_rule(group_id, "IPv4", {"remote_group_id": group_id})
        ports = {*others, *(opening.port for opening in openings)}
        for rule in rules:
            if rule.opening is None or rule.opening.port not in ports:
                continue
            if rule.opening not in openings:
                path = f"/security-group-rules/{rule.id}"
                await self._rest.call("DELETE", path, absent_ok=True)
        return group_id

    async def openings(self, prefix: str) -> Mapping[str, Sequence[Opening]]:
        """Name -> openings, for the tenant's groups whose name begins with `prefix`."""
        query = f"tenant_id={quote(self._tenant_id, safe='')}"
        rows = await self._rest.pages(
            f"/security-groups?{query}",
            "security_groups",
            lambda row: (str(row.get("name") or ""), _group(row)[1]),
        )
        return {
            name: sorted(rule.opening for rule in rules if rule.opening is not None)
            for name, rules in rows
            if name.startswith(prefix)
        }

    async def delete_security_group(self, group_id: str) -> bool:
        """Delete a security group. False: the service does not find it, which is no fault."""
        try:
            await self._rest.call("DELETE", f"/security-groups/{group_id}")
        except CloudError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            return False
        return True

    async def server_ports(self, group_id: str) -> Sequence[tuple[str, str]]:
        """The tenant's server ports in a security group, as pairs of port id and server id."""
        tenant = quote(self._tenant_id, safe="")
        names = "".join(f"&fields={name}" for name in ("id", *_OWNERSHIP))
        rows = await self._rest.pages(f"/ports?tenant_id={tenant}{names}", "ports", _owned_port)
        return [(port, server) for port, server, groups in rows if server and group_id in groups]

    async def delete_port(self, port_id: str) -> None:
        """Delete a port. A missing port is no fault."""
        await self._rest.call("DELETE", f"/ports/{port_id}", absent_ok=True)

    async def _groups(self, name: str) -> list[tuple[str, list[_Rule]]]:
        query = f"name={quote(name, safe='')}&tenant_id={quote(self._tenant_id, safe='')}"
        return await self._rest.pages(f"/security-groups?{query}", "security_groups", _group)

    async def _add_rule(self, group_id: str, ether_type: str, what: Mapping[str, Any]) -> None:
        rule = {"security_group_id": group_id, "direction": "ingress", "ethertype": ether_type}
        rule |= what
        try:
            await self._rest.call("POST", "/security-group-rules", {"security_group_rule": rule})
        except RestError as error:
            if error.type != "SecurityGroupRuleExists":
                raise

    # ---- floating IPs ----

    async def floating_ips(self) -> Sequence[FloatingIp]:
        """The floating IPs of the tenant."""
        tenant = quote(self._tenant_id, safe="")
        path = f"/floatingips?tenant_id={tenant}"
        return await self._rest.pages(path, "floatingips", _floating_ip)

    async def create_floating_ip(self, pool: str, description: str) -> FloatingIp:
        """Create a floating IP. Raises CloudError NOT_FOUND for an unknown pool.

        pool: id or name of an external network.
        """
        external = [net for net in await self.networks() if net.external]
        networks = [net for net in external if net.id == pool] or [
            net for net in external if net.name == pool
        ]
        if not networks:
            raise CloudError("network", Fault.NOT_FOUND, f"there is no external network {pool}")
        new = {"floating_network_id": networks[0].id, "description": description}
        body = await self._rest.call("POST", "/floatingips", {"floatingip": new})
        return _part(body, "floatingip", _floating_ip)

    async def associate_floating_ip(self, floating_ip_id: str, server_id: str) -> None:
        """Bind an address to the server's first IPv4 port. Raises CloudError BUSY without one."""
        ports = await self._rest.pages(f"/ports?device_id={server_id}", "ports", _port)
        port_id = next((id_ for id_, has_ipv4 in ports if has_ipv4), None)
        if port_id is None:
            raise CloudError("network", Fault.BUSY, f"server {server_id} has no port yet")
        await self._rest.call(
            "PUT", f"/floatingips/{floating_ip_id}", {"floatingip": {"port_id": port_id}}
        )

    async def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP. A missing one is no fault."""
        await self._rest.call("DELETE", f"/floatingips/{floating_ip_id}", absent_ok=True)

    async def usage(self) -> Mapping[str, Usage]:
        """The tenant's quotas by the fields of `Quota`; none when it gives none."""
        tenant = quote(self._tenant_id, safe="")
        body = await self._rest.call("GET", f"/quotas/{tenant}/details.json", absent_ok=True)
        return {} if body is None else _part(body, "quota", _usage)


def _part(body: Any, name: str, convert: Callable[[Any], T]) -> T:
    """The converted value of `name` in the answer. Raises CloudError SERVER_ERROR."""
    return shaped("network", name, lambda body: convert(body[name]), body)


def _network(row: Mapping[str, Any]) -> Network:
    return Network(
        id=str(row["id"]),
        name=str(row.get("name") or ""),
        external=bool(row.get("router:external")),
    )


@frozen
class _Rule:
    """An ingress rule. opening: of one TCP port to a network. members: the group with access."""

    id: str
    opening: Opening | None
    members: str | None


def _group(row: Mapping[str, Any]) -> tuple[str, list[_Rule]]:
    """Id of a group, and its ingress rules."""
    return str(row["id"]), [
        _Rule(str(rule["id"]), _opening(rule), rule.get("remote_group_id"))
        for rule in row.get("security_group_rules") or ()
        if rule.get("direction") == "ingress"
    ]


def _opening(rule: Mapping[str, Any]) -> Opening | None:
    """The opening that a rule makes; None for rules of another form."""
    port = rule.get("port_range_min")
    if not isinstance(port, int) or rule.get("port_range_max") != port:
        return None
    if rule.get("protocol") != "tcp" or rule.get("remote_group_id"):
        return None
    everywhere = "::/0" if rule.get("ethertype") == "IPv6" else "0.0.0.0/0"
    return Opening(port, str(rule.get("remote_ip_prefix") or everywhere))


def _of_opening(opening: Opening) -> Mapping[str, Any]:
    """The fields of a rule. Neutron means every address when the rule has no network."""
    rule: dict[str, Any] = {"protocol": "tcp"}
    rule |= {"port_range_min": opening.port, "port_range_max": opening.port}
    if opening.cidr not in ("0.0.0.0/0", "::/0"):
        rule["remote_ip_prefix"] = opening.cidr
    return rule


def _ether_type(cidr: str) -> str:
    return "IPv6" if ":" in cidr else "IPv4"


def _port(row: Mapping[str, Any]) -> tuple[str, bool]:
    """Id of a port, and whether the port has an IPv4 address."""
    addresses = [str(ip.get("ip_address")) for ip in row.get("fixed_ips") or ()]
    return str(row["id"]), any("." in address for address in addresses)


def _owned_port(row: Mapping[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """Id of a port, id of its server ("" without one), and its security groups."""
    ours = str(row.get("device_owner") or "").startswith("compute:")
    groups = tuple(str(group) for group in row.get("security_groups") or ())
    return str(row["id"]), str(row.get("device_id") or "") if ours else "", groups


def _usage(quota: Mapping[str, Any]) -> Mapping[str, Usage]:
    known = quota.get("floatingip")
    if not known:
        return {}
    return {"floating_ips": usage(known.get("limit"), known.get("used"), known.get("reserved"))}


def _floating_ip(row: Mapping[str, Any]) -> FloatingIp:
    return FloatingIp(
        id=str(row["id"]),
        address=str(row.get("floating_ip_address") or ""),
        pool_id=str(row.get("floating_network_id") or ""),
        port_id=row.get("port_id"),
        description=str(row.get("description") or ""),
    )
