"""The merge of class lists of a training run."""

from __future__ import annotations

import gzip
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.class_data import NAMES
from svcd.provisioning.distributions.vanilla.image.layout import RECIPE
from tests.unit.provisioning.distributions.vanilla.image.scripts import load_script

SCRIPT = load_script("image-classes")
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


class MergeTest(SynchronousTestCase):
    def test_each_line_once(self) -> None:
        """In the order of the JVMs, without the classes that no dump takes."""
        self.assertEqual(
            SCRIPT.merged([FIRST, SECOND]),
            "java/lang/Object\norg/x/A\n@lambda-proxy org/x/A run ()V\norg/x/B\n",
        )

    def test_lists_of_the_recipe(self) -> None:
        """The names tell to which archive a list belongs; equal lists make equal files."""
        recipe, lists = Path(self.mktemp()), Path(self.mktemp())
        (recipe / "classes").mkdir(parents=True)
        lists.mkdir()
        (lists / "hadoop-7").write_text(FIRST)
        (lists / "hadoop-8").write_text(SECOND)
        report = SCRIPT.write_lists(recipe, lists)
        self.assertEqual(report[0], "hadoop: 4 lines of 2 JVMs")
        self.assertEqual(report[1:], [
            f"{name}: no JVM has written a list, the old one stays" for name in ("oozie", "spark")
        ])  # fmt: skip
        data = (recipe / "classes/hadoop.gz").read_bytes()
        self.assertEqual(gzip.decompress(data).decode(), SCRIPT.merged([FIRST, SECOND]))
        SCRIPT.write_lists(recipe, lists)
        self.assertEqual((recipe / "classes/hadoop.gz").read_bytes(), data)

    def test_shipped_lists(self) -> None:
        """They name the main classes of the programs that a cluster starts."""
        expected = {
            "hadoop": (
                "org/apache/hadoop/hdfs/server/namenode/NameNode",
                "org/apache/hadoop/hdfs/server/datanode/DataNode",
                "org/apache/hadoop/yarn/server/resourcemanager/ResourceManager",
                "org/apache/hadoop/yarn/server/nodemanager/NodeManager",
                "org/apache/hadoop/mapreduce/v2/hs/JobHistoryServer",
                "org/apache/hadoop/mapreduce/v2/app/MRAppMaster",
                "org/apache/hadoop/mapred/YarnChild",
            ),
            "oozie": ("org/apache/oozie/server/EmbeddedOozieServer",),
            "spark": (
                "org/apache/spark/deploy/SparkSubmit",
                "org/apache/spark/deploy/yarn/ApplicationMaster",
                "org/apache/spark/executor/YarnCoarseGrainedExecutorBackend",
            ),
        }
        self.assertEqual(tuple(expected), NAMES)
        for name, classes in expected.items():
            text = gzip.decompress((RECIPE / f"classes/{name}.gz").read_bytes()).decode()
            self.assertLessEqual(set(classes), set(text.splitlines()))
