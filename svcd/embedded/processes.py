"""Finds and ends the processes of loopback machines by their environment.

A process belongs to the machine whose folder stands in its `SVCD_MACHINE_ROOT`. Parents, sessions
and process groups say nothing: daemons and containers leave all of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.runtime.tasks import Waiters, sleep

ROOT_VARIABLE: Final = "SVCD_MACHINE_ROOT"

_MARK: Final = f"\0{ROOT_VARIABLE}=".encode()
_CHUNK: Final = 100
_QUIET_SCANS: Final = 2
"""Scans in a row without a process of the machine; then all its processes have ended."""
_FIRST_PAUSE_S: Final = 0.02
"""The first pause between two scans; pauses grow."""
_LONGEST_PAUSE_S: Final = 0.5
"""The longest pause between two scans."""


def root_of(environ: bytes) -> str | None:
    """The machine's folder in a process environment as the kernel shows it (NUL-separated)."""
    _, found, rest = (b"\0" + environ).partition(_MARK)
    return os.fsdecode(rest.partition(b"\0")[0]) if found else None


class Processes:
    """The processes of all machines. All waiting callers share one scan of /proc."""

    def __init__(self, clock: IReactorTime, proc: Path = Path("/proc")) -> None:
        self._clock = clock
        self._proc = proc
        self._scanning = False
        self._begun = 0
        self._ended = 0
        self._found: Mapping[str, Sequence[int]] = {}
        self._scanned = Waiters()

    async def by_root(self) -> Mapping[str, Sequence[int]]:
        """Process ids by machine folder, seen by a scan that began after this call."""
        before = self._begun
        while self._ended <= before:
            if self._scanning:
                await self._scanned.wait()
            else:
                await self._scan()
        return self._found

    async def end(self, root: Path, *, grace_s: float, limit_s: float) -> Sequence[int]:
        """End all processes of the machine in `root`: SIGTERM, and after `grace_s` SIGKILL.

        grace_s: 0 kills at once. Ends when two scans in a row found none, or after `limit_s`;
        returns the ids that are left then.
        """
        began = self._clock.seconds()
        asked: set[int] = set()
        quiet = 0
        pause_s = _FIRST_PAUSE_S
        while True:
            found = (await self.by_root()).get(str(root), ())
            passed_s = self._clock.seconds() - began
            quiet = 0 if found else quiet + 1
            if quiet >= _QUIET_SCANS:
                return ()
            if found and passed_s >= limit_s:
                return found
            for pid in found:
                if passed_s >= grace_s:
                    self._send(pid, root, signal.SIGKILL)
                elif pid not in asked:
                    asked.add(pid)
                    self._send(pid, root, signal.SIGTERM)
            # Also before the second quiet scan: in the middle of an exec a process shows no
            # environment for a moment.
            await sleep(self._clock, pause_s)
            pause_s = min(_LONGEST_PAUSE_S, pause_s * 1.5)

    async def _scan(self) -> None:
        self._scanning = True
        self._begun += 1
        found: dict[str, list[int]] = {}
        own = os.getpid()
        try:
            pids = [int(name) for name in os.listdir(self._proc) if name.isdigit()]  # noqa: PTH208
            for index, pid in enumerate(pids):
                if index % _CHUNK == _CHUNK - 1:
                    await sleep(self._clock, 0.0)
                root = self._root(pid)
                if root is not None and pid != own:
                    found.setdefault(root, []).append(pid)
            self._found = found
            self._ended = self._begun
        finally:
            self._scanning = False
            self._scanned.fire()

    def _root(self, pid: int) -> str | None:
        """None too when the process has gone, is not ours, or is a zombie."""
        try:
            return root_of((self._proc / str(pid) / "environ").read_bytes())
        except OSError:
            return None

    def _send(self, pid: int, root: Path, number: signal.Signals) -> None:
        """Signal `pid` if it is still the machine's: the handle keeps the id from being reused."""
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            return
        try:
            if self._root(pid) == str(root):
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
