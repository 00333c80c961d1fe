"""Starts the Python program of a Spark job with the values that were given.

This file travels with the job; svcd appends a call of `start` with the values. Spark runs it as the
program, in the driver. The process becomes the program, so its exit code, its traceback and its
signals are the program's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def start(program: str, arguments: list[str], files: list[tuple[str, str]]) -> None:
    """Give the job's files their own names, and become the program.

    files: the place of each file in the container's folder, and its own name.
    """
    paths = os.environ.get("PYTHONPATH", "").split(":")
    for place, name in ((_file(place), _file(name)) for place, name in files):
        put(Path(place), Path(name))
        if ":" not in name:  # which separates the paths of Python
            paths = [renamed(path, place, name) for path in paths]
    os.environ["PYTHONPATH"] = ":".join(paths)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    if program.startswith("-"):
        program = f"./{program}"  # Python has options
    words = (argument.encode() for argument in (program, *arguments))
    os.execv(sys.executable, [os.fsencode(sys.executable), *words])


def put(place: Path, name: Path) -> None:
    """Give a file its own name: as a second link to YARN's copy, else as a symbolic one."""
    copy = place.resolve()
    if name.is_symlink() or name.exists():
        name.unlink()
    try:
        os.link(copy, name)
    except OSError:
        name.symlink_to(copy)


def renamed(path: str, place: str, name: str) -> str:
    """`path`, with its own name for a library that is at `place`."""
    folder, slash, last = path.rpartition("/")
    return folder + slash + name if last == place else path


def _file(name: str) -> str:
    return os.fsdecode(name.encode())
