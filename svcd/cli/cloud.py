"""The user's cloud, for commands that must know its flavors, images, key pairs or object store.

URLs come from the catalog of the login. It reads only; tokens are those of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

from svcd.cli.exits import REFUSED, UNREACHABLE, USAGE, CommandError
from svcd.cli.http import READ_S
from svcd.cli.session import Session
from svcd.cli.show import get


class Cloud:
    """The services of the session's cloud. read_s: time for connecting, and for each read."""

    def __init__(self, session: Session, read_s: float = READ_S) -> None:
        self._session = session
        self._read_s = read_s

    def url(self, kind: str) -> str:
        """The URL of a service, without a slash at its end. Raises CommandError."""
        found, environment = self._session.found, self._session.environment
        door = found.door
        if not door.token or not door.auth_url:
            text = f"the {kind} service of the cloud cannot be found without a login; set"
            variables = "OS_AUTH_URL and the other variables, or use --os-cloud"
            raise CommandError(f"{text} {variables}", REFUSED)
        from svcd.cli.login import endpoint

        # region and interface of the variables are for the cloud of OS_AUTH_URL
        own = environment.get("OS_AUTH_URL")
        region = (own and environment.get("OS_REGION_NAME")) or ""
        interface = (own and environment.get("OS_INTERFACE")) or "public"
        return endpoint(found, self._session.http, kind, region, interface)

    def flavors(self) -> Sequence[Any]:
        """The flavors, smallest memory first."""
        body = self._get(f"{self.url('compute')}/flavors/detail", "the flavors")
        return sorted(
            body.get("flavors") or [],
            key=lambda flavor: (flavor.get("ram", 0), flavor.get("vcpus", 0)),
        )

    def keypairs(self) -> Sequence[str]:
        """The names of the user's key pairs."""
        body = self._get(f"{self.url('compute')}/os-keypairs", "the key pairs")
        return [get(row, "keypair.name") for row in body.get("keypairs") or []]

    def images(self, name: str) -> Sequence[Any]:
        """The images of that name that the user may see."""
        url = self.url("image")
        base = url if url.endswith("/v2") else f"{url}/v2"
        body = self._get(f"{base}/images?name={quote(name, safe='')}", "the images")
        return [image for image in body.get("images") or [] if image.get("name") == name]

    def _get(self, url: str, what: str) -> Any:
        headers = {"Accept": "application/json", "X-Auth-Token": self._session.api.door.token}
        answer = self._session.http.send("GET", url, None, headers, self._read_s)
        if answer.status != 200:
            code = UNREACHABLE if answer.status >= 500 else REFUSED
            shown = url.partition("?")[0]
            raise CommandError(f"{shown} was answered {answer.status}: no list of {what}", code)
        body = answer.json
        if not isinstance(body, dict):
            raise CommandError(f"{url} did not answer with an object of JSON", UNREACHABLE)
        return body


LEAST_RAM_MIB: Final = 4096
LEAST_VCPUS: Final = 2
LEAST_DISK_GIB: Final = 20


def fitting_flavor(flavors: Sequence[Any]) -> Any:
    """The smallest flavor on which a machine of a cluster runs. Pure. Raises CommandError.

    flavors: smallest memory first.
    """
    for flavor in flavors:
        if (
            int(flavor.get("ram") or 0) >= LEAST_RAM_MIB
            and int(flavor.get("vcpus") or 0) >= LEAST_VCPUS
            and (int(flavor.get("disk") or 0) or LEAST_DISK_GIB) >= LEAST_DISK_GIB
        ):
            return flavor
    if len(flavors) == 1:
        return flavors[0]
    text = f"no flavor has {LEAST_RAM_MIB} MiB of memory, {LEAST_VCPUS} processors and"
    names = ", ".join(get(flavor, "name") for flavor in flavors) or "none"
    raise CommandError(
        f"{text} {LEAST_DISK_GIB} GiB of disk; choose one with --flavor: {names}", USAGE
    )
