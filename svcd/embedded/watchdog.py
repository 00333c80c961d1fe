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
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from svcd.embedded.process_marks import below, end

_STOP_S: Final = 20.0
"""Time for processes to end after SIGTERM; then SIGKILL."""
_KILLED_S: Final = 10.0
"""Time for the end of killed processes."""
_ALL_S: Final = _STOP_S + 2 * _KILLED_S + 10.0
"""Time for all of it."""
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
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # the owner's own code
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


class _Named:
    """What the owner has named so far: handles of processes, folders of machines."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.handles: set[int] = set()
        self._poll = select.poll()
        self._rest = b""

    def listen(self) -> None:
        """Until the owner ends."""
        self._poll.register(_STDIN, select.POLLIN)
        while True:
            if _STDIN in self._ready(None):
                data = os.read(_STDIN, 1 << 16)
                if not data:
                    break
                *records, self._rest = (self._rest + data).split(b"\0")
                for record in records:
                    self._add(record)
        self._poll.unregister(_STDIN)

    def _add(self, record: bytes) -> None:
        if not record.isdigit():
            self.folders.append(Path(os.fsdecode(record)))
            return
        with contextlib.suppress(ProcessLookupError):  # it has ended
            handle = os.pidfd_open(int(record))
            self.handles.add(handle)
            self._poll.register(handle, select.POLLIN)

    def _ready(self, limit_s: float | None) -> set[int]:
        """Wait; forget processes that have ended."""
        ready = {file for file, _ in self._poll.poll(None if limit_s is None else limit_s * 1000)}
        for handle in ready & self.handles:
            self._poll.unregister(handle)
            os.close(handle)
        self.handles -= ready
        return ready

    def end(self) -> bool:
        """End the processes; whether all have ended."""
        for number, limit_s in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _KILLED_S)):
            for handle in self.handles:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(handle, number)
            for rest_s in _rest(limit_s):
                if not self.handles:
                    return True
                self._ready(rest_s)
        return not self.handles


def _rest(limit_s: float) -> Iterator[float]:
    """The seconds that are left, until none are."""
    until = time.monotonic() + limit_s
    while (rest_s := until - time.monotonic()) > 0:
        yield rest_s


def main() -> int:
    """The watchdog's process: 0 when all has ended."""
    named = _Named()
    named.listen()
    ended = named.end()
    mine = [below(folder) for folder in named.folders]
    left = end(
        lambda root: any(each(root) for each in mine), grace_s=0.0, limit_s=_KILLED_S
    )  # machines last: their daemon would start new ones
    return 0 if ended and not left else 1


if __name__ == "__main__":
    sys.exit(main())
