"""Default settings taken out of the jars."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.build import RECIPE
from tests.unit.provisioning.distributions.vanilla.image.scripts import load_script

SCRIPT = load_script("image-defaults")
DOCUMENT = b"""<?xml version="1.0"?>
<configuration>
  <property><name> a.b </name><value>1</value><description>One
     line.</description></property>
  <property><name>c</name></property>
  <property><name>a.b</name><value>2</value></property>
</configuration>
"""


class ParseTest(SynchronousTestCase):
    """One document."""

    def test_last_value_of_a_name_counts(self) -> None:
        """White space is collapsed, absent parts are empty, the first place is kept."""
        self.assertEqual(SCRIPT.parse(DOCUMENT), [("a.b", "2", ""), ("c", "", "")])

    def test_one_setting_a_line(self) -> None:
        """The committed form."""
        self.assertEqual(
            SCRIPT.render([("a", "1", "x"), ("b", "", "")]),
            '[\n["a", "1", "x"],\n["b", "", ""]\n]\n',
        )


class ExtractTest(SynchronousTestCase):
    """A tree of jars."""

    def test_each_file_is_written(self) -> None:
        """With the number of its settings."""
        prefix = Path(self.mktemp())
        for folder, pattern, member in SCRIPT.SOURCES.values():
            (prefix / folder).mkdir(parents=True, exist_ok=True)
            name = pattern.replace("[0-9]", "3").replace("*", "1")
            with zipfile.ZipFile(prefix / folder / name, "w") as jar:
                jar.writestr(member, DOCUMENT)
        target = Path(self.mktemp())
        target.mkdir()
        self.assertEqual(SCRIPT.extract(prefix, target), dict.fromkeys(SCRIPT.SOURCES, 2))
        self.assertEqual(
            json.loads((target / "oozie-default.json").read_text()),
            [["a.b", "2", ""], ["c", "", ""]],
        )

    def test_tree_without_jars(self) -> None:
        """Says what is missing and where."""
        error = self.assertRaises(FileNotFoundError, SCRIPT.extract, Path("/none"), Path("/none"))
        self.assertIn("no hadoop-common-[0-9]*.jar in /none/hadoop/lib", str(error))


class CommittedTest(SynchronousTestCase):
    """The files in the repository."""

    def test_well_known_settings(self) -> None:
        """Values as published."""
        for name, setting, value in (
            ("core-default", "fs.defaultFS", "file:///"),
            ("hdfs-default", "dfs.replication", "3"),
            ("yarn-default", "yarn.nodemanager.vmem-check-enabled", "true"),
            ("mapred-default", "mapreduce.task.io.sort.mb", "100"),
            ("oozie-default", "oozie.action.retries.max", "3"),
        ):
            settings = json.loads((RECIPE.parent / "defaults" / f"{name}.json").read_text("utf-8"))
            self.assertEqual({each[0]: each[1] for each in settings}[setting], value)
