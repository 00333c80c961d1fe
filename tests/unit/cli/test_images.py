"""`svcd image` against the in-process fake behind a socket."""

from __future__ import annotations

from tests.support.commands import RunCase


class ImageTests(RunCase):
    def test_life_of_a_registration(self) -> None:
        """By the name in the cloud before, by the name in the registry after."""
        said = self.shown.run("image", "rm", "plain", "--yes")
        self.assertEqual(said.code, 4, said)
        self.assertIn("is used by cluster", said.err)
        image = self.shown.body("image", "register", "vanilla-3.5.0", "--user", "me", "--tag", "a")
        self.assertEqual((image["image"]["username"], image["image"]["tags"]), ("me", ["a"]))
        self.shown.run("image", "tag", "vanilla", "b", "c")
        self.shown.run("image", "untag", "vanilla-3.5.0", "a")
        (row,) = self.shown.body("image", "ls", "--tag", "b")["images"]
        self.assertEqual(row["tags"], ["b", "c"])
        self.assertIn("vanilla-3.5.0", self.shown.run("image", "ls").out)
        self.assertEqual(self.shown.run("image", "rm", "vanilla-3.5.0", "--yes").code, 0)
        self.assertEqual(len(self.shown.body("image", "ls")["images"]), 1)

    def test_unknown_image(self) -> None:
        """One line, exit code 3."""
        said = self.shown.run("image", "register", "nothing", "--user", "me")
        self.assertEqual((said.code, said.err.count("\n")), (3, 1), said)
        self.assertIn("the cloud has no image of the name nothing: give the id", said.err)
