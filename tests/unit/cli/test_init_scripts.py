"""`svcd cluster create --init`: which scripts are uploaded, and which groups get them."""

from __future__ import annotations

from typing import Any

import yaml

from svcd.cli.job_files import with_digest
from svcd.cli.uploads import sum_of
from svcd.embedded.faults import FaultRule
from tests.support.commands import RunCase

SETUP, LATE = b"#!/bin/sh\necho setup\n", b"#!/bin/sh\necho late\n"
SETUP_NAME = with_digest("setup.sh", sum_of([SETUP]))
LATE_NAME = with_digest("late.sh", sum_of([LATE]))
WORKER = {
    "name": "worker", "plugin_name": "fake", "engine_version": "0.1", "flavor_id": "3",
    "node_processes": ["datanode", "nodemanager"], "init_scripts": [LATE_NAME],
}  # fmt: skip
MASTER = {
    "name": "master", "count": 1, "flavor_id": "3",
    "node_processes": ["namenode", "resourcemanager", "oozie", "historyserver"],
}  # fmt: skip


class InitTests(RunCase):
    def setUp(self) -> None:
        super().setUp()
        self.setup_file = self.file("setup.sh", SETUP)
        self.late_file = self.file("late.sh", LATE)

    def scripts(self, name: str) -> dict[str, Any]:
        """The scripts of each group of a cluster."""
        (row,) = (c for c in self.api.get("/clusters")["clusters"] if c["name"] == name)
        return {group["name"]: group.get("init_scripts", []) for group in row["node_groups"]}

    def uploaded(self) -> list[str]:
        rows = self.api.get("/job-binary-internals")["binaries"]
        return sorted(row["name"] for row in rows)

    def created(self, name: str, *words: str, code: int = 0) -> str:
        """Create a cluster; what the command says on stderr."""
        more = ("--image", "plain", "--keypair", "demo", "-o", "name")
        said = self.shown.run("cluster", "create", name, *words, *more)
        self.assertEqual(said.code, code, said)
        return said.err

    def test_all_groups_and_one(self) -> None:
        """In the order of the options, each content uploaded once, and shown by group."""
        made = ("--plugin", "fake", "--flavor", "3")
        said = self.created(
            "a", *made, "--init", self.setup_file, "--init", f"worker={self.late_file}"
        )
        self.assertIn("uploaded setup.sh: 21 bytes\nuploaded late.sh: 20 bytes\n", said)
        self.assertNotIn("key pair", said)  # a given one needs no look at the cloud
        expected = {"master": [SETUP_NAME], "worker": [SETUP_NAME, LATE_NAME]}
        self.assertEqual(self.scripts("a"), expected)
        self.assertNotIn("uploaded", self.created("b", *made, "--init", self.setup_file))
        self.assertEqual(self.uploaded(), [LATE_NAME, SETUP_NAME])
        out = self.done("cluster", "show", "a").out
        self.assertRegex(out, rf"(?m)^GROUP .* SCRIPTS\n.*\nworker .* {SETUP_NAME},{LATE_NAME}$")
        self.assertNotIn("SCRIPTS", self.done("cluster", "show", "first").out)

    def test_groups_of_templates_keep_their_own(self) -> None:
        """Those of a cluster template, and of a node group template that a file names."""
        self.created("a", "--plugin", "fake", "--flavor", "3", "--init", self.late_file)
        group = self.api.post("/node-group-templates", WORKER)["node_group_template"]
        worker = {"name": "worker", "count": 1, "node_group_template_id": group["id"]}
        head = {"plugin_name": "fake", "engine_version": "0.1"}
        small = {"name": "small", **head, "node_groups": [MASTER, worker]}
        self.api.post("/cluster-templates", small)
        file = self.file("c.yaml", yaml.safe_dump({**head, "node_groups": [MASTER, worker]}))
        expected = {"master": [SETUP_NAME], "worker": [LATE_NAME, SETUP_NAME]}
        for name, words in (("t", ("--template", "small")), ("f", ("-f", file))):
            self.created(name, *words, "--init", self.setup_file)
            self.assertEqual(self.scripts(name), expected)

    def test_a_dry_run_uploads_nothing(self) -> None:
        made = ("--plugin", "fake", "--flavor", "3", "--dry-run", "--init", self.setup_file)
        self.assertIn("setup.sh is not uploaded yet, and so not part of", self.created("a", *made))
        self.assertEqual(self.uploaded(), [])

    def test_refusals_before_an_upload(self) -> None:
        """Too large, not there, a group that is not of the request, line ends of Windows."""
        large = self.file("large.sh", b"#" * (2**20 + 1))
        for given, expected in (
            (large, "large.sh: 1,048,577 bytes, a first-boot script has at most 1,048,576: let a"),
            (f"{large}.no", "large.sh.no cannot be read: No such file"),
            (
                self.file("dos.sh", b"#!/bin/sh\r\n"),
                "dos.sh: line 1 ends with CR (Windows), and no",
            ),
            (f"wroker={large}", "for GROUP=FILE the groups are master, worker"),
        ):
            words = ("--plugin", "fake", "--init", self.setup_file, "--init", given)
            self.assertIn(expected, self.created("a", *words, code=2))
        self.assertEqual(self.uploaded(), [])

    def test_a_scaling_that_is_undone_ends_the_waiting_with_its_reason(self) -> None:
        """Also in the history, after the next request."""
        self.created("a", "--plugin", "fake", "--flavor", "3", "--init", self.setup_file, "--wait")
        self.fake.faults.add(FaultRule(where="ssh", path="svcd-script", status=1))
        said = self.shown.run("cluster", "scale", "a", "worker=3", "--wait")
        self.assertEqual((said.code, said.out), (1, ""), said)
        self.assertIn("SCRIPT_FAILED means: ", said.err)
        last = "the change of cluster a failed and was undone: SCRIPT_FAILED; svcd why a shows its"
        self.assertIn(last, said.err.splitlines()[-1])
        self.fake.faults.clear()
        self.done("cluster", "retry", "a", "--wait")
        self.assertRegex(self.done("why", "a").out, r"worker \S+ -> 3.*: failed with SCRIPT_FAILED")
