"""`svcd source`, `binary`, `image` and `plugin`, and what `svcd source get` downloads."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.data import files_below
from tests.support.commands import RunCase


class FilesBelowTests(SynchronousTestCase):
    def test_an_object_a_folder_and_a_container(self) -> None:
        """Not names that only begin alike, nor shorter ones of a store that answers nonsense."""
        rows = [{"name": each} for each in ("in", "in/a", "in/b/c", "input", "i", "")]
        self.assertEqual(files_below("in", rows), ["in", "in/a", "in/b/c"])
        self.assertEqual(files_below("", [{"name": "a"}, {"name": "b/c"}]), ["a", "b/c"])

    def test_markers_of_folders_are_no_files(self) -> None:
        """Those of Hadoop's jobs and of other programs; an empty file stays."""
        rows = [
            {"name": "out", "bytes": 0, "content_type": "application/directory"},
            {"name": "out/", "bytes": 0, "content_type": "application/octet-stream"},
            {"name": "out/_SUCCESS", "bytes": 0, "content_type": "application/octet-stream"},
            {"name": "out/b", "bytes": 0, "content_type": "Application/Directory; charset=UTF-8"},
            {"name": "out/b/part-0", "bytes": 3, "content_type": "text/plain"},
        ]
        self.assertEqual(files_below("out", rows), ["out/_SUCCESS", "out/b/part-0"])
        self.assertEqual(files_below("out", rows[:2]), [])


class DataTests(RunCase):
    def test_source(self) -> None:
        """Made with the account of the login, shown, and deleted."""
        said = self.done("source", "add", "in", "objstore://c/in")
        self.assertRegex(said.out, r"\ANAME .*\nin +objstore +objstore://c/in +demo ")
        (row,) = self.shown.body("source", "ls")["data_sources"]
        self.assertEqual((row["name"], row["credentials"]["user"]), ("in", "demo"))
        head = self.shown.run("source", "ls").out.splitlines()[0]
        self.assertEqual(head.split(), ["NAME", "TYPE", "URL", "USER", "CREATED"])
        self.assertEqual(self.shown.body("source", "show", "in"), {"data_source": row})
        self.assertEqual(self.shown.run("source", "add", "x", "/in").code, 2)
        self.done("source", "rm", "in", "--yes")
        self.assertEqual(self.shown.body("source", "ls")["data_sources"], [])

    def test_container_is_made_when_it_is_wanted(self) -> None:
        """Once; a place in HDFS has none."""
        for name in ("one", "two"):
            url = "objstore://results/counts"
            self.done("source", "add", name, url, "--create-container")
        said = self.shown.run("source", "get", "one")
        self.assertIn("there is no object at objstore://results/counts", said.err)
        self.refused(2, "source", "add", "x", "hdfs:///x", "--create-container")

    def test_data_of_a_source(self) -> None:
        """The objects become files; a source in HDFS is refused with the way out."""
        self.file("text/a.txt", "one")
        self.file("text/b/c.txt", "two")
        self.shown.run(
            "run", self.file("count.pig"), "--on", "first", "--output", "hdfs:///out",
            "--input", str(self.folder / "text"),
        )  # fmt: skip
        rows = {row["type"]: row for row in self.shown.body("source", "ls")["data_sources"]}
        to = self.folder / "got"
        self.done("source", "get", rows["objstore"]["name"], str(to))
        self.assertEqual((to / "a.txt").read_text(), "one")
        self.assertEqual((to / "b" / "c.txt").read_text(), "two")
        said = self.refused(4, "source", "get", rows["hdfs"]["name"])
        self.assertIn("hdfs dfs -cat hdfs:///out/*", said)

    def test_binary(self) -> None:
        """Its content comes back as it was; its data goes with the last binary."""
        content = bytes(range(256)) * 1000
        file = self.file("tool.bin", content)
        said = self.done("binary", "add", file)
        self.assertRegex(said.out, r"\ANAME .*\ntool\.bin +tool\.bin +internaldb://")
        self.done("binary", "add", file, "--name", "two")
        to = self.folder / "got.bin"
        self.done("binary", "get", "two", str(to))
        self.assertEqual(to.read_bytes(), content)
        written = self.refused(1, "binary", "get", "two", f"{file}/x")
        self.assertIn("cannot be written: ", written)
        for name, left in (("two", 1), ("tool.bin", 0)):
            self.done("binary", "rm", name, "--yes")
            self.assertEqual(len(self.api.get("/job-binary-internals")["binaries"]), left)

    def test_contents_of_a_file_are_one_row(self) -> None:
        """Of people's table; the other forms have each."""
        for content in ("1", "2", "3"):
            self.shown.run("run", self.file("go.sh", content), "--on", "first", "--detach")
        self.shown.run("binary", "add", self.file("my tool", "x"), "--name", "other")
        rows = [line.split() for line in self.shown.run("binary", "ls").out.splitlines()]
        self.assertEqual(rows[0][:4], ["NAME", "FILE", "CONTENTS", "URL"])
        self.assertRegex(" ".join(rows[1][:3]), "^go-[0-9a-f]{12}.sh go.sh 3$")
        self.assertEqual(rows[2][:4], ["other", "my", "tool", "1"])
        self.assertEqual(len(rows), 3)
        self.assertEqual(len(self.shown.run("binary", "ls", "-o", "name").out.splitlines()), 4)


class ImageTests(RunCase):
    def test_life_of_a_registration(self) -> None:
        """By the name in the cloud before, by the name in the registry after."""
        self.assertIn("is used by cluster", self.refused(4, "image", "rm", "plain", "--yes"))
        image = self.shown.body("image", "register", "vanilla-3.5.0", "--user", "me", "--tag", "a")
        self.assertEqual((image["image"]["username"], image["image"]["tags"]), ("me", ["a"]))
        self.shown.run("image", "tag", "vanilla", "b", "c")
        self.shown.run("image", "untag", "vanilla-3.5.0", "a")
        (row,) = self.shown.body("image", "ls", "--tag", "b")["images"]
        self.assertEqual(row["tags"], ["b", "c"])
        self.assertIn("vanilla-3.5.0", self.shown.run("image", "ls").out)
        self.done("image", "rm", "vanilla-3.5.0", "--yes")
        self.assertEqual(len(self.shown.body("image", "ls")["images"]), 1)
        told = self.refused(3, "image", "register", "nothing", "--user", "me")
        self.assertIn("the cloud has no image of the name nothing: give the id", told)


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
        told = self.refused(3, "plugin", "show", "fake", "9")
        self.assertIn("plugin fake has no version 9; it has 0.1", told)
