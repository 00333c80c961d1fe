"""The driver port: one SQL text, transactions as functions, and the errors they give.

A transaction is `await db.tx(fn)` with `fn(sql: Sql)`. Inside it only methods of `sql` may be
awaited: the SQLite driver runs the coroutine to its end without giving control back, and refuses
anything else, so code that would hold a PostgreSQL connection over a remote call fails in every
test run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from attrs import frozen

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Parameters: TypeAlias = Mapping[str, object]


Refused: TypeAlias = "Callable[[Conflict], Exception]"


class Conflict(Exception):
    """A uniqueness rule refused the row. args[0] names the columns or the index."""


class SchemaError(Exception):
    """The database's schema cannot be used: one line that says why and what to do."""


class Sql(Protocol):
    """Statements of one transaction. Parameters are named: `:name` in the text."""

    async def all(self, text: str, parameters: Parameters | None = None) -> Sequence[Row]: ...
    async def one(self, text: str, parameters: Parameters | None = None) -> Row | None: ...
    async def joined(
        self, column: str, text: str, parameters: Parameters | None = None
    ) -> bytes | None:
        """The texts of that column of all rows, in their order, with commas between, as UTF-8.

        None without rows. For many and large ones it costs a fraction of `all`.
        """
        ...

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        """The number of rows that were changed. Raises Conflict."""
        ...

    async def later(
        self, text: str, parameters: Parameters | None = None, refused: Refused | None = None
    ) -> None:
        """A write that is sent with the next statement, or with the transaction's end.

        A Conflict is raised there, as what `refused` makes of it.
        """
        ...

    async def tell(self, text: str) -> None:
        """See ports.Tx."""
        ...


class Database(Protocol):
    """A database of either driver. One whose answers have to be waited for is a `Distant` too."""

    async def tx(self, work: Callable[[Sql], Awaitable[T]]) -> T: ...
    async def read(self, work: Callable[[Sql], Awaitable[T]]) -> T: ...
    async def script(self, text: str) -> None:
        """Several statements in one transaction (a migration). Raises Conflict."""
        ...

    async def close(self) -> None: ...


@frozen(kw_only=True)
class DatabaseFigures:
    """The connections of a database now, and what happened to them since the start.

    busy, idle, most: connections; waiting: askers. opened, lost: connections; refused: askers that
    got none; repeated: transactions begun again after a conflict; waited_s: all waits together.
    """

    busy: int
    idle: int
    most: int
    waiting: int
    reachable: bool
    opened: int
    lost: int
    refused: int
    repeated: int
    waits: int
    waited_s: float


@runtime_checkable
class Distant(Protocol):
    """A database behind a connection, where one statement for many costs less than many."""

    def soon(self, call: Callable[[], object]) -> object:
        """Have `call` called in the next turn of the reactor."""
        ...

    def figures(self) -> DatabaseFigures: ...
