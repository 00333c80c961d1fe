"""Disks of a test's own that are soon full."""

from __future__ import annotations

import subprocess
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase


def small_disk(case: SynchronousTestCase, folder: str, mib: int) -> Path:
    """A disk of its own of so many MiB; the test is skipped where none can be mounted."""
    place = Path(folder).absolute()
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", place], capture_output=True
    )
    if mounted.returncode != 0:
        raise SkipTest(f"no tmpfs can be mounted (root is needed): {mounted.stderr!r}")
    case.addCleanup(subprocess.run, ["umount", "--lazy", place], check=True)
    return place


def fill(folder: Path) -> Path:
    """Take all the space that is left; the file that holds it."""
    file = folder / "filler"
    with file.open("wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            return file
