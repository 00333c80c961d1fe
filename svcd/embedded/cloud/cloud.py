# mypy: allow-untyped-calls
"""The embedded cloud as one resource: `/identity`, `/compute`, … each with its own Klein app."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.http import datetimeToString
from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from svcd.embedded.cloud.admin import Admin
from svcd.embedded.cloud.compute import Compute
from svcd.embedded.cloud.core import SERVICE_PROJECT, SERVICE_USER, Core
from svcd.embedded.cloud.guests import Guests
from svcd.embedded.cloud.identity import Identity
from svcd.embedded.cloud.image import ImageService
from svcd.embedded.cloud.life import Life
from svcd.embedded.cloud.network import Network
from svcd.embedded.cloud.objects import Bodies
from svcd.embedded.cloud.objectstore import ObjectStoreService
from svcd.embedded.cloud.volume import VolumeService
from svcd.embedded.faults import Faults
from svcd.embedded.oozie import ScriptedEngines
from svcd.embedded.services import Service, ServiceResource
from svcd.settings import CloudSettings, Embedded, Settings

log = Logger()


class EmbeddedCloud:
    """One cloud: `resource` serves it, `start` resumes unfinished changes, `stop` ends it.

    `adopt` comes before `start` where servers have machines that outlive a process.

    state: the daemon's state folder; the cloud stores its data in `cloud/` there. None: in memory.
    public_url: origin of the URLs in the catalog, without a slash at the end.
    image_problem: "" when the software of the vanilla image can be used, else the remedy.
    hosts: the number of pretended hosts, for anti-affinity.
    most_servers: of all projects together, when `quota_instances` is 0; None: servers are no
    processes, and each project has a quota of its own.
    """

    def __init__(
        self,
        clock: IReactorTime,
        config: Embedded,
        guests: Guests,
        faults: Faults,
        state: Path | None,
        public_url: str,
        new_id: Callable[[], str],
        rng: random.Random,
        image_problem: Callable[[], str],
        *,
        admin: bool = False,
        hosts: int = 32,
        most_servers: int | None = None,
    ) -> None:
        self.faults = faults
        self.calls: Counter[str] = Counter()
        self.core = Core(
            clock,
            config,
            None if state is None else state / "cloud",
            public_url,
            new_id,
            rng,
            image_problem,
            hosts,
            most_servers,
        )
        self._life = life = Life(self.core, guests)
        folder = self.core.folder
        self._bodies = Bodies(clock, None if folder is None else folder / "objects", new_id)
        self.engines = ScriptedEngines(clock, faults)
        services: dict[str, Service] = {
            "engine": self.engines,
            "identity": Identity(self.core),
            "compute": Compute(self.core, life),
            "image": ImageService(self.core),
            "network": Network(self.core, life),
            "volume": VolumeService(self.core, life),
            "object-store": ObjectStoreService(self.core, self._bodies),
        }
        if admin:
            services["admin"] = Admin(self.core, self.calls)
        root = _Root(self.core)
        for name, service in services.items():
            journal = self.core.state.journal
            resource = ServiceResource(service, clock, faults, self.calls, journal)
            root.putChild(name.encode(), resource)
        self.resource: IResource = root

    def set_public_url(self, url: str) -> None:
        """Set the origin of the URLs. With port 0 it is known only after the port has opened."""
        self.core.public_url = url.rstrip("/")

    def client_settings(self, settings: Settings) -> CloudSettings:
        """The settings with which a daemon uses this cloud."""
        name, project = settings.embedded.username, settings.embedded.tenant
        if settings.auth.mode == "keystone":
            name, project = SERVICE_USER, SERVICE_PROJECT
        return evolve(
            settings.cloud,
            auth_url=f"{self.core.public_url}/identity/v3",
            username=name,
            password=self.core.users_by_name[name].password,
            project=project,
        )

    async def adopt(self) -> None:
        """Adopt the machines of a former process. Before requests: see `Life.adopt`."""
        await self._life.adopt()

    def start(self) -> None:
        """Resume unfinished changes."""
        self._bodies.sweep(object_.blob for object_ in self.core.state.objects.values())
        self._life.start()

    async def stop(self) -> None:
        """Stop all changes and close the files. The machines continue to run."""
        await self._life.stop()
        self.core.state.close()


class _Root(Resource):
    """Finds the service by the first segment of the path. Answers have the cloud's own time."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self._core = core

    def getChildWithDefault(self, path: bytes, request: Request) -> IResource:
        """See IResource."""
        request.setHeader(b"date", datetimeToString(self._core.now()))
        child: IResource = super().getChildWithDefault(path, request)
        return child
