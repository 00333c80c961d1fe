"""The suite over sockets: on the stand-ins, and on the service that the environment names.

SVCD_CONFORMANCE_URL (base URL), with _TENANT, _TOKEN, _IMAGE_ID, _FLAVOR_ID, _KEYPAIR, _PLUGIN,
_USERNAME (of the image) and _FEATURES (of commands, build, engine; separated by commas).
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from attrs import evolve
from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.trial.unittest import SkipTest, TestCase

from svcd.settings import Logging, Settings
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import Target, run
from tests.conformance.targets import OverHttp
from tests.support.api import StandInService

reactor: Any = global_reactor


class SocketConformanceTests(TestCase):
    """The door alone, with its site."""

    async def target(self) -> Target:
        service = StandInService(reactor, settings=evolve(Settings(), log=Logging(access=False)))
        endpoint = TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1")
        port = await endpoint.listen(service.site)

        async def stop() -> None:
            await port.stopListening()
            await service.site.drain(5.0)
            service.close()

        self.addCleanup(stop)
        values = {
            "tenant": service.tenant,
            "image_id": service.image_id,
            "flavor_id": service.flavor_id,
            "keypair": service.keypair,
            "plugin": "vanilla",
            "version": "3.5.0",
            "username": "user",
            "run": "r1",
        }
        base = f"http://127.0.0.1:{port.getHost().port}"
        return OverHttp(reactor, base, values, frozenset(), {})

    async def check(self, chapter: str) -> None:
        faults = await run(CHAPTERS[chapter], await self.target())
        if faults:
            self.fail("\n".join(["", *faults]))


class NamedConformanceTests(SocketConformanceTests):
    """The service of the environment."""

    timeout = 1800

    async def target(self) -> Target:
        def named(name: str, otherwise: str) -> str:
            return os.environ.get(f"SVCD_CONFORMANCE_{name}", otherwise)

        base = named("URL", "")
        if not base:
            raise SkipTest("SVCD_CONFORMANCE_URL is not set")
        plugin, tenant = named("PLUGIN", "vanilla"), named("TENANT", "demo")
        values = {
            "tenant": tenant,
            "image_id": named("IMAGE_ID", "00000000-0000-4000-8000-000000000001"),
            "flavor_id": named("FLAVOR_ID", "2"),
            "keypair": named("KEYPAIR", "demo"),
            "plugin": plugin,
            "username": named("USERNAME", "svc"),
            "run": uuid.uuid4().hex[:8],
        }
        token = named("TOKEN", "")
        headers = {"x-auth-token": token} if token else {}
        features = frozenset(named("FEATURES", "commands,build,engine").split(","))
        asked = OverHttp(reactor, base, values, features, headers)
        answer = await asked.call("GET", f"/v1.1/{tenant}/plugins/{plugin}")
        values["version"] = answer.json["plugin"]["versions"][-1]
        return asked


def _add(case: type[SocketConformanceTests], chapter: str) -> None:
    async def test(self: SocketConformanceTests) -> None:
        await self.check(chapter)

    test.__doc__ = f"The chapter {chapter} holds."
    setattr(case, f"test_{chapter}", test)


for _name in CHAPTERS:
    _add(SocketConformanceTests, _name)
    _add(NamedConformanceTests, _name)
