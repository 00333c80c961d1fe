"""The requests and the JSON objects of the compute service. Pure.

An answer has the fields of every microversion, whichever the request names: a client ignores those
that it does not know.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

import msgspec

from svcd.embedded.cloud.core import FLAVORS, Core
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.openstack import text_of
from svcd.embedded.cloud.records import Flavor, KeyPair, Server, ServerGroup, Volume
from svcd.embedded.services import Call, Refusal

VM_STATES = {
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


class NewGroup(msgspec.Struct):
    name: str
    policy: str | None = None
    policies: list[str] = []


class NewAttachment(msgspec.Struct):
    volumeId: str
    device: str | None = None


class NewKeyPair(msgspec.Struct):
    name: str
    public_key: str | None = None
    type: str = "ssh"


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
    version = (int(match[1]), int(match[2]))
    if not (2, 1) <= version <= newest:
        least = "Minimum is 2.1 and maximum is {}.{}.".format(*newest)
        raise Refusal(406, f"Version {text} is not supported by the API. {least}")
    return version


def version_body(core: Core) -> dict[str, Any]:
    """The version document."""
    media = "application/vnd.openstack.compute+json;version=2.1"
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": "{}.{}".format(*core.newest_compute),
        "min_version": "2.1",
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{core.public_url}/compute/v2.1/"}],
        "media-types": [{"base": "application/json", "type": media}],
    }


def flavor_body(core: Core, flavor: Flavor) -> dict[str, Any]:
    """The JSON object of a flavor."""
    href = f"{core.public_url}/compute/v2.1/flavors/{flavor.id}"
    return {
        "id": flavor.id,
        "name": flavor.name,
        "ram": flavor.ram_mib,
        "vcpus": flavor.vcpus,
        "disk": flavor.disk_gib,
        "swap": 0,
        "rxtx_factor": 1.0,
        "os-flavor-access:is_public": True,
        "OS-FLV-DISABLED:disabled": False,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "links": [{"rel": "self", "href": href}],
        "description": None,
        "extra_specs": {},
    }


def keypair_body(pair: KeyPair) -> dict[str, Any]:
    """The JSON object of a key pair."""
    digest = hashlib.md5(pair.public_key.encode("utf-8"), usedforsecurity=False).hexdigest()
    return {
        "name": pair.name,
        "public_key": pair.public_key,
        "fingerprint": ":".join(re.findall("..", digest)),
        "user_id": pair.user_id,
        "type": "ssh",
    }


def server_body(core: Core, life: Life, server: Server) -> dict[str, Any]:
    """The JSON object of a server."""
    flavor = FLAVORS[server.flavor_id]
    host = hashlib.sha224(f"{server.project_id}/{server.host}".encode()).hexdigest()
    image_href = f"{core.public_url}/compute/images/{server.image_id}"
    image = {"id": server.image_id, "links": [{"rel": "bookmark", "href": image_href}]}
    body: dict[str, Any] = {
        **_FIXED,
        "id": server.id,
        "name": server.name,
        "status": server.status,
        "tenant_id": server.project_id,
        "user_id": server.user_id,
        "metadata": server.metadata,
        "hostId": host if server.host >= 0 and server.status != "BUILD" else "",
        "image": image if server.image_id else "",
        "flavor": {
            "id": flavor.id,
            "original_name": flavor.name,
            "ram": flavor.ram_mib,
            "vcpus": flavor.vcpus,
            "disk": flavor.disk_gib,
            "ephemeral": 0,
            "swap": 0,
            "extra_specs": {},
        },
        "created": text_of(server.created_at, "z"),
        "updated": text_of(server.updated_at, "z"),
        "addresses": _addresses(life, server),
        "links": [{"rel": "self", "href": f"{core.public_url}/compute/v2.1/servers/{server.id}"}],
        "key_name": server.key_name,
        "OS-EXT-STS:task_state": server.task_state,
        "OS-EXT-STS:vm_state": VM_STATES.get(server.status, "active"),
        "OS-EXT-STS:power_state": {"ACTIVE": 1, "SHUTOFF": 4}.get(server.status, 0),
        "os-extended-volumes:volumes_attached": [
            {"id": volume.id, "delete_on_termination": False}
            for volume in core.state.volumes.having("server", server.id)
        ],
        "security_groups": [{"name": name} for name in server.security_groups],
        "server_groups": [] if server.group_id is None else [server.group_id],
    }
    if server.status == "ERROR" and server.fault:
        failed = text_of(server.updated_at, "z")
        body["fault"] = {"code": 500, "message": server.fault, "created": failed}
    return body


def _addresses(life: Life, server: Server) -> dict[str, list[dict[str, Any]]]:
    """The addresses by network; none of a server that builds, failed or goes."""
    ports, floating = life.addresses(server)
    if server.status not in ("ACTIVE", "SHUTOFF") or server.desired == "DELETED" or not ports:
        return {}
    kinds = [(port.address, "fixed") for port in ports]
    kinds += [(ip.address, "floating") for ip in floating]
    mac = ports[0].mac
    return {
        "private": [
            {
                "version": 4,
                "addr": address,
                "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": mac,
            }
            for address, kind in kinds
        ]
    }


def group_body(core: Core, group: ServerGroup) -> dict[str, Any]:
    """The JSON object of a server group."""
    return {
        "id": group.id,
        "name": group.name,
        "members": [server.id for server in core.state.servers.having("group", group.id)],
        "policy": group.policy,
        "rules": {},
        "policies": [group.policy],
        "metadata": {},
        "project_id": group.project_id,
        "user_id": group.user_id,
    }


def attachment_body(volume: Volume) -> dict[str, Any]:
    """The JSON object of the attachment of a volume."""
    return {
        "id": volume.id,
        "volumeId": volume.id,
        "serverId": volume.server_id,
        "device": volume.device,
        "tag": None,
        "delete_on_termination": False,
    }


_FIXED: dict[str, Any] = {
    "accessIPv4": "",
    "accessIPv6": "",
    "OS-DCF:diskConfig": "MANUAL",
    "progress": 0,
    "OS-EXT-AZ:availability_zone": "nova",
    "config_drive": "",
    "OS-SRV-USG:launched_at": None,
    "OS-SRV-USG:terminated_at": None,
    "locked": False,
    "locked_reason": None,
    "description": None,
    "tags": [],
    "trusted_image_certificates": None,
}
"""The fields that all servers have alike."""
