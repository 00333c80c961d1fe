"""Files that appear whole: written under another name, synced to the disk, then renamed.

A crash leaves the former file or the new one. The writer of a draft holds a lock on it, and the
next writer removes the drafts of killed programs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """An empty file beside `target` that only its owner may read.

    The file is removed when the block did not publish it. An OSError, also of the block, names
    `target` when it names no other file.
    """
    handle, draft = -1, target
    try:
        _sweep(target)
        handle, draft = _locked(target)
        yield draft
    except OSError as error:
        error.filename = error.filename or str(target)
        raise
    finally:
        if handle >= 0:
            draft.unlink(missing_ok=True)
            os.close(handle)


def publish(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`, and sync both file and folder to the disk."""
    sync(draft)
    draft.rename(target)
    sync(target.parent)


def sync(path: Path) -> None:
    """Write a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def give(path: Path, like: os.stat_result) -> None:
    """Give a file the owner of another one, if this process may: it runs as root."""
    if os.geteuid() == 0:
        os.chown(path, like.st_uid, like.st_gid)


def _locked(target: Path) -> tuple[int, Path]:
    """A new draft and the handle that holds its lock."""
    while True:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".partial"
        )
        draft = Path(name)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except BaseException:
            draft.unlink(missing_ok=True)
            os.close(handle)
            raise
        if draft.exists():
            return handle, draft
        os.close(handle)  # another writer removed it before it was locked


def _sweep(target: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.\w+\.partial")
    for left in target.parent.iterdir():
        if not pattern.fullmatch(left.name):
            continue
        with contextlib.suppress(OSError):  # in use, or already removed
            handle = os.open(left, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
            finally:
                os.close(handle)
