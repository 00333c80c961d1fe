"""`svcd apply` and `diff` of what the API refuses: all of it is told, and nothing is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from svcd.cli import waiting
from svcd.cli.bundle import BY_NAME
from tests.support.commands import Said
from tests.unit.cli.test_bundles import BundleCase

_LISTS = (
    "node-group-templates", "cluster-templates", "data-sources", "job-binaries",
    "job-binary-internals", "jobs", "clusters",
)  # fmt: skip
_LONG = "a" * 51


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

    def refused(self, file: str, title: str, fault: str) -> Said:
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

    def test_one_name_that_is_refused(self) -> None:
        """Six good objects of the bundle are not made."""
        bad = ("node_group_templates", {"name": "Bad Name"})
        said = self.refused(self.changed(bad), "node group template Bad Name", "name: expected")
        self.assertIn("node_group_templates[0]: node group template Bad Name", said.err)
        self.assertIn("because of node group template Bad Name\n", said.err)

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
        self.refused(file, "cluster second", "missing flavor_id and node_processes")
        groups = [{"name": "worker", "count": 1, "node_group_template": "worker"}]
        file = self.changed(("clusters", {"node_groups": groups}))
        self.refused(file, "cluster second", "namenode")
        file = self.changed(("clusters", {"engine_version": "0.2"}))
        self.refused(file, "cluster second", "template small is for plugin fake 0.1")

    def test_new_size_that_the_api_refuses(self) -> None:
        """Of a cluster that is there; the rest of the bundle is not made."""
        worker = {"name": "first", "node_groups": [{"name": "worker", "count": 900}]}
        self.refused(self.bundle(clusters=[worker]), "cluster first", "quota")

    def test_cluster_that_is_being_deleted(self) -> None:
        """Its end must come first."""
        self.apply()
        self.fake.faults.add(where="compute", method="DELETE", path="/servers/", status=500)
        (cluster,) = (c for c in self.api.get("/clusters")["clusters"] if c["name"] == "second")
        self.api.until_status(cluster["id"], "Active")
        self.api.delete(f"/clusters/{cluster['id']}")
        said = self.refused(
            self.bundle(), "cluster second", "it is being deleted: wait for its end"
        )
        self.assertIn("(svcd cluster rm second --wait) and apply again", said.err)

    def test_cluster_in_error(self) -> None:
        """The rest is made; the cluster stays, and the way out is told."""
        self.patch(waiting, "_LOOK_S", 0.0)
        self.fake.faults.add(where="ssh", path="(?s) .*cp processes running", status=1, body="no")
        self.assertEqual(self.apply("--wait").code, 1)
        new = {"name": "new", "type": "hdfs", "url": "hdfs:///new"}
        for sizes in ({}, {"node_groups": [{"name": "worker", "count": 3}]}):
            file = self.bundle(data_sources=[new], clusters=[{"name": "second", **sizes}])
            said = self.shown.run("diff", "-f", file, "--exit-code")
            self.assertEqual(said.code, 1, said)
            self.assertIn("it is in Error", said.out.splitlines()[-1])
            self.assertTrue(said.out.splitlines()[-1].startswith("! cluster second: "), said)
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
