"""Runs programs: javac and jar make our jars, Python makes the library of Spark.

Each run has a time limit and writes its output to a log in the working folder of the build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from svcd.provisioning.distributions.vanilla.image import python_library
from svcd.provisioning.distributions.vanilla.image.errors import ImageError
from svcd.provisioning.distributions.vanilla.image.jdk import FIRST, Java

JAVAC_TIMEOUT_S = 600
LIBRARY_TIMEOUT_S = 300

WORKERS_PYTHON = "/usr/bin/python3"
"""The Python of jobs, unless a cluster or a job names another one."""

# for a JVM of a few seconds: half the processor time
_SHORT = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")


def compile_jar(sources: Path, jar: Path, class_path: str, jdk: Java, work: Path) -> None:
    """Compile all Java below `sources` into `jar`, for the oldest Java that runs the image.

    Raises: ImageError with the first complaints of the compiler.
    """
    files = sorted(str(path) for path in sources.rglob("*.java"))
    classes, log = work / f"classes-{jar.stem}", work / f"javac-{jar.stem}.log"
    javac = [str(jdk.home / "bin/javac"), *_SHORT, "--release", str(FIRST), "-Xlint:none",
             "-proc:none", "-encoding", "UTF-8", "-cp", class_path, "-d", str(classes),
             *files]  # fmt: skip
    if _logged(javac, log, dict(os.environ), JAVAC_TIMEOUT_S) != 0:
        said = [
            line for line in log.read_text("utf-8", "replace").splitlines() if ": error:" in line
        ]
        raise ImageError(f"javac of {sources} failed, see {log}: {' | '.join(said[:3])}")
    if (sources / "META-INF").is_dir():
        shutil.copytree(sources / "META-INF", classes / "META-INF")
    # --date keeps two builds of one recipe equal to the byte
    pack = [str(jdk.home / "bin/jar"), *_SHORT, "--create", "--file", str(jar),
            "--date=2026-01-01T00:00:00Z", "-C", str(classes), "."]  # fmt: skip
    if _logged(pack, log, dict(os.environ), JAVAC_TIMEOUT_S) != 0:
        raise ImageError(f"jar {jar.name} failed, see {log}: {_errors(log)}")


def make_library(released: Path, made: Path, work: Path) -> None:
    """Make the Python library of a tree from a released one, with the Python of the workers.

    Raises: ImageError with the complaint of the program.
    """
    log = work / f"{made.stem}.log"
    for python in (WORKERS_PYTHON, sys.executable):
        command = [python, "-I", python_library.__file__, str(released), str(made)]
        if Path(python).exists() and _logged(command, log, {}, LIBRARY_TIMEOUT_S) == 0:
            return
    raise ImageError(f"{made.name} cannot be made, see {log}: {_errors(log)}")


def _logged(command: list[str], log: Path, environ: dict[str, str], timeout_s: float) -> int:
    """Exit code of a command whose output goes to `log`; -1 after the end of its time."""
    with log.open("wb") as sink:
        try:
            return subprocess.run(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            sink.write(f"\n[ERROR] ended after {timeout_s:.0f} s\n".encode())
            return -1


def _errors(log: Path) -> str:
    """The lines of a log with errors, else its last lines."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", log.read_text("utf-8", "replace")).splitlines()
    wrong = [line for line in lines if re.search(r"\[ERROR\] (?!To see|Re-run|For more)", line)]
    return " | ".join(line.strip()[:300] for line in (wrong[:2] or lines[-3:]))
