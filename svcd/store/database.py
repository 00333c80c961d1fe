"""The driver port: one SQL text, transactions as functions, and the errors of both drivers.

A transaction is `await db.tx(fn)` with `fn(sql: Sql)`. Inside `fn` only methods of `sql` may be
awaited. The SQLite driver runs the coroutine to its end without returning to the reactor, and
refuses any other await. So code that would hold a PostgreSQL connection during a remote call fails
in every test run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from svcd.ports.store import DatabaseFigures

if TYPE_CHECKING:
    from svcd.store.changes import Feed

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, object]


class Conflict(Exception):
    """A unique index refused the row. args[0] names the columns or the index."""


class SchemaError(Exception):
    """The database's schema cannot be used: one line that says why and what to do."""


PART_BYTES: Final = 4_194_304
"""`Sql.joined` ends with the text that reaches so many bytes."""

Joined: TypeAlias = tuple[bytes, int, tuple[str, str] | None]
"""UTF-8 texts with commas between them, their number, and `created_at` and `id` of the last row.

None for the last row when there are no more rows.
"""


Rooms: TypeAlias = "MutableMapping[tuple[str, str, int], int]"
"""The number of rows that can surely be added, by table, tenant and limit: see Family."""


class Sql(Protocol):
    """Statements of one transaction. Parameters are named: `:name` in the text."""

    @property
    def feed(self) -> Feed: ...
    @property
    def rooms(self) -> Rooms | None:
        """The same for all transactions; None when other processes write the database too."""
        ...

    async def all(self, text: str, parameters: Parameters | None = None) -> Sequence[Row]: ...
    async def one(self, text: str, parameters: Parameters | None = None) -> Row | None: ...
    async def joined(
        self, column: str, rows: str, parameters: Parameters, limit: int
    ) -> Joined | None:
        """The texts of `column` of the first rows, by `created_at` and `id`.

        They are at most `limit`, and end with the one that reaches `PART_BYTES`. rows: `from` and
        `where` of a statement. None without rows.
        """
        ...

    async def ahead(self, text: str, parameters: Parameters) -> Row | None:
        """The row of a statement that is run before the transaction begins.

        So no other transaction conflicts with it. Later in the transaction the same statement has
        the same row. None when it comes first after the begin, or where transactions run alone.
        """
        ...

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        """The number of rows that were changed. Raises Conflict, and RuntimeError in a read."""
        ...

    async def at_commit(self, text: str, parameters: Parameters | None = None) -> None:
        """Write a row that no other statement of the transaction reads, just before the commit.

        It meets no unique index. Raises RuntimeError in a read.
        """
        ...

    async def notify(self, text: str) -> None:
        """See ports.Tx."""
        ...


class Database(Protocol):
    """A database of either driver. A database on a server is also a `Distant`.

    where: the database for people, without a password.
    """

    @property
    def where(self) -> str: ...
    async def tx(self, work: Callable[[Sql], Awaitable[T]]) -> T: ...
    async def read(self, work: Callable[[Sql], Awaitable[T]]) -> T: ...
    async def script(self, text: str) -> None:
        """Several statements in one transaction (a migration). Raises Conflict."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Distant(Protocol):
    """A database on a server, where one statement for many rows costs less than many statements."""

    def soon(self, call: Callable[[], object]) -> object:
        """Call `call` in the next turn of the reactor."""
        ...

    def announce(self, tenants: Iterable[str]) -> None:
        """Notify the other daemons soon that rows of `tenants` have changed (best effort)."""
        ...

    def figures(self) -> DatabaseFigures: ...
