"""What `svcd apply -f FILE` reads, what it does given what is there, and what `export` writes."""

from __future__ import annotations

from typing import Any

from attrs import evolve, fields
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.bundle import BY_NAME, Item, There, exported, whole
from svcd.cli.bundle import GROUPS as OF_GROUPS
from svcd.cli.bundle_file import parse
from svcd.cli.bundle_plan import Change, Step, plan
from svcd.cli.exits import CommandError
from svcd.cli.job_files import Unusable
from svcd.model import requests

WORKER = b"""
node_group_templates:
  - {name: worker, plugin_name: fake, engine_version: "0.1", flavor_id: "3",
     node_processes: [datanode]}
"""
GROUP = {
    "flavor_id": "3", "node_processes": ["datanode"], "node_configs": {}, "volumes_per_node": 0,
    "volumes_size": 10, "volume_mount_prefix": "/volumes/disk",
}  # fmt: skip
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
        "node_group_templates": [TEMPLATE], "cluster_templates": [SMALL], "data_sources": [SOURCE],
        "job_binaries": [BINARY], "jobs": [JOB], "clusters": [CLUSTER],
    },
    images=IMAGES,
    digests={"count.pig": "d1"},
)  # fmt: skip


def read(text: bytes = WORKER, **environment: str) -> list[Item]:
    given = environment or {"IN_PASSWORD": "geheim"}
    return list(parse(text, "b.yaml", "/folder", given))


class FieldsTests(SynchronousTestCase):
    def test_a_bundle_has_each_field_of_a_request_or_its_absence_is_meant(self) -> None:
        """By the API's names; a file or text in place of a URL is the bundle's own."""
        names = {
            "cluster_template": "cluster_template_id",
            "image": "default_image_id",
            "node_group_template": "node_group_template_id",
        }
        by_request = {
            requests.NewNodeGroupTemplate: BY_NAME["node_group_templates"].fields,
            requests.NewNodeGroup: OF_GROUPS,
            requests.NewClusterTemplate: BY_NAME["cluster_templates"].fields,
            requests.NewCluster: (*BY_NAME["clusters"].fields, "is_transient"),  # it would end
            requests.NewDataSource: BY_NAME["data_sources"].fields,
            requests.NewJobBinary: BY_NAME["job_binaries"].fields,
            requests.NewJob: BY_NAME["jobs"].fields,
        }
        for request, known in by_request.items():
            given = {field.name for field in fields(request)}
            self.assertEqual({names.get(n, n) for n in known} - {"file", "content"}, given, request)


class ExportTests(SynchronousTestCase):
    def test_an_image_whose_name_is_not_unique_stays_an_id(self) -> None:
        """Other references are names, because ids of other installations mean nothing."""
        twins = There(images=[{"id": "m1", "name": "plain"}, {"id": "m9", "name": "plain"}])
        found = [exported(BY_NAME["clusters"], CLUSTER, there)["image"] for there in (ALL, twins)]
        self.assertEqual(found, ["plain", "m1"])

    def test_lifetimes_and_scripts(self) -> None:
        """A cluster that does without the time of its template says so."""
        template = {**SMALL, "idle_delete_s": 3600, "max_age_s": 0}
        there = evolve(ALL, rows={**ALL.rows, "cluster_templates": [template]})
        group = {"name": "m", "count": 1, **GROUP, "init_scripts": ["setup-1.sh"]}
        for kind, row, expected in (
            ("cluster_templates", template, (3600, 0)),
            ("clusters", CLUSTER, (0, None)),
            ("clusters", {**CLUSTER, "max_age_s": 60}, (0, 60)),
        ):
            found = exported(BY_NAME[kind], {**row, "node_groups": [group]}, there)
            self.assertEqual((found.get("idle_delete_s"), found.get("max_age_s")), expected)
            self.assertEqual(found["node_groups"][0]["init_scripts"], ["setup-1.sh"])

    def test_a_group_has_what_differs_from_its_template(self) -> None:
        """As of a cluster that was made with a further script."""
        group = {**GROUPS[0], "init_scripts": ["setup-1.sh"]}
        (found,) = exported(BY_NAME["clusters"], {**CLUSTER, "node_groups": [group]}, ALL)[
            "node_groups"
        ]
        head = {"name": "worker", "count": 2, "node_group_template": "worker"}
        self.assertEqual(found, {**head, "init_scripts": ["setup-1.sh"]})

    def test_secrets_are_placeholders(self) -> None:
        """Passwords, masked values, secret options, and accounts in URLs."""

        def written(kind: str, row: dict[str, Any], **more: Any) -> Any:
            return exported(BY_NAME[kind], {**row, **more}, ALL)

        source = written("data_sources", SOURCE)
        self.assertEqual(
            source["credentials"], {"user": "demo", "password": {"env": "IN_PASSWORD"}}
        )
        masked = written("data_sources", SOURCE, credentials={"user": "***", "password": "***"})
        self.assertEqual(masked["credentials"]["user"], {"env": "IN_USER"})
        place = written("data_sources", SOURCE, url="hdfs://me:geheim@host/in", credentials={})
        self.assertEqual(place["url"], {"env": "IN_URL"})
        configs = {"HDFS": {"ssl.password": "geheim", "a": 1}}
        self.assertEqual(
            written("cluster_templates", SMALL, cluster_configs=configs)["cluster_configs"]["HDFS"],
            {"ssl.password": {"env": "SMALL_SSL_PASSWORD"}, "a": 1},
        )


class WholeTests(SynchronousTestCase):
    """A request that stands for itself, while its templates are not made yet."""

    def test_group_has_the_fields_of_its_template(self) -> None:
        """Its own fields win, and options are merged by name."""
        new = {(each.kind.name, each.name): each for each in read()}
        template = new["node_group_templates", "worker"]
        configs = {"HDFS": {"a": 1, "b": 1}}
        changed = evolve(template, body={**template.body, "node_configs": configs})
        new["node_group_templates", "worker"] = changed
        group = {"name": "w", "count": 1, "node_group_template": "worker", "flavor_id": "4",
                 "node_configs": {"HDFS": {"b": 2}, "YARN": {"c": 3}}}  # fmt: skip
        expected = {"name": "w", "count": 1, "flavor_id": "4", "node_processes": ["datanode"],
                    "node_configs": {"HDFS": {"a": 1, "b": 2}, "YARN": {"c": 3}}}  # fmt: skip
        self.assertEqual(whole({"node_groups": [group]}, new)["node_groups"], [expected])


class ParseTests(SynchronousTestCase):
    def refusal(self, text: bytes) -> str:
        return str(self.assertRaises(CommandError, read, text))

    def test_several_documents(self) -> None:
        """They are one bundle; an empty one is nothing."""
        self.assertEqual(len(read(b"---\n---\njobs: [{name: a}]\n---\njobs: [{name: b}]\n")), 2)

    def test_refusals(self) -> None:
        """Each says the place and what to write."""
        for text, expected in (
            (b"a: [", "b.yaml is not valid YAML or JSON in line 1"),
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
    def test_cluster_is_scaled(self) -> None:
        """The only change that the API makes: other sizes, and new groups."""
        groups = b"[{name: worker, count: 5}, {name: more, count: 1}]"
        text = b"clusters: [{name: first, node_groups: %s}]" % groups
        (step,) = plan(read(text), ALL, {})
        self.assertEqual((step.change, step.id, step.sizes), (Change.SCALE, "c1", {"worker": 5}))
        self.assertEqual(step.texts, ["group worker: 2 -> 5", "group more: new, 1 machines"])
        self.assertEqual(step.groups, [{"name": "more", "count": 1}])

    def test_lifetime_of_a_cluster_is_changed(self) -> None:
        """Equal and absent times change nothing, also of a cluster without any."""
        more = b"idle_delete_s: 0, max_age_s: 60, node_groups: [{name: worker, count: 5}]"
        for given, life, sizes in (
            (b"max_age_s: 60", {"max_age_s": 60}, {}),
            (more, {"max_age_s": 60}, {"worker": 5}),
            (b"idle_delete_s: 0", {}, {}),
        ):
            (step,) = plan(read(b"clusters: [{name: first, %s}]" % given), ALL, {})
            change = Change.SCALE if life else Change.NONE
            self.assertEqual((step.change, step.life, step.sizes), (change, life, sizes))
            self.assertEqual("max_age_s: 0 -> 60" in step.texts, bool(life))

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
            (b"clusters: [{name: new}, {name: NEW}]", "cluster NEW is in the bundle twice"),
        ):
            error = self.assertRaises(Unusable, plan, read(text), ALL, {})
            self.assertIn(expected, str(error))
