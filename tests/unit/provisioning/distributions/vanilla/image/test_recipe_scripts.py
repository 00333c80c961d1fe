"""The programs of the folder scripts that write the lists of the recipe, and the lists."""

from __future__ import annotations

import gzip
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.artifacts import (
    parse,
    parse_archive,
    read_archive,
    read_list,
)
from svcd.provisioning.distributions.vanilla.image.class_data import NAMES
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE
from tests.unit.provisioning.distributions.vanilla.image.scripts import load_script
from tests.unit.provisioning.distributions.vanilla.image.test_artifacts import (
    ABC,
    ARCHIVE,
    ARCHIVE_TEXT,
    EPOLL,
    SMART,
    TEXT,
)


class DigestsTest(SynchronousTestCase):
    """image-digests: the list of released jars, of the jars and POMs that Maven has resolved."""

    SCRIPT = load_script("image-digests")

    def test_list_is_written_in_the_order_of_paths_and_read_back(self) -> None:
        self.assertEqual(self.SCRIPT.text_of(ABC, (SMART, EPOLL)), TEXT)
        self.assertEqual(parse(TEXT), (EPOLL, SMART))

    def test_committed_list_is_that_of_the_poms(self) -> None:
        """No class path holds two jars of one name."""
        held = [(folder, each.file) for each in read_list(RECIPE) for folder in each.folders]
        self.assertEqual(len(held), len(set(held)))
        self.assertEqual({folder for folder, _ in held}, {"hadoop", "oozie", "launcher", "pig"})
        self.assertGreater(len(held), 300)


class SparkDigestsTest(SynchronousTestCase):
    """image-spark-digests: names and licences of the members of Spark's archive."""

    SCRIPT = load_script("image-spark-digests")

    def test_list_is_written_and_read_back(self) -> None:
        self.assertEqual(self.SCRIPT.text_of(ARCHIVE), ARCHIVE_TEXT)
        self.assertEqual(parse_archive(ARCHIVE_TEXT), ARCHIVE)

    def test_committed_list_has_yarn_connect_python_and_notices(self) -> None:
        archive = read_archive(RECIPE)
        files = {member.file for member in archive.members}
        self.assertEqual(len(files), len(archive.members))
        self.assertLessEqual(
            {"spark-yarn_2.13-4.2.0.jar", "spark-connect_2.13-4.2.0.jar", "pyspark.zip",
             "py4j-0.10.9.9-src.zip", "LICENSE", "NOTICE"},
            files,
        )  # fmt: skip


FIRST = """# a comment of the JVM
java/lang/Object
org/x/A
jdk/proxy2/$Proxy9
@lambda-proxy org/x/A run ()V
"""
SECOND = """java/lang/Object
org/x/B
org/x/B$$Lambda$7
jdk/internal/event/Event
"""


class ClassListsTest(SynchronousTestCase):
    """image-classes: the lists that the JVMs of a training run have written."""

    SCRIPT = load_script("image-classes")

    def test_lists_of_a_program_are_merged(self) -> None:
        """Each line once, without the classes that no dump takes; equal lists, equal files."""
        recipe, lists = Path(self.mktemp()), Path(self.mktemp())
        (recipe / "classes").mkdir(parents=True)
        lists.mkdir()
        (lists / "hadoop-7").write_text(FIRST)
        (lists / "hadoop-8").write_text(SECOND)
        report = self.SCRIPT.write_lists(recipe, lists)
        old = "no JVM has written a list, the old one stays"
        self.assertEqual(report, ["hadoop: 4 lines of 2 JVMs", f"oozie: {old}", f"spark: {old}"])
        data = (recipe / "classes/hadoop.gz").read_bytes()
        self.assertEqual(
            gzip.decompress(data).decode(),
            "java/lang/Object\norg/x/A\n@lambda-proxy org/x/A run ()V\norg/x/B\n",
        )
        self.SCRIPT.write_lists(recipe, lists)
        self.assertEqual((recipe / "classes/hadoop.gz").read_bytes(), data)

    def test_committed_lists_have_the_programs_that_a_cluster_starts(self) -> None:
        expected = {
            "hadoop": ("hadoop/hdfs/server/namenode/NameNode", "hadoop/mapred/YarnChild"),
            "oozie": ("oozie/server/EmbeddedOozieServer",),
            "spark": ("spark/deploy/yarn/ApplicationMaster",),
        }
        self.assertEqual(tuple(expected), NAMES)
        for name, classes in expected.items():
            text = gzip.decompress((RECIPE / f"classes/{name}.gz").read_bytes()).decode()
            self.assertLessEqual({f"org/apache/{c}" for c in classes}, set(text.splitlines()))
