"""Nova v2.1: flavors, key pairs, servers, groups, attachments, limits.

The client works with every microversion up to 2.79. It requests 2.79, or the newest microversion of
an older service.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from svcd.clients.rest import Rest, RestError, shaped, usage
from svcd.model.cloud import Flavor, KeyPair, NewServer, Server, Usage
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

T = TypeVar("T")

_Body = Mapping[str, Any] | Callable[[tuple[int, int]], Mapping[str, Any]]

_PREFERRED = (2, 79)
"""The newest microversion that this client knows."""
_PAGE = 1000
"""Entries of one page of a list."""
_MOST_FAULTS = 10
"""Servers in ERROR whose fault is read one by one, per list."""


class Compute:
    """One tenant's compute service. versions: microversion by base URL, shared by all tenants."""

    def __init__(self, rest: Rest, versions: dict[str, tuple[int, int]]) -> None:
        self._rest = rest
        self._versions = versions

    async def flavors(self) -> Sequence[Flavor]:
        """All flavors that the tenant may use."""
        return await self._rest.pages("/flavors/detail", "flavors", _flavor, limit=_PAGE)

    async def keypair(self, name: str) -> KeyPair:
        """One key pair of the user. Raises CloudError NOT_FOUND."""
        body = await self._call("GET", f"/os-keypairs/{quote(name, safe='')}")
        return _part(
            body,
            "keypair",
            lambda row: KeyPair(name=str(row["name"]), public_key=str(row["public_key"])),
        )

    async def keypairs(self) -> Sequence[str]:
        """The names of the user's key pairs."""
        names = lambda rows: [str(row["keypair"]["name"]) for row in rows]  # noqa: E731
        return _part(await self._call("GET", "/os-keypairs"), "keypairs", names)

    async def create_keypair(self, name: str, public_key: str) -> None:
        """Create a key pair of the user. Raises CloudError BUSY when the name is taken."""
        await self._call(
            "POST", "/os-keypairs", {"keypair": {"name": name, "public_key": public_key}}
        )

    async def delete_keypair(self, name: str) -> None:
        """Delete a key pair of the user. A missing key pair is no fault."""
        await self._call("DELETE", f"/os-keypairs/{quote(name, safe='')}", absent_ok=True)

    async def usage(self) -> Mapping[str, Usage]:
        """The tenant's quotas by the fields of `Quota`."""
        return _part(await self._call("GET", "/limits"), "limits", _usage)

    # ---- servers ----

    async def servers(self, metadata: Mapping[str, str], name_prefix: str = "") -> Sequence[Server]:
        """The tenant's servers with all of `metadata` and names that begin with `name_prefix`.

        The service filters by name (a regular expression). This client filters by metadata,
        because the service's tag filter does not find servers that are not scheduled yet.
        """
        path = "/servers/detail"
        if name_prefix:
            path += "?name=" + quote("^" + re.escape(name_prefix).replace(r"\-", "-"), safe="")
        wanted = metadata.items()

        def mine(row: dict[str, Any]) -> Server | None:
            return _server(row) if wanted <= (row.get("metadata") or {}).items() else None

        rows = await self._negotiated(
            lambda version: self._rest.pages(
                path, "servers", mine, limit=_PAGE, headers=_headers(version)
            )
        )
        return await self._with_faults([row for row in rows if row is not None])

    async def _with_faults(self, servers: Sequence[Server]) -> Sequence[Server]:
        """`servers` with the fault of the first servers in ERROR, read one by one.

        A list does not have the fault of a server for which no host was found. A server that is
        gone meanwhile stays as listed.
        """
        failed = [s for s in servers if s.status == "ERROR" and not (s.fault or s.task_state)]
        read: dict[str, Server] = {}
        for server in sorted(failed, key=lambda server: server.name)[:_MOST_FAULTS]:
            try:
                read[server.id] = await self.server(server.id)
            except CloudError as error:
                if error.kind is not Fault.NOT_FOUND:
                    raise
        return [read.get(server.id, server) for server in servers]

    async def server(self, server_id: str) -> Server:
        """One server. Raises CloudError NOT_FOUND."""
        return _part(await self._call("GET", f"/servers/{server_id}"), "server", _server)

    async def create_server(self, new: NewServer, network_id: str | None) -> str:
        """Create a server and return its id. network_id None: the service chooses the networks."""
        server: dict[str, Any] = {
            "name": new.name,
            "imageRef": new.image_id,
            "flavorRef": new.flavor_id,
            "metadata": dict(new.metadata),
        }
        if new.keypair is not None:
            server["key_name"] = new.keypair
        if network_id is not None:
            server["networks"] = [{"uuid": network_id}]
        if new.security_groups:
            server["security_groups"] = [{"name": group} for group in new.security_groups]
        if new.user_data:
            server["user_data"] = base64.b64encode(new.user_data.encode("utf-8")).decode("ascii")
        body: dict[str, Any] = {"server": server}
        if new.server_group_id is not None:
            body["os:scheduler_hints"] = {"group": new.server_group_id}

        def of(version: tuple[int, int]) -> dict[str, Any]:
            if network_id is None and version >= (2, 37):
                return {**body, "server": {**server, "networks": "auto"}}
            return body

        return _part(await self._call("POST", "/servers", of), "server", _id)

    async def delete_server(self, server_id: str) -> None:
        """Delete a server. A missing server is no fault."""
        await self._call("DELETE", f"/servers/{server_id}", absent_ok=True)

    async def set_metadata(self, server_id: str, metadata: Mapping[str, str]) -> None:
        """Add or replace entries of a server's metadata. Raises CloudError BUSY while it builds."""
        body = {"metadata": dict(metadata)}
        await self._call("POST", f"/servers/{server_id}/metadata", body)

    async def stop_server(self, server_id: str) -> None:
        """Shut a server down. Raises CloudError BUSY in a status other than ACTIVE."""
        await self._action(server_id, {"os-stop": None})

    async def create_image(self, server_id: str, name: str, properties: Mapping[str, str]) -> None:
        """Begin a snapshot of a server: an image of that name with those properties.

        The service names its id in another place in each version, so callers find it by its name.
        """
        image = {"name": name, "metadata": dict(properties)}
        await self._action(server_id, {"createImage": image})

    async def console(self, server_id: str, lines: int) -> str:
        """The last lines of a server's console; "" when the service has none."""
        try:
            body = await self._action(server_id, {"os-getConsoleOutput": {"length": lines}})
        except RestError as error:
            if error.status in (400, 404, 409, 501):
                return ""
            raise
        return _part(body, "output", str)

    async def _action(self, server_id: str, action: Mapping[str, Any]) -> Any:
        return await self._call("POST", f"/servers/{server_id}/action", action)

    # ---- server groups ----

    async def create_server_group(self, name: str) -> str:
        """Create an anti-affinity group and return its id."""

        def of(version: tuple[int, int]) -> dict[str, Any]:
            policy: dict[str, Any] = {"policies": ["anti-affinity"]}
            if version >= (2, 64):
                policy = {"policy": "anti-affinity"}
            return {"server_group": {"name": name, **policy}}

        body = await self._call("POST", "/os-server-groups", of)
        return _part(body, "server_group", _id)

    async def find_server_groups(self, name: str) -> Sequence[str]:
        """The ids of the server groups with that name."""
        groups = await server_groups(partial(self._call, "GET"))
        return [id_ for id_, its_name in groups if its_name == name]

    async def delete_server_group(self, group_id: str) -> bool:
        """Delete a server group. False: the service does not find it, which is no fault."""
        try:
            await self._call("DELETE", f"/os-server-groups/{group_id}")
        except CloudError as error:
            if error.kind is not Fault.NOT_FOUND:
                raise
            return False
        return True

    # ---- attachments ----

    async def attach_volume(self, server_id: str, volume_id: str) -> str:
        """Attach a volume and return its device name. An attached volume is no fault."""
        path = f"/servers/{server_id}/os-volume_attachments"
        try:
            body = await self._call("POST", path, {"volumeAttachment": {"volumeId": volume_id}})
        except RestError as error:
            if error.status != 400 or error.kind is not Fault.BUSY:
                raise
            devices = _part(
                await self._call("GET", path),
                "volumeAttachments",
                lambda rows: {row["volumeId"]: _device(row) for row in rows},
            )
            if volume_id not in devices:
                raise
            return devices[volume_id]
        return _part(body, "volumeAttachment", _device)

    async def detach_volume(self, server_id: str, volume_id: str) -> None:
        """Detach a volume. A volume that is not attached is no fault."""
        path = f"/servers/{server_id}/os-volume_attachments/{volume_id}"
        await self._call("DELETE", path, absent_ok=True)

    # ---- microversion ----

    async def version(self) -> tuple[int, int]:
        """The newest microversion that service and client know. Raises CloudError REFUSED."""
        base = await self._rest.base()
        known = self._versions.get(base)
        if known is None:
            lowest, highest = await self.spoken()
            if lowest > _PREFERRED:
                text = f"{base} speaks {_shown(lowest)} to {_shown(highest)}, svcd needs up to 2.79"
                raise CloudError("compute", Fault.REFUSED, text)
            known = self._versions[base] = min(_PREFERRED, max(highest, (2, 1)))
        return known

    async def spoken(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The oldest and the newest microversion of the service."""
        return _part(await self._rest.call("GET", "/"), "version", _range)

    async def _call(
        self, method: str, path: str, body: _Body | None = None, absent_ok: bool = False
    ) -> Any:
        """The answer to a call. body: a function gets the microversion of the call."""
        return await self._negotiated(
            lambda version: self._rest.call(
                method,
                path,
                body(version) if callable(body) else body,
                headers=_headers(version),
                absent_ok=absent_ok,
            )
        )

    async def _negotiated(self, send: Callable[[tuple[int, int]], Awaitable[T]]) -> T:
        """Run `send` with the newest common microversion.

        After a downgrade the service answers 406 and does nothing: the client reads the versions
        again and repeats `send`. During an upgrade old and new services may answer in turn, so a
        second 406 is BUSY.
        """
        for last in (False, True):
            version = await self.version()
            try:
                return await send(version)
            except RestError as error:
                if error.status != 406:
                    raise
                self._versions.pop(await self._rest.base(), None)
                if last:
                    text = f"the versions it speaks change: {error.text}"
                    raise RestError(error.service, Fault.BUSY, text, status=406) from None
        raise AssertionError("the last try returns or raises")


async def server_groups(get: Callable[[str], Awaitable[Any]]) -> Sequence[tuple[str, str]]:
    """Id and name of each server group of the tenant, by pages. get: the answer of a path."""
    groups: list[tuple[str, str]] = []
    for offset in range(0, 100 * _PAGE, _PAGE):
        rows = _part(
            await get(f"/os-server-groups?limit={_PAGE}&offset={offset}"),
            "server_groups",
            lambda rows: [(str(row["id"]), str(row.get("name"))) for row in rows],
        )
        groups += rows
        if len(rows) < _PAGE:
            break
    return groups


def _headers(version: tuple[int, int]) -> Mapping[str, str]:
    if version == (2, 1):
        return {}
    text = _shown(version)
    return {"OpenStack-API-Version": f"compute {text}", "X-OpenStack-Nova-API-Version": text}


def _part(body: Any, name: str, convert: Callable[[Any], T]) -> T:
    """The converted value of `name` in the answer. Raises CloudError SERVER_ERROR."""
    return shaped("compute", name, lambda body: convert(body[name]), body)


def _range(document: Mapping[str, Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Oldest and newest microversion, 2.1 for a service without them. Raises ValueError."""

    def pair(name: str) -> tuple[int, int]:
        major, _, minor = (document.get(name) or "2.1").partition(".")
        return int(major), int(minor)

    return pair("min_version"), pair("version")


def _shown(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)


def _id(row: Mapping[str, Any]) -> str:
    return str(row["id"])


def _device(row: Mapping[str, Any]) -> str:
    return str(row.get("device") or "")


def _flavor(row: Mapping[str, Any]) -> Flavor:
    return Flavor(
        id=str(row["id"]),
        name=str(row.get("name", "")),
        ram_mib=int(row.get("ram") or 0),
        vcpus=int(row.get("vcpus") or 0),
        disk_gib=int(row.get("disk") or 0),
    )


def _usage(row: Mapping[str, Any]) -> Mapping[str, Usage]:
    known = row["absolute"]
    return {
        "instances": usage(known.get("maxTotalInstances"), known.get("totalInstancesUsed")),
        "cores": usage(known.get("maxTotalCores"), known.get("totalCoresUsed")),
        "ram_mib": usage(known.get("maxTotalRAMSize"), known.get("totalRAMUsed")),
    }


def _server(row: Mapping[str, Any]) -> Server:
    addresses = [
        (
            address.get("version", 4),
            str(address["addr"]),
            str(address.get("OS-EXT-IPS:type", "fixed")),
        )
        for network in (row.get("addresses") or {}).values()
        for address in network
    ]
    addresses.sort(key=lambda address: address[0] != 4)
    return Server(
        id=str(row["id"]),
        name=str(row.get("name", "")),
        status=str(row.get("status", "UNKNOWN")),
        task_state=row.get("OS-EXT-STS:task_state"),
        addresses=tuple((address, kind) for _, address, kind in addresses),
        fault=str((row.get("fault") or {}).get("message", "")).strip(),
        metadata=dict(row.get("metadata") or {}),
        host_id=str(row.get("hostId") or ""),
    )
