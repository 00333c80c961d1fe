"""The suite on the stand-ins and on the fake service."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.conformance.chapters import CHAPTERS
from tests.conformance.rows import run
from tests.conformance.targets import InMemory
from tests.support.api import StandInService, now


class _Chapters(SynchronousTestCase):
    """Each chapter is a test; `target` makes the service under test."""

    def target(self) -> InMemory:
        raise NotImplementedError

    def check(self, chapter: str) -> None:
        target = self.target()
        faults = now(Deferred.fromCoroutine(run(CHAPTERS[chapter], target)))
        if faults:
            self.fail("\n".join(["", *faults]))


class StandInConformanceTests(_Chapters):
    """The door alone."""

    def target(self) -> InMemory:
        service = StandInService()
        self.addCleanup(service.close)
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
        clock: Any = service.clock
        return InMemory(service, values, frozenset(), clock.advance)


class FakeServiceConformanceTests(_Chapters):
    """The whole daemon over the embedded cloud and the scripted engine."""

    def target(self) -> InMemory:
        service = FakeService()
        self.addCleanup(service.close)
        image = service.call("GET", f"/v1.0/{service.tenant}/images/{service.image_id}").json
        values = {
            "tenant": service.tenant,
            "image_id": service.image_id,
            "flavor_id": service.flavor_id,
            "keypair": service.keypair,
            "plugin": "fake",
            "version": service.call("GET", f"/v1.0/{service.tenant}/plugins/fake").json["plugin"][
                "versions"
            ][-1],
            "username": image["image"]["username"],
            "run": "r1",
        }
        features = frozenset({"commands", "build", "engine"})
        return InMemory(service, values, features, service.advance)


def _add(case: type[_Chapters], chapter: str) -> None:
    def test(self: _Chapters) -> None:
        self.check(chapter)

    test.__doc__ = f"The chapter {chapter} holds."
    setattr(case, f"test_{chapter}", test)


for _name in CHAPTERS:
    _add(StandInConformanceTests, _name)
    _add(FakeServiceConformanceTests, _name)
