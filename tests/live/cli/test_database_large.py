"""200 MB in a database: memory stays small, and what is killed or finds no room leaves no trace."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.ids import JobBinaryInternalId, TenantId
from svcd.model.job import JobBinaryInternal
from svcd.settings import Database
from svcd.store.offline.content import Sum
from svcd.store.offline.postgres import PostgresSession
from tests.contract.store.rows import at
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.processes import ROOT
from tests.support.sample import SLOW
from tests.unit.cli.databases import contents, everything, lived_in

skip = SLOW

_PIECE_BYTES = 262_144
_LARGE = 800  # pieces: 200 MB
_MEDIUM = 128
_HALF_BYTES = 4 << 20
_ROOM_BYTES = 16 << 20
_MEMORY_KIB = 160 * 1024  # an idle command has about 50
_ENDED_S = 120.0
_LOOK_S = 0.002
_INSERTING = """
select count(*) from pg_stat_activity
 where datname = current_database() and query like 'insert into pieces%'
"""
_TABLES = "select count(*) from pg_tables where schemaname = current_schema()"
_CLIENTS = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid()
"""


@functools.cache
def _state(pieces: int) -> tuple[Path, dict[str, Sum]]:
    """A state folder with a binary of that many pieces, not to be changed, and what it holds."""
    folder = Path(tempfile.mkdtemp(prefix="svcd-large-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    state = lived_in(folder / "state")
    connection = sqlite3.connect(state / "svcd.sqlite", isolation_level=None)
    bytes_of, digest = random.Random(1), hashlib.sha256()
    connection.execute("begin")
    for number in range(pieces):
        piece = bytes_of.randbytes(_PIECE_BYTES)
        digest.update(piece)
        connection.execute("insert into pieces values ('large', ?, ?)", (number, piece))
    record = JobBinaryInternal(
        id=JobBinaryInternalId("large"),
        tenant_id=TenantId("demo"),
        name="large.jar",
        datasize=pieces * _PIECE_BYTES,
        digest=digest.hexdigest(),
        created_at=at(0),
    )
    connection.execute(
        "insert into internals (id, tenant_id, name, upload_id, created_at, size, record)"
        " values ('large', 'demo', 'large.jar', 'large', ?, ?, ?)",
        (at(0), record.datasize, msgspec.json.encode(record).decode()),
    )
    connection.execute("commit")
    connection.close()
    return state, everything(state)


@frozen
class Ended:
    """code: negative for a signal. memory_kib: most that was resident."""

    code: int
    said: str
    memory_kib: int


def _peak_kib(pid: int) -> int:
    """The most memory that the program has had; what its parent has does not count."""
    try:
        found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


class _Case(SynchronousTestCase):
    pieces = _MEDIUM

    def setUp(self) -> None:
        self.large, self.rows = _state(self.pieces)
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.addCleanup(shutil.rmtree, self.folder)
        self.state = self.folder / "state"
        self.state.mkdir(mode=0o700)
        shutil.copy2(self.large / "seal.key", self.state / "seal.key")
        self.database = self.state / "svcd.sqlite"
        self.file = self.folder / "backup"

    def spawn(
        self, *arguments: str, state: Path, url: str = "", limit: Callable[[], None] | None = None
    ) -> subprocess.Popen[str]:
        flags = ["--set", f"server.state_dir={state}", "--set", f"database.url={url}"]
        child = subprocess.Popen(
            [sys.executable, "-m", "svcd", *arguments, *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limit,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self.addCleanup(child.kill)
        return child

    def end(self, child: subprocess.Popen[str]) -> Ended:
        """Wait for it; at most two minutes."""
        stop, peak = time.monotonic() + _ENDED_S, 0
        while child.poll() is None:
            peak = max(peak, _peak_kib(child.pid))
            if time.monotonic() > stop:
                child.kill()
                self.fail("it did not end")
            time.sleep(0.01)
        assert child.stdout is not None
        with child.stdout:
            return Ended(child.returncode, child.stdout.read(), peak)

    def done(self, *arguments: str, state: Path, url: str = "") -> None:
        """A command that must end well, in little memory."""
        ended = self.end(self.spawn(*arguments, state=state, url=url))
        self.assertEqual(ended.code, 0, ended.said)
        self.assertLess(ended.memory_kib, _MEMORY_KIB, arguments)

    def ended_by(
        self, number: int, child: subprocess.Popen[str], when: Callable[[], bool]
    ) -> Ended:
        """A signal as soon as the command is in the middle of its work."""
        stop = time.monotonic() + _ENDED_S
        while not when():
            self.assertIsNone(child.poll(), "it ended too early")
            self.assertLess(time.monotonic(), stop)
            time.sleep(_LOOK_S)
        child.send_signal(number)
        ended = self.end(child)
        code = -signal.SIGKILL if number == signal.SIGKILL else 130
        self.assertEqual(ended.code, code, ended)
        return ended

    def new_url(self) -> str:
        url, name = new_database()
        self.addCleanup(drop_database, name)
        return url

    def server(self, url: str) -> dict[str, Sum]:
        return contents(PostgresSession(Database(url=url), "test"))

    def drafts(self, folder: Path) -> list[Path]:
        return [p for p in folder.iterdir() if p.name.endswith(".partial")]

    def half_written(self, folder: Path) -> Callable[[], bool]:
        """Whether a draft has some megabytes by now."""

        def half() -> bool:
            try:
                return any(p.stat().st_size > _HALF_BYTES for p in self.drafts(folder))
            except FileNotFoundError:
                return False

        return half


class LargeTests(_Case):
    pieces = _LARGE

    def test_every_way_in_little_memory(self) -> None:
        """Out of a file and out of a server, into a server and into a file, and the check."""
        url = self.new_url()
        self.done("backup", str(self.file), state=self.large)
        self.assertGreater(self.file.stat().st_size, _LARGE * _PIECE_BYTES)
        self.done("restore", str(self.file), state=self.state, url=url)
        self.done("db", "check", state=self.state, url=url)
        copy = ("db", "copy", "--from", url, "--to", f"sqlite:///{self.database}")
        self.done(*copy, state=self.state)
        self.assertEqual(everything(self.state), self.rows)


class KilledTests(_Case):
    def test_backup(self) -> None:
        """No file of that name; the next one removes the draft, as SIGTERM and Ctrl-C do."""
        half = self.half_written(self.folder)
        self.ended_by(signal.SIGKILL, self.spawn("backup", str(self.file), state=self.large), half)
        self.assertEqual((self.file.exists(), len(self.drafts(self.folder))), (False, 1))
        self.done("backup", str(self.file), state=self.large)
        self.done("restore", "--verify-only", str(self.file), state=self.large)
        self.file.unlink()
        for number in (signal.SIGTERM, signal.SIGINT):
            # a shell ignores SIGINT in programs in the background; children inherit that
            child = self.spawn(
                "backup", str(self.file), state=self.large,
                limit=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )  # fmt: skip
            self.assertIn("interrupted", self.ended_by(number, child, half).said)
            self.assertEqual([path.name for path in self.folder.iterdir()], ["state"])

    def test_restore_into_a_file(self) -> None:
        """The rows that were there are there; the next one succeeds."""
        self.done("backup", str(self.file), state=self.large)
        shutil.rmtree(self.state)
        before = everything(lived_in(self.state))
        child = self.spawn("restore", "--replace", str(self.file), state=self.state)
        self.ended_by(signal.SIGKILL, child, self.half_written(self.state))
        self.assertEqual(everything(self.state), before)
        self.done("restore", "--replace", str(self.file), state=self.state)
        self.assertEqual(everything(self.state), self.rows)
        self.assertEqual(self.drafts(self.state), [])

    def test_restore_and_copy_into_a_server(self) -> None:
        """Its database is as it was: empty."""
        url = self.new_url()
        self.done("backup", str(self.file), state=self.large)
        source = self.folder / "source"
        shutil.copytree(self.large, source)
        copy = ("db", "copy", "--from", f"sqlite:///{source / 'svcd.sqlite'}", "--to", url)
        for command in (("restore", str(self.file)), copy):
            child = self.spawn(*command, state=source, url=url)
            self.ended_by(signal.SIGKILL, child, lambda: bool(execute(url, _INSERTING)[0][0]))
            self.until_left(url)
            self.assertEqual(execute(url, _TABLES), [(0,)])
        self.assertEqual(everything(source), self.rows)
        self.done(*copy, state=source, url=url)
        self.assertEqual(self.server(url), self.rows)

    def until_left(self, url: str) -> None:
        """The server has noticed that its client is gone."""
        stop = time.monotonic() + _ENDED_S
        while execute(url, _CLIENTS)[0][0]:
            self.assertLess(time.monotonic(), stop)
            time.sleep(_LOOK_S)


class FullTests(_Case):
    """No file may grow beyond 16 MiB, as on a disk that is full."""

    def limit(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (_ROOM_BYTES, _ROOM_BYTES))

    def test_backup_and_restore(self) -> None:
        """It says so and leaves nothing; a restore leaves the rows that were there."""
        ended = self.end(self.spawn("backup", str(self.file), state=self.large, limit=self.limit))
        self.assertEqual(ended.code, 1, ended.said)
        self.assertRegex(ended.said, r"cannot be written \(.*\): make room on its disk")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["state"])
        self.done("backup", str(self.file), state=self.large)
        shutil.rmtree(self.state)
        before = everything(lived_in(self.state))
        command = ("restore", "--replace", str(self.file))
        ended = self.end(self.spawn(*command, state=self.state, limit=self.limit))
        self.assertEqual(ended.code, 1, ended.said)
        self.assertIn("svcd.sqlite", ended.said)
        self.assertEqual(everything(self.state), before)
        self.assertEqual(self.drafts(self.state), [])
