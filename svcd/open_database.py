"""Opens the database of a daemon: SQLite, its own PostgreSQL, or a shared PostgreSQL.

Note: alone or shared. The embedded cloud is a part of its daemon, and no other daemon can control
its machines. So daemons can share a PostgreSQL database when their cloud is an OpenStack. A daemon
with an embedded cloud has its own database.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from svcd.ports.store import Sealer
from svcd.runtime.clock import steady_seconds, wall_seconds
from svcd.runtime.state_dir import StateFolder
from svcd.settings import Limits, Settings
from svcd.store.database import Database
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore

if TYPE_CHECKING:
    from svcd.store.lease.keeper import LeaseKeeper


@frozen
class Opened:
    """An opened database. keeper: keeps the lease of a shared database, None otherwise."""

    database: Database
    keeper: LeaseKeeper | None = None

    def store(self, sealer: Sealer, limits: Limits) -> SqlStore:
        """The store of the rows. The caller opens it."""
        if self.keeper is None:
            return SqlStore(self.database, sealer, limits=limits)
        from svcd.store.lease.keeper import require  # here: its libraries are an extra

        return SqlStore(self.database, sealer, self.keeper.holding.name, require, limits)


async def open_database(
    reactor: Any, settings: Settings, folder: StateFolder, taken: Callable[[str], None]
) -> Opened:
    """Open the database of `database.url`, which `preflight` has checked. Raises SchemaError.

    taken: called with a line of text when another daemon has taken the database for itself.
    """
    url = settings.database.url
    if url.startswith("postgres"):
        from svcd.store.postgres import PostgresDatabase, Sharing  # here: as above

        sharing = None
        if settings.cloud.kind == "openstack":
            from svcd.store.lease.keeper import Me

            about = f"{socket.gethostname()}, process {os.getpid()}"
            sharing = Sharing(Me(f"svcd-{folder.place}", about), steady_seconds, wall_seconds)
        shared = PostgresDatabase(reactor, settings.database, taken, sharing=sharing)
        await shared.open()
        return Opened(shared, shared.keeper)
    path = Path(url.removeprefix("sqlite:///")) if url else folder.path / "svcd.sqlite"
    return Opened(_sqlite(path, reactor))


def _sqlite(path: Path, clock: IReactorTime) -> SqliteDatabase:
    with contextlib.suppress(OSError):  # opening the database reports the fault
        path.touch(0o600)  # SQLite itself makes the file readable for all users
    return SqliteDatabase(path, clock=clock)
