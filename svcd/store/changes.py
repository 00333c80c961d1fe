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

Note: cuts. Deletions and events of a tenant are bounded: beyond the bound the oldest go, and the
tenant's cut is the number of the newest one that has gone. A cursor that may not have read all
changes up to the cut is refused. In PostgreSQL these are the cursors whose snapshot has a running
transaction at or below the cut. A cut stays below all running transactions, else each new cursor
would be one of these; a transaction that stays open (of any database of the server) delays cuts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Final

from attrs import evolve, frozen

from svcd.model.changes import Change, Changes, Cursor, Word
from svcd.model.ids import timestamp
from svcd.store.database import Sql

KEPT: Final = 50_000
"""Number of deletions and events of a tenant that the feed keeps, about."""
PART: Final = 1000
"""Most deletions and events that one transaction takes out of the feed, about."""
KEPT_S: Final = 25 * 3600.0
"""Seconds that deletions and events stay in the feed: an hour more than the life of a cursor."""

_NOTE: Final = """
insert into changes (kind, id, tenant_id, number, first, version, deleted, expires)
values (:kind, :id, :tenant_id, {number}, case when :created = 1 then {number} else 0 end,
        :version, :deleted, :expires)
on conflict (kind, id) do update
   set number = excluded.number, version = excluded.version, deleted = excluded.deleted,
       expires = excluded.expires
 where changes.deleted = 0
"""
_ORDER: Final = "length(id), id"
"""The order of the changes of one kind in one transaction: event 9 of a cluster is before 10."""
_BEGIN: Final = """
insert into feed (id, epoch, number) values (1, :epoch, 0) on conflict (id) do nothing
"""
_MARK: Final = "select max(number) from feed_marks where at <= :at"
_EXPIRED: Final = f"""
select max(number) from (
  select number from changes where expires = 1 and number < ({_MARK}) order by number limit :part
) as oldest
"""
_PRUNE: Final = "delete from changes where expires = 1 and number <= :number"
_PRUNE_MARKS: Final = """
delete from feed_marks where at < (select max(at) from feed_marks where at <= :at)
"""
_PRUNE_CUTS: Final = f"delete from feed_cuts where number < ({_MARK})"
_EXCESS: Final = """
select max(number) from (
  select number from changes
   where tenant_id = :tenant_id and expires = 1 and number <= (
     select number from changes where tenant_id = :tenant_id and expires = 1
      order by number desc limit 1 offset :most)
     and number < {mark}
   order by number limit :part
) as oldest
"""
_SET_CUT: Final = """
insert into feed_cuts (tenant_id, number) values (:tenant_id, :number)
on conflict (tenant_id) do update set number = excluded.number
 where feed_cuts.number < excluded.number
"""
_CUT: Final = """
delete from changes where tenant_id = :tenant_id and expires = 1 and number <= :number
"""


@frozen(eq=False)
class Feed:
    """The expressions for change numbers and positions in one database's SQL.

    number: of the next change. bump: a statement before each change, or "". position: now, as text.
    mark: a number that no later change goes below. epoch: the part of the epoch that the database
    knows. later: condition for a `{column}` whose number comes after the position `{position}`.
    unsure: condition for a `{column}` so that a change up to it may come after the position.
    usable: whether a position that a caller gave is well-formed and not beyond the present one.
    """

    number: str
    bump: str
    position: str
    mark: str
    epoch: str
    later: str
    unsure: str
    usable: Callable[[str, str], bool]


@functools.cache
def _noting(feed: Feed) -> str:
    return _NOTE.replace("{number}", feed.number)


@functools.cache
def _part(feed: Feed, rest: bool) -> str:
    """The statement for a part of the feed. rest: for the part after a key."""
    created = feed.later.format(column="first", position=":since")
    where = feed.later.format(column="number", position=":since")
    if rest:
        until = feed.later.format(column="number", position=":until")
        where += (
            f" and not ({until})"
            f" and (number, kind, {_ORDER}) > (:number, :kind, {_ORDER.replace('id', ':id')})"
        )
    return (
        f"select number, kind, id, version, deleted, case when {created} then 1 else 0 end"
        f" from changes where tenant_id = :tenant_id and {where}"
        f" order by number, kind, {_ORDER} limit :limit"
    )


@functools.cache
def _lost(feed: Feed) -> str:
    unsure = feed.unsure.format(column="number", position=":since")
    return f"select 1 from feed_cuts where tenant_id = :tenant_id and {unsure}"


@functools.cache
def _excess(feed: Feed) -> str:
    return _EXCESS.replace("{mark}", feed.mark)


class Journal:
    """The feed in one transaction. Implements ports.ChangeRows.

    tenants: the tenants whose rows the transaction has changed. expiring: the number of deletions
    and events that it has added, by tenant.
    """

    __slots__ = ("_sql", "expiring", "tenants")

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.tenants: set[str] = set()
        self.expiring: dict[str, int] = {}

    async def note(
        self, tenant_id: str, kind: str, id_: str, version: int, word: Word, expires: bool = False
    ) -> None:
        """Add a change to the feed. A deleted record stays deleted."""
        self.tenants.add(tenant_id)
        feed = self._sql.feed
        if feed.bump:
            await self._sql.at_commit(feed.bump)
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
        if gone or expires:
            self.expiring[tenant_id] = self.expiring.get(tenant_id, 0) + 1
        await self._sql.at_commit(_noting(feed), values)

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
        values: dict[str, object] = {"tenant_id": tenant_id, "since": cursor.since}
        if await self._sql.one(_lost(self._sql.feed), values) is not None:
            return None
        values["limit"] = limit
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


async def mark(sql: Sql, now_s: float) -> None:
    """Store the present number, for `prune` a day later. Call it about once an hour."""
    await sql.run(
        f"insert into feed_marks (at, number) values (:at, {sql.feed.mark})"
        " on conflict (at) do nothing",
        {"at": timestamp(now_s)},
    )
    old = {"at": timestamp(now_s - KEPT_S)}
    await sql.run(_PRUNE_MARKS, old)
    await sql.run(_PRUNE_CUTS, old)


async def expired(sql: Sql, now_s: float) -> int | None:
    """The number up to which the next part of the feed has expired; None when none has."""
    row = await sql.one(_EXPIRED, {"at": timestamp(now_s - KEPT_S), "part": PART})
    return None if row is None else row[0]


async def prune(sql: Sql, number: int) -> None:
    """Delete the changes that expire up to `number`, a result of `expired`."""
    await sql.run(_PRUNE, {"number": number})


async def excess(sql: Sql, tenant_id: str, most: int) -> int | None:
    """The number up to which the tenant's next part is too old.

    None when it has at most `most`, or when a cut might refuse cursors of now.
    """
    values = {"tenant_id": tenant_id, "most": most, "part": PART}
    row = await sql.one(_excess(sql.feed), values)
    return None if row is None else row[0]


async def cut(sql: Sql, tenant_id: str, number: int) -> None:
    """Delete the tenant's deletions and events up to `number`, a result of `excess`."""
    values = {"tenant_id": tenant_id, "number": number}
    await sql.run(_SET_CUT, values)
    await sql.run(_CUT, values)


class Signals:
    """Calls the functions that wait for a change of a tenant."""

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

    def fire(self, tenants: Iterable[str]) -> None:
        """The rows of `tenants` have changed."""
        for tenant_id in tenants:
            for call in list(self._calls.get(tenant_id, {}).values()):
                call()
