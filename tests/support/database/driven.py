"""The PostgreSQL driver for tests on a virtual clock: each call runs to its end on its own reactor.

It is the real driver with its pool, locks and transactions; only the waiting is done in place.
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Awaitable, Callable
from typing import TypeVar

from svcd.settings import Database as DatabaseSettings
from svcd.store import migrations
from svcd.store.database import Sql
from svcd.store.offline.shape import shape
from svcd.store.postgres import PostgresDatabase
from tests.live.store.test_postgres import drive, own_reactor
from tests.support.database.postgres_server import drop_database, new_database

T = TypeVar("T")


class DrivenPostgres:
    """Implements `Database`. `close` does nothing: it is used again by the next test."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.where = database.where

    async def tx(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        return drive(self._database.tx(work))

    async def read(self, work: Callable[[Sql], Awaitable[T]]) -> T:
        return drive(self._database.read(work))

    async def script(self, text: str) -> None:
        drive(self._database.script(text))

    async def close(self) -> None:
        """See the class."""

    def empty(self) -> None:
        """Remove all rows."""
        drive(self._database.tx(_empty))


@functools.cache
def driven() -> DrivenPostgres:
    """The one of this process, with the newest schema. Raises SkipTest without a server."""
    url, name = new_database()
    atexit.register(drop_database, name)
    database = PostgresDatabase(own_reactor(), DatabaseSettings(url=url), _taken)

    async def opened() -> None:
        await database.open()
        await migrations.migrate(database, "then")

    drive(opened())
    atexit.register(lambda: drive(database.close()))
    return DrivenPostgres(database)


def _taken(reason: str) -> None:
    raise AssertionError(reason)


async def _empty(sql: Sql) -> None:
    for table in reversed(shape(migrations.newest()).every):
        if table.name != "schema_version":
            await sql.run(f"delete from {table.name}")
