"""Long lists, read and encoded part by part: other requests are served between two parts.

A list is no snapshot: a row that is removed meanwhile may be in it or not, as with pages that a
caller requests one after the other. Each row is in it at most once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.errors import ServiceUnavailable
from svcd.model.wire import View
from svcd.ports.store import Page, Place, Rendered, Store, Tx
from svcd.resources._answers import encode
from svcd.resources._bodies import Disconnected
from svcd.resources._call import Call
from svcd.runtime.slices import Slices

R = TypeVar("R")

ROWS: Final = 128
"""Rows of a part; a shorter list is one part."""
_MOST_ROWS: Final = 2048
"""Rows of a later part of stored JSON; the store bounds its bytes."""
_MOST_BYTES: Final = 64 << 20
"""Bytes of all lists that are being read. Above them svcd finishes only the oldest list."""


class Lists:
    """Reads the lists of all callers, part by part in slices.

    The first part of a list does not wait when the database holds its JSON, or when it is alone.
    """

    def __init__(self, store: Store, clock: IReactorTime) -> None:
        self._store = store
        self._slices = Slices(clock)
        self._open: list[Reading] = []

    @contextmanager
    def begin(self, gone: Callable[[], bool]) -> Iterator[Reading]:
        """A list that is read in the block. gone: whether its caller has disconnected."""
        reading = Reading(self._store, self._slices, self._open, gone)
        self._open.append(reading)
        try:
            yield reading
        finally:
            self._open.remove(reading)

    async def rendered(self, call: Call, family: str) -> list[bytes]:
        """The stored JSON objects of the page that `call` asks for. family: its name in `Tx`."""
        with self.begin(call.gone) as reading:
            return await reading.rendered(
                call.page,
                lambda tx, *part: getattr(tx, family).rendered_page(call.tenant_id, *part),
            )

    async def encoded(self, call: Call, family: str, view: Callable[[Any], View]) -> list[bytes]:
        """As `rendered`, of records. view: the answer for a record."""
        with self.begin(call.gone) as reading:
            return await reading.encoded(
                call.page, lambda tx, part: getattr(tx, family).page(call.tenant_id, part), view
            )


class Reading:
    """One list of one caller. All methods raise Disconnected, and ServiceUnavailable when the
    lists exceed `_MOST_BYTES`, except for the list that began first.

    found: the JSON objects so far, in pieces; joined by commas they form the items.
    """

    def __init__(
        self, store: Store, slices: Slices, others: Sequence[Reading], gone: Callable[[], bool]
    ) -> None:
        self.found: list[bytes] = []
        self.size = 0
        self._store = store
        self._slices = slices
        self._others = others
        self._gone = gone

    async def next_turn(self) -> None:
        """Wait for the turn of the reactor in which the list may get its next part."""
        await self._slices.turn()
        self._check()

    def keep(self, piece: bytes) -> None:
        """Add some JSON objects to `found`."""
        self.found.append(piece)
        self.size += len(piece)

    async def rendered(
        self, page: Page, read: Callable[[Tx, Page, int], Awaitable[Rendered | None]]
    ) -> list[bytes]:
        """The stored JSON objects of a page. read: reads so many rows of a page."""
        self._check()
        rest: Page | None = page
        rows = ROWS
        while rest is not None:
            asked = rows_of(rest, rows)
            part = await self._store.read(_asking(read, rest, asked))
            if part is None:
                break
            self.keep(part.text)
            rest = rest_of(rest, part.rows, part.last)
            if rest is not None:
                rows = _MOST_ROWS
                await self.next_turn()
        return self.found

    async def records(
        self, page: Page, read: Callable[[Tx, Page], Awaitable[Sequence[R]]]
    ) -> AsyncIterator[Sequence[R]]:
        """The records of a page, in parts.

        A part takes ten times as long as stored JSON, so also the first part waits for its turn.
        """
        if self._slices.busy:
            await self._slices.turn()
        self._check()
        rest: Page | None = page
        while rest is not None:
            asked = rows_of(rest, ROWS)
            part = await self._store.read(_asking(read, evolve(rest, limit=asked)))
            yield part
            last = cast("Any", part[-1]) if len(part) == asked else None
            rest = rest_of(rest, asked, last and (last.created_at, last.id))
            if rest is not None:
                await self.next_turn()

    async def encoded(
        self,
        page: Page,
        read: Callable[[Tx, Page], Awaitable[Sequence[R]]],
        view: Callable[[R], View],
    ) -> list[bytes]:
        """The JSON objects of a page. view: the answer for a record."""
        async for part in self.records(page, read):
            if part:
                self.keep(items([view(record) for record in part]))
        return self.found

    def _check(self) -> None:
        if self._gone():
            raise Disconnected
        if self._others[0] is not self and sum(other.size for other in self._others) > _MOST_BYTES:
            raise ServiceUnavailable(
                "too many long lists are being read: try again, or read a part with limit", 5
            )


def _asking(read: Callable[..., Awaitable[R]], *asked: object) -> Callable[[Tx], Awaitable[R]]:
    return lambda tx: read(tx, *asked)


def items(views: Sequence[View]) -> bytes:
    """The JSON of an array's items, without the brackets."""
    return encode(views)[1:-1]


def rows_of(page: Page, rows: int) -> int:
    """The number of rows that the next part of `page` may have, `rows` at most."""
    return rows if page.limit is None else min(rows, page.limit)


def rest_of(page: Page, got: int, last: Place | None) -> Page | None:
    """The rest of `page` after a part of `got` rows; None when there are no more rows.

    last: the place of the part's last row; None when it had fewer rows.
    """
    if last is None or got == page.limit:
        return None
    return evolve(page, after=last, limit=None if page.limit is None else page.limit - got)
