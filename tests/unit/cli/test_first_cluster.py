"""The plan of a first cluster: the image of the embedded cloud is registered by the real thing."""

from __future__ import annotations

import json
import os
from pathlib import Path

import yaml
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import VANILLA_IMAGE_ID
from svcd.testing import FakeServiceMixin
from tests.support.commands import Shown
from tests.support.fakes import Api

IMAGE = {
    "id": VANILLA_IMAGE_ID,
    "name": "vanilla-3.5.0",
    "username": "svcd",
    "tags": ["vanilla", "3.5.0"],
}


class FreshTests(FakeServiceMixin, SynchronousTestCase):
    """An embedded cloud whose image is not registered."""

    def setUp(self) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "SVCD_"))}
        self.patch(os, "environ", kept)
        self.fake = self.fake_service({"plugins.enabled": "fake,vanilla"})
        self.api = Api(self.fake)
        self.folder = Path(self.mktemp())
        self.shown = Shown(self.fake, self.folder)
        self.addCleanup(self.shown.stop)
        file = self.folder / "endpoints.json"
        known = {**json.loads(file.read_text()), "images": [IMAGE], "keypairs": ["demo"]}
        known["compute"] = f"{self.shown.url}/compute/v2.1"
        file.write_text(json.dumps(known))

    def registered(self) -> list[str]:
        return [each["name"] for each in self.api.get("/images")["images"]]

    def test_create(self) -> None:
        """The dry run shows the machines and makes nothing; then create registers the image."""
        words = ("cluster", "create", "first", "--plugin", "vanilla")
        said = self.shown.run(*words, "--dry-run", "-o", "json")
        self.assertEqual(said.code, 0, said)
        self.assertIn("first-master-001", said.out)
        self.assertIn(
            "image vanilla-3.5.0 is not registered yet: svcd cluster create does it\n", said.err
        )
        self.assertEqual(self.registered(), ["plain"])
        said = self.shown.run(*words, "--dry-run", "-o", "name")
        self.assertEqual(said.out.splitlines()[0], "first-master-001", said)
        said = self.shown.run(*words, "--dry-run")
        self.assertRegex(said.out, r"(?m)^first-worker-002 +create +worker +")
        self.assertRegex(said.out, r"(?m)^write the configuration +[1-9]\d* +\d+ +\d+ +\d+ min")
        self.assertRegex(said.out, r"(?m)^QUOTA +NEEDED +LEFT +AFTER\ninstances +3 +\d+ +\d+$")
        self.assertNotIn("<configuration>", said.out)
        said = self.shown.run(*words)
        self.assertEqual(said.code, 0, said)
        self.assertIn("registered image vanilla-3.5.0 with the login svcd\n", said.err)
        self.assertEqual(self.registered(), ["vanilla-3.5.0", "plain"])

    def test_bundle(self) -> None:
        """diff and the dry run name the image; then apply registers it."""
        group = {"name": "all", "count": 1, "flavor_id": "3", "node_processes": [
            "namenode", "datanode", "resourcemanager", "nodemanager", "oozie", "historyserver",
        ]}  # fmt: skip
        cluster = {"name": "first", "plugin_name": "fake", "engine_version": "0.1",
                   "image": "vanilla-3.5.0", "node_groups": [group]}  # fmt: skip
        file = self.folder / "bundle.yaml"
        file.write_text(yaml.safe_dump({"clusters": [cluster]}))
        for words in (("diff",), ("apply", "--dry-run")):
            said = self.shown.run(*words, "-f", str(file))
            self.assertEqual((said.code, said.out), (0, "+ cluster first\n"), said)
            self.assertEqual(
                said.err, "image vanilla-3.5.0 is not registered yet: svcd apply does it\n"
            )
        self.assertEqual(self.registered(), ["plain"])
        said = self.shown.run("apply", "-f", str(file))
        self.assertEqual((said.code, said.out), (0, "created cluster first\n"), said)
        said = self.shown.run("diff", "-f", str(file))
        self.assertEqual((said.code, said.out, said.err), (0, "", ""), said)
