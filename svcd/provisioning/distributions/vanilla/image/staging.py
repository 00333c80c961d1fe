"""The folder beside the prefix in which a build makes the tree before it moves it to the prefix."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from svcd.provisioning.distributions.vanilla.image.errors import ImageError

# most bytes that a build needs on the disk, and those that Spark needs besides
DISK_NEEDED_BYTES = 500 * 2**20
DISK_SPARK_BYTES = 450 * 2**20
MOST_WAIT_S = 1800.0
"""Seconds that svcd waits for another build of the same prefix."""
_LOOK_S = 0.5

_HINTS = {
    errno.EACCES: ": name a prefix that you can write to",
    errno.EPERM: ": name a prefix that you can write to",
    errno.ENOSPC: ": free some, or name another prefix",
    errno.EDQUOT: ": free some, or name another prefix",
}


def explained(error: OSError, prefix: Path) -> str:
    """The text of a fault of the system: the operation, its place, and the remedy."""
    hint = _HINTS.get(error.errno or 0, "")
    return f"{error.filename or prefix}: {error.strerror or error}{hint}"


def room_problem(folder: Path, free_bytes: int, *, spark: bool) -> str:
    """The reason why the disk of `folder` has too little room for a build, or ""."""
    needed = DISK_NEEDED_BYTES + (DISK_SPARK_BYTES if spark else 0)
    if free_bytes >= needed:
        return ""
    less = ""
    if spark and free_bytes >= DISK_NEEDED_BYTES:
        less = ", or leave Spark out (--without spark)"
    return (
        f"{folder} has {free_bytes // 2**20} MiB left and a build needs {needed // 2**20}:"
        f" free some, or name another prefix{less}"
    )


def check_room(folder: Path, *, spark: bool) -> None:
    """Raises: ImageError."""
    if text := room_problem(folder, shutil.disk_usage(folder).free, spark=spark):
        raise ImageError(text)


@contextmanager
def locked(prefix: Path, progress: Callable[[str], None]) -> Iterator[None]:
    """Keeps a second build of the same prefix out.

    Raises: ImageError when another build does not end.
    """
    with prefix.with_name(f".{prefix.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another build of {prefix}")
            _wait_for(lock, prefix)
        yield


def _wait_for(lock: TextIO, prefix: Path) -> None:
    deadline = time.monotonic() + MOST_WAIT_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() > deadline:
            raise ImageError(
                f"another build of {prefix} has not ended in {MOST_WAIT_S:g} s: end it, or name"
                " another prefix"
            )
        time.sleep(_LOOK_S)


@contextmanager
def removed_unless_told(stage: Path) -> Iterator[None]:
    """Remove the stage at any end, unless the text of an error names a file in it."""
    keep = False
    try:
        yield
    except ImageError as error:
        keep = str(stage) in str(error)  # a log or the tree itself; the next build tidies up
        raise
    finally:
        if not keep:
            shutil.rmtree(stage, ignore_errors=True)


def carry_over(prefix: Path, stage: Path, folder: str) -> None:
    """Put a folder of the tree at `prefix` into the stage, by hard links where possible."""
    if (prefix / folder).is_dir():
        shutil.copytree(
            prefix / folder,
            stage / folder,
            symlinks=True,
            copy_function=_linked,
            dirs_exist_ok=True,
        )


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)  # a file system without links


def exchange(stage: Path, prefix: Path) -> None:
    """Put the tree `stage` at `prefix`; the old tree is beside the stage for a moment."""
    old = stage.with_name(f"{stage.name}.old")
    if prefix.exists():
        prefix.rename(old)
    stage.rename(prefix)
    shutil.rmtree(old, ignore_errors=True)
