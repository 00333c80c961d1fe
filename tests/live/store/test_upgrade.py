"""The kept dumps of every schema, upgraded on PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from twisted.trial.unittest import SynchronousTestCase

from svcd.ports.store import Tx
from svcd.settings import Database
from svcd.store.offline.postgres import PostgresSession
from svcd.store.offline.session import Session
from svcd.store.postgres import PostgresDatabase
from svcd.store.sealer import FernetSealer
from svcd.store.store import SqlStore
from tests.contract.store.rows import at
from tests.live.store.test_postgres import drive, own_reactor
from tests.support.database.dump import load_postgresql, seal_key
from tests.support.database.postgres_server import drop_database, execute, new_database
from tests.support.database.upgraded import UpgradeContract, add_tests

T = TypeVar("T")


class PostgresUpgradeTests(SynchronousTestCase, UpgradeContract):
    """A database of its own for each."""

    def opened(self, number: int, also: str = "") -> int:
        self.url, name = new_database()
        self.addCleanup(drop_database, name)
        folder = Path(self.mktemp())
        folder.mkdir()
        self.sealer = FernetSealer(seal_key(folder))
        load_postgresql(number, self.url)
        if also:
            execute(self.url, also)
        database = PostgresDatabase(own_reactor(), Database(url=self.url), self.fail)
        self.store = SqlStore(database, self.sealer)
        self.addCleanup(lambda: drive(self.store.close()))

        async def opened() -> int:
            await database.open()
            return await self.store.open(at(0))

        return drive(opened())

    def now(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        return drive(self.store.tx(work))

    def checked(self) -> tuple[Session, FernetSealer]:
        return PostgresSession(Database(url=self.url), "check"), self.sealer


add_tests(PostgresUpgradeTests)
