"""The description of the interface agrees with the routes."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from svcd.testing import FakeService
from tests.support.api import daemon_of


class OpenApiTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.api = FakeService()
        self.addCleanup(self.api.close)
        self.document = self.api.call("GET", "/openapi.json").json

    def test_every_route_is_described_once(self) -> None:
        """With its parameters."""
        described = {
            (method.upper(), re.sub(r"\{\w+\}", "{}", path))
            for path, item in self.document["paths"].items()
            for method in item
        }
        routes = {
            (each.method, re.sub(r"<\w+>", "{}", each.pattern))
            for each in daemon_of(self.api).resource.routes()
        }
        self.assertEqual(described, routes)
        ids = [o["operationId"] for item in self.document["paths"].values() for o in item.values()]
        self.assertEqual(len(ids), len(set(ids)))
        for path, item in self.document["paths"].items():
            for operation in item.values():
                self.assertTrue(operation["summary"], path)
                named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
                self.assertEqual([f"{{{n}}}" in path for n in named], [True] * len(named))

    def test_each_post_that_creates_takes_an_idempotency_key(self) -> None:
        """The other requests have none."""
        taking = {
            path.removeprefix("/v1.1/{tenant_id}")
            for path, item in self.document["paths"].items()
            for method, operation in item.items()
            if "Idempotency-Key" in [p["name"] for p in operation["parameters"]]
            and (method, path[:5]) == ("post", "/v1.1")
        }
        convert = "/plugins/{plugin_name}/{version}/convert-config"
        self.assertEqual(
            taking,
            {
                convert,
                f"{convert}/{{template_name}}",
                "/cluster-templates",
                "/clusters",
                "/data-sources",
                "/job-binaries",
                "/jobs",
                "/jobs/{job_id}/execute",
                "/node-group-templates",
            },
        )

    def test_bodies_refer_to_strict_schemas(self) -> None:
        """Unknown fields are refused, names have their pattern."""
        operation = self.document["paths"]["/v1.0/{tenant_id}/clusters"]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        self.assertEqual(schema, {"$ref": "#/components/schemas/NewCluster"})
        cluster = self.document["components"]["schemas"]["NewCluster"]
        self.assertIs(cluster["additionalProperties"], False)
        self.assertEqual(cluster["required"], ["name", "plugin_name", "engine_version"])
        self.assertEqual(cluster["properties"]["name"]["maxLength"], 50)

    def test_answers_are_wrapped_as_the_interface_says(self) -> None:
        """Lists under the plural, one under the singular, 204 without a body."""
        item = self.document["paths"]["/v1.1/{tenant_id}/job-binaries"]
        found = item["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        self.assertEqual(found["properties"]["binaries"]["type"], "array")
        made = item["post"]["responses"]["202"]["content"]["application/json"]["schema"]
        self.assertEqual(made["required"], ["job_binary"])
        gone = self.document["paths"]["/v1.1/{tenant_id}/job-binaries/{binary_id}"]["delete"]
        self.assertEqual(gone["responses"]["204"], {"description": "done"})
