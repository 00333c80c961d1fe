"""`svcd plugin` against the in-process fake behind a socket."""

from __future__ import annotations

from tests.support.commands import RunCase


class PluginTests(RunCase):
    def test_plugins(self) -> None:
        """The list, a version, and its options by a part of their text."""
        self.assertEqual(self.shown.body("plugin", "ls"), self.api.get("/plugins"))
        shown = self.shown.body("plugin", "show", "fake")
        self.assertEqual(shown, self.api.get("/plugins/fake/0.1"))
        all_ = self.shown.body("plugin", "configs", "fake")["configs"]
        self.assertEqual(all_, shown["plugin"]["configs"])
        name = all_[0]["name"]
        some = self.shown.body("plugin", "configs", "fake", name.upper())["configs"]
        self.assertIn(all_[0], some)
        self.assertIn(f".{name}", self.shown.run("plugin", "configs", "fake", name).out)
        said = self.shown.run("plugin", "show", "fake", "9")
        self.assertEqual(said.code, 3, said)
        self.assertIn("plugin fake has no version 9; it has 0.1", said.err)
