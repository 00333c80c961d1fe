"""`svcd apply`, `diff` and `export` against the in-process fake behind a socket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from svcd.cli import waiting
from tests.support.commands import Said
from tests.unit.cli.test_run import RunCase


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


class BundleTests(BundleCase):
    def test_apply_twice(self) -> None:
        """All is made in order, then nothing is left to do; templates are shown."""
        said = self.apply("--dry-run")
        self.assertEqual(said.code, 0, said)
        self.assertEqual(said.out.splitlines()[0], "+ node group template worker")
        self.assertEqual(self.api.get("/jobs")["jobs"], [])
        said = self.apply()
        self.assertEqual(said.code, 0, said)
        self.assertEqual(
            said.out.splitlines(),
            [
                "created node group template worker",
                "created template small",
                "created source in",
                "created binary count.pig",
                "created binary lib.sh",
                "created job count",
                "created cluster second",
            ],
        )
        said = self.apply()
        self.assertEqual({line.split()[0] for line in said.out.splitlines()}, {"unchanged"}, said)
        self.assertEqual(self.shown.run("diff", "-f", self.bundle(), "--exit-code").code, 0)
        self.assertIn("master 1, worker 1", self.shown.run("template", "ls").out)
        self.assertIn("worker", self.shown.run("template", "ls", "--groups").out)
        self.assertEqual(
            self.shown.body("template", "show", "worker")["node_group_template"]["flavor_id"], "3"
        )

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
        self.apply()
        cluster_id = self.shown.body("cluster", "ls")["clusters"][1]["id"]
        self.api.until_status(cluster_id, "Active")
        groups = [{"name": "worker", "count": 3}]
        cluster = {"name": "second", "node_groups": groups}
        file = self.bundle(clusters=[cluster])
        said = self.shown.run("diff", "-f", file, "--exit-code")
        self.assertEqual(
            (said.code, said.out), (1, "~ cluster second: group worker: 1 -> 3\n"), said
        )
        said = self.shown.run("apply", "-f", file)
        self.assertEqual(said.code, 0, said)
        shown = self.api.cluster(cluster_id)
        self.assertEqual([g["count"] for g in shown["node_groups"]], [1, 3])

    def test_machines_go_only_after_a_question(self) -> None:
        """Without a terminal: code 4, what would go, and nothing is done, unless --yes is given."""
        self.apply()
        (cluster,) = (c for c in self.api.get("/clusters")["clusters"] if c["name"] == "second")
        self.api.until_status(cluster["id"], "Active")
        body = {"resize_node_groups": [{"name": "worker", "count": 3}]}
        self.api.put(f"/clusters/{cluster['id']}", body)
        self.api.until_status(cluster["id"], "Active")
        groups = [{"name": "worker", "count": 1}]
        more = {"data_sources": [{"name": "new", "type": "hdfs", "url": "hdfs:///new"}]}
        file = self.bundle(clusters=[{"name": "second", "node_groups": groups}], **more)
        self.assertEqual(self.shown.run("apply", "-f", file, "--dry-run").code, 0)
        said = self.shown.run("apply", "-f", file)
        self.assertEqual((said.code, said.out), (4, ""), said)
        self.assertEqual(
            said.err,
            "svcd apply: remove 2 of 3 machines of group worker of cluster second needs --yes,"
            " because there is no terminal to ask on\n",
        )
        self.assertEqual(len(self.shown.body("source", "ls")["data_sources"]), 1)
        said = self.shown.run("apply", "-f", file, "--yes")
        self.assertEqual(said.code, 0, said)
        counts = [g["count"] for g in self.api.cluster(cluster["id"])["node_groups"]]
        self.assertEqual(counts, [1, 1])

    def test_apply_waits_for_its_clusters(self) -> None:
        """For a new one, for one that grows, and for one that an earlier apply began."""
        self.patch(waiting, "_LOOK_S", 0.0)
        said = self.apply("--wait")
        self.assertEqual(said.code, 0, said)
        self.assertIn("second: Spawning\n", said.err)
        self.assertTrue(said.err.endswith("cluster second is Active\n"), said.err)
        groups = [{"name": "worker", "count": 3}]
        file = self.bundle(clusters=[{"name": "second", "node_groups": groups}])
        self.assertEqual(self.shown.run("apply", "-f", file).code, 0)
        said = self.shown.run("apply", "-f", file, "--wait")
        self.assertEqual((said.code, said.out.splitlines()[-1]), (0, "unchanged cluster second"))
        (cluster,) = (c for c in self.api.get("/clusters")["clusters"] if c["name"] == "second")
        self.assertEqual(cluster["status"], "Active")
        machines = [len(group["instances"]) for group in cluster["node_groups"]]
        self.assertEqual(machines, [1, 3])

    def test_apply_ends_with_the_failure_of_a_cluster(self) -> None:
        """With --wait: code 1, reason and advice."""
        self.patch(waiting, "_LOOK_S", 0.0)
        self.fake.faults.add(where="ssh", path="(?s) .*cp processes running", status=1, body="no")
        said = self.apply("--wait")
        self.assertEqual(said.code, 1, said)
        self.assertIn("cluster second is in Error; svcd why second shows its history", said.err)

    def test_change_that_is_refused(self) -> None:
        """Nothing is done; the line says what differs and what to do."""
        self.apply()
        source = {"name": "in", "type": "objstore", "url": "objstore://c/other"}
        said = self.apply(
            data_sources=[source], jobs=[{"name": "new", "type": "Pig", "mains": ["count.pig"]}]
        )
        self.assertEqual((said.code, said.out), (4, ""), said)
        self.assertIn(
            "source in: url: 'objstore://c/in' -> 'objstore://c/other'; the API cann", said.err
        )
        self.assertEqual(len(self.api.get("/jobs")["jobs"]), 1)
        self.file("b/other.pig", "-- other\n")
        said = self.apply(job_binaries=[{"name": "count.pig", "file": "other.pig"}], jobs=[])
        self.assertEqual(said.code, 4, said)
        self.assertIn("binary count.pig: another content", said.err)

    def test_export(self) -> None:
        """A job with its binaries, a source without its password; applied again they are equal."""
        self.apply()
        said = self.shown.run("export", "job", "count")
        self.assertEqual(said.code, 0, said)
        self.assertEqual(
            yaml.safe_load(said.out),
            {
                "job_binaries": [{"name": "count.pig", "content": "-- does nothing\n"}],
                "jobs": [{"name": "count", "type": "Pig", "mains": ["count.pig"]}],
            },
        )
        file = self.file("e.yaml", said.out)
        self.assertEqual(self.shown.run("diff", "-f", file).out, "")
        said = self.shown.run("export", "source", "in")
        self.assertNotIn("geheim", said.out)
        self.assertIn("reads the secrets from the environment: IN_PASSWORD", said.err)
        file = self.file("e.yaml", said.out)
        self.assertEqual(self.shown.run("diff", "-f", file).out, "")
        said = self.shown.run("export", "cluster", "second")
        self.assertEqual(
            set(yaml.safe_load(said.out)), {"node_group_templates", "cluster_templates", "clusters"}
        )
        file = self.file("e.yaml", said.out)
        self.assertEqual(self.shown.run("diff", "-f", file).out, "", said.out)

    def test_secret_that_is_missing(self) -> None:
        """The variable is named before anything is made."""
        del os.environ["IN_PASSWORD"]
        said = self.apply()
        self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
        self.assertIn(
            "data_sources[0].credentials.password: set the variable IN_PASSWORD", said.err
        )

    def test_file_that_is_missing(self) -> None:
        """Of the bundle, and of a binary in it: beside the bundle's file."""
        said = self.shown.run("apply", "-f", "no.yaml")
        self.assertEqual((said.code, said.err.count("\n")), (2, 1), said)
        said = self.apply(job_binaries=[{"name": "x", "file": "x.pig"}])
        place = Path(self.folder, "b", "x.pig")
        self.assertIn(f"{place} cannot be read: No such file", said.err)
