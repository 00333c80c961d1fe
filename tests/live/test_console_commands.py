"""The commands that the page prints, as the command line reads them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click

from svcd.cli.main import root
from tests.support.console import ConsoleCase

COMMANDS = """[
    m.newCluster, m.newRun, m.why(ID), m.cancelRun(ID), m.rerun(ID), m.readLog(ID, { all: true }),
    m.deleteCluster({ name: "my etl" }), m.retryCluster({ name: "etl" }),
    m.scaleCluster({ name: "etl" }, [{ name: "worker", count: 3 }]), m.tunnel("etl", "Spark"),
    m.addBinary("a b.pig", "a-b.pig"), m.remove("binary rm", "a"), m.remove("source rm", "a"),
    m.remove("job forget", "a"), m.registerImage({ id: ID, username: "u" }, ["x y"], []),
    m.addSource({ name: "in", url: "hdfs:///in", "credentials.user": "u", description: "it's" }),
    m.runJob({ files: ["a.py", "b c.py"], type: "Spark", cluster: "etl", input: "hdfs:///in",
      output: "out", configs: { "spark.a": "x y" }, params: {}, args: ["-z", "--on", "$(q)"] }),
    m.createCluster({ name: "etl", plugin_name: "vanilla", engine_version: "3.5.0",
      default_image_id: ID, user_keypair_id: "k", cluster_configs: { HDFS: { a: "b c" } },
      node_groups: [{ name: "m", count: 1, flavor_id: "2" },
        { name: "w", count: 4, flavor_id: "2" }] },
      [{ name: "m", count: 1 }, { name: "w", count: 2 }]),
]"""
"""Each command that the page prints as one line of `svcd`."""


def parsed(words: Sequence[str]) -> Mapping[str, Any]:
    """The options that the command line reads of a command. Raises click.UsageError."""
    command: click.Command | None = root
    left = list(words)
    while isinstance(command, click.Group):
        context = click.Context(command)
        _, command, left = command.resolve_command(context, left)
    assert command is not None
    return command.make_context("svcd", left).params


class CommandTests(ConsoleCase):
    async def test_the_command_line_reads_the_commands_of_the_page(self) -> None:
        """Each option and each value, as a shell splits them."""

        def walk(page: Any) -> None:
            page.goto("/console/")
            id_ = "6b0c1cc7-0f4c-4f5e-8c9c-000000000000"
            script = f"""async () => {{
                const ID = "{id_}";
                const m = await import("/console/commands.js");
                return {COMMANDS};
            }}"""
            read = {}
            for text in page.evaluate(script):
                words = shlex.split(text)
                self.assertEqual(words[0], "svcd", text)
                read[" ".join(words[1:3])] = parsed(words[1:])
            self.assertEqual(len(read), 17)
            run = read["run a.py"]
            self.assertEqual(
                (str(run["file"]), [str(each) for each in run["libs"]], run["on"], run["input_"]),
                ("a.py", ["b c.py"], "etl", "hdfs:///in"),
            )
            self.assertEqual(
                (run["place"], run["configs"], run["args"], run["type_"]),
                ("out", ("spark.a=x y",), ("-z", "--on", "$(q)"), "Spark"),
            )
            self.assertEqual(read["job forget"]["what"], ("a",))
            self.assertEqual(read["source add"]["description"], "it's")
            self.assertEqual(read["cluster create"]["workers"], 4)

        await self.walk(walk)
