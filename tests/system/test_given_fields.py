"""What a request gives is what is kept and shown: each field of each request body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import fields
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import PRIVATE_NETWORK_ID
from svcd.model import requests
from svcd.testing import FakeServiceMixin
from tests.support.fakes import MASTER, WORKER, Api


class GivenFieldsTests(FakeServiceMixin, SynchronousTestCase):
    """A body with every field, none at its default, against the record as it is read afterwards.

    A field that is added to a request and not carried on to its record fails here.
    """

    def setUp(self) -> None:
        self.svcd = self.fake_service()
        self.api = Api(self.svcd)
        for name in ("agent.sh", "data.sh", "other.sh"):
            self.api.ask("PUT", f"/job-binary-internals/{name}", 202, data=b"exit 0\n")

    def kept(self, body_type: type, path: str, key: str, body: Mapping[str, Any]) -> Any:
        """The record that a POST of `body` made. `body` must have all fields of `body_type`."""
        self.assertEqual(set(body), {field.name for field in fields(body_type)})
        return self.api.get(f"{path}/{self.api.post(path, body)[key]['id']}")[key]

    def assert_shown(self, record: Any, body: Mapping[str, Any], but: Mapping[str, Any]) -> None:
        """Each value as given; `but`: the fields that are shown in another form."""
        self.assertEqual({name: record[name] for name in body}, {**body, **but})

    def machines(self) -> dict[str, Any]:
        """All that a group may say of its machines."""
        return {
            "flavor_id": self.svcd.flavor_id,
            "node_processes": WORKER,
            "node_configs": {"HDFS": {"dfs.datanode.handler.count": 12}},
            "volumes_per_node": 2,
            "volumes_size": 7,
            "volume_mount_prefix": "/mnt/data",
            "floating_ip_pool": "public",
            "init_scripts": ["agent.sh", "data.sh"],
        }

    def group_template(self) -> dict[str, Any]:
        return {
            "name": "group",
            "description": "a kind of machine",
            "plugin_name": "fake",
            "engine_version": "0.1",
            **self.machines(),
        }

    def cluster(self, **more: Any) -> dict[str, Any]:
        """All that a cluster and a template of clusters have in common."""
        master = {"name": "master", "count": 1, "flavor_id": self.svcd.flavor_id}
        worker = {"name": "worker", "count": 3, **self.machines()}
        return {
            "name": "whole",
            "description": "all of it",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "node_groups": [{**master, "node_processes": MASTER}, worker],
            "cluster_configs": {"HDFS": {"dfs.replication": 2}},
            "anti_affinity": ["datanode"],
            "neutron_management_network": PRIVATE_NETWORK_ID,
            "default_image_id": self.svcd.image_id,
            **more,
        }

    def assert_groups_shown(self, record: Any, body: Mapping[str, Any]) -> None:
        for shown, given in zip(record["node_groups"], body["node_groups"], strict=True):
            self.assert_shown(shown, given, {})

    def test_node_group_template(self) -> None:
        body = self.group_template()
        shown = self.kept(
            requests.NewNodeGroupTemplate, "/node-group-templates", "node_group_template", body
        )
        self.assert_shown(shown, body, {})

    def test_cluster_template(self) -> None:
        body = self.cluster(idle_delete_s=0, max_age_s=7200)
        shown = self.kept(
            requests.NewClusterTemplate, "/cluster-templates", "cluster_template", body
        )
        self.assert_shown(shown, body, {"node_groups": shown["node_groups"]})
        self.assert_groups_shown(shown, body)

    def test_cluster(self) -> None:
        """With groups of its own beside a template, which would give other values."""
        lives = {"idle_delete_s": 60, "max_age_s": 60}
        template = self.cluster(description="of the template", anti_affinity=[], **lives)
        made = self.api.post("/cluster-templates", template)["cluster_template"]["id"]
        keys = {"user_keypair_id": self.svcd.keypair, "cluster_template_id": made}
        body = self.cluster(is_transient=True, idle_delete_s=900, max_age_s=86400, **keys)
        shown = self.kept(requests.NewCluster, "/clusters", "cluster", body)
        self.assert_shown(shown, body, {"node_groups": shown["node_groups"]})
        self.assert_groups_shown(shown, body)

    def test_node_group_of_a_template(self) -> None:
        """What the group says overrides its template, field by field."""
        self.assertEqual(
            {field.name for field in fields(requests.NewNodeGroup)},
            {"name", "count", "node_group_template_id", *self.machines()},
        )
        plain = {**self.group_template(), "name": "plain", "volumes_per_node": 0}
        plain |= {"volume_mount_prefix": "/other", "volumes_size": 1, "node_configs": {}}
        plain |= {"init_scripts": ["other.sh"]}
        path = "/node-group-templates"
        made = self.api.post(path, plain)["node_group_template"]["id"]
        body = self.cluster(user_keypair_id=self.svcd.keypair)
        body["node_groups"][1]["node_group_template_id"] = made
        shown = self.api.post("/clusters", body)["cluster"]
        self.assert_groups_shown(self.api.cluster(shown["id"]), body)

    def test_cluster_takes_from_its_template_what_it_does_not_say(self) -> None:
        template = self.cluster(name="template", idle_delete_s=900, max_age_s=86400)
        made = self.api.post("/cluster-templates", template)["cluster_template"]["id"]
        said = {name: template[name] for name in ("plugin_name", "engine_version")}
        body = {**said, "name": "c", "cluster_template_id": made}
        shown = self.api.post("/clusters", body)["cluster"]
        own = {"name": "c", "description": "", "node_groups": shown["node_groups"]}
        self.assert_shown(shown, template, own)
        self.assert_groups_shown(shown, template)

    def test_data_source(self) -> None:
        """Its password is shown as a mask."""
        body = {
            "name": "in",
            "description": "lines",
            "type": "objstore",
            "url": "objstore://box.svcd/in",
            "credentials": {"user": "u", "password": "p"},
        }
        shown = self.kept(requests.NewDataSource, "/data-sources", "data_source", body)
        self.assert_shown(shown, body, {"credentials": shown["credentials"]})
        self.assertEqual(set(shown["credentials"]), {"user", "password"})

    def test_job_and_its_binary(self) -> None:
        stored = self.api.ask("PUT", "/job-binary-internals/a.pig", 202, data=b"A = load 1;")
        binary = {
            "name": "script",
            "description": "copies",
            "file_name": "copy.pig",
            "url": f"internaldb://{stored['job_binary_internal']['id']}",
            "extra": {},
        }
        shown = self.kept(requests.NewJobBinary, "/job-binaries", "job_binary", binary)
        self.assert_shown(shown, binary, {})
        job = {
            "name": "copy",
            "description": "daily",
            "type": "Pig",
            "mains": [shown["id"]],
            "libs": [],
        }
        whole = self.kept(requests.NewJob, "/jobs", "job", job)
        self.assert_shown(whole, job, {"mains": [shown]})

    def test_image(self) -> None:
        body = {"username": "hadoop", "description": "of the team"}
        self.assertEqual(set(body), {field.name for field in fields(requests.RegisterImage)})
        self.api.post(f"/images/{self.svcd.image_id}", body)
        self.assert_shown(self.api.get(f"/images/{self.svcd.image_id}")["image"], body, {})
