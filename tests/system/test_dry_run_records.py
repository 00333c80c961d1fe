"""Dry runs of requests that only write a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.support.fakes import MASTER, WORKER
from tests.system.test_dry_run import DryRunCase


class RecordTests(DryRunCase):
    """Templates, data sources, job binaries and jobs: their dry run is the check alone."""

    def setUp(self) -> None:
        super().setUp()
        upload = self.svcd.call("PUT", "/v1.1/demo/job-binary-internals/x", data=b"x")
        self.internal = upload.json["job_binary_internal"]["id"]
        kept = {"name": "kept.pig", "url": f"internaldb://{self.internal}"}
        self.binary = self.api.post("/job-binaries", kept)["job_binary"]["id"]

    def bodies(self) -> Mapping[str, dict[str, Any]]:
        """A request for each kind, by its path."""
        group = {"flavor_id": "2", "node_processes": ["datanode"]}
        plugin = {"plugin_name": "fake", "engine_version": "0.1"}
        groups = [{"name": "all", "count": 1, "flavor_id": "2", "node_processes": MASTER + WORKER}]
        return {
            "/node-group-templates": {"name": "n", **plugin, **group},
            "/cluster-templates": {"name": "t", **plugin, "node_groups": groups},
            "/data-sources": {"name": "d", "type": "hdfs", "url": "hdfs:///d"},
            "/job-binaries": {"name": "b.pig", "url": f"internaldb://{self.internal}"},
            "/jobs": {"name": "j", "type": "Pig", "mains": [self.binary]},
        }

    def test_plan_is_the_name_of_the_record(self) -> None:
        """The real request is accepted afterwards, and once."""
        for path, body in self.bodies().items():
            self.assertEqual(self.plan(path, body), {"name": body["name"]}, path)
            self.api.post(path, body)
            name = self.assert_same_refusal(path, body)
            self.assertTrue(name.endswith("_NAME_ALREADY_EXISTS"), name)

    def test_refusals_are_those_of_the_request(self) -> None:
        """Of the shape, the plugin, the account, the binaries, and the limit of records."""
        bodies = self.bodies()
        for path, more, name in (
            ("/node-group-templates", {"name": "Bad Name"}, "VALIDATION_ERROR"),
            ("/node-group-templates", {"node_processes": ["none"]}, "INVALID_REFERENCE"),
            ("/cluster-templates", {"plugin_name": "none"}, "INVALID_REFERENCE"),
            ("/data-sources", {"type": "objstore"}, "INVALID_CREDENTIALS"),
            ("/job-binaries", {"url": "ftp://none"}, "BAD_JOB_BINARY"),
            ("/job-binaries", {"url": "internaldb://none"}, "INVALID_REFERENCE"),
            ("/jobs", {"libs": ["none"]}, "INVALID_REFERENCE"),
            ("/jobs", {"mains": []}, "INVALID_DATA"),
        ):
            self.assertEqual(self.assert_same_refusal(path, {**bodies[path], **more}), name)
        self.svcd.restart({"limits.rows": "1"})
        for path, body in bodies.items():
            self.api.get(path)
            self.svcd.call("POST", f"/v1.1/demo{path}", json={**body, "name": "first"})
            self.assertEqual(self.assert_same_refusal(path, body), "QUOTA_ERROR", path)
