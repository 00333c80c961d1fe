"""Long lists, read and encoded part by part: other requests are served between two parts.

A list is no snapshot: a row that is removed meanwhile may be in it or not, as with pages that a
caller requests one after the other. Each row is in it at most once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar, cast

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.model.wire import View
from svcd.ports.store import Page, Place, Rendered, Store, Tx
from svcd.resources._answers import encode
from svcd.runtime.tasks import Turns

R = TypeVar("R")

ROWS: Final = 128
"""Rows of a part; a shorter list is one part."""
_MOST_ROWS: Final = 512
_PART_BYTES: Final = 1_048_576
"""A part of stored JSON after the first has about so many bytes."""


class Lists:
    """Reads the lists of all callers: in each turn of the reactor one of them gets its next part.

    The first part of a list does not wait when the database holds its JSON, or when it is alone.
    """

    def __init__(self, store: Store, clock: IReactorTime) -> None:
        self._store = store
        self._turns = Turns(clock)

    async def next_turn(self) -> None:
        """Wait for the turn of the reactor in which the caller may do its next part."""
        await self._turns.next()

    async def rendered(
        self, page: Page, read: Callable[[Tx, Page], Awaitable[Rendered | None]]
    ) -> list[bytes]:
        """The stored JSON objects of a page, in pieces; joined by commas they form the items."""
        found: list[bytes] = []
        rest: Page | None = page
        rows = ROWS
        while rest is not None:
            part = await self._part(read, part_of(rest, rows))
            if part is None:
                break
            found.append(part.text)
            rest = rest_of(rest, rows, part.rows, part.last)
            if rest is not None:
                rows = max(1, min(_MOST_ROWS, _PART_BYTES * part.rows // len(part.text)))
                await self._turns.next()
        return found

    async def records(
        self, page: Page, read: Callable[[Tx, Page], Awaitable[Sequence[R]]]
    ) -> AsyncIterator[Sequence[R]]:
        """The records of a page, in parts.

        A part takes ten times as long as stored JSON, so the first one waits for others too.
        """
        if self._turns.busy:
            await self._turns.next()
        rest: Page | None = page
        while rest is not None:
            part = await self._part(read, part_of(rest, ROWS))
            yield part
            if not part:
                return
            last = cast("Any", part[-1])
            rest = rest_of(rest, ROWS, len(part), (last.created_at, last.id))
            if rest is not None:
                await self._turns.next()

    async def encoded(
        self,
        page: Page,
        read: Callable[[Tx, Page], Awaitable[Sequence[R]]],
        view: Callable[[R], View],
    ) -> list[bytes]:
        """The JSON objects of a page, as `rendered`. view: the answer for a record."""
        parts = self.records(page, read)
        return [items([view(each) for each in part]) async for part in parts if part]

    async def _part(self, read: Callable[[Tx, Page], Awaitable[R]], part: Page) -> R:
        return await self._store.read(lambda tx: read(tx, part))


def items(views: Sequence[View]) -> bytes:
    """The JSON of an array's items, without the brackets."""
    return encode(views)[1:-1]


def part_of(page: Page, rows: int) -> Page:
    """The first `rows` rows of `page`."""
    return evolve(page, limit=rows if page.limit is None else min(rows, page.limit))


def rest_of(page: Page, asked: int, got: int, last: Place) -> Page | None:
    """What is left of `page` after a part of `got` rows; None when there are no more.

    asked: the rows that the part could have. last: the place of its last row.
    """
    if got < asked or got == page.limit:
        return None
    return evolve(page, after=last, limit=None if page.limit is None else page.limit - got)
