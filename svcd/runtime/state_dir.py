"""The state folder: creates it, locks it for one daemon, and writes `endpoints.json` in it.

A daemon with `cloud.kind=openstack` and a `svcd-cloud` may share a folder, because each has a lock
of its own. The file then describes both, and each removes only its own part when it stops.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
import uuid
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from svcd.runtime.drafts import draft_of, give, publish

CLOUD_LOCK: Final = "cloud.lock"
"""Name of the lock of the process that serves the embedded cloud of a state folder.

Only one process may control its machines.
"""


class StateFolderError(Exception):
    """The folder cannot be used: one line that says why and what to do."""


class StateFolder:
    """Holds the lock on `path` until `release`, or until the process ends in any way."""

    def __init__(self, path: Path, lock_name: str = "lock") -> None:
        """Raises StateFolderError when the folder is not writable or another daemon holds it."""
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._protect()
            self._lock = _hold(self.path / lock_name)
        except _InUse as holder:
            raise StateFolderError(
                f"the state folder {self.path} is in use by process {holder};"
                " stop that one, or choose another server.state_dir"
            ) from None
        except OSError as error:
            raise StateFolderError(
                f"the state folder {self.path} cannot be used: {error.strerror};"
                " choose another server.state_dir or change its owner"
            ) from None
        self._file = self.path / "endpoints.json"
        self._others: Mapping[str, Any] = {}

    def _protect(self) -> None:
        """Take the folder from other users: it holds the sealing key, passwords and the database.

        An existing folder keeps its mode at `mkdir`.
        """
        status = self.path.stat()
        if status.st_uid not in (os.geteuid(), 0):
            raise StateFolderError(
                f"the state folder {self.path} belongs to user {status.st_uid} and not to the"
                " daemon's; choose another server.state_dir or change its owner"
            )
        if stat.S_IMODE(status.st_mode) & 0o077 and status.st_uid == os.geteuid():
            self.path.chmod(stat.S_IMODE(status.st_mode) & 0o700)
        elif stat.S_IMODE(status.st_mode) & 0o022:
            raise StateFolderError(
                f"other users may write to the state folder {self.path};"
                f" remove that: chmod go= {self.path}"
            )

    @property
    def place(self) -> str:
        """A name for the folder in 16 hexadecimal digits, valid until the machine restarts.

        No other process has the same name at the same time, also not one with a copy of the folder
        or on a copy of the machine.
        """
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        except OSError:
            boot = uuid.uuid4().hex  # without a boot id each process has a name of its own
        lock = os.fstat(self._lock)
        text = f"{boot.strip()} {lock.st_dev} {lock.st_ino}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def write_endpoints(self, endpoints: Mapping[str, Any]) -> None:
        """Write `endpoints.json` in one step: readers see all of it or nothing.

        The part that another living process has written stays in the file.
        """
        self._others = self._of_another()
        self._write({**self._others, **endpoints})

    def _write(self, endpoints: Mapping[str, Any]) -> None:
        with draft_of(self._file) as draft:
            draft.write_text(json.dumps(endpoints, indent=2) + "\n", encoding="utf-8")
            publish(draft, self._file)

    def remove_endpoints(self) -> None:
        """Remove this process's part from `endpoints.json`. Idempotent."""
        if self._of_another():
            return
        if _lives(self._others):
            self._write(self._others)
        else:
            self._file.unlink(missing_ok=True)
        self._others = {}

    def _of_another(self) -> Mapping[str, Any]:
        """The content of the file when its writer is another living process; else {}."""
        try:
            endpoints = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return endpoints if isinstance(endpoints, dict) and _lives(endpoints) else {}

    def release(self) -> None:
        """Release the lock, so that another daemon can use the folder."""
        os.close(self._lock)


def hold_database(path: Path) -> Callable[[], None]:
    """Lock a SQLite database for this process alone; returns the function that unlocks it.

    Two daemons on one database would both do all of its work. The lock is on a file beside the
    database: a restore replaces the file of the database itself, and SQLite has locks on it.
    Raises StateFolderError, and FileNotFoundError when the folder does not exist.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f"{target.name}.lock")
    try:
        held = _hold(lock)
        give(lock, (target if target.exists() else target.parent).stat())  # the daemon must open it
    except _InUse as holder:
        raise StateFolderError(
            f"the database {path} is in use by process {holder}; stop that one, or set another"
            " database.url: only on PostgreSQL may several daemons share a database"
        ) from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StateFolderError(
            f"the database {path} cannot be used: its lock {lock} cannot be held:"
            f" {error.strerror}; change the owner of its folder or set another database.url"
        ) from None
    return partial(os.close, held)


class _InUse(Exception):
    """Another process holds the lock. The text is its id."""


def _hold(path: Path) -> int:
    """Hold the lock on a file, with this process's id in it, until the descriptor is closed.

    Raises _InUse and OSError.
    """
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
        os.close(lock)
        raise _InUse(holder or "unknown") from None
    except OSError:
        os.close(lock)
        raise
    return lock


def _lives(endpoints: Mapping[str, Any]) -> bool:
    """Whether another, living process wrote `endpoints`."""
    pid = endpoints.get("pid")
    return isinstance(pid, int) and pid != os.getpid() and Path("/proc", str(pid)).exists()
