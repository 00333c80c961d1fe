"""The description of the interface agrees with the routes."""

from __future__ import annotations

import json
import re
from typing import Any, cast

import msgspec
from twisted.trial.unittest import SkipTest, SynchronousTestCase

try:
    from openapi_spec_validator import OpenAPIV31SpecValidator
except ImportError as error:
    raise SkipTest("openapi-spec-validator is not installed: pip install 'svcd[dev]'") from error

from svcd.resources.api import build
from svcd.resources.fake_control import Controlled, FakeControls
from svcd.resources.openapi import VARIABLES, document
from svcd.testing import FakeService


class OpenApiTests(SynchronousTestCase):
    """Of a daemon with the control routes of a fake, which others lack."""

    def setUp(self) -> None:
        self.api = FakeService()
        self.addCleanup(self.api.close)
        controls = FakeControls(cast("Controlled", None))
        self.rest = build(self.api.services, [controls])[0]
        self.document = json.loads(msgspec.json.encode(document(self.rest.routes())))

    def test_every_route_is_described_once(self) -> None:
        """With its parameters."""
        described = {
            (method.upper(), re.sub(r"\{\w+\}", "{}", path))
            for path, item in self.document["paths"].items()
            for method in item
        }
        routes = {
            (each.method, re.sub(r"<\w+>", "{}", each.pattern)) for each in self.rest.routes()
        }
        self.assertEqual(described, routes)
        ids = [o["operationId"] for item in self.document["paths"].values() for o in item.values()]
        self.assertEqual(len(ids), len(set(ids)))
        for path, item in self.document["paths"].items():
            for operation in item.values():
                self.assertTrue(operation["summary"], path)
                named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
                self.assertEqual([f"{{{n}}}" in path for n in named], [True] * len(named))

    def operation(self, path: str, method: str) -> dict[str, Any]:
        found: dict[str, Any] = self.document["paths"][path][method]
        return found

    def test_it_is_valid(self) -> None:
        """By the judgement of openapi-spec-validator."""
        faults = OpenAPIV31SpecValidator(self.document).iter_errors()
        self.assertEqual([each.message for each in faults], [])

    def test_ids_are_verb_and_noun_in_both_versions(self) -> None:
        """Names of functions in made clients, which do not change."""
        named = {
            ("/v1.1/{tenant_id}/clusters", "post"): "createCluster",
            ("/v1.0/{tenant_id}/clusters", "post"): "createClusterV10",
            ("/v1.1/{tenant_id}/job-binaries", "get"): "listJobBinaries",
            ("/v1.1/{tenant_id}/job-binaries/{binary_id}", "get"): "getJobBinary",
            ("/v1.1/{tenant_id}/job-executions/{execution_id}/cancel", "get"): (
                "cancelJobExecutionByGet"
            ),
            ("/v1.1/{tenant_id}/job-executions/{execution_id}/cancel", "post"): (
                "cancelJobExecution"
            ),
            ("/v1.1/{tenant_id}/watch", "get"): "watch",
            ("/healthz", "get"): "getHealth",
        }
        self.assertEqual({k: self.operation(*k)["operationId"] for k in named}, named)
        for item in self.document["paths"].values():
            for operation in item.values():
                self.assertRegex(operation["operationId"], r"^[a-z]+([A-Z][a-z]*)*(V10)?$")

    def test_every_field_has_a_text(self) -> None:
        """Fields, parameters, tags, schemas."""
        schemas = self.document["components"]["schemas"]
        for name, schema in schemas.items():
            self.assertTrue(schema["description"], name)
            for field, described in schema.get("properties", {}).items():
                self.assertTrue(described["description"], (name, field))
        given = [
            each
            for item in self.document["paths"].values()
            for operation in item.values()
            for each in operation["parameters"]
        ]
        self.assertEqual([each for each in given if not each["description"]], [])
        self.assertEqual({each["name"] for each in given if each["in"] == "path"}, set(VARIABLES))
        tags = [each["name"] for each in self.document["tags"]]
        self.assertEqual(len(tags), len(set(tags)))
        for item in self.document["paths"].values():
            for operation in item.values():
                self.assertIn(operation["tags"][0], tags)

    def test_query_parameters_have_their_types(self) -> None:
        """v1.0 has none but the tags of images."""
        listed = self.operation("/v1.1/{tenant_id}/clusters", "get")["parameters"][1:]
        self.assertEqual(listed[0]["schema"], {"type": "integer", "minimum": 1, "maximum": 1000})
        self.assertEqual(
            [each["name"] for each in listed],
            ["limit", "marker", "name", "plugin_name", "engine_version", "status",
             "cluster_template_id", "default_image_id"],
        )  # fmt: skip
        (_, _, force) = self.operation("/v1.1/{tenant_id}/clusters/{cluster_id}", "delete")[
            "parameters"
        ]
        self.assertEqual(force["schema"], {"type": "boolean", "default": False})
        old = self.operation("/v1.0/{tenant_id}/images", "get")["parameters"][1:]
        self.assertEqual([each["name"] for each in old], ["tags"])
        self.assertEqual(self.operation("/v1.0/{tenant_id}/clusters", "get")["parameters"][1:], [])

    def test_a_header_that_replaces_a_parameter_is_described(self) -> None:
        """The generators of clients offer it beside the parameter."""
        watch = self.operation("/v1.1/{tenant_id}/watch", "get")["parameters"][1:]
        self.assertEqual(
            [(each["name"], each["in"]) for each in watch],
            [("since", "query"), ("Last-Event-ID", "header"), ("kinds", "query")],
        )

    def test_errors_of_a_route_have_their_names(self) -> None:
        """Those that the door raises, and those of the route."""
        answers = self.operation("/v1.1/{tenant_id}/clusters", "post")["responses"]
        names = answers["400"]["x-error-names"]
        for name in ("CLUSTER_NAME_ALREADY_EXISTS", "VALIDATION_ERROR", "QUOTA_ERROR"):
            self.assertIn(name, names)
            self.assertIn(f"`{name}`: ", answers["400"]["description"])
        self.assertEqual(answers["415"], {"$ref": "#/components/responses/UnsupportedMediaType"})
        self.assertNotIn("404", answers)
        shown = self.operation("/v1.1/{tenant_id}/clusters/{cluster_id}", "get")["responses"]
        self.assertIn("404", shown)
        self.assertNotIn("413", shown)

    def content(self, path: str, method: str, status: str = "") -> Any:
        """Of the answer with `status`, or of the request."""
        found = self.operation(path, method)
        return (found["responses"][status] if status else found["requestBody"])["content"]

    def test_bodies_and_answers_have_their_media_types_and_schemas(self) -> None:
        """Lists under the plural, one under the singular, 204 without a body."""
        base = "/v1.1/{tenant_id}"
        internals, binaries = f"{base}/job-binary-internals/{{binary_id}}", f"{base}/job-binaries"
        json = "application/json"
        self.assertEqual([*self.content(internals, "put")], ["application/octet-stream"])
        for path, media in (
            (f"{internals}/data", "text/html"),
            (f"{base}/job-executions/{{execution_id}}/log", "text/plain"),
            (f"{base}/watch", "text/event-stream"),
        ):
            self.assertEqual([*self.content(path, "get", "200")], [media])
        listed = self.content(binaries, "get", "200")[json]["schema"]
        self.assertEqual(listed["properties"]["binaries"]["type"], "array")
        made = self.content(binaries, "post", "202")[json]["schema"]
        self.assertEqual(made["required"], ["job_binary"])
        gone = self.operation(f"{binaries}/{{binary_id}}", "delete")["responses"]
        self.assertEqual(gone["204"], {"description": "Done."})

    def test_schemas_are_strict(self) -> None:
        """Unknown fields are refused, names have their length, statuses are lists of values."""
        schema = self.content("/v1.0/{tenant_id}/clusters", "post")["application/json"]["schema"]
        self.assertEqual(schema, {"$ref": "#/components/schemas/NewCluster"})
        schemas = self.document["components"]["schemas"]
        cluster = schemas["NewCluster"]
        self.assertIs(cluster["additionalProperties"], False)
        self.assertEqual(cluster["required"], ["name", "plugin_name", "engine_version"])
        self.assertEqual(cluster["properties"]["name"]["maxLength"], 50)
        status = schemas["Cluster"]["properties"]["status"]["$ref"].rpartition("/")[2]
        self.assertIn("Active", schemas[status]["enum"])
