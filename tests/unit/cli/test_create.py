"""`svcd cluster create`: the layout of a plugin, flavors, options of the command line."""

from __future__ import annotations

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.cloud import fitting_flavor
from svcd.cli.create import layout, parsed, with_configs
from svcd.cli.exits import USAGE, CommandError

VANILLA = {
    "name": "vanilla",
    "node_processes": {
        "HDFS": ["namenode", "secondarynamenode", "datanode"],
        "YARN": ["resourcemanager", "nodemanager"],
        "JobFlow": ["oozie"],
        "Spark": ["sparkhistory", "sparkconnect"],
    },
}


class LayoutTests(SynchronousTestCase):
    def test_a_master_and_workers(self) -> None:
        master, worker = layout(VANILLA, 3)
        self.assertEqual(
            (master["count"], master["node_processes"]),
            (1, ["namenode", "resourcemanager", "oozie"]),
        )
        self.assertEqual(
            (worker["count"], worker["node_processes"]), (3, ["datanode", "nodemanager"])
        )

    def test_one_machine(self) -> None:
        (only,) = layout(VANILLA, 0)
        self.assertEqual(only["node_processes"][-2:], ["datanode", "nodemanager"])

    def test_further_processes_of_the_master(self) -> None:
        master, worker = layout(VANILLA, 2, ("sparkconnect", "oozie"))
        self.assertEqual(
            master["node_processes"], ["namenode", "resourcemanager", "oozie", "sparkconnect"]
        )
        self.assertEqual(worker["node_processes"], ["datanode", "nodemanager"])

    def test_further_process_that_the_plugin_lacks(self) -> None:
        with self.assertRaises(CommandError) as raised:
            layout(VANILLA, 2, ("sparkthrift",))
        self.assertEqual(
            str(raised.exception),
            "plugin vanilla has no process 'sparkthrift'; processes for --with: "
            "secondarynamenode, sparkhistory, sparkconnect",
        )

    def test_unknown_processes(self) -> None:
        with self.assertRaises(CommandError) as raised:
            layout({"name": "x", "node_processes": {"X": ["xd"]}}, 2)
        self.assertEqual(raised.exception.code, USAGE)


class FlavorTests(SynchronousTestCase):
    def test_the_smallest_that_is_large_enough(self) -> None:
        sizes = [
            ("tiny", 512, 1, 1),
            ("thin", 4096, 1, 40),
            ("good", 4096, 2, 40),
            ("big", 8192, 4, 80),
        ]
        flavors = [dict(zip(("name", "ram", "vcpus", "disk"), each, strict=True)) for each in sizes]
        self.assertEqual(fitting_flavor(flavors)["name"], "good")
        self.assertEqual(fitting_flavor(flavors[:1])["name"], "tiny")
        with self.assertRaises(CommandError) as raised:
            fitting_flavor(flavors[:2])
        self.assertIn("choose one with --flavor: tiny, thin", str(raised.exception))

    def test_flavors_with_a_disk_on_a_volume(self) -> None:
        """Their disk is 0."""
        self.assertEqual(
            fitting_flavor([{"ram": 1}, {"ram": 4096, "vcpus": 2, "disk": 0}])["ram"], 4096
        )


class OptionTests(SynchronousTestCase):
    def test_values_have_the_types_of_the_api(self) -> None:
        """Whole numbers and true or false; everything else is text."""
        values = [parsed(f"HDFS.dfs.x={raw}")[2] for raw in ("1", "true", "1.5", "a=b", "", '"q"')]
        self.assertEqual(values, [1, True, "1.5", "a=b", "", '"q"'])
        self.assertEqual(parsed("HDFS.dfs.x=1")[:2], ("HDFS", "dfs.x"))

    def test_wrong_forms(self) -> None:
        for text in ("x=1", "HDFS.x", ".x=1", "HDFS.=1", "="):
            self.assertRaises(click.UsageError, parsed, text)

    def test_they_join_those_of_the_file(self) -> None:
        body = {"name": "n", "cluster_configs": {"HDFS": {"a": 1}}}
        made = with_configs(body, [("HDFS", "b", 2), ("YARN", "c", "x")])
        self.assertEqual(made["cluster_configs"], {"HDFS": {"a": 1, "b": 2}, "YARN": {"c": "x"}})
        self.assertEqual(body["cluster_configs"], {"HDFS": {"a": 1}})
        self.assertNotIn("cluster_configs", with_configs({"name": "n"}, []))
