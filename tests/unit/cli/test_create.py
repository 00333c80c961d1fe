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
        """One machine alone has the processes of both."""
        master, worker = layout(VANILLA, 3)
        processes = ["namenode", "resourcemanager", "oozie"]
        self.assertEqual((master["count"], master["node_processes"]), (1, processes))
        workers = ["datanode", "nodemanager"]
        self.assertEqual((worker["count"], worker["node_processes"]), (3, workers))
        (only,) = layout(VANILLA, 0)
        self.assertEqual(only["node_processes"], [*processes, *workers])

    def test_further_processes_of_the_master(self) -> None:
        """A process that the plugin lacks is refused with those that there are."""
        master, worker = layout(VANILLA, 2, ("sparkconnect", "oozie"))
        self.assertEqual(
            master["node_processes"], ["namenode", "resourcemanager", "oozie", "sparkconnect"]
        )
        self.assertEqual(worker["node_processes"], ["datanode", "nodemanager"])
        error = self.assertRaises(CommandError, layout, VANILLA, 2, ("sparkthrift",))
        self.assertEqual(
            str(error),
            "plugin vanilla has no process 'sparkthrift'; processes for --with: "
            "secondarynamenode, sparkhistory, sparkconnect",
        )

    def test_plugin_without_processes_that_svcd_knows(self) -> None:
        unknown = {"name": "x", "node_processes": {"X": ["xd"]}}
        self.assertEqual(self.assertRaises(CommandError, layout, unknown, 2).code, USAGE)


class FlavorTests(SynchronousTestCase):
    def test_the_smallest_that_is_large_enough(self) -> None:
        """A disk on a volume is 0. Several that are all too small need a choice."""

        def flavor(name: str, ram: int, vcpus: int, disk: int) -> dict[str, object]:
            return {"name": name, "ram": ram, "vcpus": vcpus, "disk": disk}

        tiny, thin = flavor("tiny", 512, 1, 1), flavor("thin", 4096, 1, 40)
        good, big = flavor("good", 4096, 2, 40), flavor("big", 8192, 4, 80)
        for flavors, expected in (([tiny, thin, good, big], good), ([tiny], tiny)):
            self.assertEqual(fitting_flavor(flavors), expected)
        volume = flavor("volume", 4096, 2, 0)
        self.assertEqual(fitting_flavor([tiny, volume]), volume)
        error = self.assertRaises(CommandError, fitting_flavor, [tiny, thin])
        self.assertIn("choose one with --flavor: tiny, thin", str(error))


class OptionTests(SynchronousTestCase):
    def test_values_have_the_types_of_the_api(self) -> None:
        """Whole numbers and true or false; everything else is text. Other forms are refused."""
        values = [parsed(f"HDFS.dfs.x={raw}")[2] for raw in ("1", "true", "1.5", "a=b", "", '"q"')]
        self.assertEqual(values, [1, True, "1.5", "a=b", "", '"q"'])
        self.assertEqual(parsed("HDFS.dfs.x=1")[:2], ("HDFS", "dfs.x"))
        for text in ("x=1", "HDFS.x", ".x=1", "HDFS.=1", "="):
            self.assertRaises(click.UsageError, parsed, text)

    def test_they_join_those_of_the_file(self) -> None:
        body = {"name": "n", "cluster_configs": {"HDFS": {"a": 1}}}
        made = with_configs(body, [("HDFS", "b", 2), ("YARN", "c", "x")])
        self.assertEqual(made["cluster_configs"], {"HDFS": {"a": 1, "b": 2}, "YARN": {"c": "x"}})
        self.assertEqual(body["cluster_configs"], {"HDFS": {"a": 1}})
        self.assertNotIn("cluster_configs", with_configs({"name": "n"}, []))
