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
    versions,
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

    def test_same_files_same_stamp(self) -> None:
        """The stamp is that of the contents alone."""
        before = recipe_stamp(self.recipe)
        (self.recipe / "poms" / "pom.xml").write_text("one")
        self.assertEqual(recipe_stamp(self.recipe), before)
        self.assertEqual(len(before), 16)

    def test_changed_contents_change_it(self) -> None:
        """Each file counts."""
        before = recipe_stamp(self.recipe)
        (self.recipe / "poms" / "pom.xml").write_text("three")
        self.assertNotEqual(recipe_stamp(self.recipe), before)

    def test_renamed_file_changes_it(self) -> None:
        """So do names."""
        before = recipe_stamp(self.recipe)
        (self.recipe / "poms" / "pom.xml").rename(self.recipe / "poms" / "parent.xml")
        self.assertNotEqual(recipe_stamp(self.recipe), before)

    def test_documents_and_compiled_code_do_not_count(self) -> None:
        """A corrected sentence makes nobody build again."""
        before = recipe_stamp(self.recipe)
        (self.recipe / "README.md").write_text("words")
        (self.recipe / "__pycache__").mkdir()
        (self.recipe / "__pycache__" / "build.pyc").write_bytes(b"x")
        self.assertEqual(recipe_stamp(self.recipe), before)


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

    def test_lost_file_is_not_current(self) -> None:
        """A tree that somebody tidied up is made again."""
        self.assertTrue(is_current(self.prefix))
        (self.prefix / "java/opens").unlink()
        self.assertFalse(is_current(self.prefix))

    def test_other_stamp_is_not_current(self) -> None:
        """A changed recipe asks for a new tree."""
        (self.prefix / "image.json").write_text('{"stamp": "0"}')
        self.assertFalse(is_current(self.prefix))

    def test_damaged_record_is_not_current(self) -> None:
        """Half a file counts as none."""
        (self.prefix / "image.json").write_text('{"stamp": ')
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

    def test_lost_file_of_spark_is_not_current(self) -> None:
        """It belongs to a tree with Spark only."""
        (self.prefix / "examples/wordcount.py").unlink()
        self.assertFalse(is_current(self.prefix))


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

    def test_image_with_other_classes_of_ours(self) -> None:
        """A tree whose helper jar has other sources has to be made again."""
        empty_tree(self.prefix)
        record = read_record(self.prefix)
        for helpers in ("0123456789abcdef", None):
            (self.prefix / "image.json").write_text(json.dumps({**record, "helpers": helpers}))
            found = problem(self.prefix, {}, [self.java.parent])
            self.assertIn("are not those of this svcd", str(found))
        self.assertIn(f"svcd image build vanilla {self.prefix}", str(found))

    def test_remedy_keeps_the_choice(self) -> None:
        """A tree without Spark is made again without."""
        empty_tree(self.prefix, spark=False)
        record = read_record(self.prefix)
        (self.prefix / "image.json").write_text(json.dumps({**record, "spark_helpers": "0"}))
        self.assertIsNone(problem(self.prefix, {}, [self.java.parent]))
        (self.prefix / "java/opens").unlink()
        found = problem(self.prefix, {}, [self.java.parent])
        self.assertIn(f"svcd image build vanilla {self.prefix} --without spark", str(found))

    def test_image_with_other_spark_classes_of_ours(self) -> None:
        """They are looked at where there is Spark."""
        empty_tree(self.prefix)
        record = read_record(self.prefix)
        (self.prefix / "image.json").write_text(json.dumps({**record, "spark_helpers": "0"}))
        found = problem(self.prefix, {}, [self.java.parent])
        self.assertIn("are not those of this svcd", str(found))

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


class RecipeTest(SynchronousTestCase):
    """The recipe as it is."""

    def test_versions(self) -> None:
        """What the image holds."""
        self.assertEqual(
            versions(),
            {
                "hadoop": "3.5.0",
                "streaming": "3.4.2",
                "pig": "0.18.0",
                "oozie": "5.2.1",
                "oozie_hadoop": "2.10.2",
            },
        )

    def test_scripts_name_no_folder_of_a_machine(self) -> None:
        """The tree works wherever it is copied."""
        for script in (RECIPE / "bin").iterdir():
            self.assertNotIn("/opt/", script.read_text())
            self.assertNotIn("/var/", script.read_text())
