"""Where a path leads, and the answers of paths and methods that lead nowhere."""

from __future__ import annotations

from typing import Any

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import MethodNotAllowed, NotFound
from svcd.resources._answers import Answer
from svcd.resources._paths import Target, route_at, target_of
from svcd.testing import FakeService
from tests.support.api import daemon_of


@frozen
class Asked:
    """A request, as far as its path is concerned."""

    method: bytes
    path: bytes


class PathsTests(SynchronousTestCase):
    def setUp(self) -> None:
        fake = FakeService()
        self.addCleanup(fake.close)
        self.tree = daemon_of(fake).resource.tree

    def target(self, path: bytes, method: bytes = b"GET") -> Target:
        return target_of(self.tree, path, method)

    def route(self, path: bytes, method: bytes = b"GET") -> Any:
        return route_at(self.target(path, method), Asked(method, path))

    def test_a_path_has_a_tenant_and_values(self) -> None:
        target = self.target(b"/v1.1/demo/clusters/c%31.json")
        self.assertEqual((target.tenant, target.is_open, target.suffix), ("demo", False, True))
        self.assertEqual(dict(target.values), {"cluster_id": "c1"})
        self.assertEqual(target.pattern, "/v1.1/<tenant_id>/clusters/<cluster_id>")
        route = self.route(b"/v1.1/demo/clusters/c1")
        self.assertEqual((route.endpoint, route.version), ("get", "1.1"))

    def test_an_open_path_has_no_tenant(self) -> None:
        target = self.target(b"/healthz")
        self.assertEqual((target.tenant, target.is_open), (None, True))

    def test_an_unknown_path_keeps_its_tenant_for_the_check_of_the_token(self) -> None:
        self.assertEqual(self.target(b"/v1.1/demo/nope"), Target("demo"))
        self.assertEqual(self.target(b"/nope"), Target(None))
        self.assertRaises(NotFound, self.route, b"/v1.1/demo/nope")

    def test_a_malformed_value_is_not_found(self) -> None:
        self.assertRaises(NotFound, self.route, b"/v1.1/demo/clusters/%FF")
        self.assertRaises(NotFound, self.route, b"/v1.1/demo/clusters/%00")

    def test_another_method_names_those_that_are_allowed(self) -> None:
        error = self.assertRaises(MethodNotAllowed, self.route, b"/v1.1/demo/clusters", b"PUT")
        self.assertEqual(error.headers, {"Allow": "GET, HEAD, OPTIONS, POST"})
        answer = self.route(b"/v1.1/demo/clusters", b"OPTIONS")
        self.assertEqual(answer, Answer(200, headers=error.headers))
