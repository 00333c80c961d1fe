"""The routes of the door: what Klein knows is what is served."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from klein import Klein
from twisted.trial.unittest import SynchronousTestCase

import svcd.resources
from svcd.errors import SvcdError
from svcd.model.shapes import Shape
from svcd.resources._route import RAW, Route
from svcd.testing import FakeService
from tests.support.api import daemon_of
from tests.unit.resources.bodies import LEAST


def apps() -> Iterator[tuple[type, Klein]]:
    """Every class of the room that holds a Klein app, except for what only a fake serves."""
    for module in pkgutil.iter_modules(svcd.resources.__path__):
        if module.name == "fake_control":
            continue
        for each in vars(import_module(f"svcd.resources.{module.name}")).values():
            if isinstance(each, type) and isinstance(each.__dict__.get("app"), Klein):
                yield each, each.__dict__["app"]


def path_of(route: Route, tenant: str) -> str:
    """A path of `route`, each variable with a value of its own."""
    names = iter(f"v{n}" for n in range(9))
    path = route.pattern.replace("<tenant_id>", tenant)
    return re.sub(r"<\w+>", lambda _: next(names), path)


class RoutesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.fake = FakeService()
        self.addCleanup(self.fake.close)
        self.rest = daemon_of(self.fake).resource

    def test_every_rule_of_every_app_is_served_and_nothing_else(self) -> None:
        """The door takes the apps of all classes of the room. Klein adds HEAD to each GET."""
        head = {"HEAD"}
        known = {
            (cls, rule.rule, rule.endpoint, frozenset(rule.methods or ()) - head)
            for cls, app in apps()
            for rule in app.url_map.iter_rules()
        }
        served = {
            (
                type(each.handler.__self__),
                each.pattern,
                each.endpoint,
                frozenset(each.methods) - head,
            )
            for each in self.rest.routes()
        }
        self.assertEqual(served, known)
        self.assertGreater(len(known), 60)

    def test_a_request_is_run_by_kleins_endpoint(self) -> None:
        """The entry of the app's `endpoints` answers, for every route of a whole daemon."""
        ran: list[str] = []
        for cls, app in apps():
            self.addCleanup(app.endpoints.update, dict(app.endpoints))
            for name in app.endpoints:
                app.endpoints[name] = noting(ran, f"{cls.__name__}.{name}")
        asked = [each for each in self.rest.routes() if each.exists is None]
        for route in asked:
            shape = route.spec.body
            json = LEAST[shape.cls] if isinstance(shape, Shape) else None
            data = b"x" if shape is RAW else None
            path = path_of(route, self.fake.tenant)
            answer = self.fake.call(route.method, path, json, data)
            self.assertEqual(answer.status, 418, (route.pattern, answer.body))
        self.assertEqual(
            ran, [f"{type(each.handler.__self__).__name__}.{each.endpoint}" for each in asked]
        )


class Teapot(SvcdError):
    """An answer that the door never makes."""

    status = 418
    name = "TEAPOT"


def noting(ran: list[str], name: str) -> Any:
    """A Klein endpoint that adds `name` to `ran`."""

    def endpoint(instance: object, call: object, **values: object) -> None:
        ran.append(name)
        raise Teapot("short and stout")

    return endpoint
