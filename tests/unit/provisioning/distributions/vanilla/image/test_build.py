"""The parts of a build that need neither network nor Java."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import read_archive
from svcd.provisioning.distributions.vanilla.image.build import (
    RECIPE,
    archive_file,
    build,
    is_current,
    problem,
    recipe_stamp,
)
from svcd.provisioning.distributions.vanilla.image.layout import read_record
from tests.unit.provisioning.distributions.vanilla.image.trees import empty_tree, put


class StampTest(SynchronousTestCase):
    """The digest of a recipe."""

    def setUp(self) -> None:
        self.recipe = Path(self.mktemp())
        (self.recipe / "poms").mkdir(parents=True)
        (self.recipe / "poms" / "pom.xml").write_text("one")
        (self.recipe / "build.py").write_text("two")

    def test_names_and_contents_count(self) -> None:
        """Documents and compiled code do not: a corrected sentence makes nobody build again."""
        before = recipe_stamp(self.recipe)
        self.assertEqual(len(before), 16)
        (self.recipe / "README.md").write_text("words")
        (self.recipe / "__pycache__").mkdir()
        (self.recipe / "__pycache__" / "build.pyc").write_bytes(b"x")
        (self.recipe / "poms" / "pom.xml").write_text("one")
        self.assertEqual(recipe_stamp(self.recipe), before)
        (self.recipe / "poms" / "pom.xml").write_text("three")
        self.assertNotEqual(recipe_stamp(self.recipe), before)
        (self.recipe / "poms" / "pom.xml").write_text("one")
        (self.recipe / "poms" / "pom.xml").rename(self.recipe / "poms" / "parent.xml")
        self.assertNotEqual(recipe_stamp(self.recipe), before)


class BuildTest(SynchronousTestCase):
    """What a call does before it fetches anything."""

    def setUp(self) -> None:
        self.prefix = Path(self.mktemp()) / "vanilla"
        empty_tree(self.prefix, recipe_stamp())

    def test_tree_of_this_recipe_is_left_alone(self) -> None:
        """Nothing is said and nothing is done."""
        said: list[str] = []
        done = build(self.prefix, said.append)
        self.assertEqual((done.made, done.size_bytes, said), (False, 196, []))
        self.assertEqual(done.prefix, self.prefix.absolute())

    def test_changed_tree_is_not_current(self) -> None:
        """Lost files, another recipe, half a record: each asks for a new tree."""
        self.assertTrue(is_current(self.prefix))
        for harm in (
            lambda: (self.prefix / "java/opens").unlink(),
            lambda: (self.prefix / "examples/wordcount.py").unlink(),
            lambda: (self.prefix / "image.json").write_text('{"stamp": "0"}'),
            lambda: (self.prefix / "image.json").write_text('{"stamp": '),
        ):
            empty_tree(self.prefix, recipe_stamp())
            harm()
            self.assertFalse(is_current(self.prefix))

    def test_choice_is_part_of_being_current(self) -> None:
        """A tree with Spark is not one without, and the other way round."""
        bare = self.prefix.with_name("bare")
        empty_tree(bare, recipe_stamp(), spark=False)
        without = frozenset(("spark",))
        self.assertFalse(is_current(self.prefix, without=without))
        self.assertTrue(is_current(bare, without=without))
        self.assertFalse(is_current(bare))
        self.assertFalse(build(bare, without=["spark"]).made)


class ProblemTest(SynchronousTestCase):
    """Whether an image can run here."""

    def setUp(self) -> None:
        self.prefix = Path(self.mktemp()) / "vanilla"
        self.java = self.prefix.parent / "jvm" / "jre-17"
        put(self.java, "bin/java").chmod(0o755)
        (self.java / "release").write_text('JAVA_VERSION="17.0.1"\n')

    def test_complete_image_can_run(self) -> None:
        """With a Java of the right version beside it, whatever its stamp."""
        empty_tree(self.prefix)
        self.assertIsNone(problem(self.prefix, {}, [self.java.parent]))

    def test_absent_image_names_the_command(self) -> None:
        """One line that says what to type."""
        found = problem(self.prefix, {}, [self.java.parent])
        self.assertEqual(
            found,
            f"no complete software image ({self.prefix}/bin/hadoop is missing):"
            f" svcd image build vanilla {self.prefix}",
        )

    def test_image_with_other_classes_of_ours_is_made_again(self) -> None:
        """The classes for Spark are looked at where there is Spark."""
        empty_tree(self.prefix)
        record = read_record(self.prefix)
        for other in (
            {"helpers": "0123456789abcdef"}, {"helpers": None}, {"spark_helpers": "0"}
        ):  # fmt: skip
            (self.prefix / "image.json").write_text(json.dumps({**record, **other}))
            found = str(problem(self.prefix, {}, [self.java.parent]))
            self.assertIn("are not those of this svcd", found)
            self.assertIn(f"svcd image build vanilla {self.prefix}", found)

    def test_machine_without_java(self) -> None:
        """The package is named."""
        empty_tree(self.prefix)
        found = problem(self.prefix, {}, [])
        self.assertIn("apt-get install openjdk-17-jre-headless", str(found))


class ArchiveFileTest(SynchronousTestCase):
    """Where Spark's archive comes from."""

    def test_setting_wins(self) -> None:
        """A URL is taken as it is, a path as the URL of a file."""
        spark = read_archive(RECIPE)
        for setting, url in (
            (None, spark.url),
            ("", spark.url),
            ("http://mirror/x", "http://mirror/x"),
            ("/a b/x.tar.gz", "file:///a%20b/x.tar.gz"),
        ):
            self.assertEqual(archive_file(spark, Path("/work"), setting).url, url)
