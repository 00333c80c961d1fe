"""The archives of class data of a tree: the parsed classes that shorten the start of its JVMs.

`bin/class-data` makes and checks them, because servers have no svcd. They are valid at one place
and for one Java: they are made after a tree is at its prefix, belong to no list of digests of the
build, and are copied nowhere. A tree without them works, and starts later.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FOLDER = "class-data"
"""The folder of the archives in a tree."""
NAMES = ("hadoop", "oozie", "spark")
PROGRAM = f"bin/{FOLDER}"
MOST_S = 900.0
"""Time to make all of them; they take a minute of processor time."""
_END_S = 10.0
"""Time for the program to end when it is told to."""

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
        program = subprocess.Popen(
            command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"{command[0]} did not run: {error}"
    try:
        output, errors = program.communicate(timeout=MOST_S)
    except subprocess.TimeoutExpired:
        _end(program)
        return f"{command[0]} did not end within {MOST_S:g} s"
    except BaseException:  # Ctrl-C, or the end of a build that was told to stop
        _end(program)
        raise
    for line in output.splitlines():
        progress(line)
    if program.returncode == 0:
        return ""
    said = errors.strip().splitlines() or [f"it ended with {program.returncode}"]
    return said[-1].removeprefix(f"{FOLDER}: ")


def _end(program: subprocess.Popen[str]) -> None:
    """Ends the program and its JVM. It removes what is half made."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        with suppress(subprocess.TimeoutExpired):
            program.communicate(timeout=_END_S)
            return
