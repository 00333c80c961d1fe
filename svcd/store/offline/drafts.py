"""Draft files: written under another name, synced to the disk, then renamed in one step.

The writer of a draft holds a lock on it. The next writer removes the drafts of killed programs.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from svcd.store.offline.session import OfflineError

_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


@contextlib.contextmanager
def draft_of(target: Path) -> Iterator[Path]:
    """An empty file beside `target` that only its owner may read.

    The file is removed when the block did not publish it. Raises OfflineError, also for OSErrors of
    the block.
    """
    try:
        _sweep(target)
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".partial"
        )
    except OSError as error:
        raise OfflineError(f"{target} cannot be written: {error.strerror}") from None
    draft = Path(name)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield draft
    except OSError as error:
        hint = "; make room" if error.errno in _FULL else ""
        raise OfflineError(f"{target} cannot be written: {error.strerror}{hint}") from error
    finally:
        draft.unlink(missing_ok=True)
        os.close(handle)


def publish(draft: Path, target: Path) -> None:
    """Rename `draft` to `target`, and sync both file and folder to the disk."""
    handle = os.open(draft, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    draft.rename(target)
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _sweep(target: Path) -> None:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.\w+\.partial")
    for each in target.parent.iterdir():
        if not pattern.fullmatch(each.name):
            continue
        with contextlib.suppress(OSError):  # in use, or already removed
            handle = os.open(each, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                each.unlink()
            finally:
                os.close(handle)
