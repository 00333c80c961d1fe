"""Neutron v2.0: networks, ports, floating IPs, security groups, quotas. Source: its API.

There is one internal network, which all projects share, and one external network for floating IPs.
Security groups are stored and not enforced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from attrs import evolve
from klein import Klein

from svcd.embedded.cloud.core import (
    PRIVATE_NETWORK_ID,
    PRIVATE_SUBNET_ID,
    PUBLIC_NETWORK_ID,
    PUBLIC_SUBNET_ID,
    Core,
)
from svcd.embedded.cloud.life import Life, default_rules
from svcd.embedded.cloud.openstack import Call, Service, of_project, page, text_of
from svcd.embedded.cloud.records import FloatingIp, Port, Rule, SecurityGroup
from svcd.embedded.services import Refusal, Reply
from svcd.web.routing import route

_EXTENSIONS = (
    "router",
    "security-group",
    "external-net",
    "quotas",
    "quota_details",
    "project-id",
)
_TIMES = {"created_at": text_of(1_767_225_600, "z"), "updated_at": text_of(1_767_225_600, "z")}


class _NewFloatingIp(msgspec.Struct):
    floating_network_id: str
    port_id: str | None = None
    description: str = ""


class _ChangedFloatingIp(msgspec.Struct):
    port_id: str | msgspec.UnsetType | None = msgspec.UNSET
    description: str | msgspec.UnsetType = msgspec.UNSET


class _NewGroup(msgspec.Struct):
    name: str
    description: str = ""


class _NewRule(msgspec.Struct):
    security_group_id: str
    direction: str
    ethertype: str = "IPv4"
    protocol: str | None = None
    port_range_min: int | None = None
    port_range_max: int | None = None
    remote_ip_prefix: str | None = None
    remote_group_id: str | None = None


class Network(Service):
    """Mounted at /network."""

    app = Klein()
    where = "network"

    def __init__(self, core: Core, life: Life) -> None:
        super().__init__(core)
        self._life = life

    def envelope(self, refusal: Refusal) -> Reply:
        """{"NeutronError": …}; for 401 {"error": …} of the token middleware."""
        if refusal.status == 401:
            return self.unauthorized(refusal)
        kind = refusal.kind or {
            400: "HTTPBadRequest",
            403: "PolicyNotAuthorized",
            404: "HTTPNotFound",
        }.get(refusal.status, "HTTPInternalServerError")
        body = {"NeutronError": {"type": kind, "message": refusal.message, "detail": ""}}
        return Reply(status=refusal.status, body=body, headers=self.headers(refusal))

    def _list(self, call: Call, name: str, rows: Iterable[dict[str, Any]]) -> Reply:
        """The answer of a list: exact filters, `fields` and pages by the query string."""
        found = list(rows)
        for key, values in call.query.items():
            if key in ("limit", "marker", "fields", "sort_key", "sort_dir", "page_reverse"):
                continue
            wanted = {value.lower() for value in values}
            if found and key in found[0]:
                found = [row for row in found if str(row.get(key) or "").lower() in wanted]
        shown, following = page(call, found, lambda row: str(row["id"]), most=10_000)
        fields = call.query.get("fields")
        if fields:
            shown = [{k: v for k, v in row.items() if k in fields} for row in shown]
        return Reply(body={name: shown, **self.next_link(call, name, following)})

    # ---- versions and extensions ----

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        links = [{"rel": "self", "href": f"{self._core.public_url}/network/v2.0/"}]
        version = {"id": "v2.0", "status": "CURRENT", "links": links}
        return Reply(body={"versions": [version]})

    @route(app, ["GET"], "/v2.0")
    def version(self, call: Call) -> Reply:
        return Reply(body={"resources": []})

    @route(app, ["GET"], "/v2.0/extensions")
    def extensions(self, call: Call) -> Reply:
        shown = [
            {"alias": a, "name": a, "description": a, "links": [], "updated": "2026-01-01"}
            for a in _EXTENSIONS
        ]
        return Reply(body={"extensions": shown})

    # ---- networks and subnets ----

    def _networks(self) -> list[dict[str, Any]]:
        return [
            {
                "id": id_,
                "name": name,
                "admin_state_up": True,
                "status": "ACTIVE",
                "subnets": [subnet],
                "shared": not external,
                "router:external": external,
                "port_security_enabled": True,
                "mtu": 65536,
                "availability_zones": ["nova"],
                "availability_zone_hints": [],
                "ipv4_address_scope": None,
                "ipv6_address_scope": None,
                "is_default": False,
                **_common("service"),
            }
            for id_, name, subnet, external in (
                (PRIVATE_NETWORK_ID, "private", PRIVATE_SUBNET_ID, False),
                (PUBLIC_NETWORK_ID, "public", PUBLIC_SUBNET_ID, True),
            )
        ]

    def _subnets(self) -> list[dict[str, Any]]:
        return [
            {
                "id": id_,
                "name": name,
                "network_id": network,
                "cidr": cidr,
                "ip_version": 4,
                "enable_dhcp": True,
                "gateway_ip": None,
                "dns_nameservers": [],
                "host_routes": [],
                "allocation_pools": [],
                **_common("service"),
            }
            for id_, name, network, cidr in (
                (PRIVATE_SUBNET_ID, "private", PRIVATE_NETWORK_ID, self._core.config.network),
                (PUBLIC_SUBNET_ID, "public", PUBLIC_NETWORK_ID, self._core.floating_network),
            )
        ]

    @route(app, ["GET"], "/v2.0/networks")
    def networks(self, call: Call) -> Reply:
        return self._list(call, "networks", self._networks())

    @route(app, ["GET"], "/v2.0/networks/<network_id>")
    def network(self, call: Call, network_id: str) -> Reply:
        found = next((n for n in self._networks() if n["id"] == network_id), None)
        if found is None:
            raise Refusal(404, f"Network {network_id} could not be found.", "NetworkNotFound")
        return Reply(body={"network": found})

    @route(app, ["GET"], "/v2.0/subnets")
    def subnets(self, call: Call) -> Reply:
        return self._list(call, "subnets", self._subnets())

    @route(app, ["GET"], "/v2.0/subnets/<subnet_id>")
    def subnet(self, call: Call, subnet_id: str) -> Reply:
        found = next((n for n in self._subnets() if n["id"] == subnet_id), None)
        if found is None:
            raise Refusal(404, f"Subnet {subnet_id} could not be found.", "SubnetNotFound")
        return Reply(body={"subnet": found})

    @route(app, ["GET"], "/v2.0/routers")
    def routers(self, call: Call) -> Reply:
        return self._list(call, "routers", [])

    # ---- ports ----

    def _port(self, port: Port) -> dict[str, Any]:
        return {
            "id": port.id,
            "name": "",
            "network_id": port.network_id,
            "device_id": port.device_id,
            "device_owner": "compute:nova" if port.device_id else "",
            "mac_address": port.mac,
            "fixed_ips": [{"subnet_id": PRIVATE_SUBNET_ID, "ip_address": port.address}],
            "status": "ACTIVE" if port.device_id else "DOWN",
            "admin_state_up": True,
            "security_groups": list(port.security_groups),
            "allowed_address_pairs": [],
            "extra_dhcp_opts": [],
            "binding:vnic_type": "normal",
            "port_security_enabled": True,
            **_common(port.project_id),
        }

    @route(app, ["GET"], "/v2.0/ports")
    def ports(self, call: Call) -> Reply:
        table, servers = self._core.state.ports, call.query.get("device_id")
        if servers is None:
            mine = of_project(table, call.project)
        else:
            once = dict.fromkeys(servers)
            found = (port for server in once for port in table.having("device", server))
            mine = [port for port in found if port.project_id == call.project]
        return self._list(call, "ports", map(self._port, mine))

    @route(app, ["GET"], "/v2.0/ports/<port_id>")
    def port(self, call: Call, port_id: str) -> Reply:
        return Reply(body={"port": self._port(self._own_port(call, port_id))})

    @route(app, ["DELETE"], "/v2.0/ports/<port_id>")
    def delete_port(self, call: Call, port_id: str) -> Reply:
        self._core.state.ports.remove(self._own_port(call, port_id).id)
        return Reply(status=204)

    def _own_port(self, call: Call, port_id: str) -> Port:
        text = f"Port {port_id} could not be found."
        return call.own(self._core.state.ports, port_id, text, "PortNotFound")

    # ---- floating IPs ----

    def _floating_ip(self, ip: FloatingIp) -> dict[str, Any]:
        port = self._core.state.ports.get(ip.port_id or "")
        return {
            "id": ip.id,
            "floating_network_id": PUBLIC_NETWORK_ID,
            "floating_ip_address": ip.address,
            "port_id": ip.port_id,
            "fixed_ip_address": None if port is None else port.address,
            "router_id": None,
            "status": "DOWN" if port is None else "ACTIVE",
            "port_details": None,
            **_common(ip.project_id),
            "description": ip.description,
        }

    def _own_floating_ip(self, call: Call, ip_id: str) -> FloatingIp:
        text = f"Floating IP {ip_id} could not be found"
        return call.own(self._core.state.floating_ips, ip_id, text, "FloatingIPNotFound")

    @route(app, ["GET"], "/v2.0/floatingips")
    def floating_ips(self, call: Call) -> Reply:
        mine = of_project(self._core.state.floating_ips, call.project)
        return self._list(call, "floatingips", map(self._floating_ip, mine))

    @route(app, ["GET"], "/v2.0/floatingips/<ip_id>")
    def floating_ip(self, call: Call, ip_id: str) -> Reply:
        return Reply(body={"floatingip": self._floating_ip(self._own_floating_ip(call, ip_id))})

    @route(app, ["POST"], "/v2.0/floatingips")
    def create_floating_ip(self, call: Call) -> Reply:
        new = call.read_in("floatingip", _NewFloatingIp)
        state = self._core.state
        if new.floating_network_id == PRIVATE_NETWORK_ID:
            text = f"Network {PRIVATE_NETWORK_ID} is not a valid external network"
            raise Refusal(400, f"Bad floatingip request: {text}.", "BadRequest")
        if new.floating_network_id != PUBLIC_NETWORK_ID:
            raise Refusal(
                404, f"Network {new.floating_network_id} could not be found.", "NetworkNotFound"
            )
        if new.port_id is not None:
            self._own_port(call, new.port_id)
        have = state.floating_ips.count("project", call.project)
        limit = self._core.limit(call.project, "floating_ips")
        if 0 <= limit <= have:
            raise Refusal(409, "Quota exceeded for resources: ['floatingip'].", "OverQuota")
        core = self._core
        address = self._life.free_address(core.floating_network)
        if address is None:
            text = f"No more IP addresses available on network {PUBLIC_NETWORK_ID}."
            raise Refusal(409, text, "IpAddressGenerationFailure")
        ip = FloatingIp(
            id=self._core.new_id(),
            project_id=call.project,
            address=address,
            port_id=None,
            description=new.description,
        )
        state.floating_ips.put(ip)
        if new.port_id is not None:
            ip = self._life.associate(ip, new.port_id)
        return Reply(status=201, body={"floatingip": self._floating_ip(ip)})

    @route(app, ["PUT"], "/v2.0/floatingips/<ip_id>")
    def change_floating_ip(self, call: Call, ip_id: str) -> Reply:
        ip = self._own_floating_ip(call, ip_id)
        change = call.read_in("floatingip", _ChangedFloatingIp)
        if change.description is not msgspec.UNSET:
            ip = evolve(ip, description=change.description)
            self._core.state.floating_ips.put(ip)
        if change.port_id is not msgspec.UNSET:
            if change.port_id is not None:
                self._own_port(call, change.port_id)
            ip = self._life.associate(ip, change.port_id)
        return Reply(body={"floatingip": self._floating_ip(ip)})

    @route(app, ["DELETE"], "/v2.0/floatingips/<ip_id>")
    def delete_floating_ip(self, call: Call, ip_id: str) -> Reply:
        self._life.associate(self._own_floating_ip(call, ip_id), None)
        self._core.state.floating_ips.remove(ip_id)
        return Reply(status=204)

    # ---- security groups ----

    def _rule(self, group: SecurityGroup, rule: Rule) -> dict[str, Any]:
        return {
            "id": rule.id,
            "security_group_id": group.id,
            "direction": rule.direction,
            "ethertype": rule.ethertype,
            "protocol": rule.protocol,
            "port_range_min": rule.port_min,
            "port_range_max": rule.port_max,
            "remote_ip_prefix": rule.remote_prefix,
            "remote_group_id": rule.remote_group_id,
            "remote_address_group_id": None,
            "normalized_cidr": rule.remote_prefix,
            **_common(group.project_id),
            "revision_number": 0,
        }

    def _group(self, group: SecurityGroup) -> dict[str, Any]:
        return {
            "id": group.id,
            "name": group.name,
            "security_group_rules": [self._rule(group, rule) for rule in group.rules],
            "stateful": True,
            "shared": False,
            **_common(group.project_id),
            "description": group.description,
        }

    def _own_group(self, call: Call, group_id: str) -> SecurityGroup:
        text = f"Security group {group_id} does not exist"
        return call.own(self._core.state.security_groups, group_id, text, "SecurityGroupNotFound")

    @route(app, ["GET"], "/v2.0/security-groups")
    def groups(self, call: Call) -> Reply:
        self._life.default_group(call.project)
        table, names = self._core.state.security_groups, call.query.get("name")
        if names is None:
            mine = of_project(table, call.project)
        else:
            wanted = sorted({name.lower() for name in names})
            mine = [g for name in wanted for g in table.having("name", (call.project, name))]
        return self._list(call, "security_groups", map(self._group, mine))

    @route(app, ["GET"], "/v2.0/security-groups/<group_id>")
    def group(self, call: Call, group_id: str) -> Reply:
        return Reply(body={"security_group": self._group(self._own_group(call, group_id))})

    @route(app, ["POST"], "/v2.0/security-groups")
    def create_group(self, call: Call) -> Reply:
        new = call.read_in("security_group", _NewGroup)
        group = SecurityGroup(
            id=self._core.new_id(),
            name=new.name,
            description=new.description,
            project_id=call.project,
            rules=default_rules(self._core),
        )
        self._core.state.security_groups.put(group)
        return Reply(status=201, body={"security_group": self._group(group)})

    @route(app, ["DELETE"], "/v2.0/security-groups/<group_id>")
    def delete_group(self, call: Call, group_id: str) -> Reply:
        self._own_group(call, group_id)
        if self._core.state.ports.count("security_group", group_id):
            raise Refusal(409, f"Security Group {group_id} in use.", "SecurityGroupInUse")
        self._core.state.security_groups.remove(group_id)
        return Reply(status=204)

    @route(app, ["POST"], "/v2.0/security-group-rules")
    def create_rule(self, call: Call) -> Reply:
        new = call.read_in("security_group_rule", _NewRule)
        group = self._own_group(call, new.security_group_id)
        rule = Rule(
            id=self._core.new_id(),
            direction=new.direction,
            ethertype=new.ethertype,
            protocol=new.protocol,
            port_min=new.port_range_min,
            port_max=new.port_range_max,
            remote_prefix=new.remote_ip_prefix,
            remote_group_id=new.remote_group_id,
        )
        for each in group.rules:
            if evolve(each, id=rule.id) == rule:
                text = f"Security group rule already exists. Rule id is {each.id}."
                raise Refusal(409, text, "SecurityGroupRuleExists")
        self._core.state.security_groups.put(evolve(group, rules=(*group.rules, rule)))
        return Reply(status=201, body={"security_group_rule": self._rule(group, rule)})

    @route(app, ["DELETE"], "/v2.0/security-group-rules/<rule_id>")
    def delete_rule(self, call: Call, rule_id: str) -> Reply:
        for group in self._core.state.security_groups.having("rule", rule_id):
            if group.project_id == call.project:
                rules = tuple(rule for rule in group.rules if rule.id != rule_id)
                self._core.state.security_groups.put(evolve(group, rules=rules))
                return Reply(status=204)
        text = f"Security group rule {rule_id} does not exist"
        raise Refusal(404, text, "SecurityGroupRuleNotFound")

    # ---- quotas ----

    def _limits(self, call: Call, project_id: str) -> dict[str, int]:
        if project_id != call.project and "admin" not in call.me.roles:
            raise Refusal(404, "The resource could not be found.", "HTTPNotFound")
        return {"floatingip": self._core.limit(project_id, "floating_ips"), **_FIXED_LIMITS}

    @route(app, ["GET"], "/v2.0/quotas/<project_id>")
    @route(app, ["GET"], "/v2.0/quotas/<project_id>/default")
    def quota(self, call: Call, project_id: str) -> Reply:
        return Reply(body={"quota": self._limits(call, project_id)})

    @route(app, ["GET"], "/v2.0/quotas/<project_id>/details")
    @route(app, ["GET"], "/v2.0/quotas/<project_id>/details.json")
    def quota_details(self, call: Call, project_id: str) -> Reply:
        state = self._core.state
        used = {
            "floatingip": state.floating_ips.count("project", project_id),
            "port": state.ports.count("project", project_id),
            "security_group": state.security_groups.count("project", project_id),
            "security_group_rule": state.security_groups.total(project_id),
        }
        details = {
            name: {"limit": limit, "used": used.get(name, 0), "reserved": 0}
            for name, limit in self._limits(call, project_id).items()
        }
        return Reply(body={"quota": details})


_FIXED_LIMITS = {
    "network": 0,
    "subnet": 0,
    "subnetpool": 0,
    "port": -1,
    "router": 0,
    "rbac_policy": 0,
    "security_group": -1,
    "security_group_rule": -1,
}


def _common(project_id: str) -> dict[str, Any]:
    """The fields that all of Neutron's resources have."""
    owner = {"tenant_id": project_id, "project_id": project_id}
    return {**owner, "description": "", "tags": [], "revision_number": 1, **_TIMES}
