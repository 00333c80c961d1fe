"""The processes of loopback machines: each starts a session of its own, for the same price always.

Note: why not `reactor.spawnProcess`. It asks for the flags of every open file of this process at
each start. The sockets of a thousand machines are in this process, and each machine starts several
processes, so that the work was the square of the number of machines. Python marks each file that it
opens as not for children (PEP 446). What is left are files that this process was started with; they
are looked for once.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from twisted.internet.interfaces import IProcessProtocol
from twisted.internet.process import Process

_SHELL: Final = "/bin/sh"
_STDERR: Final = 2
_SIGNALS: Final = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
"""A child gets the default action of all of them; it would inherit that a signal is ignored."""


@cache
def _inherited() -> tuple[int, ...]:
    """The open files, from 3 on, that a child would get unless it closes them."""
    found = []
    for number in sorted(int(each.name) for each in Path("/proc/self/fd").iterdir()):
        with suppress(OSError):  # the folder itself, which is closed by now
            if number > _STDERR and os.get_inheritable(number):
                found.append(number)
    return tuple(found)


class _Leader(Process):
    """A child with pipes for 0, 1 and 2."""

    def _fork(
        self,
        path: bytes | None,
        uid: int | None,
        gid: int | None,
        executable: bytes,
        args: list[bytes],
        environment: Mapping[bytes, bytes],
        **kwargs: Any,
    ) -> None:
        """As in Process: sets `pid`. Raises OSError."""
        pipes: Mapping[int, int] = kwargs["fdmap"]
        self.pid = os.posix_spawn(
            executable,
            args,
            environment,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, ours, its) for its, ours in pipes.items()),
                *((os.POSIX_SPAWN_CLOSE, each) for each in _inherited()),
            ],
            setsid=True,
            setsigdef=_SIGNALS,
        )
        self.status = -1


@frozen
class SessionLeaders:
    """The part of IReactorProcess that starts programs; each pid names a session and a group."""

    reactor: Any

    def spawnProcess(
        self,
        processProtocol: IProcessProtocol,
        executable: bytes | str,
        args: Sequence[bytes | str] = (),
        env: Mapping[Any, Any] | None = None,
        path: None = None,
    ) -> Process:
        """See IReactorProcess; executable: its whole path. Raises OSError."""
        words = [os.fsencode(each) for each in args]
        environment = {os.fsencode(k): os.fsencode(v) for k, v in (env or {}).items()}
        return _Leader(
            self.reactor, os.fsencode(executable), words, environment, path, processProtocol
        )


def session_leader(
    reactor: Any,
    protocol: IProcessProtocol,
    environment: Mapping[str, str],
    shell: str,
    *words: str,
) -> Process:
    """Start `sh -c shell words…`. Raises OSError."""
    command = [_SHELL, "-c", shell, *words]
    return SessionLeaders(reactor).spawnProcess(protocol, _SHELL, command, environment)
