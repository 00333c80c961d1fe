"""Neutron v2.0: networks, ports, floating IPs, security groups, quotas. Source: its API.

There is one internal network, which all projects share, and one external network for floating IPs.
Security groups are stored and not enforced.
"""

from __future__ import annotations

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
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import (
    OpenStackService,
    caller,
    owned,
    project_of,
    text_of,
)
from svcd.embedded.cloud.records import FloatingIp, Port, Rule, SecurityGroup
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route

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


class Network(OpenStackService):
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

    @route(app, ["GET"], "/")
    def versions(self, call: Call) -> Reply:
        links = [{"rel": "self", "href": f"{self._core.public_url}/network/v2.0/"}]
        version = {"id": "v2.0", "status": "CURRENT", "links": links}
        return Reply(body={"versions": [version]})

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
        return self.listing(call, "networks", self._networks())

    @route(app, ["GET"], "/v2.0/networks/<network_id>")
    def network(self, call: Call, network_id: str) -> Reply:
        return Reply(body={"network": _one(self._networks(), network_id, "Network")})

    @route(app, ["GET"], "/v2.0/subnets")
    def subnets(self, call: Call) -> Reply:
        return self.listing(call, "subnets", self._subnets())

    @route(app, ["GET"], "/v2.0/subnets/<subnet_id>")
    def subnet(self, call: Call, subnet_id: str) -> Reply:
        return Reply(body={"subnet": _one(self._subnets(), subnet_id, "Subnet")})

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
            ports = table.having("project", project_of(call))
        else:
            ports = [
                port for server in dict.fromkeys(servers) for port in table.having("device", server)
            ]
        mine = [self._port(port) for port in ports if port.project_id == project_of(call)]
        return self.listing(call, "ports", mine)

    @route(app, ["GET"], "/v2.0/ports/<port_id>")
    def port(self, call: Call, port_id: str) -> Reply:
        return Reply(body={"port": self._port(self._own_port(call, port_id))})

    @route(app, ["DELETE"], "/v2.0/ports/<port_id>")
    def delete_port(self, call: Call, port_id: str) -> Reply:
        self._core.state.ports.remove(self._own_port(call, port_id).id)
        return Reply(status=204)

    def _own_port(self, call: Call, port_id: str) -> Port:
        text = f"Port {port_id} could not be found."
        return owned(call, self._core.state.ports, port_id, text, "PortNotFound")

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
        return owned(call, self._core.state.floating_ips, ip_id, text, "FloatingIPNotFound")

    @route(app, ["GET"], "/v2.0/floatingips")
    def floating_ips(self, call: Call) -> Reply:
        mine = self._core.state.floating_ips.having("project", project_of(call))
        return self.listing(call, "floatingips", map(self._floating_ip, mine))

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
        have = state.floating_ips.count("project", project_of(call))
        limit = self._core.limit(project_of(call), "floating_ips")
        if 0 <= limit <= have:
            raise Refusal(409, "Quota exceeded for resources: ['floatingip'].", "OverQuota")
        core = self._core
        address = self._life.free_address(core.floating_network)
        if address is None:
            text = f"No more IP addresses available on network {PUBLIC_NETWORK_ID}."
            raise Refusal(409, text, "IpAddressGenerationFailure")
        ip = FloatingIp(
            id=self._core.new_id(),
            project_id=project_of(call),
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

    def _rule(self, rule: Rule) -> dict[str, Any]:
        return {
            "id": rule.id,
            "security_group_id": rule.group_id,
            "direction": rule.direction,
            "ethertype": rule.ethertype,
            "protocol": rule.protocol,
            "port_range_min": rule.port_min,
            "port_range_max": rule.port_max,
            "remote_ip_prefix": rule.remote_prefix,
            "remote_group_id": rule.remote_group_id,
            "remote_address_group_id": None,
            "normalized_cidr": rule.remote_prefix,
            **_common(rule.project_id),
        }

    def _group(self, group: SecurityGroup) -> dict[str, Any]:
        rules = self._core.state.rules.having("group", group.id)
        return {
            "id": group.id,
            "name": group.name,
            "security_group_rules": [self._rule(rule) for rule in rules],
            "stateful": True,
            "shared": False,
            **_common(group.project_id),
            "description": group.description,
        }

    def _own_group(self, call: Call, group_id: str) -> SecurityGroup:
        text = f"Security group {group_id} does not exist"
        return owned(
            call, self._core.state.security_groups, group_id, text, "SecurityGroupNotFound"
        )

    @route(app, ["GET"], "/v2.0/security-groups")
    def groups(self, call: Call) -> Reply:
        project, names = project_of(call), call.query.get("name")
        self._life.default_group(project)
        table = self._core.state.security_groups
        if names is None:
            mine = table.having("project", project)
        else:
            wanted = sorted({name.lower() for name in names})
            mine = [group for name in wanted for group in table.having("name", (project, name))]
        return self.listing(call, "security_groups", map(self._group, mine))

    @route(app, ["GET"], "/v2.0/security-groups/<group_id>")
    def group(self, call: Call, group_id: str) -> Reply:
        return Reply(body={"security_group": self._group(self._own_group(call, group_id))})

    @route(app, ["POST"], "/v2.0/security-groups")
    def create_group(self, call: Call) -> Reply:
        new = call.read_in("security_group", _NewGroup)
        group = self._life.new_group(project_of(call), new.name, new.description)
        return Reply(status=201, body={"security_group": self._group(group)})

    @route(app, ["DELETE"], "/v2.0/security-groups/<group_id>")
    def delete_group(self, call: Call, group_id: str) -> Reply:
        self._own_group(call, group_id)
        if self._core.state.ports.count("security_group", group_id):
            raise Refusal(409, f"Security Group {group_id} in use.", "SecurityGroupInUse")
        self._core.state.security_groups.remove(group_id)
        for rule in self._core.state.rules.having("group", group_id):
            self._core.state.rules.remove(rule.id)
        return Reply(status=204)

    @route(app, ["POST"], "/v2.0/security-group-rules")
    def create_rule(self, call: Call) -> Reply:
        new = call.read_in("security_group_rule", _NewRule)
        group = self._own_group(call, new.security_group_id)
        rule = Rule(
            id=self._core.new_id(),
            group_id=group.id,
            project_id=group.project_id,
            direction=new.direction,
            ethertype=new.ethertype,
            protocol=new.protocol,
            port_min=new.port_range_min,
            port_max=new.port_range_max,
            remote_prefix=new.remote_ip_prefix,
            remote_group_id=new.remote_group_id,
        )
        rules = self._core.state.rules
        for known in rules.having("group", group.id):
            if evolve(known, id=rule.id) == rule:
                text = f"Security group rule already exists. Rule id is {known.id}."
                raise Refusal(409, text, "SecurityGroupRuleExists")
        rules.put(rule)
        return Reply(status=201, body={"security_group_rule": self._rule(rule)})

    @route(app, ["GET"], "/v2.0/security-group-rules")
    def rules(self, call: Call) -> Reply:
        mine = self._core.state.rules.having("project", project_of(call))
        return self.listing(call, "security_group_rules", map(self._rule, mine))

    @route(app, ["DELETE"], "/v2.0/security-group-rules/<rule_id>")
    def delete_rule(self, call: Call, rule_id: str) -> Reply:
        text = f"Security group rule {rule_id} does not exist"
        rules = self._core.state.rules
        rules.remove(owned(call, rules, rule_id, text, "SecurityGroupRuleNotFound").id)
        return Reply(status=204)

    # ---- quotas ----

    def _limits(self, call: Call, project_id: str) -> dict[str, int]:
        if project_id != project_of(call) and "admin" not in caller(call).roles:
            raise Refusal(404, "The resource could not be found.", "HTTPNotFound")
        return {"floatingip": self._core.limit(project_id, "floating_ips"), **_FIXED_LIMITS}

    @route(app, ["GET"], "/v2.0/quotas/<project_id>")
    def quota(self, call: Call, project_id: str) -> Reply:
        return Reply(body={"quota": self._limits(call, project_id)})

    @route(app, ["GET"], "/v2.0/quotas/<project_id>/details.json")
    def quota_details(self, call: Call, project_id: str) -> Reply:
        state = self._core.state
        used = {
            "floatingip": state.floating_ips.count("project", project_id),
            "port": state.ports.count("project", project_id),
            "security_group": state.security_groups.count("project", project_id),
            "security_group_rule": state.rules.count("project", project_id),
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


def _one(rows: list[dict[str, Any]], id_: str, kind: str) -> dict[str, Any]:
    """The row with the id. Raises Refusal 404."""
    for row in rows:
        if row["id"] == id_:
            return row
    raise Refusal(404, f"{kind} {id_} could not be found.", f"{kind}NotFound")


def _common(project_id: str) -> dict[str, Any]:
    """The fields of every resource of Neutron."""
    owner = {"tenant_id": project_id, "project_id": project_id}
    return {**owner, "description": "", "tags": [], "revision_number": 1, **_TIMES}
