"""The embedded services: Klein's handlers behind faults and envelopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from klein import Klein
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.compute import Compute
from svcd.embedded.cloud.identity import Identity
from svcd.embedded.cloud.image import ImageService
from svcd.embedded.cloud.network import Network
from svcd.embedded.cloud.objectstore import ObjectStoreService
from svcd.embedded.cloud.volume import VolumeService
from svcd.embedded.services import Refusal
from svcd.testing import CLOUD_URL, FakeService

SERVICES = {
    "identity": Identity,
    "compute": Compute,
    "image": ImageService,
    "network": Network,
    "volume": VolumeService,
    "object-store": ObjectStoreService,
}


def rules(app: Klein) -> Iterator[Any]:
    """Public ones of werkzeug, with the names of their variables."""
    app.url_map.bind("a")
    yield from app.url_map.iter_rules()


class KleinTests(SynchronousTestCase):
    def test_a_request_is_run_by_kleins_endpoint(self) -> None:
        """The entry of the app's `endpoints` answers, for every rule and method."""
        fake = FakeService()
        self.addCleanup(fake.close)
        token = fake.token()
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        shown = fake.call("GET", f"{CLOUD_URL}/identity/v3/auth/tokens", headers=headers)
        project = shown.json["token"]["project"]["id"]
        for name, cls in SERVICES.items():
            app: Klein = cls.app
            self.addCleanup(app.endpoints.update, dict(app.endpoints))
            ran: list[str] = []
            for endpoint in app.endpoints:
                app.endpoints[endpoint] = _noting(ran, endpoint)
            for rule in rules(app):
                account = f"AUTH_{project}" if name == "object-store" else project
                url = f"{CLOUD_URL}/{name}{_path(rule.rule, account)}"
                for method in rule.methods - {"HEAD"}:
                    answer = fake.call(method, url, headers=headers)
                    self.assertEqual((answer.status, ran), (418, [rule.endpoint]), (method, url))
                    ran.clear()


def _path(rule: str, project: str) -> str:
    return "/".join(
        project
        if s in ("<account>", "<project>", "<project_id>")
        else "x"
        if s.startswith("<")
        else s
        for s in rule.split("/")
    )


def _noting(ran: list[str], name: str) -> Any:
    def endpoint(instance: object, call: object, **values: object) -> None:
        ran.append(name)
        raise Refusal(418, "short and stout")

    return endpoint
