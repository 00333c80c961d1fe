"""Databases with rows in every table, and the commands that work on them, run in this process."""

from __future__ import annotations

import atexit
import functools
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.store import migrations
from svcd.store.offline.content import Sum, sums
from svcd.store.offline.session import OfflineSession
from svcd.store.offline.shape import shape
from svcd.store.offline.sqlite import SqliteSession
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from tests.support import commands
from tests.support.api import now
from tests.support.commands import Said
from tests.support.database.life import live


def svcd(*arguments: str, state: Path | str, url: str = "") -> Said:
    """One command on the database of the state folder, or on that of `url`."""
    place = ("--set", f"server.state_dir={state}", "--set", f"database.url={url}")
    return commands.svcd(*arguments, *place)


@functools.cache
def _lived() -> Path:
    """A state folder in which somebody has lived; not to be changed."""
    folder = Path(tempfile.mkdtemp(prefix="svcd-life-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    database = SqliteDatabase(folder / "svcd.sqlite")
    live(database, FernetSealer(folder / "seal.key"))
    now(Deferred.fromCoroutine(database.close()))
    return folder


def lived_in(folder: str | Path) -> Path:
    """A state folder of one's own with the rows of a life in it."""
    path = Path(folder).absolute()
    shutil.copytree(_lived(), path)
    path.chmod(0o700)
    return path


def everything(state: Path) -> dict[str, Sum]:
    """Counts and digests of the file in a state folder."""
    return contents(SqliteSession(state / "svcd.sqlite", "look"))


def contents(session: OfflineSession) -> dict[str, Sum]:
    """Counts and digests; the session is closed."""
    try:
        session.snapshot()
        return sums(session, shape(migrations.newest()))
    finally:
        session.close()


def change(state: Path, text: str, *values: Any) -> None:
    """Change rows as nobody should."""
    connection = sqlite3.connect(state / "svcd.sqlite", isolation_level=None)
    try:
        if connection.execute(text, values).rowcount == 0:
            raise AssertionError(f"nothing was changed by {text}")
    finally:
        connection.close()


class DatabaseCase(SynchronousTestCase):
    """A state folder in which somebody has lived, its rows, and the name of a backup."""

    def setUp(self) -> None:
        self.state = lived_in(self.mktemp())
        self.rows = everything(self.state)
        self.file = self.state.parent / f"{self.state.name}.backup"

    def done(self, *arguments: str, state: Path | None = None, url: str = "") -> Said:
        """A command that must end with 0."""
        ran = svcd(*arguments, state=state or self.state, url=url)
        self.assertEqual((ran.code, ran.err), (0, ""), ran.out)
        return ran

    def fails(self, *arguments: str, state: Path | None = None, url: str = "") -> str:
        """What a command says that must end with 1: one line."""
        ran = svcd(*arguments, state=state or self.state, url=url)
        self.assertEqual((ran.code, ran.err.count("\n")), (1, 1), ran)
        return ran.err
