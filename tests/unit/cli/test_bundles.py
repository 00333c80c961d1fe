"""`svcd apply`, `diff` and `export` against the in-process fake behind a socket."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from svcd.cli.bundle import BY_NAME
from tests.support.commands import RunCase, Said

_LISTS = (
    "node-group-templates", "cluster-templates", "data-sources", "job-binaries",
    "job-binary-internals", "jobs", "clusters",
)  # fmt: skip
_LONG = "a" * 51


class BundleCase(RunCase):
    """A bundle with an object of each kind."""

    def bundle(self, **more: Any) -> str:
        content = {
            "node_group_templates": [
                {"name": "worker", "plugin_name": "fake", "engine_version": "0.1",
                 "flavor_id": "3", "node_processes": ["datanode"]},
            ],
            "cluster_templates": [
                {"name": "small", "plugin_name": "fake", "engine_version": "0.1",
                 "node_groups": [
                     {"name": "master", "count": 1, "flavor_id": "3",
                      "node_processes": ["namenode", "resourcemanager"]},
                     {"name": "worker", "count": 1, "node_group_template": "worker"},
                 ]},
            ],
            "data_sources": [
                {"name": "in", "type": "objstore", "url": "objstore://c/in",
                 "credentials": {"user": "demo", "password": {"env": "IN_PASSWORD"}}},
            ],
            "job_binaries": [
                {"name": "count.pig", "file": "count.pig"},
                {"name": "lib.sh", "content": "#!/bin/sh\nexit 0\n"},
            ],
            "jobs": [{"name": "count", "type": "Pig", "mains": ["count.pig"]}],
            "clusters": [
                {"name": "second", "plugin_name": "fake", "engine_version": "0.1",
                 "cluster_template": "small", "image": "plain"},
            ],
            **more,
        }  # fmt: skip
        self.file("b/count.pig")
        return self.file("b/bundle.yaml", yaml.safe_dump(content))

    def setUp(self) -> None:
        super().setUp()
        os.environ["IN_PASSWORD"] = "geheim"

    def apply(self, *more: str, **changed: Any) -> Said:
        return self.shown.run("apply", "-f", self.bundle(**changed), *more)

    def applied(self) -> str:
        """Apply the bundle; the id of its cluster, which is Active."""
        self.assertEqual(self.apply().code, 0)
        clusters = self.api.get("/clusters")["clusters"]
        (id_,) = (cluster["id"] for cluster in clusters if cluster["name"] == "second")
        self.api.until_status(id_, "Active")
        return str(id_)

    def sized(self, workers: int, **more: Any) -> str:
        """A bundle with another size of the cluster."""
        groups = [{"name": "worker", "count": workers}]
        return self.bundle(clusters=[{"name": "second", "node_groups": groups}], **more)

    def sizes(self, cluster_id: str) -> list[int]:
        return [group["count"] for group in self.api.cluster(cluster_id)["node_groups"]]


class BundleTests(BundleCase):
    def test_apply_twice(self) -> None:
        """All is made in order, then nothing is left to do; templates are shown."""
        said = self.apply("--dry-run")
        self.assertEqual(said.code, 0, said)
        self.assertEqual(said.out.splitlines()[0], "+ node group template worker")
        self.assertEqual(self.api.get("/jobs")["jobs"], [])
        said = self.apply()
        self.assertEqual(said.code, 0, said)
        titles = ("node group template worker", "template small", "source in", "binary count.pig",
                  "binary lib.sh", "job count", "cluster second")  # fmt: skip
        self.assertEqual(said.out.splitlines(), [f"created {title}" for title in titles])
        said = self.apply()
        self.assertEqual({line.split()[0] for line in said.out.splitlines()}, {"unchanged"}, said)
        self.assertEqual(self.shown.run("diff", "-f", self.bundle(), "--exit-code").code, 0)
        self.assertIn("master 1, worker 1", self.shown.run("template", "ls").out)
        self.assertIn("worker", self.shown.run("template", "ls", "--groups").out)
        self.assertEqual(
            self.shown.body("template", "show", "worker")["node_group_template"]["flavor_id"], "3"
        )

    def test_lifetime_of_a_cluster(self) -> None:
        """Inherited from its template, changed without other work, and exported."""
        id_ = self.applied()
        file = self.file(
            "life.yaml", "clusters: [{name: second, idle_delete_s: 0, max_age_s: 3600}]"
        )
        said = self.shown.run("apply", "-f", file)
        self.assertEqual(said.out, "changed cluster second: max_age_s: 0 -> 3600\n", said)
        row = self.api.cluster(id_)
        self.assertEqual((row["status"], row["max_age_s"]), ("Active", 3600))
        self.assertIn("unchanged", self.shown.run("apply", "-f", file).out)
        (cluster,) = yaml.safe_load(self.done("export", "cluster", "second").out)["clusters"]
        self.assertEqual(cluster["max_age_s"], 3600)

    def test_same_apply_at_the_same_time(self) -> None:
        """An equal object that appears meanwhile is unchanged; another one of that name is not."""
        source = {"name": "in", "type": "hdfs", "url": "hdfs:///in"}
        for made, code in ((source, 0), ({**source, "url": "hdfs:///other"}, 4)):

            def other(method: str, path: str, made: Any = made) -> None:
                if method == "POST" and path.endswith("/data-sources"):
                    self.shown.before = lambda method, path: None
                    self.api.post("/data-sources", made)

            self.shown.before = other
            file = self.file("source.yaml", yaml.safe_dump({"data_sources": [source]}))
            said = self.shown.run("apply", "-f", file)
            self.assertEqual(said.code, code, said)
            self.assertEqual(said.out, "" if code else "unchanged source in\n")
            (there,) = self.api.get("/data-sources")["data_sources"]
            self.api.delete(f"/data-sources/{there['id']}")
        self.assertIn("a data source named 'in' exists already", said.err)

    def test_half_applied(self) -> None:
        """What is done is said, and the next apply goes on."""

        def broken(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/jobs"):
                raise ConnectionError

        self.shown.before = broken
        said = self.apply()
        self.assertEqual((said.code, said.err.count("\n")), (5, 3), said)
        self.assertIn("job count: ", said.err)
        self.assertIn("5 of 7 changes are made; the same svcd apply makes the others", said.err)
        again = self.shown.run("apply", "-f", self.bundle(clusters=[]))
        self.assertTrue(again.err.endswith("; nothing was changed\n"), again)
        self.shown.before = lambda method, path: None
        said = self.apply()
        self.assertEqual(said.code, 0, said)
        self.assertEqual(
            said.out.splitlines()[-2:], ["created job count", "created cluster second"]
        )

    def test_scale(self) -> None:
        """Another size of a group is the change that the API makes."""
        cluster_id = self.applied()
        file = self.sized(3)
        said = self.shown.run("diff", "-f", file, "--exit-code")
        self.assertEqual((said.code, said.out), (1, "~ cluster second: group worker: 1 -> 3\n"))
        self.done("apply", "-f", file)
        self.assertEqual(self.sizes(cluster_id), [1, 3])

    def test_machines_go_only_after_a_question(self) -> None:
        """Without a terminal: code 4, what would go, and nothing is done, unless --yes is given."""
        cluster_id = self.applied()
        self.done("apply", "-f", self.sized(3), "--wait")
        new = {"name": "new", "type": "hdfs", "url": "hdfs:///new"}
        file = self.sized(1, data_sources=[new])
        self.done("apply", "-f", file, "--dry-run")
        self.assertEqual(
            self.refused(4, "apply", "-f", file),
            "svcd apply: remove 2 of 3 machines of group worker of cluster second needs --yes,"
            " because there is no terminal to ask on\n",
        )
        self.assertEqual(len(self.shown.body("source", "ls")["data_sources"]), 1)
        self.done("apply", "-f", file, "--yes")
        self.assertEqual(self.sizes(cluster_id), [1, 1])

    def test_apply_waits_for_its_clusters(self) -> None:
        """For a new one, for one that grows, and for one that an earlier apply began."""
        said = self.apply("--wait")
        self.assertEqual(said.code, 0, said)
        self.assertIn("second: Spawning\n", said.err)
        self.assertTrue(said.err.endswith("cluster second is Active\n"), said.err)
        self.done("apply", "-f", self.sized(3))
        said = self.done("apply", "-f", self.sized(3), "--wait")
        self.assertEqual(said.out.splitlines()[-1], "unchanged cluster second")
        (cluster,) = (c for c in self.api.get("/clusters")["clusters"] if c["name"] == "second")
        self.assertEqual(cluster["status"], "Active")
        machines = [len(group["instances"]) for group in cluster["node_groups"]]
        self.assertEqual(machines, [1, 3])

    def test_export(self) -> None:
        """A job with its binaries, a source without its password; applied again they are equal."""
        self.apply()
        for words, kinds in (
            (("job", "count"), {"job_binaries", "jobs"}),
            (("source", "in"), {"data_sources"}),
            (("cluster", "second"), {"node_group_templates", "cluster_templates", "clusters"}),
        ):
            said = self.done("export", *words)
            self.assertEqual(set(yaml.safe_load(said.out)), kinds)
            self.assertNotIn("geheim", said.out)
            told = "reads the secrets from the environment: IN_PASSWORD" in said.err
            self.assertEqual(told, words[0] == "source", said)
            file = self.file("e.yaml", said.out)
            self.assertEqual(self.shown.run("diff", "-f", file).out, "", said.out)

    def test_what_is_missing(self) -> None:
        """A variable with a secret; the bundle; the file of a binary, beside the bundle."""
        self.assertIn("no.yaml", self.refused(2, "apply", "-f", "no.yaml"))
        file = self.bundle(job_binaries=[{"name": "x", "file": "x.pig"}])
        place = Path(self.folder, "b", "x.pig")
        said = self.shown.run("apply", "-f", file)
        self.assertIn(f"{place} cannot be read: No such file", said.err)
        del os.environ["IN_PASSWORD"]
        self.assertIn(
            "data_sources[0].credentials.password: set the variable IN_PASSWORD",
            self.refused(2, "apply", "-f", self.bundle()),
        )


class RefusalTests(BundleCase):
    def rows(self) -> Mapping[str, int]:
        """How many objects the API lists of each kind."""
        answers = {each: self.api.get(f"/{each}") for each in _LISTS}
        return {each: len(next(iter(answer.values()))) for each, answer in answers.items()}

    def changed(self, *changes: tuple[str, Mapping[str, Any]]) -> str:
        """The bundle with other fields of the first object of a kind.

        With a name it is a further object.
        """
        content = yaml.safe_load(Path(self.bundle()).read_text())
        for kind, fields in changes:
            row = {**content[kind][-1], **fields}
            kept = content[kind] if "name" in fields else content[kind][:-1]
            changed = {key: value for key, value in row.items() if value is not None}
            content[kind] = [changed, *kept]
        return self.file("b/changed.yaml", yaml.safe_dump(content))

    def refused_file(self, file: str, title: str, fault: str) -> Said:
        """What apply says. It makes nothing, and the dry run and the comparison say the same."""
        before = self.rows()
        compared = self.shown.run("diff", "-f", file, "--exit-code")
        self.assertEqual(compared.code, 1, compared)
        lines = [line for line in compared.out.splitlines() if line.startswith(f"! {title}: ")]
        self.assertEqual(len(lines), 1, compared)
        self.assertIn(fault, lines[0])
        said = self.shown.run("apply", "-f", file)
        self.assertEqual((said.code, said.out), (4, ""), said)
        self.assertIn(f"{title}: ", said.err)
        self.assertIn(fault, said.err)
        self.assertIn("nothing was done, because of ", said.err)
        dry = self.shown.run("apply", "-f", file, "--dry-run")
        self.assertEqual((dry.code, dry.err), (4, said.err))
        self.assertIn(lines[0], dry.out)
        self.assertEqual(self.rows(), before)
        return said

    def test_every_kind(self) -> None:
        """Its name, its fields, and its place in the cloud; all are told at once."""
        cases: Sequence[tuple[str, str, Mapping[str, Any], str]] = (
            ("node_group_templates", "flavor", {"flavor_id": "99"}, "flavor"),
            ("node_group_templates", "process", {"node_processes": ["none"]}, "none"),
            ("cluster_templates", _LONG, {}, "name: expected"),
            ("cluster_templates", "other", {"plugin_name": "other"}, "plugin fake 0.1"),
            ("data_sources", "account", {"credentials": None}, "user and password"),
            ("data_sources", "type", {"type": "ftp"}, "type: expected"),
            ("job_binaries", _LONG, {}, "name: expected"),
            ("job_binaries", "url", {"content": None, "url": "ftp://x"}, "url: expected"),
            ("jobs", _LONG, {}, "name: expected"),
            ("jobs", "mains", {"mains": None}, "at least one main binary"),
            ("jobs", "type", {"type": "Nothing"}, "type: expected"),
            ("jobs", "spark", {"type": "Spark"}, "a .jar, a .py or a .sql file"),
            ("clusters", "keypair", {"user_keypair_id": "none"}, "key pair"),
            ("clusters", _LONG, {}, "name: expected"),
            ("clusters", "FIRST", {}, "exists already"),
            ("clusters", "option", {"cluster_configs": {"HDFS": {"no": 1}}}, "option"),
        )
        file = self.changed(*((kind, {"name": name, **more}) for kind, name, more, _ in cases))
        said = self.shown.run("diff", "-f", file, "--exit-code")
        self.assertEqual(said.code, 1, said)
        lines = {line.partition(": ")[0]: line for line in said.out.splitlines()}
        for kind, name, _, fault in cases:
            self.assertIn(fault, lines[f"! {BY_NAME[kind].word} {name}"])
        self.assertEqual(sum(line.startswith("+ ") for line in lines), 7)

    def test_values_of_a_new_template_are_the_clusters_own(self) -> None:
        """Names, counts and options are checked as the API merges them."""
        file = self.changed(("clusters", {"node_groups": [{"name": "worker", "count": 1}]}))
        self.refused_file(file, "cluster second", "missing flavor_id and node_processes")
        groups = [{"name": "worker", "count": 1, "node_group_template": "worker"}]
        file = self.changed(("clusters", {"node_groups": groups}))
        self.refused_file(file, "cluster second", "namenode")
        file = self.changed(("clusters", {"engine_version": "0.2"}))
        self.refused_file(file, "cluster second", "template small is for plugin fake 0.1")

    def test_new_size_that_the_api_refuses(self) -> None:
        """Of a cluster that is there; the rest of the bundle is not made."""
        worker = {"name": "first", "node_groups": [{"name": "worker", "count": 900}]}
        self.refused_file(self.bundle(clusters=[worker]), "cluster first", "quota")

    def test_change_that_the_api_cannot_make(self) -> None:
        """Another place of a source, another content of a binary."""
        self.apply()
        source = {"name": "in", "type": "objstore", "url": "objstore://c/other"}
        text = "url: 'objstore://c/in' -> 'objstore://c/other'; the API cann"
        self.refused_file(self.bundle(data_sources=[source]), "source in", text)
        self.file("b/other.pig", "-- other\n")
        binary = {"name": "count.pig", "file": "other.pig"}
        file = self.bundle(job_binaries=[binary], jobs=[])
        self.refused_file(file, "binary count.pig", "another content")

    def test_cluster_that_is_being_deleted(self) -> None:
        """Its end must come first."""
        cluster_id = self.applied()
        self.fake.faults.add(where="compute", method="DELETE", path="/servers/", status=500)
        self.api.delete(f"/clusters/{cluster_id}")
        text = "it is being deleted: wait for its end (svcd cluster rm second --wait) and apply"
        self.refused_file(self.bundle(), "cluster second", text)

    def test_cluster_in_error(self) -> None:
        """The rest is made; the cluster stays, and the way out is told."""
        self.fake.faults.add(where="ssh", path="(?s) .*cp processes running", status=1, body="no")
        said = self.apply("--wait")
        self.assertEqual(said.code, 1)
        self.assertIn("cluster second is in Error; svcd why second shows its history", said.err)
        new = {"name": "new", "type": "hdfs", "url": "hdfs:///new"}
        file = self.sized(3, data_sources=[new])
        said = self.shown.run("diff", "-f", file, "--exit-code")
        self.assertEqual(said.code, 1, said)
        self.assertRegex(said.out.splitlines()[-1], "^! cluster second: .*it is in Error")
        for more in (("--dry-run",), (), ("--wait",)):
            said = self.shown.run("apply", "-f", file, *more)
            self.assertEqual(said.code, 1, said)
            self.assertIn(
                "cluster second: it is in Error: svcd why second shows the reason, svcd cluster"
                " retry second repeats what failed, svcd cluster rm second removes it; then"
                " apply again",
                said.err,
            )
        names = [each["name"] for each in self.api.get("/data-sources")["data_sources"]]
        self.assertEqual(names, ["in", "new"])
