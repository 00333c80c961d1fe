"""The suite over sockets: on the fake service, and on the service that the environment names.

SVCD_CONFORMANCE_URL (base URL), with _TENANT, _TOKEN, _IMAGE_ID, _FLAVOR_ID, _KEYPAIR, _PLUGIN,
_USERNAME (of the image) and _FEATURES (of commands, build, engine; separated by commas).
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.trial.unittest import SkipTest, TestCase

from svcd.testing import FakeService
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import Target, run
from tests.conformance.targets import FAKE_FEATURES, OverHttp, values_of
from tests.support.api import served

reactor: Any = global_reactor


class OverHttpToFake(OverHttp):
    """A fake service on a port."""

    def __init__(self, fake: FakeService, base: str) -> None:
        super().__init__(reactor, base, values_of(fake), FAKE_FEATURES, {})
        self._fake = fake

    async def wait(self, seconds: float) -> None:
        """Move its clock."""
        self._fake.advance(seconds)


class SocketConformanceTests(TestCase):
    """The whole daemon, with its site."""

    async def target(self) -> Target:
        fake = FakeService()
        self.addCleanup(fake.close)
        api = await served(reactor, fake)
        self.addCleanup(api.stop)
        return OverHttpToFake(fake, api.url)

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
