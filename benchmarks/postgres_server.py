"""A PostgreSQL server of our own: for the benchmarks, and for the tests that use it too.

Its data lie in a folder of its own, it listens on a UNIX socket there, and it ends with the process
that started it. It never touches a server of the machine.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

try:
    import psycopg2
except ImportError:
    psycopg2 = None

USER: Final = "svcd"
_READY_S: Final = 30.0
_SET_DEATH_SIGNAL: Final = 1
FAST: Final = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60")
"""For tests: nothing of it has to outlive the machine."""


class NotInstalled(Exception):
    """What is missing and the command that installs it."""


def binaries() -> Path | None:
    """The newest server of this machine."""
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3])
    )
    if found:
        return found[-1].parent
    named = shutil.which("postgres")
    return Path(named).resolve().parent if named else None


class PostgresServer:
    """One server with its data. It can be stopped and started again.

    settings: of postgresql.conf, read at each start. place: where its folder is made. port: also
    of its socket; it counts from the next start.
    """

    def __init__(self, settings: Sequence[str] = FAST, place: Path | None = None) -> None:
        """Raises NotInstalled."""
        if psycopg2 is None:
            raise NotInstalled("psycopg2 is not installed: pip install 'svcd[postgresql]'")
        where = binaries()
        if where is None:
            raise NotInstalled("PostgreSQL is not installed: apt-get install postgresql")
        self._bin = where
        self._as = _unprivileged()
        self.settings = settings
        self.port = 5432
        self.folder = Path(tempfile.mkdtemp(prefix="svcd-pg-", dir=place))
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.own(self.folder)
            self._run("initdb", "-D", str(self.data), "-U", USER, "--auth=trust", "--no-sync",
                      "--encoding=UTF8", "--locale=C", "--no-instructions")  # fmt: skip
            self.start()
        except BaseException:
            self.remove()
            raise

    @property
    def data(self) -> Path:
        """Its data folder."""
        return self.folder / "data"

    @property
    def log(self) -> str:
        """All that it has said."""
        return (self.folder / "log").read_text(errors="replace")

    def own(self, path: Path) -> None:
        """Give a file or folder to the user as whom the server runs."""
        if self._as:
            os.chown(path, self._as["user"], self._as["group"])

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = [
            f"-c{each}" for each in ("listen_addresses=", f"port={self.port}", *self.settings)
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self.data), "-k", str(self.folder),
                 *settings],
                stdout=log, stderr=log, start_new_session=True, cwd="/",
                preexec_fn=_end_with_us, **self._as,
            )  # fmt: skip
        end = time.monotonic() + _READY_S
        while True:
            try:
                self.execute("select 1")
                return
            except psycopg2.OperationalError:
                if time.monotonic() > end or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self) -> None:
        """End it at once, cutting all connections."""
        if self._process is not None:
            self.thaw()
            self._process.send_signal(signal.SIGINT)
            self._process.wait(_READY_S)
            self._process = None

    def freeze(self) -> None:
        """Stop all its processes where they are."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """End it, and its data."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        folder = quote(str(self.folder), safe="")
        return f"postgresql://{USER}@/{database}?host={folder}&port={self.port}"

    def execute(self, text: str, database: str = "postgres") -> list[Any]:
        """The rows of one statement, outside of a transaction."""
        return execute(self.url(database), text)

    def cpu_s(self) -> float:
        """Processor time of all its present processes. Source: clock_getcpuclockid(3)."""
        total = 0.0
        for pid in self._pids():
            try:
                total += time.clock_gettime_ns((~pid << 3) | 2) / 1e9
            except OSError:  # it has just ended
                continue
        return total

    def _signal(self, number: int) -> None:
        for pid in self._pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def _pids(self) -> list[int]:
        if self._process is None:
            return []
        main = self._process.pid
        try:
            children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
        except FileNotFoundError:
            return []
        return [main, *map(int, children)]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._bin / program), *arguments],
            check=True, stdout=subprocess.DEVNULL, cwd="/", **self._as,
        )  # fmt: skip


def execute(url: str, text: str) -> list[Any]:
    """The rows of one statement on a connection of its own."""
    connection = psycopg2.connect(url, connect_timeout=5)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(text)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def _end_with_us() -> None:
    """In the server's process: it ends when we are killed."""
    ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGINT)


def _unprivileged() -> dict[str, Any]:
    """As whom the server runs: root may not."""
    if os.getuid() != 0:
        return {}
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
