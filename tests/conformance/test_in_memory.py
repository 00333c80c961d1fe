"""The suite on the fake service."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.conformance.bodies import COMMANDS
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import run
from tests.conformance.targets import InMemory
from tests.support.api import now


class FakeServiceConformanceTests(SynchronousTestCase):
    """The whole daemon over the embedded cloud and the scripted engine; a test for each chapter."""

    def target(self) -> InMemory:
        service = FakeService()
        self.addCleanup(service.close)
        return InMemory(service)

    def check(self, chapter: str) -> None:
        faults = now(Deferred.fromCoroutine(run(CHAPTERS[chapter], self.target())))
        if faults:
            self.fail("\n".join(["", *faults]))


class VanillaConformanceTests(FakeServiceConformanceTests):
    """The rules of the vanilla distribution; scripted machines do not build its clusters."""

    def target(self) -> InMemory:
        service = FakeService({"plugins.enabled": "vanilla"})
        self.addCleanup(service.close)
        return InMemory(service, "vanilla", COMMANDS)


def _add(case: type[FakeServiceConformanceTests], chapter: str) -> None:
    def test(self: FakeServiceConformanceTests) -> None:
        self.check(chapter)

    test.__doc__ = f"The chapter {chapter} holds."
    setattr(case, f"test_{chapter}", test)


for _name in CHAPTERS:
    _add(FakeServiceConformanceTests, _name)
    _add(VanillaConformanceTests, _name)
