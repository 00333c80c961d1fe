"""Ends a daemon and its machines when their owner ends, also by `kill -9`.

The machines of the embedded cloud outlive every other process, on purpose. A demo or a test has a
watchdog beside it: a process that reads a pipe whose write end only the owner holds. At the end of
the pipe it ends the processes and the machines that the owner named, and then itself. It has a
session of its own, so the terminal's Ctrl-C does not reach it. It ends nothing else.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from svcd.embedded.process_marks import below, end

_STOP_S: Final = 20.0
"""Seconds for the end of processes after SIGTERM; then SIGKILL."""
_KILLED_S: Final = 10.0
"""Time for the end of killed processes."""
_ALL_S: Final = _STOP_S + 2 * _KILLED_S + 10.0
"""Seconds for the whole end."""
_STDIN: Final = 0


class Watchdog:
    """The owner's side."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "svcd.embedded.watchdog"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
            # the watchdog imports the same code as its owner
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def process(self, pid: int) -> None:
        """End this child of the owner. The watchdog asks by SIGTERM first."""
        self._tell(b"%d" % pid)

    def machines(self, folder: Path) -> None:
        """End all machines whose folders are inside `folder`, after the processes."""
        self._tell(os.fsencode(folder.absolute()))

    def end(self) -> bool:
        """End everything that was named, now. Returns whether all has ended."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(_ALL_S) == 0
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return False

    def _tell(self, record: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(record + b"\0")


def main() -> int:
    """The watchdog's process: 0 when all has ended."""
    folders: list[Path] = []
    handles: Sequence[int] = ()
    for record in _records():
        if not record.isdigit():
            folders.append(Path(os.fsdecode(record)))
            continue
        handles = _alive(handles, 0.0)
        with contextlib.suppress(ProcessLookupError):  # the process has ended
            handles = [*handles, os.pidfd_open(int(record))]
    for number, limit_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _KILLED_S)):
        for handle in handles:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
        until = time.monotonic() + limit_s
        while handles and (rest_s := until - time.monotonic()) > 0:
            handles = _alive(handles, rest_s)
    tests = [below(folder) for folder in folders]
    left = end(  # machines last: their daemon would start new ones
        lambda root: any(is_below(root) for is_below in tests), grace_s=0.0, limit_s=_KILLED_S
    )
    return 1 if handles or left else 0


def _records() -> Iterator[bytes]:
    """The lines of the owner, until the owner ends."""
    rest = b""
    while data := os.read(_STDIN, 1 << 16):
        *records, rest = (rest + data).split(b"\0")
        yield from records


def _alive(handles: Sequence[int], limit_s: float) -> Sequence[int]:
    """Wait until a process ends, close its handle, and return the handles of running processes."""
    ended, _, _ = select.select(handles, (), (), limit_s)
    for handle in ended:
        os.close(handle)
    return [handle for handle in handles if handle not in ended]


if __name__ == "__main__":
    sys.exit(main())
