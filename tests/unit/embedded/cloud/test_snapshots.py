"""Images that the embedded cloud makes of servers."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.settings import Embedded
from tests.unit.embedded.cloud.rig import PLAIN_IMAGE_ID, Rig


class SnapshotTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.rig = Rig(Embedded(boot_s=10.0))
        self.token = self.rig.token("alice", "alice", "alpha").reveal()
        server = {"name": "s", "imageRef": PLAIN_IMAGE_ID, "flavorRef": "2", "networks": "none"}
        made = self.ask("POST", "/compute/v2.1/servers", {"server": server})
        self.server = f"/compute/v2.1/servers/{made['server']['id']}"

    def ask(self, method: str, path: str, body: object = None) -> Any:
        headers = {"OpenStack-API-Version": "compute 2.79"}
        answer = self.rig.raw(method, path, body, token=self.token, headers=headers)
        return answer.json() if answer.body else answer.status

    def snapshot(self) -> Any:
        action = {"createImage": {"name": "n", "metadata": {"a": "b"}}}
        return self.ask("POST", f"{self.server}/action", action)

    def image(self, id_: str) -> Any:
        return self.ask("GET", f"/image/v2/images/{id_}")

    def test_a_snapshot_is_saved_for_a_while(self) -> None:
        """Then a server boots from it."""
        self.rig.clock.advance(11.0)
        id_ = self.snapshot()["image_id"]
        found = self.image(id_)
        self.assertEqual((found["status"], found["visibility"]), ("saving", "private"))
        self.assertEqual((found["a"], found["min_disk"], found["owner"]), ("b", 20, "alpha"))
        new = {"name": "t", "imageRef": id_, "flavorRef": "2", "networks": "none"}
        refused = self.ask("POST", "/compute/v2.1/servers", {"server": new})
        self.assertEqual(refused["badRequest"]["message"], f"Image {id_} is not active.")
        self.rig.clock.advance(11.0)
        self.assertEqual(self.image(id_)["status"], "active")
        self.assertIn("server", self.ask("POST", "/compute/v2.1/servers", {"server": new}))

    def test_it_ends_with_its_server(self) -> None:
        """A saved one stays."""
        self.rig.clock.advance(11.0)
        saved = self.snapshot()["image_id"]
        self.rig.clock.advance(11.0)
        saving = self.snapshot()["image_id"]
        self.ask("DELETE", self.server)
        self.assertEqual(self.image(saving)["code"], "404 Not Found")
        self.assertEqual(self.image(saved)["status"], "active")

    def test_a_server_that_builds(self) -> None:
        """As Nova."""
        refused = self.snapshot()["conflictingRequest"]
        self.assertIn("while it is in vm_state building", refused["message"])

    def test_built_in_images_stay(self) -> None:
        """They have no row that could go."""
        refused = self.ask("DELETE", f"/image/v2/images/{PLAIN_IMAGE_ID}")
        self.assertEqual(refused["code"], "403 Forbidden")
