"""The installations whose machines run on this system: state folders, and whose daemon is gone.

The machines of an embedded cloud outlive its daemon, so that the next start finds them again. When
there is no next start, or the state folder is deleted, they hold memory, addresses and ports for
ever. This module finds such leftovers; it changes nothing. Plain Python, because commands use it.
A user sees only processes of the same user; root sees all, but none of a container.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from svcd.embedded.process_marks import PROC, marked

_DELETED: Final = " (deleted)"
_START_TICKS, _RESIDENT_PAGES = 19, 21
"""Places in `/proc/PID/stat` after the name of the program. Source: proc_pid_stat(5)."""
_MIB: Final = 1 << 20


class MachineProcess(NamedTuple):
    """A process of a machine. root: the machine's folder; started: epoch seconds."""

    pid: int
    root: str
    memory_bytes: int
    started: float


class Machine(NamedTuple):
    """A machine that runs. root: its folder; name: of the server, "" when unknown.

    memory_mib: resident; since: the start of its oldest process, epoch seconds.
    """

    root: str
    name: str
    pids: Sequence[int]
    memory_mib: int
    since: float

    @property
    def id(self) -> str:
        """Of the server."""
        return Path(self.root).name


class Installation(NamedTuple):
    """The machines of a state folder. daemon: the process of its embedded cloud; 0: it is gone."""

    state_dir: str
    machines: Sequence[Machine]
    daemon: int
    exists: bool

    @property
    def state(self) -> str:
        """For people: daemon runs, no daemon, folder deleted."""
        if not self.exists:
            return "folder deleted"
        return "daemon runs" if self.daemon else "no daemon"

    @property
    def told(self) -> str:
        """What is wrong with a leftover."""
        count = len(self.machines)
        memory = sum(machine.memory_mib for machine in self.machines)
        many = f"{count} machine{'s' * (count != 1)} with {memory} MiB"
        why = "without a daemon" if self.exists else "although the folder is deleted"
        return f"{many} run{'s' * (count == 1)} {why}"

    @property
    def remedy(self) -> str:
        """The command that ends a leftover."""
        import shlex  # here: few outputs need it

        first = f"kill {self.daemon}, then " if self.daemon else ""
        return f"{first}svcd machines rm {shlex.quote(self.state_dir)}"


def installations(
    processes: Iterable[MachineProcess],
    daemons: Mapping[str, int],
    existing: Iterable[str],
    names: Mapping[str, str],
) -> Sequence[Installation]:
    """The installations of these processes, by their state folders. Pure.

    daemons: by state folder; existing: the state folders that exist; names: of servers, by the
    machine's folder.
    """
    by_root: dict[str, list[MachineProcess]] = {}
    for process in processes:
        by_root.setdefault(process.root, []).append(process)
    by_state: dict[str, list[Machine]] = {}
    for root, found in sorted(by_root.items()):
        machine = Machine(
            root=root,
            name=names.get(root, ""),
            pids=sorted(process.pid for process in found),
            memory_mib=sum(process.memory_bytes for process in found) // _MIB,
            since=min(process.started for process in found),
        )
        by_state.setdefault(state_of(root), []).append(machine)
    there = set(existing)
    return [
        Installation(state, machines, daemons.get(state, 0), state in there)
        for state, machines in sorted(by_state.items())
    ]


def state_of(root: str) -> str:
    """The state folder of a machine's folder, `STATE/cloud/machines/ID`. Pure.

    Machines that a test starts without a cloud are in `FOLDER/machines/ID`.
    """
    cloud = Path(root).parent.parent
    return str(cloud.parent if cloud.name == "cloud" else cloud)


def leftovers(found: Iterable[Installation], but: str = "") -> Sequence[Installation]:
    """Those whose daemon or folder is gone. but: a state folder that does not count. Pure."""
    return [each for each in found if each.state_dir != but and not (each.daemon and each.exists)]


def warning(left: Sequence[Installation]) -> str:
    """One line about leftovers for the log of a daemon; "" when there are none. Pure."""
    if not left:
        return ""
    told = "; ".join(f"{each.state_dir}: {each.told}" for each in left)
    return f"Left over: {told}. svcd machines rm STATE_DIR ends them, svcd machines ls lists them"


def usage(stat: str) -> tuple[int, int]:
    """Resident pages, and the start in clock ticks after boot, of the text of `stat`. Pure."""
    fields = stat.rpartition(")")[2].split()
    return int(fields[_RESIDENT_PAGES]), int(fields[_START_TICKS])


def lock_holders(locks: str) -> Sequence[int]:
    """The processes in the text of `/proc/locks` that hold a lock of flock(2). Pure."""
    fields = [line.split() for line in locks.splitlines()]
    return sorted({int(each[4]) for each in fields if each[1] == "FLOCK" and int(each[4]) > 0})


def locked_folders(links: Iterable[str], lock: str) -> Mapping[str, bool]:
    """State folders whose lock is among a process's open files. Pure.

    links: of `/proc/PID/fd`; lock: the lock's name. The value says whether its file still exists.
    """
    found: dict[str, bool] = {}
    for link in links:
        path = Path(link.removesuffix(_DELETED))
        if path.name == lock:
            found[str(path.parent)] = not link.endswith(_DELETED)
    return found


# ---- reading ------------------------------------------------------------------------------------


def running(proc: Path = PROC) -> Sequence[Installation]:
    """The installations whose machines run; [] on a system without /proc."""
    try:
        found = list(_processes(proc))
    except OSError:
        return []
    if not found:
        return []
    roots = {process.root for process in found}
    states = {state_of(root) for root in roots}
    locked = _daemons(proc)
    daemons = {state: locked.get(os.path.realpath(state), 0) for state in states}
    existing = [state for state in states if Path(state).exists()]
    return installations(found, daemons, existing, {root: _name(root) for root in roots})


def readable(proc: Path = PROC) -> bool:
    """Whether this system shows processes in /proc."""
    return (proc / "self" / "environ").exists()


def _processes(proc: Path) -> Iterator[MachineProcess]:
    page, ticks = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    booted = 0.0
    for pid, root in marked(proc):
        try:
            pages, started = usage((proc / str(pid) / "stat").read_text("utf-8", "replace"))
            booted = booted or _booted(proc)
        except OSError:
            continue  # it has just ended
        yield MachineProcess(pid, root, pages * page, booted + started / ticks)


def _booted(proc: Path) -> float:
    """The time of this system's start, epoch seconds."""
    lines = (proc / "stat").read_text(encoding="ascii").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("btime "))


def _daemons(proc: Path) -> Mapping[str, int]:
    """The process of each locked state folder; one that holds a deleted lock only without other."""
    from svcd.runtime.state_dir import CLOUD_LOCK  # here: it costs a command 4 ms

    found: dict[str, int] = {}
    try:
        holders = lock_holders((proc / "locks").read_text(encoding="ascii"))
    except OSError:
        return {}
    for pid in holders:
        open_files = _links(proc / str(pid) / "fd")
        for folder, exists in locked_folders(open_files, CLOUD_LOCK).items():
            if exists or folder not in found:
                found[folder] = pid
    return found


def _links(folder: Path) -> Iterator[str]:
    """The open files of a process; none when it has ended or belongs to another user."""
    try:
        for file in folder.iterdir():
            yield str(file.readlink())
    except OSError:
        return


def _name(root: str) -> str:
    """The name of the machine's server; "" when its folder is gone."""
    try:
        return (Path(root) / "etc" / "hostname").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""
