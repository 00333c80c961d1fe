"""The user's cloud, for commands that must know its flavors, images, key pairs or object store.

URLs: from `endpoints.json` when the daemon there runs the embedded cloud and the command logged in
with it, else from the catalog of the login. It reads only; tokens are those of the session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from svcd.cli.connection import Connections
from svcd.cli.exits import NOT_FOUND, REFUSED, UNREACHABLE, USAGE, CommandError
from svcd.cli.session import Session
from svcd.cli.show import get

_LOCAL: Final[Mapping[str, str]] = {
    "compute": "compute",
    "image": "image",
    "network": "network",
    "object-store": "object_store",
}
"""Type of a service -> its key in `endpoints.json`."""


class Cloud:
    """The services of the session's cloud. connections: default those of the session."""

    def __init__(self, session: Session, connections: Connections | None = None) -> None:
        self._session = session
        self._connections = connections or session.connections
        self._catalog: Sequence[Any] | None = None

    def url(self, kind: str) -> str:
        """The URL of a service, without a slash at its end. Raises CommandError."""
        door, known = self._session.api.door, self._session.endpoints
        if door.auth_url == known.get("identity") and known.get(_LOCAL[kind]):
            return str(known[_LOCAL[kind]]).rstrip("/")
        if self._catalog is None:
            body = self._get(f"{door.auth_url}/auth/catalog", "the catalog")
            self._catalog = body.get("catalog") or []
        environment = self._session.environment
        found = endpoint(
            self._catalog,
            kind,
            environment.get("OS_REGION_NAME") or "",
            (environment.get("OS_INTERFACE") or "public").removesuffix("URL"),
        )
        if not found:
            raise CommandError(f"the catalog of {door.auth_url} has no {kind} service", NOT_FOUND)
        return found.rstrip("/")

    def flavors(self) -> Sequence[Any]:
        """The flavors, smallest memory first."""
        body = self._get(f"{self.url('compute')}/flavors/detail", "the flavors")
        return sorted(
            body.get("flavors") or [], key=lambda each: (each.get("ram", 0), each.get("vcpus", 0))
        )

    def keypairs(self) -> Sequence[str]:
        """The names of the user's key pairs."""
        body = self._get(f"{self.url('compute')}/os-keypairs", "the key pairs")
        return [get(each, "keypair.name") for each in body.get("keypairs") or []]

    def images(self, name: str) -> Sequence[Any]:
        """The images of that name that the user may see."""
        url = self.url("image")
        base = url if url.endswith("/v2") else f"{url}/v2"
        body = self._get(f"{base}/images?name={quote(name, safe='')}", "the images")
        return [each for each in body.get("images") or [] if each.get("name") == name]

    def _get(self, url: str, what: str) -> Any:
        door = self._session.api.door
        if not door.token or not door.auth_url:
            text = f"{what} of the cloud cannot be listed without a login; set OS_AUTH_URL and the"
            raise CommandError(f"{text} other variables, or use --os-cloud", REFUSED)
        headers = {"Accept": "application/json", "X-Auth-Token": door.token}
        answer = self._connections.send("GET", url, None, headers)
        if answer.status != 200:
            code = UNREACHABLE if answer.status >= 500 else REFUSED
            shown = url.partition("?")[0]
            raise CommandError(f"{shown} was answered {answer.status}: no list of {what}", code)
        try:
            body = json.loads(answer.body)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise CommandError(f"{url} did not answer with JSON", UNREACHABLE)
        return body


def endpoint(catalog: Sequence[Any], kind: str, region: str, interface: str) -> str:
    """The URL of the service of type `kind` in a catalog; "" when there is none. Pure."""
    for service in catalog:
        kinds = (kind, "volumev3") if kind == "volume" else (kind,)
        if isinstance(service, dict) and service.get("type") in kinds:
            for each in service.get("endpoints") or []:
                in_region = not region or region in (each.get("region"), each.get("region_id"))
                if each.get("interface") == interface and in_region:
                    return str(each.get("url") or "")
    return ""


LEAST_RAM_MIB: Final = 4096
LEAST_VCPUS: Final = 2
LEAST_DISK_GIB: Final = 20


def fitting_flavor(flavors: Sequence[Any]) -> Any:
    """The smallest flavor on which a machine of a cluster runs. Pure. Raises CommandError.

    flavors: smallest memory first.
    """
    for each in flavors:
        if (
            int(each.get("ram") or 0) >= LEAST_RAM_MIB
            and int(each.get("vcpus") or 0) >= LEAST_VCPUS
            and (int(each.get("disk") or 0) or LEAST_DISK_GIB) >= LEAST_DISK_GIB
        ):
            return each
    if len(flavors) == 1:
        return flavors[0]
    text = f"no flavor has {LEAST_RAM_MIB} MiB of memory, {LEAST_VCPUS} processors and"
    names = ", ".join(get(each, "name") for each in flavors) or "none"
    raise CommandError(
        f"{text} {LEAST_DISK_GIB} GiB of disk; choose one with --flavor: {names}", USAGE
    )
