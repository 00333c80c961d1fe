"""Runs a class of the image's Java code on texts, by a small program beside it. Needs a JDK."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from twisted.trial.unittest import SkipTest

from tests.support.processes import ROOT

PROBES = ROOT / "tests/support/spark"
LIMIT_S = 120


def answers_of(folder: Path, texts: Sequence[str], source: Path, probe: str) -> list[str]:
    """The answers of `probe`, which is compiled in `folder` together with the class of `source`."""
    if shutil.which("java") is None or shutil.which("javac") is None:
        raise SkipTest("no java and javac on the PATH")
    classes = folder.absolute()
    sources = [str(source), str(PROBES / f"{probe}.java")]
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    compile_ = ["javac", "-proc:none", "-encoding", "UTF-8", "-d", str(classes), *sources]
    subprocess.run(compile_, check=True, timeout=LIMIT_S, env=environment)
    ran = subprocess.run(
        ["java", "-Dfile.encoding=UTF-8", "-cp", str(classes), f"org.svcd.spark.{probe}"],
        input="\x01".join(texts).encode(),
        capture_output=True,
        check=True,
        timeout=LIMIT_S,
        env={**environment, "JAVA_TOOL_OPTIONS": "-Dstdout.encoding=UTF-8"},
    )
    return ran.stdout.decode().split("\x01")[:-1]
