"""The base of all record families: one table, a record column, paging, and unique names.

A family declares its table once. The SQL texts are built from that declaration when the class is
first used, never from a request. Filters and markers are passed as parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import attrs
import msgspec
from attrs import frozen

from svcd.errors import DeletionFailed, NameTaken, NotFound, QuotaExceeded, SvcdError
from svcd.model.changes import Word
from svcd.model.job import Credentials
from svcd.model.secret import Secret
from svcd.model.wire import View
from svcd.ports.store import Page, Rendered, Sealer
from svcd.settings import Limits
from svcd.store.changes import Journal
from svcd.store.database import Conflict, Parameters, Row, Sql

R = TypeVar("R")

_MOST_ROOMS = 10_000
"""Counts that a process remembers; with more it forgets all of them."""
_FAR = 1000
"""At least this many rows below the limit, a count before the transaction is enough."""
_encode = msgspec.json.Encoder().encode


def references(ids: Iterable[str | None]) -> str:
    """The text of a `refs` column: each id with a blank on both sides."""
    return "".join(f" {i} " for i in sorted({i for i in ids if i}))


def among(ids: Sequence[str]) -> tuple[str, dict[str, object]]:
    """The condition for the rows with one of `ids`, and its parameters."""
    values: dict[str, object] = {f"k{number}": id_ for number, id_ in enumerate(ids)}
    return f"id in ({', '.join(f':{name}' for name in values)})", values


@frozen(kw_only=True)
class Table(Generic[R]):
    """A family's declaration.

    kind: the name of the list in the interface. what: the noun for messages. columns: name -> value
    of a record, beside id, tenant_id, created_at and record. fixed: columns that no update changes
    (SQLite writes each index again that has a column of the statement, changed or not). filters:
    columns that a list may be filtered by. taken: the error when a name is in use. wire: makes the
    answer whose JSON is stored beside the record. sealed: the field with credentials, stored sealed
    in a column of its own.
    visible: SQL condition of the rows that callers can read. any_case: names that differ in case
    alone count as the same. users: statement for the records that keep a row from being removed, as
    kind and name; parameters: the row's id, tenant_id, and pattern for a `refs` column. still_used:
    the error when there are some.
    """

    name: str
    kind: str
    what: str
    record: type[R]
    columns: Mapping[str, Callable[[R], object]]
    filters: frozenset[str]
    fixed: frozenset[str] = frozenset()
    taken: type[NameTaken] | None = None
    wire: Callable[[R], View] | None = None
    sealed: str | None = None
    visible: str = ""
    any_case: bool = False
    users: str = ""
    still_used: type[SvcdError] = DeletionFailed

    @property
    def plural(self) -> str:
        return f"{self.what[:-1]}ies" if self.what.endswith("y") else f"{self.what}s"

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[R]:
        return msgspec.json.Decoder(self.record)

    @cached_property
    def insert(self) -> str:
        names = [*self.all_columns()]
        values = ", ".join(f":{n}" for n in names)
        return f"insert into {self.name} ({', '.join(names)}) values ({values})"

    @cached_property
    def select(self) -> str:
        return "record, sealed" if self.sealed else "record"

    def update(self, before: R | None, after: R) -> str:
        """The compare-and-set that writes the columns in which `after` differs from `before`.

        before: None: all columns that may change.
        """
        names = [
            name
            for name, value in self.columns.items()
            if name not in self.fixed and (before is None or value(before) != value(after))
        ]
        names += ["record", "wire"] if self.wire else ["record"]
        values = ", ".join(f"{name} = :{name}" for name in names)
        return f"update {self.name} set {values} where id = :id and version = :version - 1"

    def all_columns(self) -> Sequence[str]:
        extra = [*(["wire"] if self.wire else []), *(["sealed"] if self.sealed else [])]
        return ["id", "tenant_id", *self.columns, "created_at", "record", *extra]


@frozen
class Scope:
    """One transaction, as its families need it.

    journal: the feed. limits: of a tenant's rows. holder: the uploads' daemon. seconds: its time.
    """

    sql: Sql
    sealer: Sealer
    journal: Journal
    limits: Limits
    holder: str
    seconds: Callable[[], float]


class Family(Generic[R]):
    """Implements ports.Rows for one table within one transaction."""

    table: Table[R]
    answer = "wire"
    """SQL expression of the result of `rendered`."""
    counted = ""
    """SQL condition of the rows that count for the limit."""
    limit = "rows"
    """The setting in `limits` for the rows that a tenant may have; 0: no limit."""

    def __init__(self, scope: Scope) -> None:
        self._sql = scope.sql
        self._sealer = scope.sealer
        self._journal = scope.journal
        self._seconds = scope.seconds
        self._most: int = getattr(scope.limits, self.limit)

    @classmethod
    def count_text(cls) -> str:
        """The statement that counts a tenant's rows, up to `most`. An index must fit it."""
        return (
            f"select count(*) from (select 1 from {cls.table.name}"
            f" where tenant_id = :tenant_id{cls.counted} limit :most) as counted"
        )

    async def refuse_if_full(self, tenant_id: str) -> None:
        """Raise QuotaExceeded when the tenant may not add a row.

        Transactions that write are serial, so requests at the same moment cannot exceed the limit.
        A count tells how many rows can be added before the next count is needed. A rollback
        forgets the counts.

        On a server each count within a transaction conflicts with all others that add a row, and
        most of them would run twice. Therefore, far from the limit, the count comes before the
        transaction, when this is its first statement. Requests could exceed the limit only if
        others added `_FAR` rows in the time of one transaction.
        """
        if not self._most:
            return
        rooms, key = self._sql.rooms, (self.table.name, tenant_id, self._most)
        if rooms is not None and rooms.get(key, 0) > 0:
            rooms[key] -= 1
            return
        values = {"tenant_id": tenant_id, "most": self._most}
        if self._most > _FAR:
            row = await self._sql.ahead(self.count_text(), values)
            if row is not None and int(row[0]) < self._most - _FAR:
                return
        row = await self._sql.one(self.count_text(), values)
        have = 0 if row is None else int(row[0])
        if have >= self._most:
            raise QuotaExceeded(
                f"the tenant has {self._most} {self.table.plural}, which is the limit"
                f" (limits.{self.limit}): delete some that you do not need"
            )
        if rooms is not None:
            if len(rooms) >= _MOST_ROOMS:
                rooms.clear()
            rooms[key] = self._most - have - 1

    async def add(self, record: R) -> None:
        await self.refuse_if_full(cast("Any", record).tenant_id)
        try:
            await self._sql.run(self.table.insert, self._values(record))
        except Conflict as conflict:
            raise self._refused(record, conflict) from conflict
        await self._note(record, "created")

    async def _note(self, record: R, word: Word) -> None:
        """Add the change of `record` to the feed."""
        fields = cast("Any", record)
        version = getattr(record, "version", 1)
        await self._journal.note(fields.tenant_id, self.table.kind, fields.id, version, word)

    async def check_new(self, record: R) -> None:
        fields, columns = cast("Any", record), self.table.columns
        await self.refuse_if_full(fields.tenant_id)
        if self.table.taken is None:
            return
        column = "name_key" if "name_key" in columns else "name"
        row = await self._sql.one(
            f"select 1 from {self.table.name} where tenant_id = :tenant_id and {column} = :name",
            {"tenant_id": fields.tenant_id, "name": columns[column](record)},
        )
        if row is not None:
            raise self._refused(record, Conflict(column))

    async def get(self, tenant_id: str, id_: str) -> R:
        return self._record(await self._visible(self.table.select, tenant_id, id_))

    async def page(self, tenant_id: str, page: Page) -> Sequence[R]:
        text, values = await self._paged(self.table.select, tenant_id, page)
        return [self._record(row) for row in await self._sql.all(text, values)]

    async def several(self, tenant_id: str, ids: Sequence[str]) -> Sequence[R]:
        if not ids:
            return []
        where, values = among(ids)
        rows = await self._sql.all(
            f"select {self.table.select} from {self.table.name}"
            f" where {where} and tenant_id = :tenant_id{self.table.visible}",
            {**values, "tenant_id": tenant_id},
        )
        return [self._record(row) for row in rows]

    async def remove(self, tenant_id: str, id_: str) -> None:
        record = await self.get(tenant_id, id_)
        await self._refuse_if_used(tenant_id, id_)
        await self._sql.run(f"delete from {self.table.name} where id = :id", {"id": id_})
        await self._note(record, "deleted")

    async def find(self, id_: str, known: R | None = None) -> R | None:
        if known is not None:
            text = f"select version from {self.table.name} where id = :id"
            if await self._sql.one(text, {"id": id_}) == (cast("Any", known).version,):
                return known
        text = f"select {self.table.select} from {self.table.name} where id = :id"
        row = await self._sql.one(text, {"id": id_})
        return None if row is None else self._record(row)

    async def save(self, record: R, before: R | None = None) -> bool:
        versioned = cast("Any", record)
        after: R = attrs.evolve(versioned, version=versioned.version + 1)
        saved = await self._sql.run(self.table.update(before, after), self._values(after)) == 1
        if saved:
            await self._note(after, self._word(after))
        return saved

    def _word(self, after: R) -> Word:
        """The word of the feed for a saved record."""
        return "updated"

    async def drop(self, id_: str) -> None:
        name = self.table.name
        # Not the record: a row whose record cannot be read can be dropped too.
        row = await self._sql.one(
            f"select tenant_id, version from {name} where id = :id", {"id": id_}
        )
        if row is not None:
            await self._sql.run(f"delete from {name} where id = :id", {"id": id_})
            await self._journal.note(row[0], self.table.kind, id_, row[1], "deleted")

    async def rendered(self, tenant_id: str, id_: str) -> bytes:
        row = await self._visible(self.answer, tenant_id, id_)
        return cast("str", row[0]).encode()

    async def rendered_many(
        self, keys: Sequence[tuple[str, str]]
    ) -> Mapping[tuple[str, str], bytes]:
        """`rendered` of each (tenant_id, id) that exists."""
        where, values = among([id_ for _, id_ in keys])
        rows = await self._sql.all(
            f"select tenant_id, id, {self.answer} from {self.table.name}"
            f" where {where}{self.table.visible}",
            values,
        )
        asked = frozenset(keys)
        return {
            key: cast("str", text).encode() for *ids, text in rows if (key := tuple(ids)) in asked
        }

    async def rendered_page(self, tenant_id: str, page: Page, rows: int) -> Rendered | None:
        text, values = await self._rows_of(tenant_id, page)
        found = await self._sql.joined("wire", text, values, rows)
        return None if found is None else Rendered(text=found[0], rows=found[1], last=found[2])

    async def _visible(self, select: str, tenant_id: str, id_: str) -> Row:
        """The columns `select` of the row as a caller can read it. Raises NotFound."""
        row = await self._sql.one(
            f"select {select} from {self.table.name}"
            f" where id = :id and tenant_id = :tenant_id{self.table.visible}",
            {"id": id_, "tenant_id": tenant_id},
        )
        if row is None:
            raise NotFound.of(self.table.what, id_)
        return row

    def _refused(self, record: R, conflict: Conflict) -> Exception:
        """The error of an insert that a unique index refused."""
        if self.table.taken is None or "name" not in str(conflict):
            return conflict
        name = cast("Any", record).name
        case = " (upper and lower case count as the same)" if self.table.any_case else ""
        return self.table.taken(
            f"a {self.table.what} named {name!r} exists already in this tenant{case}:"
            " choose another name, or delete the other one first"
        )

    async def _refuse_if_used(self, tenant_id: str, id_: str) -> None:
        """Raise when another record refers to the row that a caller wants to remove."""
        if not self.table.users:
            return
        values = {"tenant_id": tenant_id, "id": id_, "pattern": f"% {id_} %"}
        users = await self._sql.all(self.table.users, values)
        if users:
            listed = ", ".join(f"{kind} {name!r}" for kind, name in users)
            words = "is used" if self.table.still_used is DeletionFailed else "is in use"
            raise self.table.still_used(
                f"{self.table.what} {id_!r} {words} by {listed}: delete these first"
            )

    async def _paged(self, select: str, tenant_id: str, page: Page) -> tuple[str, Parameters]:
        """The statement that reads a page, and its parameters."""
        rows, values = await self._rows_of(tenant_id, page)
        limit = ""
        if page.limit is not None:
            limit = " limit :limit"
            values = {**values, "limit": page.limit}
        return f"select {select} {rows} order by created_at, id{limit}", values

    async def _rows_of(self, tenant_id: str, page: Page) -> tuple[str, Parameters]:
        """`from` and `where` of the rows of a page without its limit, and their parameters."""
        where = f"tenant_id = :tenant_id{self.table.visible}"
        values: dict[str, object] = {"tenant_id": tenant_id}
        for column, value in page.filters.items():
            if column in self.table.filters:
                where += f" and {column} = :f_{column}"
                values[f"f_{column}"] = value
        if page.after is not None:
            where += " and (created_at, id) > (:after, :marker)"
            values |= {"after": page.after[0], "marker": page.after[1]}
        elif page.marker is not None:
            after = await self._sql.one(
                f"select created_at from {self.table.name}"
                " where id = :marker and tenant_id = :tenant_id",
                {"marker": page.marker, "tenant_id": tenant_id},
            )
            if after is None:
                raise NotFound(
                    f"marker {page.marker!r} not found among the {self.table.plural}:"
                    " use an id of this list"
                )
            where += " and (created_at, id) > (:after, :marker)"
            values |= {"after": after[0], "marker": page.marker}
        return f"from {self.table.name} where {where}", values

    def _values(self, record: R) -> Parameters:
        fields = cast("Any", record)
        updated = getattr(fields, "updated_at", None)
        if updated is not None and updated < fields.created_at:  # a clock was set back
            fields = attrs.evolve(fields, updated_at=fields.created_at)
            record = cast("R", fields)
        values: dict[str, object] = {
            "id": fields.id,
            "tenant_id": fields.tenant_id,
            "created_at": fields.created_at,
        }
        for column, value in self.table.columns.items():
            values[column] = value(record)
        bare = fields
        if self.table.sealed:
            credentials: Credentials | None = getattr(fields, self.table.sealed)
            bare = attrs.evolve(fields, **{self.table.sealed: None})
            values["sealed"] = (
                None
                if credentials is None
                else self._sealer.seal(Secret(_encode(credentials).decode()))
            )
        values["record"] = _encode(bare).decode()
        if self.table.wire:
            values["wire"] = _encode(self.table.wire(record)).decode()
        return values

    def _record(self, row: Row) -> R:
        record = self.table.decoder.decode(row[0])
        if self.table.sealed and row[1] is not None:
            opened = self._sealer.open(row[1]).reveal()
            credentials = msgspec.json.decode(opened, type=Credentials)
            return cast("R", attrs.evolve(cast("Any", record), **{self.table.sealed: credentials}))
        return record
