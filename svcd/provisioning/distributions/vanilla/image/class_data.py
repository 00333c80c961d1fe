"""The archives of class data of a tree: the parsed classes that shorten the start of its JVMs.

`bin/class-data` makes and checks them, because servers have no svcd. They are valid at one place
and for one Java: they are made after a tree is at its prefix, belong to no list of digests of the
build, and are copied nowhere. A tree without them works, and starts later.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

FOLDER = "class-data"
"""The folder of the archives in a tree."""
NAMES = ("hadoop", "oozie", "spark")
PROGRAM = f"bin/{FOLDER}"
MOST_S = 900.0
"""Time to make all of them; they take a minute of processor time."""

_PASSED = frozenset(("PATH", "HOME", "LANG", "TMPDIR", "SVCD_JAVA_HOME"))


def is_complete(prefix: Path) -> bool:
    """Whether the archives are there and those of this place (takes a second)."""
    return not (prefix / PROGRAM).exists() or not _run(prefix, lambda line: None, "--fits")


def make(prefix: Path, progress: Callable[[str], None]) -> str:
    """Makes the archives that are missing or do not fit. Why it cannot; empty when it can."""
    return _run(prefix, progress)


def fault(prefix: Path) -> str:
    """Why JVMs of the tree start without an archive; empty when they have all of them."""
    if not (prefix / PROGRAM).exists():
        return ""  # a tree of an older recipe, which has none
    return _run(prefix, lambda line: None, "--check")


def remedy(prefix: Path) -> str:
    """The command that makes the archives."""
    return str(prefix / PROGRAM)


def _run(prefix: Path, progress: Callable[[str], None], *arguments: str) -> str:
    """Runs the program and passes its lines on; its last complaint when it fails."""
    command = [str(prefix.absolute() / PROGRAM), *arguments]
    environ = {key: value for key, value in os.environ.items() if key in _PASSED}
    try:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=MOST_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{command[0]} did not run: {error}"
    for line in done.stdout.splitlines():
        progress(line)
    if done.returncode == 0:
        return ""
    said = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
    return said[-1].removeprefix(f"{FOLDER}: ")
