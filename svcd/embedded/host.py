# mypy: allow-untyped-calls
"""The embedded cloud on the reactor: its listener, its loopback machines, its description.

The daemon uses it only through HTTP, with the settings that `client_settings` returns.
"""

from __future__ import annotations

import contextlib
import os
import random
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from twisted.internet.interfaces import IListeningPort
from twisted.web.pages import forbidden
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

from svcd.embedded.cloud.cloud import EmbeddedCloud
from svcd.embedded.cloud.core import (
    DEMO_KEYPAIR,
    FLAVORS,
    LOGIN,
    PLAIN_IMAGE_ID,
    SERVICE_PROJECT,
    SERVICE_USER,
    VANILLA_IMAGE_ID,
)
from svcd.embedded.faults import Faults
from svcd.embedded.machines import LoopbackMachines
from svcd.runtime.listening import ListenError, listen, url_of, with_port
from svcd.runtime.same_origin import SameOrigin
from svcd.settings import CloudSettings, Settings

_MACHINE_BYTES = 512 << 20
"""Memory of this machine for each loopback machine: a worker has two JVMs, a master more."""


def machines_for(memory_bytes: int) -> int:
    """The number of loopback machines for which a machine with so much memory has room."""
    return max(1, memory_bytes // _MACHINE_BYTES)


def memory_bytes() -> int:
    """The physical memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


class _QuietSite(Site):
    """A site without a log line for each request: the daemon's own log is enough.

    It refuses requests that web pages of others send by a browser.
    """

    noisy = False
    displayTracebacks = False

    def __init__(self, resource: IResource, same_origin: SameOrigin) -> None:
        super().__init__(resource, parsePOSTFormSubmission=False)
        self._same_origin = same_origin

    def getResourceFor(self, request: Request) -> IResource:
        """See Site."""
        fault = self._same_origin.fault(request.requestHeaders)
        page = forbidden(message=fault) if fault else super().getResourceFor(request)
        return cast("IResource", page)

    def log(self, request: object) -> None:
        """Nothing."""


class EmbeddedHost:
    """One embedded cloud in a state folder.

    image_problem: "" when the vanilla software tree can be used, else what to do about it.
    """

    def __init__(
        self,
        reactor: Any,
        settings: Settings,
        state: Path,
        image_problem: Callable[[Path], str],
        *,
        admin: bool = False,
    ) -> None:
        self._reactor = reactor
        self._settings = settings
        self._state = state
        self._alone = admin
        prefix = image_prefix(settings, state)
        self.faults = Faults()
        self._machines = LoopbackMachines(
            reactor,
            reactor,
            state / "cloud",
            settings.embedded.ssh_port,
            prefix,
            os.environ,
        )
        self.cloud = EmbeddedCloud(
            reactor,
            settings.embedded,
            self._machines,
            self.faults,
            state,
            "",
            lambda: str(uuid.uuid4()),
            random.Random(),
            lambda: image_problem(prefix),
            admin=admin,
            most_servers=machines_for(memory_bytes()),
        )
        self._port: IListeningPort | None = None
        self._origin = ""

    async def start(self) -> None:
        """End strays, adopt the machines of a former process, listen. Raises ListenError."""
        await self._machines.reconcile([s.id for s in self.cloud.core.state.servers.values()])
        await self.cloud.adopt()
        same_origin = SameOrigin.at(self._settings.cloud.listen, self._settings.server.hosts)
        site = _QuietSite(self.cloud.resource, same_origin)
        self._port = await self._listen(site)
        self._origin = url_of(self._port, self._settings.cloud.listen)
        self.cloud.set_public_url(self._origin)
        self.cloud.core.demo_public_key()
        self.cloud.start()

    async def _listen(self, site: Site) -> IListeningPort:
        """With port 0: use the former process's port if it is free, because jobs know its URL."""
        endpoint = self._settings.cloud.listen
        known = self._state / "cloud" / "port"
        try:
            again = with_port(endpoint, int(known.read_text(encoding="ascii")))
        except (OSError, ValueError):
            again = ""
        if again:
            with contextlib.suppress(ListenError):
                return await listen(self._reactor, "cloud.listen", again, site)
        port = await listen(self._reactor, "cloud.listen", endpoint, site)
        number = getattr(port.getHost(), "port", None)
        if number is not None and with_port(endpoint, number):
            known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            known.write_text(f"{number}\n", encoding="ascii")
        return port

    async def stop(self) -> None:
        """Close the listener; machines live on."""
        if self._port is not None:
            await cast("Any", self._port.stopListening())
        await self.cloud.stop()

    def client_settings(self) -> CloudSettings:
        """The settings with which a daemon uses this cloud."""
        return self.cloud.client_settings(self._settings)

    def _password(self, name: str) -> str:
        return self.cloud.core.users_by_name[name].password

    def _service(self) -> Mapping[str, str]:
        """The account that a daemon in another process uses."""
        return {
            "username": SERVICE_USER,
            "password": self._password(SERVICE_USER),
            "project": SERVICE_PROJECT,
        }

    def endpoints(self) -> Mapping[str, Any]:
        """The part of `endpoints.json` on the embedded cloud."""
        origin, settings = self._origin, self._settings
        tenant = settings.embedded.tenant
        return {
            "identity": f"{origin}/identity/v3",
            "compute": f"{origin}/compute/v2.1",
            "image": f"{origin}/image",
            "network": f"{origin}/network",
            "volume": f"{origin}/volume/v3/{tenant}",
            "object_store": f"{origin}/object-store/v1/AUTH_{tenant}",
            "tenant": tenant,
            "username": settings.embedded.username,
            "password": self._password(settings.embedded.username),
            **({"service": self._service()} if self._alone else {}),
            "images": [
                {
                    "id": VANILLA_IMAGE_ID,
                    "name": "vanilla-3.5.0",
                    "username": LOGIN,
                    "tags": ["vanilla", "3.5.0"],
                },
                {"id": PLAIN_IMAGE_ID, "name": "plain", "username": LOGIN, "tags": []},
            ],
            "flavors": [{"id": f.id, "name": f.name} for f in FLAVORS.values()],
            "keypairs": [DEMO_KEYPAIR],
        }


def image_prefix(settings: Settings, state: Path) -> Path:
    """The software tree of the loopback machines."""
    if settings.embedded.image_prefix:
        return Path(settings.embedded.image_prefix).absolute()
    return state / "image" / "vanilla-3.5.0"
