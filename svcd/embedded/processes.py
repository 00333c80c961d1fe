"""Finds and ends the processes of loopback machines, without a stall of the reactor.

`process_marks` says which machine a process belongs to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from twisted.internet.interfaces import IReactorTime

from svcd.embedded.process_marks import Ending, pids, root, send
from svcd.runtime.tasks import sleep
from svcd.runtime.waits import Waiters

_CHUNK: Final = 100


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

    async def end(self, folder: Path, *, grace_s: float, limit_s: float) -> Sequence[int]:
        """End all processes of the machine in `folder`, as `Ending` says.

        Returns the ids that are left after `limit_s`.
        """
        began = self._clock.seconds()
        ending = Ending(grace_s, limit_s)
        while True:
            running = (await self.by_root()).get(str(folder), ())
            for pid, number in ending.after(running, self._clock.seconds() - began).items():
                send(pid, str(folder), number, self._proc)
            if ending.over:
                return ending.left
            await sleep(self._clock, ending.pause_s)

    async def _scan(self) -> None:
        self._scanning = True
        self._begun += 1
        found: dict[str, list[int]] = {}
        own = os.getpid()
        try:
            for index, pid in enumerate(pids(self._proc)):
                if index % _CHUNK == _CHUNK - 1:
                    await sleep(self._clock, 0.0)
                folder = root(pid, self._proc)
                if folder is not None and pid != own:
                    found.setdefault(folder, []).append(pid)
            self._found = found
            self._ended = self._begun
        finally:
            self._scanning = False
            self._scanned.fire()
