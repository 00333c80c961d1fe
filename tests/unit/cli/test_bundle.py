"""A bundle: an export is equal to its objects, and names become ids. Samples of both files."""

from __future__ import annotations

from typing import Any

import yaml
from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.bundle import BY_NAME, Item, There, exported, request, whole
from svcd.cli.bundle_file import parse
from svcd.cli.bundle_plan import Change, plan
from svcd.cli.bundle_trial import other_plugins

BUNDLE = b"""
node_group_templates:
  - name: worker
    plugin_name: fake
    engine_version: "0.1"
    flavor_id: "3"
    node_processes: [datanode]
cluster_templates:
  - name: small
    plugin_name: fake
    engine_version: "0.1"
    node_groups:
      - {name: worker, count: 2, node_group_template: worker}
data_sources:
  - name: in
    type: objstore
    url: objstore://c/in
    credentials: {user: demo, password: {env: IN_PASSWORD}}
job_binaries:
  - {name: count.pig, file: count.pig}
jobs:
  - {name: count, type: Pig, mains: [count.pig]}
clusters:
  - name: first
    plugin_name: fake
    engine_version: "0.1"
    cluster_template: small
    image: plain
    user_keypair_id: demo
"""
GROUP = {
    "flavor_id": "3",
    "node_processes": ["datanode"],
    "node_configs": {},
    "volumes_per_node": 0,
    "volumes_size": 10,
    "volume_mount_prefix": "/volumes/disk",
}
MADE = {"description": "", "plugin_name": "fake", "engine_version": "0.1"}
TEMPLATE = {"id": "n1", "name": "worker", **MADE, **GROUP}
GROUPS = [{"name": "worker", "count": 2, "node_group_template_id": "n1", **GROUP}]
SMALL = {
    "id": "t1", "name": "small", **MADE, "cluster_configs": {}, "anti_affinity": [],
    "node_groups": GROUPS,
}  # fmt: skip
SOURCE = {
    "id": "s1", "name": "in", "description": "", "type": "objstore", "url": "objstore://c/in",
    "credentials": {"user": "demo", "password": "geheim"},
}  # fmt: skip
BINARY = {"id": "b1", "name": "count.pig", "description": "", "url": "internaldb://i", "extra": {}}
JOB = {
    "id": "j1", "name": "count", "description": "", "type": "Pig", "mains": [BINARY], "libs": [],
}  # fmt: skip
CLUSTER = {
    **SMALL, "id": "c1", "name": "first", "status": "Active", "default_image_id": "m1",
    "cluster_template_id": "t1", "user_keypair_id": "demo",
}  # fmt: skip
IMAGES = [{"id": "m1", "name": "plain"}, {"id": "m2", "name": "other"}]
ALL = There(
    rows={
        "node_group_templates": [TEMPLATE],
        "cluster_templates": [SMALL],
        "data_sources": [SOURCE],
        "job_binaries": [BINARY],
        "jobs": [JOB],
        "clusters": [CLUSTER],
    },
    images=IMAGES,
    digests={"count.pig": "d1"},
)


def read(text: bytes = BUNDLE, **environment: str) -> list[Item]:
    given = environment or {"IN_PASSWORD": "geheim"}
    return list(parse(text, "b.yaml", "/folder", given))


def changes(steps: Any) -> list[tuple[str, str]]:
    return [(each.item.title, each.change.value) for each in steps]


class ExportTests(SynchronousTestCase):
    def test_export_is_equal_to_its_object(self) -> None:
        """An export that is applied where it comes from changes nothing."""
        content = {
            kind: [exported(BY_NAME[kind], row, ALL) for row in rows]
            for kind, rows in ALL.rows.items()
        }
        content["job_binaries"][0]["content"] = "x"
        text = yaml.safe_dump(content).encode()
        self.assertNotIn(b"geheim", text)
        steps = plan(read(text), ALL, {"count.pig": "d1"})
        self.assertEqual([s.texts for s in steps if s.change is not Change.NONE], [])
        self.assertEqual(len(steps), 6)

    def test_references_are_names(self) -> None:
        """Ids of other installations mean nothing; a name that is not unique stays an id."""
        self.assertEqual(
            exported(BY_NAME["clusters"], CLUSTER, ALL),
            {
                "name": "first",
                "plugin_name": "fake",
                "engine_version": "0.1",
                "image": "plain",
                "node_groups": [{"name": "worker", "count": 2, "node_group_template": "worker"}],
                "cluster_template": "small",
                "user_keypair_id": "demo",
            },
        )
        twins = There(images=[{"id": "m1", "name": "plain"}, {"id": "m9", "name": "plain"}])
        self.assertEqual(exported(BY_NAME["clusters"], CLUSTER, twins)["image"], "m1")

    def test_secrets_are_placeholders(self) -> None:
        """Passwords, masked values, secret options, and accounts in URLs."""
        made = exported(BY_NAME["data_sources"], SOURCE, ALL)
        self.assertEqual(made["credentials"], {"user": "demo", "password": {"env": "IN_PASSWORD"}})
        masked = {**SOURCE, "credentials": {"user": "***", "password": "***"}}
        made = exported(BY_NAME["data_sources"], masked, ALL)
        self.assertEqual(made["credentials"]["user"], {"env": "IN_USER"})
        url = {**SOURCE, "url": "hdfs://me:geheim@host/in", "credentials": {}}
        self.assertEqual(exported(BY_NAME["data_sources"], url, ALL)["url"], {"env": "IN_URL"})
        configs = {**SMALL, "cluster_configs": {"HDFS": {"ssl.password": "geheim", "a": 1}}}
        made = exported(BY_NAME["cluster_templates"], configs, ALL)
        self.assertEqual(
            made["cluster_configs"]["HDFS"], {"ssl.password": {"env": "SMALL_SSL_PASSWORD"}, "a": 1}
        )


class RequestTests(SynchronousTestCase):
    def test_names_become_ids(self) -> None:
        """As the API's POST takes them."""
        items = {each.kind.name: each for each in read()}
        ids = {
            ("node_group_templates", "worker"): "n1",
            ("cluster_templates", "small"): "t1",
            ("job_binaries", "count.pig"): "b1",
            ("images", "plain"): "m1",
        }
        self.assertEqual(
            request(items["cluster_templates"], ids)["node_groups"],
            [{"name": "worker", "count": 2, "node_group_template_id": "n1"}],
        )
        self.assertEqual(
            request(items["jobs"], ids), {"name": "count", "type": "Pig", "mains": ["b1"]}
        )
        self.assertEqual(
            request(items["clusters"], ids),
            {
                "name": "first",
                "plugin_name": "fake",
                "engine_version": "0.1",
                "user_keypair_id": "demo",
                "default_image_id": "m1",
                "cluster_template_id": "t1",
            },
        )
        self.assertEqual(
            request(items["job_binaries"], ids, "internaldb://i1"),
            {"name": "count.pig", "url": "internaldb://i1"},
        )


class WholeTests(SynchronousTestCase):
    """A request that stands for itself, while its templates are not made yet."""

    def setUp(self) -> None:
        self.items = {each.kind.name: each for each in read()}
        self.new = {(each.kind.name, each.name): each for each in read()}
        self.worker = {
            "name": "worker", "count": 2, "flavor_id": "3", "node_processes": ["datanode"],
            "node_configs": {},
        }  # fmt: skip

    def test_group_has_the_fields_of_its_template(self) -> None:
        """Its own fields win, and options are merged by name."""
        small = whole(self.items["cluster_templates"].body, self.new)
        self.assertEqual(small["node_groups"], [self.worker])
        template = self.new["node_group_templates", "worker"]
        configs = {"HDFS": {"a": 1, "b": 1}}
        self.new["node_group_templates", "worker"] = evolve(
            template, body={**template.body, "node_configs": configs}
        )
        group = {"name": "w", "count": 1, "node_group_template": "worker", "flavor_id": "4",
                 "node_configs": {"HDFS": {"b": 2}, "YARN": {"c": 3}}}  # fmt: skip
        self.assertEqual(
            whole({"node_groups": [group]}, self.new)["node_groups"],
            [
                {
                    "name": "w", "count": 1, "flavor_id": "4", "node_processes": ["datanode"],
                    "node_configs": {"HDFS": {"a": 1, "b": 2}, "YARN": {"c": 3}},
                }
            ],
        )  # fmt: skip

    def test_cluster_has_the_fields_of_its_template(self) -> None:
        """Groups that it gives replace those of the template."""
        body = self.items["clusters"].body
        made = whole(body, self.new)
        self.assertEqual((made["name"], made["image"]), ("first", "plain"))
        self.assertNotIn("cluster_template", made)
        self.assertEqual(made["node_groups"], [self.worker])
        own = [{"name": "all", "count": 1, "flavor_id": "3", "node_processes": ["datanode"]}]
        self.assertEqual(whole({**body, "node_groups": own}, self.new)["node_groups"], own)

    def test_template_that_is_there_stays_a_reference(self) -> None:
        """The API knows its fields."""
        body = self.items["clusters"].body
        self.assertEqual(whole(body, {}), body)

    def test_template_for_another_plugin(self) -> None:
        """The API would refuse the reference."""
        cluster = self.items["clusters"]
        other = evolve(cluster, body={**cluster.body, "engine_version": "0.2"})
        self.assertEqual(list(other_plugins(cluster, self.new)), [])
        self.assertEqual(
            list(other_plugins(other, self.new)), ["template small is for plugin fake 0.1"]
        )
