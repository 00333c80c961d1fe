"""The suite over sockets, on the fake service; on PostgreSQL and a daemon: test_postgres."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as global_reactor  # noqa: TID251 - sockets
from twisted.trial.unittest import TestCase

from svcd.testing import FakeService
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import run
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

    async def check(self, chapter: str) -> None:
        fake = FakeService()
        self.addCleanup(fake.close)
        api = await served(reactor, fake)
        self.addCleanup(api.stop)
        faults = await run(CHAPTERS[chapter], OverHttpToFake(fake, api.url))
        if faults:
            self.fail("\n".join(["", *faults]))


def _add(chapter: str) -> None:
    async def test(self: SocketConformanceTests) -> None:
        await self.check(chapter)

    test.__doc__ = f"The chapter {chapter} holds."
    setattr(SocketConformanceTests, f"test_{chapter}", test)


for _name in CHAPTERS:
    _add(_name)
