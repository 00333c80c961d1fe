"""The JSON objects of servers, the checks of a new server, and the choice of its host. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from svcd.embedded.cloud.core import FLAVORS, PRIVATE_NETWORK_ID, Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import Call, text_of
from svcd.embedded.cloud.records import Flavor, Image, Server, ServerGroup
from svcd.embedded.services import Refusal

_VM_STATES = {
    "BUILD": "building",
    "ACTIVE": "active",
    "SHUTOFF": "stopped",
    "ERROR": "error",
    "DELETED": "deleted",
}


class Net(msgspec.Struct):
    uuid: str | None = None
    port: str | None = None


class GroupName(msgspec.Struct):
    name: str


class NewServer(msgspec.Struct):
    name: str
    flavorRef: str
    imageRef: str = ""
    key_name: str | None = None
    networks: list[Net] | str | None = None
    user_data: str | None = None
    metadata: dict[str, str] = {}
    security_groups: list[GroupName] = []
    availability_zone: str | None = None
    min_count: int = 1
    max_count: int | None = None


class ServerBody(msgspec.Struct, rename={"hints": "os:scheduler_hints"}):
    server: NewServer
    hints: dict[str, Any] | None = None


class NewSnapshot(msgspec.Struct):
    name: str
    metadata: dict[str, str] = {}


def snapshot(core: Core, server: Server, new: NewSnapshot) -> Image:
    """The image that a snapshot of `server` begins. Raises Refusal 409.

    It has the properties of the server's own image, as Nova's snapshots have. It is a record only:
    a machine of it begins as empty as one of any other image.
    """
    if server.status not in ("ACTIVE", "SHUTOFF") or server.desired == "DELETED":
        state = _VM_STATES.get(server.status, server.status.lower())
        text = f"Cannot 'createImage' instance {server.id} while it is in vm_state {state}"
        raise Refusal(409, text)
    base, now = core.image(server.image_id), core.now()
    inherited = {} if base is None else base.properties
    own = {"instance_uuid": server.id, "base_image_ref": server.image_id, "image_type": "snapshot"}
    return Image(
        id=core.new_id(),
        name=new.name,
        owner=server.project_id,
        visibility="private",
        status="active",
        min_disk_gib=FLAVORS[server.flavor_id].disk_gib,
        min_ram_mib=0 if base is None else base.min_ram_mib,
        size=0,
        properties={**inherited, **own, **new.metadata},
        tags=(),
        created_at=now,
        updated_at=now,
        saved_at=now + core.config.boot_s,
        source_id=server.id,
    )


def asked_version(call: Call) -> str:
    """The microversion that the request names, "" for none."""
    text = call.header("X-OpenStack-Nova-API-Version")
    for part in call.header("OpenStack-API-Version").split(","):
        service, _, version = part.strip().partition(" ")
        if service == "compute":
            text = version.strip()
    return text


def microversion(call: Call, newest: tuple[int, int]) -> tuple[int, int]:
    """The microversion of the request, at most `newest`; (2, 1) without a header.

    Raises Refusal 400 or 406.
    """
    text = asked_version(call)
    if not text:
        return (2, 1)
    if text == "latest":
        return newest
    match = re.fullmatch(r"(\d+)\.(\d+)", text)
    if match is None:
        raise Refusal(400, f"API Version String {text} is of invalid format. Must be of format M.N")
    version_ = (int(match[1]), int(match[2]))
    if not (2, 1) <= version_ <= newest:
        least = "Minimum is 2.1 and maximum is {}.{}.".format(*newest)
        raise Refusal(406, f"Version {text} is not supported by the API. {least}")
    return version_


def flavor_body(core: Core, flavor: Flavor, version: tuple[int, int]) -> dict[str, Any]:
    """The JSON object of a flavor."""
    href = f"{core.public_url}/compute/v2.1/flavors/{flavor.id}"
    body: dict[str, Any] = {
        "id": flavor.id,
        "name": flavor.name,
        "ram": flavor.ram_mib,
        "vcpus": flavor.vcpus,
        "disk": flavor.disk_gib,
        "swap": 0 if version >= (2, 75) else "",
        "rxtx_factor": 1.0,
        "os-flavor-access:is_public": True,
        "OS-FLV-DISABLED:disabled": False,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "links": [{"rel": "self", "href": href}],
    }
    if version >= (2, 55):
        body["description"] = None
    if version >= (2, 61):
        body["extra_specs"] = {}
    return body


def server_body(core: Core, life: Life, server: Server, version: tuple[int, int]) -> dict[str, Any]:
    """The JSON object of a server."""
    flavor = FLAVORS[server.flavor_id]
    href = f"{core.public_url}/compute/v2.1/servers/{server.id}"
    ports, floating = life.addresses(server)
    addresses: dict[str, list[dict[str, Any]]] = {}
    if server.status in ("ACTIVE", "SHUTOFF") and server.desired != "DELETED" and ports:
        mac = ports[0].mac
        addresses["private"] = [
            {
                "version": 4,
                "addr": address,
                "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": mac,
            }
            for address, kind in (
                *((p.address, "fixed") for p in ports),
                *((f.address, "floating") for f in floating),
            )
        ]
    host = hashlib.sha224(f"{server.project_id}/{server.host}".encode()).hexdigest()
    flavor_view: dict[str, Any] = {"id": flavor.id, "links": []}
    if version >= (2, 47):
        flavor_view = {
            "original_name": flavor.name,
            "ram": flavor.ram_mib,
            "vcpus": flavor.vcpus,
            "disk": flavor.disk_gib,
            "ephemeral": 0,
            "swap": 0,
            "extra_specs": {},
        }
    body: dict[str, Any] = {
        "id": server.id,
        "name": server.name,
        "status": server.status,
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "metadata": server.metadata,
        "hostId": host if server.host >= 0 and server.status != "BUILD" else "",
        "image": _image(core, server.image_id) if server.image_id else "",
        "flavor": flavor_view,
        "created": text_of(server.created_at, "z"),
        "updated": text_of(server.updated_at, "z"),
        "addresses": addresses,
        "accessIPv4": "",
        "accessIPv6": "",
        "links": [{"rel": "self", "href": href}],
        "OS-DCF:diskConfig": "MANUAL",
        "progress": 0,
        "OS-EXT-AZ:availability_zone": "nova",
        "config_drive": "",
        "key_name": server.key_name,
        "OS-SRV-USG:launched_at": None,
        "OS-SRV-USG:terminated_at": None,
        "OS-EXT-STS:task_state": server.task_state,
        "OS-EXT-STS:vm_state": _VM_STATES.get(server.status, "active"),
        "OS-EXT-STS:power_state": {"ACTIVE": 1, "SHUTOFF": 4}.get(server.status, 0),
        "os-extended-volumes:volumes_attached": [
            {"id": v.id, "delete_on_termination": False}
            for v in core.state.volumes.having("server", server.id)
        ],
        "security_groups": [{"name": name} for name in server.security_groups],
    }
    if server.status == "ERROR" and server.fault:
        body["fault"] = {
            "code": 500,
            "message": server.fault,
            "created": text_of(server.updated_at, "z"),
        }
    if version >= (2, 9):
        body["locked"] = False
    if version >= (2, 19):
        body["description"] = None
    if version >= (2, 26):
        body["tags"] = []
    if version >= (2, 63):
        body["trusted_image_certificates"] = None
    if version >= (2, 73):
        body["locked_reason"] = None
    if version >= (2, 71):
        body["server_groups"] = [] if server.group_id is None else [server.group_id]
    return body


def _image(core: Core, image_id: str) -> dict[str, Any]:
    href = f"{core.public_url}/compute/images/{image_id}"
    return {"id": image_id, "links": [{"rel": "bookmark", "href": href}]}


def check_networks(
    core: Core, project_id: str, networks: list[Net] | str | None, version: tuple[int, int]
) -> None:
    """Check the requested networks. Raises Refusal 400 or 409."""
    if networks is None or (networks in ("auto", "none") and version >= (2, 37)):
        return
    if isinstance(networks, str):
        raise Refusal(400, f"Invalid input for field/attribute networks. Value: {networks}.")
    for each in networks:
        port = core.state.ports.get(each.port or "")
        if port is not None and port.project_id == project_id and port.device_id:
            raise Refusal(409, f"Port {port.id} is still in use.")
        if each.uuid != PRIVATE_NETWORK_ID:
            raise Refusal(400, f"Network {each.uuid or each.port} could not be found.")


def check_quota(core: Core, project_id: str, flavor: Flavor, count: int) -> None:
    """Check that the quota allows `count` more servers. Raises Refusal 403."""
    used = core.used(project_id)
    for word, name, more in (
        ("instances", "instances", count),
        ("cores", "cores", count * flavor.vcpus),
        ("ram", "ram_mib", count * flavor.ram_mib),
    ):
        limit = core.limit(project_id, name)
        if 0 <= limit < used[name] + more:
            text = f"Quota exceeded for {word}: Requested {more}, "
            raise Refusal(403, text + f"but already used {used[name]} of {limit} {word}")


def choose_host(core: Core, group: ServerGroup | None, members: Sequence[Server]) -> int:
    """The host of a new server; -1 when the group's policy leaves none."""
    if group is None or group.policy not in ("anti-affinity", "affinity"):
        return core.rng.randrange(core.hosts)
    taken = {member.host for member in members if member.host >= 0}
    if group.policy == "affinity" and taken:
        return min(taken)
    free = [host for host in range(core.hosts) if host not in taken]
    return core.rng.choice(free) if free else -1
