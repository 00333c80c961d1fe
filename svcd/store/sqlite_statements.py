# mypy: allow-untyped-calls
"""The statements of a transaction on SQLite, and SQLite's dialect of the common SQL text."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

from svcd.errors import InvalidData
from svcd.store.changes import Feed
from svcd.store.database import (
    PART_BYTES,
    Conflict,
    Joined,
    Parameters,
    Rooms,
    Row,
)

_LARGE_BYTES = 65_536
"""A larger value is refused while the disk has less than `RESERVE_BYTES` left."""
RESERVE_BYTES: Final = 64 * 1024 * 1024
"""Disk space kept free for the daemon's own rows."""
_TOKENS = {
    "{blob}": "blob",
    "{c}": "",
    "{bigint}": "integer",
    "{sqlite}": "",
}

_POSITION = re.compile(r"[0-9]{1,18}")


def usable(position: str, here: str) -> bool:
    """See Feed."""
    return bool(_POSITION.fullmatch(position)) and int(position) <= int(here)


FEED = Feed(
    number="(select number from feed)",
    bump="update feed set number = number + 1",
    position="cast(number as text)",
    mark="(select number + 1 from feed)",
    epoch="''",
    later="{column} > cast({position} as integer)",
    unsure="{column} > cast({position} as integer)",
    usable=usable,
)


def translate(text: str) -> str:
    """The common SQL text in SQLite's dialect."""
    for token, word in _TOKENS.items():
        text = text.replace(token, word)
    return text


def parted(script: str) -> Iterator[str]:
    """The statements of a script of the common SQL, which end with `;` at the end of a line."""
    for statement in re.split(r";\s*\n", translate(script)):
        if statement.strip():
            yield statement


class Statements:
    """Implements `Sql`; each await returns at once. writes: not in a read."""

    feed = FEED

    def __init__(self, connection: sqlite3.Connection, free_bytes: Callable[[], int]) -> None:
        self._connection = connection
        self._free_bytes = free_bytes
        self.rooms: Rooms = {}
        self.writes = False

    def _execute(self, text: str, parameters: Parameters | None) -> sqlite3.Cursor:
        for value in parameters.values() if parameters else ():
            if isinstance(value, str) and "\0" in value:  # PostgreSQL cannot store it
                raise InvalidData("a text cannot be stored: it holds the character NUL")
        try:
            return self._connection.execute(text, cast("dict[str, Any]", parameters or {}))
        except sqlite3.IntegrityError as error:
            raise Conflict(str(error).split(": ", 1)[-1]) from error

    async def all(self, text: str, parameters: Parameters | None = None) -> Sequence[Row]:
        return self._execute(text, parameters).fetchall()

    async def joined(
        self, column: str, rows: str, parameters: Parameters, limit: int
    ) -> Joined | None:
        """See Sql. The cursor reads no row before it is asked for, and a blob is not decoded."""
        text = f"select cast({column} as blob), created_at, id {rows} order by created_at, id"
        cursor = self._execute(text, parameters)
        texts: list[bytes] = []
        size, last = 0, None
        for record, created_at, id_ in cursor:
            texts.append(record)
            size += len(record)
            if len(texts) == limit or size >= PART_BYTES:
                last = created_at, id_
                break
        cursor.close()
        return (b",".join(texts), len(texts), last) if texts else None

    async def one(self, text: str, parameters: Parameters | None = None) -> Row | None:
        return cast("Row | None", self._execute(text, parameters).fetchone())

    async def ahead(self, _text: str, _parameters: Parameters) -> Row | None:
        """None: transactions run alone."""
        return None

    async def notify(self, text: str) -> None:
        """Do nothing: no other daemon uses the database."""

    async def at_commit(self, text: str, parameters: Parameters | None = None) -> None:
        """See Sql. The delay would save nothing here."""
        await self.run(text, parameters)

    async def run(self, text: str, parameters: Parameters | None = None) -> int:
        if not self.writes:
            raise RuntimeError("a read must not write")
        if parameters is not None and any(
            isinstance(parameter, bytes) and len(parameter) > _LARGE_BYTES
            for parameter in parameters.values()
        ):
            free = self._free_bytes()
            if free < RESERVE_BYTES:
                raise sqlite3.OperationalError(
                    f"its disk has {free >> 20} MiB left, and svcd keeps {RESERVE_BYTES >> 20} MiB"
                    " free: make room"
                )
        return self._execute(text, parameters).rowcount
