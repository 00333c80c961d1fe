"""The arguments of a Spark program, on their way through Spark, YARN and bash. Needs a JDK."""

from __future__ import annotations

import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.support.java_probes import LIMIT_S, answers_of
from tests.support.processes import ROOT

SOURCE = (
    ROOT / "svcd/provisioning/distributions/vanilla/image/java/org/svcd/spark/LaunchArgument.java"
)

ARGUMENTS = (
    "plain",
    "two words",
    "grün €",
    'it\'s "quoted"',
    "$HOME $(id) ${HOME}",
    "`id`",
    "``",
    "C:\\folder\\",
    "C:\\\\server",
    '\\$HOME \\`id\\` \\"; id; \\"',
    '{"a":{"b":{"c":1}}}',
    "{{{{HOME}}}}",
    "<CPS><<CPS>>",
    "*.txt ? [a-z] ~ # ! & | ; < >",
    "one\ntwo\tthree",
)


def command_of(argument: str) -> str:
    """A part of the driver's command. Source: Spark 4.2.0 `YarnSparkHadoopUtil.escapeForShell`."""
    signs = {"$": "\\$", '"': '\\"', "'": "'\\''"}
    return "'" + "".join(signs.get(each, each) for each in argument) + "'"


def launched(command: str) -> str:
    """The script of the container. Source: Hadoop 3.5.0 `ContainerLaunch.expandEnvironment`."""
    expanded = command.replace("<CPS>", ":").replace("{{", "$").replace("}}", "")
    return f'exec /bin/bash -c "{expanded}"'


class SparkArgumentTests(SynchronousTestCase):
    def test_the_program_gets_the_same_text(self) -> None:
        """Also of what bash and YARN would read in their own way."""
        folder = Path(self.mktemp())
        written = answers_of(folder, ARGUMENTS, SOURCE, "ArgumentProbe")
        for argument, each in zip(ARGUMENTS, written, strict=True):
            script = launched(f"printf %s {command_of(each)}")
            ran = subprocess.run(["/bin/bash", "-c", script], capture_output=True, timeout=LIMIT_S)
            self.assertEqual((ran.stdout.decode(), ran.stderr), (argument, b""), argument)
