"""The archives of class data of a tree: the parsed classes that shorten the start of its JVMs.

`bin/class-data` makes and checks them, because servers have no svcd. They are valid at one place
and for one Java: svcd makes them when the tree is at its prefix, lists no digests of them, and
copies them nowhere. The JVMs of a tree without them start later.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

FOLDER = "class-data"
"""The folder of the archives in a tree."""
NAMES = ("hadoop", "oozie", "spark")
PROGRAM = f"bin/{FOLDER}"
MOST_S = 900.0
"""Seconds for all archives; they take a minute of processor time."""
_END_S = 10.0
"""Seconds for the end of the program after a signal."""

_PASSED = frozenset(("PATH", "HOME", "LANG", "TMPDIR", "SVCD_JAVA_HOME"))


def is_complete(prefix: Path) -> bool:
    """Whether all archives exist and are of this place; the check takes a second."""
    return not (prefix / PROGRAM).exists() or not _run(prefix, lambda line: None, "--fits")


def make(prefix: Path, progress: Callable[[str], None]) -> str:
    """Make the archives that are missing or do not fit; the reason of a failure, or ""."""
    return _run(prefix, progress)


def fault(prefix: Path) -> str:
    """The reason why JVMs of the tree start without an archive, or ""."""
    if not (prefix / PROGRAM).exists():
        return ""  # a tree of an older recipe has no archives
    return _run(prefix, lambda line: None, "--check")


def size_bytes(prefix: Path) -> int:
    """Bytes of the archives on the disk; 0 without archives."""
    return sum(archive.stat().st_size for archive in (prefix / FOLDER).glob("*.jsa"))


def remedy(prefix: Path) -> str:
    """The command that makes the archives."""
    return str(prefix / PROGRAM)


def _run(prefix: Path, progress: Callable[[str], None], *arguments: str) -> str:
    """Run the program, pass its lines on at once; return the last line of a failed run, or ""."""
    command = [str(prefix.absolute() / PROGRAM), *arguments]
    environ = {key: value for key, value in os.environ.items() if key in _PASSED}
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            program = subprocess.Popen(
                command, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=errors, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return f"{command[0]} did not run: {error}"
        late = threading.Event()

        def give_up() -> None:
            late.set()
            _end(program)

        timer = threading.Timer(MOST_S, give_up)
        timer.start()
        try:
            for line in program.stdout or ():
                progress(line.rstrip("\n"))
            program.wait()
        finally:  # also Ctrl-C, and the end of a build that was told to stop
            timer.cancel()
            if program.poll() is None:
                _end(program)
            if program.stdout:
                program.stdout.close()
        if late.is_set():
            return f"{command[0]} did not end within {MOST_S:g} s"
        if program.returncode == 0:
            return ""
        errors.seek(0)
        said = errors.read().strip().splitlines() or [f"it ended with {program.returncode}"]
    return said[-1].removeprefix(f"{FOLDER}: ")


def _end(program: subprocess.Popen[str]) -> None:
    """End the program and its JVM. The program removes unfinished archives."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        with suppress(subprocess.TimeoutExpired):
            program.wait(timeout=_END_S)
            return
