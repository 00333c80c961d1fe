# mypy: allow-untyped-calls
"""The watchers of the change feed: one reader for all watchers of a tenant.

Note: a turn. All watchers of a tenant that have read everything have the same cursor. One read gets
the changes after it, and those after the cursors of watchers that came later, on one snapshot. So
after its turn such a watcher has the cursor of the others. Each version is rendered once for each
class of roles, and each piece of the stream is encoded once for the watchers of the same kinds.
The bytes of a read are bounded for all cursors together. A watcher that is served goes to the end
of the queue, so each cursor gets its turn.

Note: cursors of frames. Each frame carries the cursor after its change, also in the middle of a
read. So a watcher whose connection breaks there neither misses nor repeats a change.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from svcd.errors import QuotaExceeded, ServiceUnavailable, SvcdError
from svcd.model.backoff import Backoff
from svcd.model.changes import KINDS, Changes, Cursor
from svcd.model.cluster_token import ClusterTokens
from svcd.model.ids import TenantId
from svcd.ports.store import Store, Tx
from svcd.resources._answers import encode
from svcd.resources._change_records import Rendered, rendered
from svcd.resources._streams import Outlet
from svcd.runtime.tasks import KeyedTasks

GAP_S: Final = 0.07
"""Shortest time between two reads of a tenant's feed: changes within it share a read."""
POLL_S: Final = 10.0
"""Time between two reads without a signal: the signal of another daemon may have been lost."""
HEARTBEAT_S: Final = 15.0
_TICK_S: Final = 5.0
"""Time between two checks of a watcher's token, and between two looks whether it reads."""
_STALL_S: Final = 60.0
"""Seconds after which a watcher that reads nothing is dropped."""
_UNCHECKED_S: Final = 60.0
"""Seconds that a watcher stays while the identity service cannot check its token."""
_ROWS: Final = 500
"""Most changes of one read for one cursor."""
_TURN_BYTES: Final = 4 << 20
"""A read for all cursors ends after about this many bytes; the next read continues."""
_CURSORS: Final = 32
"""Most cursors of one read; the others wait for the next read."""
_AT_ONCE: Final = 8
_BACKOFF: Final = Backoff(first_s=0.5, most_s=5.0)
"""Waits after failed reads, for example while the database is unreachable."""
_OLDEST_S: Final = 24 * 3600
"""Age in seconds from which svcd refuses a cursor."""
_UNUSABLE: Final = Cursor(epoch="", made_s=0, since="")

Access: TypeAlias = Callable[[], Awaitable[bool]]
"""Checks a caller's token again: whether answers to the caller mask credentials.

Raises Unauthorized, Forbidden, ServiceUnavailable.
"""


@frozen
class View:
    """The changes that a watcher sees. hides: credentials are masked."""

    hides: bool
    kinds: frozenset[str]


class Watcher:
    """One caller that watches.

    cursor: the place after the last sent change; None: it begins now. checked_at: the last time at
    which its token was valid. paused_at: begin of the time without reads, else None.
    """

    __slots__ = ("access", "checked_at", "cursor", "outlet", "paused_at", "view")

    def __init__(
        self, outlet: Outlet, view: View, access: Access, cursor: Cursor | None, now_s: float
    ) -> None:
        self.outlet = outlet
        self.view = view
        self.access = access
        self.cursor = cursor
        self.checked_at = now_s
        self.paused_at: float | None = None


class _Feed:
    """The watchers of one tenant.

    queue: the watchers, the one that was served last at the end. next_at: earliest time of the next
    read. end: ends the signals of the store.
    """

    def __init__(self, end: Callable[[], None], now_s: float) -> None:
        self.queue: dict[Watcher, None] = {}
        self.next_at = now_s
        self.end = end

    def by_cursor(self) -> dict[Cursor | None, list[Watcher]]:
        """The watchers by their cursors, in the order of the queue."""
        groups: dict[Cursor | None, list[Watcher]] = {}
        for watcher in self.queue:
            groups.setdefault(watcher.cursor, []).append(watcher)
        return groups

    def move(self, watcher: Watcher, cursor: Cursor) -> None:
        """Note that `watcher` has got the changes up to `cursor`."""
        watcher.cursor = cursor
        if watcher in self.queue:  # a watcher that has left is not in the queue
            del self.queue[watcher]
            self.queue[watcher] = None


class Feeds:
    """Serves the watchers of all tenants. most: watchers of a tenant; 0: no limit."""

    def __init__(self, store: Store, clock: IReactorTime, tokens: ClusterTokens, most: int) -> None:
        self._store = store
        self._clock = clock
        self._tokens = tokens
        self._most = most
        self._feeds: dict[TenantId, _Feed] = {}
        self._turns: KeyedTasks[TenantId] = KeyedTasks(
            clock, "changes", self._turn, limit=_AT_ONCE, backoff=_BACKOFF
        )
        self._beats: KeyedTasks[TenantId] = KeyedTasks(
            clock, "comment lines", self._beat, limit=_AT_ONCE
        )
        self._looks: KeyedTasks[TenantId] = KeyedTasks(
            clock, "slow watchers", self._drop_stalled, limit=_AT_ONCE
        )
        self._checks: KeyedTasks[Watcher] = KeyedTasks(
            clock, "watcher", self._check, limit=_AT_ONCE, failed=_end_failed
        )

    def count(self) -> int:
        """The number of watchers now."""
        return sum(len(feed.queue) for feed in self._feeds.values())

    def refuse_if_full(self, tenant_id: TenantId) -> None:
        """Raises QuotaExceeded when the tenant may have no further watcher."""
        feed = self._feeds.get(tenant_id)
        if self._most and feed is not None and len(feed.queue) >= self._most:
            raise QuotaExceeded(
                f"the tenant has {self._most} watchers at this daemon, which is the limit"
                " (limits.watchers): end some that you do not need"
            )

    def cursor_of(self, text: str) -> Cursor:
        """The cursor that a caller has sent; an unusable cursor is made one of no database."""
        cursor = Cursor.parse(text)
        if cursor is None or cursor.made_s < self._clock.seconds() - _OLDEST_S:
            return _UNUSABLE
        return cursor

    def begin(self, tenant_id: TenantId, watcher: Watcher) -> None:
        """Serve `watcher`, from its cursor on."""
        feed = self._feeds.get(tenant_id)
        if feed is None:
            end = self._store.on_change(tenant_id, partial(self._wake, tenant_id))
            feed = self._feeds[tenant_id] = _Feed(end, self._clock.seconds())
            self._beats.wake(tenant_id, HEARTBEAT_S)
            self._looks.wake(tenant_id, _TICK_S)
        feed.queue[watcher] = None
        self._checks.wake(watcher, _TICK_S)
        self._wake(tenant_id)

    def left(self, tenant_id: TenantId, watcher: Watcher) -> None:
        """`watcher` has ended."""
        feed = self._feeds[tenant_id]
        del feed.queue[watcher]
        self._checks.rest(watcher)
        if not feed.queue:
            del self._feeds[tenant_id]
            feed.end()
            self._turns.rest(tenant_id)
            self._beats.rest(tenant_id)
            self._looks.rest(tenant_id)

    async def stop(self) -> None:
        """End all reads. The door has ended the watchers before."""
        await self._turns.stop()
        await self._beats.stop()
        await self._looks.stop()
        await self._checks.stop()

    def _wake(self, tenant_id: TenantId) -> None:
        feed = self._feeds.get(tenant_id)
        if feed is not None:
            self._turns.wake(tenant_id, max(0.0, feed.next_at - self._clock.seconds()))

    # ---- reading ----

    async def _turn(self, tenant_id: TenantId) -> float | None:
        feed = self._feeds.get(tenant_id)
        if feed is None:
            return None
        wait_s = feed.next_at - self._clock.seconds()
        if wait_s > 0:
            return wait_s
        groups = feed.by_cursor()
        ready = [c for c, group in groups.items() if not all(w.outlet.paused for w in group)]
        if not ready:
            return GAP_S
        asked = {cursor: groups[cursor] for cursor in ready[:_CURSORS]}
        hides = {watcher.view.hides for group in asked.values() for watcher in group}
        here, parts, texts = await self._read(tenant_id, list(asked), hides, self._clock.seconds())
        behind = _deliver(feed, asked, here, parts, texts)
        done_s = self._clock.seconds()
        feed.next_at = done_s if behind else done_s + GAP_S
        return 0.0 if behind else GAP_S if len(asked) < len(groups) else POLL_S

    async def _read(
        self,
        tenant_id: TenantId,
        cursors: Sequence[Cursor | None],
        hides: Iterable[bool],
        now_s: float,
    ) -> tuple[Cursor, Mapping[Cursor, Changes | None], Mapping[bool, Rendered]]:
        """The present cursor, the changes after each cursor, and their JSON by class.

        The changes are None for an unusable cursor, and missing for a cursor beyond the bytes.
        """

        async def read(
            tx: Tx,
        ) -> tuple[Cursor, Mapping[Cursor, Changes | None], Mapping[bool, Rendered]]:
            here = await tx.changes.here(now_s)
            parts: dict[Cursor, Changes | None] = {}
            texts: dict[bool, dict[tuple[str, str], bytes]] = {hide: {} for hide in hides}
            left = _TURN_BYTES
            for cursor in cursors:
                if cursor is None or left <= 0:
                    continue
                part = await tx.changes.since(tenant_id, cursor, here, _ROWS)
                if part is not None:
                    part, size = await rendered(tx, tenant_id, cursor, part, texts, left)
                    left -= size
                parts[cursor] = part
            for (kind, id_), text in texts.get(False, {}).items():
                if kind == "clusters":
                    texts[False][kind, id_] = self._tokens.shown(tenant_id, text)
            return here, parts, texts

        return await self._store.read(read)

    # ---- tokens and silence ----

    async def _beat(self, tenant_id: TenantId) -> float | None:
        """Write a comment line to all watchers, so that a connection that broke is noticed."""
        feed = self._feeds.get(tenant_id)
        if feed is None:
            return None
        for cursor, group in feed.by_cursor().items():
            beat = b":\n%b\n" % _id(cursor)
            for watcher in group:
                watcher.outlet.write(beat)
        return HEARTBEAT_S

    async def _drop_stalled(self, tenant_id: TenantId) -> float | None:
        """Drop the watchers that do not read. No answer of the identity service delays it."""
        feed = self._feeds.get(tenant_id)
        if feed is None:
            return None
        now_s = self._clock.seconds()
        for watcher in list(feed.queue):
            if not watcher.outlet.paused:
                watcher.paused_at = None
            elif watcher.paused_at is None:
                watcher.paused_at = now_s
            elif now_s - watcher.paused_at >= _STALL_S:
                watcher.outlet.abort()
        return _TICK_S

    async def _check(self, watcher: Watcher) -> float | None:
        """End a watcher whose token is not valid any more, or cannot be checked for a while."""
        outlet = watcher.outlet
        if not outlet.open:
            return None
        try:
            hides = await watcher.access()
        except ServiceUnavailable as error:
            if self._clock.seconds() - watcher.checked_at >= _UNCHECKED_S:
                outlet.end(bye(error.message))
        except SvcdError as error:
            outlet.end(bye(error.message))
        else:
            watcher.checked_at = self._clock.seconds()
            if hides != watcher.view.hides:
                watcher.view = evolve(watcher.view, hides=hides)
        return _TICK_S if outlet.open else None


def _end_failed(watcher: Watcher, count: int, incident: str, error: Exception) -> None:
    """End a watcher whose check has failed: its token may not be valid."""
    watcher.outlet.end(bye(f"internal error, incident {incident}"))


_LOST: Final = "the cursor is too old, or of another database: list anew"


def bye(reason: str) -> bytes:
    """The last piece of a stream."""
    return _frame("bye", {"reason": reason}, None)


def _deliver(
    feed: _Feed,
    asked: Mapping[Cursor | None, Sequence[Watcher]],
    here: Cursor,
    parts: Mapping[Cursor, Changes | None],
    texts: Mapping[bool, Rendered],
) -> bool:
    """Send the changes of a read to the watchers `asked`, and move them to their next cursors.

    Watchers beyond the bytes of the read, or whose roles have changed since it began, keep their
    cursors and come first in the next read. Returns whether a watcher has more to read.
    """
    behind = False
    for cursor, group in asked.items():
        if cursor is not None and cursor not in parts:
            behind = True
            continue
        part = None if cursor is None else parts[cursor]
        after = here if part is None else part.cursor
        behind = behind or after != here
        pieces: dict[View, bytes | None] = {}
        for watcher in group:
            view = watcher.view
            if view.hides not in texts:
                behind = True
                continue
            if view not in pieces:
                pieces[view] = _piece(cursor, part, here, texts[view.hides], view)
            feed.move(watcher, after)
            piece = pieces[view]
            if piece is not None:
                watcher.outlet.write(piece)
    return behind


def _frame(event: str, data: Mapping[str, object], cursor: Cursor | None) -> bytes:
    return b"%bevent: %b\ndata: %b\n\n" % (_id(cursor), event.encode(), encode(data))


def _id(cursor: Cursor | None) -> bytes:
    return b"" if cursor is None else b"id: %b\n" % cursor.text.encode()


def _piece(
    start: Cursor | None, part: Changes | None, here: Cursor, texts: Rendered, view: View
) -> bytes | None:
    """The bytes for a watcher at `start` about the changes `part`; None when `view` shows none."""
    if start is None:
        return _frame("hello", {}, here)
    if part is None:
        return _frame("reset", {"reason": _LOST}, here)
    frames = []
    shown = [change for change in part.changes if change.kind in view.kinds]
    for change in shown:
        text = texts.get((change.kind, change.id))
        if text is None:  # the event has been trimmed
            continue
        last = change is shown[-1]
        cursor = part.cursor if last else start.at(change, part.until)
        word = KINDS[change.kind].encode()
        frames.append(b"%bevent: %b\ndata: %b\n\n" % (_id(cursor), word, text))
    return b"".join(frames) if frames else None
