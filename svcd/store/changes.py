"""The change feed of all tenants: the families write it in the transaction of the row.

Note: the order of commits. A reader must not pass a change that is committed later. SQLite commits
one transaction after the other, so a counter gives the numbers, and the newest number is the
position of a reader. PostgreSQL runs transactions beside each other, and a younger one may commit
first. So a change has the number of its transaction, and the position of a reader is a snapshot: it
names all transactions that the reader has seen. The next read asks for the changes of all others.
No reader waits for a slow transaction, and transactions share no row.

Note: the epoch. Positions of another database mean nothing, so a cursor carries the epoch of its
database. `svcd restore` and `svcd db copy` make the tables anew, and the next start writes a new
epoch. PostgreSQL adds what a restore of its files, a promoted standby and another server change.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Final

from attrs import evolve, frozen
from twisted.internet.defer import Deferred

from svcd.model.changes import Change, Changes, Cursor, Word
from svcd.model.ids import timestamp
from svcd.store.database import Sql

KEPT_S: Final = 25 * 3600.0
"""How long deletions and events stay in the feed: an hour longer than a cursor is accepted."""

_NOTE: Final = """
insert into changes (kind, id, tenant_id, number, first, version, deleted, expires)
values (:kind, :id, :tenant_id, {number}, case when :created = 1 then {number} else 0 end,
        :version, :deleted, :expires)
on conflict (kind, id) do update
   set number = excluded.number, version = excluded.version, deleted = excluded.deleted,
       expires = excluded.expires
 where changes.deleted = 0
"""
_BEGIN: Final = """
insert into feed (id, epoch, number) values (1, :epoch, 0) on conflict (id) do nothing
"""
_PRUNE: Final = """
delete from changes
 where expires = 1 and number < (select coalesce(max(number), 0) from feed_marks where at <= :at)
"""
_PRUNE_MARKS: Final = "delete from feed_marks where at <= :at"


@frozen(eq=False)
class Feed:
    """The expressions for change numbers and positions in one database's SQL.

    number: of the next change. bump: a statement before each change, or "". position: now, as text.
    mark: a number that no later change goes below. epoch: the part of the epoch that the database
    knows. later: condition for a `{column}` whose number comes after the position `{position}`.
    usable: whether a position that a caller gave is well-formed and not beyond the present one.
    """

    number: str
    bump: str
    position: str
    mark: str
    epoch: str
    later: str
    usable: Callable[[str, str], bool]


@functools.cache
def _noting(feed: Feed) -> str:
    return _NOTE.replace("{number}", feed.number)


@functools.cache
def _part(feed: Feed, rest: bool) -> str:
    """The statement for a part of the feed. rest: of one that was read up to a key."""
    created = feed.later.format(column="first", position=":since")
    where = feed.later.format(column="number", position=":since")
    if rest:
        until = feed.later.format(column="number", position=":until")
        where += f" and not ({until}) and (number, kind, id) > (:number, :kind, :id)"
    return (
        f"select number, kind, id, version, deleted, case when {created} then 1 else 0 end"
        f" from changes where tenant_id = :tenant_id and {where}"
        " order by number, kind, id limit :limit"
    )


class Journal:
    """The feed in one transaction. Implements ports.ChangeRows.

    tenants: those whose rows the transaction has changed.
    """

    __slots__ = ("_sql", "tenants")

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.tenants: set[str] = set()

    async def note(
        self, tenant_id: str, kind: str, id_: str, version: int, word: Word, expires: bool = False
    ) -> None:
        """Add a change to the feed. A deleted record stays deleted."""
        self.tenants.add(tenant_id)
        feed = self._sql.feed
        if feed.bump:
            await self._sql.later(feed.bump)
        gone = word == "deleted"
        values = {
            "kind": kind,
            "id": id_,
            "tenant_id": tenant_id,
            "version": version,
            "created": int(word == "created"),
            "deleted": int(gone),
            "expires": int(gone or expires),
        }
        await self._sql.later(_noting(feed), values)

    async def here(self, now_s: float) -> Cursor:
        feed = self._sql.feed
        row = await self._sql.one(
            f"select epoch || {feed.epoch}, {feed.position} from feed where id = 1"
        )
        if row is None:
            raise RuntimeError("the feed has no epoch: the store was not opened")
        return Cursor(epoch=str(row[0]), made_s=int(now_s), since=str(row[1]))

    async def since(
        self, tenant_id: str, cursor: Cursor, here: Cursor, limit: int
    ) -> Changes | None:
        if cursor.epoch != here.epoch or not self._usable(cursor, here.since):
            return None
        values = {"tenant_id": tenant_id, "since": cursor.since, "limit": limit}
        rest = cursor.after is not None
        if cursor.after is not None:
            number, kind, id_ = cursor.after
            values |= {"until": cursor.until, "number": number, "kind": kind, "id": id_}
        rows = await self._sql.all(_part(self._sql.feed, rest), values)
        changes = tuple(_change(*row) for row in rows)
        until = cursor.until or here.since
        end = here if until == here.since else evolve(cursor, since=until, until="", after=None)
        if len(rows) == limit:
            end = cursor.at(changes[-1], until)
        return Changes(changes=changes, until=until, cursor=end, whole=end == here)

    def _usable(self, cursor: Cursor, here: str) -> bool:
        usable = self._sql.feed.usable
        return usable(cursor.since, here) and (not cursor.until or usable(cursor.until, here))


def _change(number: int, kind: str, id_: str, version: int, deleted: int, created: int) -> Change:
    word: Word = "deleted" if deleted else "created" if created else "updated"
    return Change(number=number, kind=kind, id=id_, version=version, word=word)


async def begin(sql: Sql, at: str) -> None:
    """Give the database an epoch, when it has none. at: the time now."""
    await sql.run(_BEGIN, {"epoch": at})


async def prune(sql: Sql, now_s: float) -> None:
    """Delete what has expired from the feed. Call it about once an hour."""
    await sql.run(
        f"insert into feed_marks (at, number) values (:at, {sql.feed.mark})"
        " on conflict (at) do nothing",
        {"at": timestamp(now_s)},
    )
    old = {"at": timestamp(now_s - KEPT_S)}
    await sql.run(_PRUNE, old)
    await sql.run(_PRUNE_MARKS, old)


class Signals:
    """Calls those who wait for a change of a tenant."""

    def __init__(self) -> None:
        self._calls: dict[str, dict[object, Callable[[], None]]] = {}

    def on(self, tenant_id: str, call: Callable[[], None]) -> Callable[[], None]:
        """`call` is called at each change from now on, until the returned function is called."""
        key = object()
        self._calls.setdefault(tenant_id, {})[key] = call

        def end() -> None:
            calls = self._calls.get(tenant_id, {})
            calls.pop(key, None)
            if not calls:
                self._calls.pop(tenant_id, None)

        return end

    def next(self, tenant_id: str) -> Deferred[None]:
        """Fires at the next change. It may be cancelled."""
        changed: Deferred[None] = Deferred(lambda _: end())

        def fire() -> None:
            end()
            changed.callback(None)

        end = self.on(tenant_id, fire)
        return changed

    def fire(self, tenants: Iterable[str]) -> None:
        """The rows of `tenants` have changed."""
        for tenant_id in tenants:
            for call in list(self._calls.get(tenant_id, {}).values()):
                call()
