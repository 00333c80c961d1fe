"""Finds the installations whose machines run on this system, with or without a daemon.

The machines of an embedded cloud outlive its daemon, so that the next start finds them again. When
there is no next start, or the state folder is deleted, they hold memory, addresses and ports for
ever. This module finds such leftovers; it changes nothing. Plain Python, because commands use it.
A user sees only processes of the same user; root sees all, but none of a container.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from svcd.embedded.process_marks import PROC, marked

_DELETED: Final = " (deleted)"
_MIB: Final = 1 << 20


class Machine(NamedTuple):
    """A machine that runs. root: its folder; name: of the server, "" when unknown.

    memory_mib: resident.
    """

    root: str
    name: str
    pids: Sequence[int]
    memory_mib: int

    @property
    def id(self) -> str:
        """The id of the server."""
        return Path(self.root).name


class Installation(NamedTuple):
    """The machines of a state folder. daemon: the process of its embedded cloud; 0: it is gone."""

    state_dir: str
    machines: Sequence[Machine]
    daemon: int
    exists: bool

    @property
    def state(self) -> str:
        """The state for people: daemon runs, no daemon, or folder deleted."""
        if not self.exists:
            return "folder deleted"
        return "daemon runs" if self.daemon else "no daemon"

    @property
    def told(self) -> str:
        """The description of a leftover: the machines, and what they lack."""
        count = len(self.machines)
        memory = sum(machine.memory_mib for machine in self.machines)
        many = f"{count} machine{'s' * (count != 1)} with {memory} MiB"
        why = "without a daemon" if self.exists else "although the folder is deleted"
        return f"{many} run{'s' * (count == 1)} {why}"

    @property
    def remedy(self) -> str:
        """The command that ends a leftover."""
        import shlex  # imported here, because few outputs need it

        first = f"kill {self.daemon}, then " if self.daemon else ""
        return f"{first}svcd machines rm {shlex.quote(self.state_dir)}"

    @property
    def warning(self) -> str:
        """One line about a leftover, which may be another person's."""
        use = "start its daemon to use them, or end them" if self.exists else "end them"
        return f"Left over: {self.state_dir}: {self.told}; {use}: {self.remedy}"


def state_of(root: str) -> str:
    """The state folder of a machine's folder, `STATE/cloud/machines/ID`. Pure.

    Machines that a test starts without a cloud are in `FOLDER/machines/ID`.
    """
    cloud = Path(root).parent.parent
    return str(cloud.parent if cloud.name == "cloud" else cloud)


def leftovers(running: Iterable[Installation], but: str = "") -> Sequence[Installation]:
    """Installations whose daemon or folder is gone. but: a state folder to leave out. Pure."""
    others = [owner for owner in running if owner.state_dir != but]
    return [owner for owner in others if not (owner.daemon and owner.exists)]


def running(proc: Path = PROC) -> Sequence[Installation]:
    """The installations whose machines run; [] on a system without /proc."""
    by_root: dict[str, list[int]] = {}
    with suppress(OSError):
        for pid, root in marked(proc):
            by_root.setdefault(root, []).append(pid)
    by_state: dict[str, list[Machine]] = {}
    for root, pids in sorted(by_root.items()):
        machine = Machine(root, _name(root), sorted(pids), _memory_mib(pids, proc))
        by_state.setdefault(state_of(root), []).append(machine)
    daemons = _daemons(proc) if by_state else {}
    return [
        Installation(state, machines, daemons.get(os.path.realpath(state), 0), _exists(state))
        for state, machines in by_state.items()
    ]


def _exists(state: str) -> bool:
    """Whether the folder exists. Any process may name any text as its folder."""
    try:
        return Path(state).exists()
    except OSError:  # the name is too long, or this user may not look there
        return False


def _memory_mib(pids: Iterable[int], proc: Path) -> int:
    """The resident memory of processes. Source: proc_pid_statm(5)."""
    pages = 0
    for pid in pids:
        with suppress(OSError):  # the process has just ended
            pages += int((proc / str(pid) / "statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // _MIB


def _daemons(proc: Path) -> Mapping[str, int]:
    """State folder -> the process that locks it; a process with a deleted lock file comes last.

    Source: proc_locks(5).
    """
    # imported here, because the import costs a command some ms
    from svcd.runtime.listeners import open_files
    from svcd.runtime.state_dir import CLOUD_LOCK

    deleted: dict[str, int] = {}
    present: dict[str, int] = {}
    with suppress(OSError):
        for line in (proc / "locks").read_text(encoding="ascii").splitlines():
            _, kind, _, _, pid, *_ = line.split()
            for link in open_files(proc / pid) if kind == "FLOCK" else ():
                path = Path(link.removesuffix(_DELETED))
                if path.name == CLOUD_LOCK:
                    locks = deleted if link.endswith(_DELETED) else present
                    locks[str(path.parent)] = int(pid)
    return deleted | present


def _name(root: str) -> str:
    """The name of the machine's server; "" when its folder is gone."""
    try:
        return (Path(root) / "etc" / "hostname").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
