"""A bundle: how it is read, what it changes, and that an export is equal to its objects."""

from __future__ import annotations

from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.bundle import BY_NAME, Item, There, exported, request
from svcd.cli.bundle_file import parse
from svcd.cli.bundle_plan import Change, Step, plan
from svcd.cli.job_files import Unusable

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


class ParseTests(SynchronousTestCase):
    def refusal(self, text: bytes) -> str:
        return str(self.assertRaises(Unusable, read, text))

    def test_bundle(self) -> None:
        """Each object with its place, and variables of the environment filled in."""
        items = read()
        self.assertEqual(
            [(each.title, each.where) for each in items[2:5]],
            [
                ("source in", "b.yaml: data_sources[0]"),
                ("binary count.pig", "b.yaml: job_binaries[0]"),
                ("job count", "b.yaml: jobs[0]"),
            ],
        )
        self.assertEqual(items[2].body["credentials"], {"user": "demo", "password": "geheim"})
        self.assertNotIn("geheim", repr(items))

    def test_several_documents(self) -> None:
        """They are one bundle; an empty one is nothing."""
        self.assertEqual(len(read(b"---\n---\njobs: [{name: a}]\n---\njobs: [{name: b}]\n")), 2)

    def test_refusals(self) -> None:
        """Each says the place and what to write."""
        for text, expected in (
            (b"a: [", "b.yaml is not valid YAML in line 1"),
            (b"- 1", "b.yaml: expected lists of node_group_templates, "),
            (b"job: []", "b.yaml: job: unknown field; did you mean jobs?"),
            (b"jobs: {}", "b.yaml: jobs must be a list"),
            (b"jobs: [{type: Pig}]", "b.yaml: jobs[0].name must be a text"),
            (b"jobs: [{name: a, mian: []}]", "b.yaml: jobs[0].mian: unknown field; did you mean"),
            (
                b"clusters: [{name: a, default_image_id: x}]",
                "b.yaml: clusters[0].default_image_id: unknown field; did you mean image?",
            ),
            (
                b"clusters: [{name: a, engine_version: 0.1}]",
                "b.yaml: clusters[0].engine_version: 0.1 is no text in YAML: put it into",
            ),
            (b"jobs: [{name: a, name: b}]", "line 1: the key name is given twice"),
            (b"jobs: [{1: a}]", "the key 1 is no text"),
            (b"clusters: [{name: a, anti_affinity: [2026-01-01]}]", "is no text in YAML"),
            (b"job_binaries: [{name: a}]", "give one of file, content and url"),
            (b"data_sources: [{name: a, credentials: {user: {env: U}}}]", "set the variable U of"),
            (b"data_sources: [{name: a, url: {env: NO}}]", "url.env must be a text"),
        ):
            self.assertIn(expected, self.refusal(text))

    def test_file_that_grows_by_aliases(self) -> None:
        """It is refused before it is copied."""
        lines = [b"a0: &a0 [1,1,1,1,1,1,1,1,1]"]
        lines += [
            b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)
        ]
        self.assertIn("more than 100000 values", self.refusal(b"\n".join(lines)))


class PlanTests(SynchronousTestCase):
    def test_new_project(self) -> None:
        """All is made, what others need first."""
        steps = plan(list(reversed(read())), There(images=IMAGES), {"count.pig": "d1"})
        self.assertEqual(
            changes(steps),
            [
                ("node group template worker", "create"),
                ("template small", "create"),
                ("source in", "create"),
                ("binary count.pig", "create"),
                ("job count", "create"),
                ("cluster first", "create"),
            ],
        )

    def test_applied_bundle(self) -> None:
        """Nothing is left to do."""
        steps = plan(read(), ALL, {"count.pig": "d1"})
        self.assertEqual({each.change for each in steps}, {Change.NONE})

    def test_half_applied_bundle(self) -> None:
        """The rest is made."""
        rows = {k: v for k, v in ALL.rows.items() if k not in ("jobs", "clusters")}
        steps = plan(read(), There(rows=rows, images=IMAGES, digests=ALL.digests), {})
        self.assertEqual(
            [each for each in changes(steps) if each[1] != "unchanged"],
            [("job count", "create"), ("cluster first", "create")],
        )

    def test_cluster_is_scaled(self) -> None:
        """The only change that the API makes: other sizes, and new groups."""
        groups = b"[{name: worker, count: 5}, {name: more, count: 1}]"
        text = b"clusters: [{name: first, node_groups: %s}]" % groups
        (step,) = plan(read(text), ALL, {})
        self.assertEqual((step.change, step.id, step.sizes), (Change.SCALE, "c1", {"worker": 5}))
        self.assertEqual(step.texts, ["group worker: 2 -> 5", "group more: new, 1 machines"])
        self.assertEqual(step.groups, [{"name": "more", "count": 1}])

    def refused(self, text: bytes, digests: dict[str, str] | None = None) -> Step:
        (step,) = plan(read(text, W="new"), ALL, digests or {})
        self.assertEqual(step.change, Change.REFUSED)
        return step

    def test_change_that_the_api_cannot_make(self) -> None:
        """What differs, and what to do."""
        step = self.refused(b"data_sources: [{name: in, url: 'objstore://c/other'}]")
        self.assertEqual(
            step.texts,
            [
                "url: 'objstore://c/in' -> 'objstore://c/other'",
                "the API cannot change it: give it another name, or remove it with svcd source rm"
                " in and apply again",
            ],
        )
        step = self.refused(b"jobs: [{name: count, mains: [count.pig], libs: [count.pig]}]")
        self.assertEqual(step.texts[0], "libs: None -> ['count.pig']")
        step = self.refused(b"job_binaries: [{name: count.pig, content: x}]", {"count.pig": "d2"})
        self.assertEqual(step.texts[0], "another content")

    def test_secrets_are_not_shown(self) -> None:
        """A password that differs is named, and neither value is."""
        step = self.refused(b"data_sources: [{name: in, credentials: {password: {env: W}}}]")
        self.assertEqual(step.texts[0], "credentials.password")

    def test_refusals(self) -> None:
        """Missing objects and images, and an object that is there twice."""
        for text, expected in (
            (b"jobs: [{name: a, mains: [x]}]", "b.yaml: jobs[0]: there is no binary x in the bun"),
            (b"clusters: [{name: a, image: x}]", "there is no registered image x, or several"),
            (b"jobs: [{name: a}, {name: a}]", "b.yaml: jobs[1]: job a is in the bundle twice"),
        ):
            error = self.assertRaises(Unusable, plan, read(text), ALL, {})
            self.assertIn(expected, str(error))


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
