"""Starts and ends the programs of loopback machines.

`process_marks` says which machine a process belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from twisted.internet.interfaces import IProcessProtocol, IProcessTransport
from twisted.internet.threads import deferToThreadPool

from svcd.embedded import process_marks
from svcd.runtime.tasks import sleep

_SETSID: Final = "/usr/bin/setsid"
_SHELL: Final = "/bin/sh"


def session_leader(
    reactor: Any,
    protocol: IProcessProtocol,
    environment: Mapping[str, str],
    shell: str,
    *words: str | bytes,
) -> IProcessTransport:
    """Start `sh -c shell words…`, whose pid names a session and a group. Raises OSError."""
    command = [_SETSID, _SHELL, "-c", shell, *words]
    started: IProcessTransport = reactor.spawnProcess(protocol, _SETSID, command, environment)
    return started


async def end(reactor: Any, folder: Path, *, grace_s: float, limit_s: float) -> Sequence[int]:
    """End all processes of the machine in `folder`, see `process_marks.ending`.

    A thread does each look; the pauses are the reactor's. Returns the ids left after `limit_s`.
    """
    mine = {str(folder)}.__contains__
    steps = process_marks.ending(mine, grace_s=grace_s, limit_s=limit_s)

    def look() -> float | Sequence[int]:
        try:
            return next(steps)
        except StopIteration as ended:
            return cast("Sequence[int]", ended.value)

    while True:
        found = await deferToThreadPool(reactor, reactor.getThreadPool(), look)
        if not isinstance(found, float):
            return found
        await sleep(reactor, found)
