"""The mark in the environment of a machine's processes, and the end of marked processes.

A process belongs to the machine whose folder stands in its `SVCD_MACHINE_ROOT`. Parents, sessions
and process groups say nothing: daemons and containers leave all of them. Plain Python, because
commands use it too. A process of another mount namespace (a container) is never among the marked
ones: the same path is another folder there.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Final, cast

ROOT_VARIABLE: Final = "SVCD_MACHINE_ROOT"
PROC: Final = Path("/proc")

_MARK: Final = f"\0{ROOT_VARIABLE}=".encode()
_QUIET_SCANS: Final = 2
"""Scans in a row without a process; then all have ended. In the middle of an exec a process shows
no environment for a moment."""
_FIRST_PAUSE_S: Final = 0.02
"""The first pause between two scans; pauses grow."""
_LONGEST_PAUSE_S: Final = 0.5
"""The longest pause between two scans."""


def root_of(environ: bytes) -> str | None:
    """The machine's folder in a process environment as the kernel shows it (NUL-separated)."""
    _, mark, rest = (b"\0" + environ).partition(_MARK)
    return os.fsdecode(rest.partition(b"\0")[0]) if mark else None


def root(pid: int, proc: Path = PROC) -> str | None:
    """The machine's folder of a process. None: no machine's, ended, another user's, or a zombie."""
    try:
        return root_of((proc / str(pid) / "environ").read_bytes())
    except OSError:
        return None


def pids(proc: Path = PROC) -> list[int]:
    """The ids of all processes. Raises OSError: this system has no /proc."""
    return [int(name) for name in os.listdir(proc) if name.isdigit()]  # noqa: PTH208


def marked(proc: Path = PROC) -> Iterator[tuple[int, str]]:
    """The id and the machine's folder of each process of a machine, but this one.

    Only processes whose environment this user may read. Raises OSError: there is no /proc.
    """
    ours = _mounts(proc / "self")
    for pid in pids(proc):
        folder = root(pid, proc)
        if folder is not None and pid != os.getpid() and _mounts(proc / str(pid)) == ours:
            yield pid, folder


def _mounts(process: Path) -> str:
    """The mount namespace of a process; "" when it cannot be read."""
    try:
        return str((process / "ns" / "mnt").readlink())
    except OSError:
        return ""


def below(folder: Path) -> Callable[[str], bool]:
    """Whether a machine's folder is inside `folder`, whatever links and `..` their paths have."""
    whole = Path(os.path.realpath(folder))
    return lambda root: whole in Path(os.path.realpath(root)).parents


def ending(
    mine: Callable[[str], bool], *, grace_s: float, limit_s: float
) -> Generator[float, None, Sequence[int]]:
    """End all processes of the machines whose folders are `mine`: SIGTERM, after `grace_s` SIGKILL.

    Yields the pauses before the next look in seconds, and returns the ids that are left after
    `limit_s`. Raises OSError: there is no /proc.
    """
    began, quiet, pause_s = time.monotonic(), 0, _FIRST_PAUSE_S
    asked: set[int] = set()
    while True:
        roots = {pid: folder for pid, folder in marked() if mine(folder)}
        passed_s = time.monotonic() - began
        if roots and passed_s >= limit_s:
            return list(roots)
        number = signal.SIGKILL if passed_s >= grace_s else signal.SIGTERM
        for pid, folder in roots.items():
            if number == signal.SIGKILL or pid not in asked:
                send(pid, folder, number)
        asked.update(roots)
        quiet = 0 if roots else quiet + 1
        if quiet >= _QUIET_SCANS:
            return ()
        yield pause_s
        pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)


def end(mine: Callable[[str], bool], *, grace_s: float, limit_s: float) -> Sequence[int]:
    """`ending` in a process that does nothing else meanwhile."""
    steps = ending(mine, grace_s=grace_s, limit_s=limit_s)
    while True:
        try:
            pause_s = next(steps)
        except StopIteration as ended:
            return cast("Sequence[int]", ended.value)
        time.sleep(pause_s)


def send(pid: int, folder: str, number: signal.Signals, proc: Path = PROC) -> None:
    """Signal `pid` if it is still the machine's: the handle keeps the id from being reused."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if root(pid, proc) == folder:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)
