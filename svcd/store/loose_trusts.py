"""Trusts that no cluster's row names: of requests in progress, and left behind by failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from svcd.model.trust import LooseTrust
from svcd.store.family import Scope

_FIELDS: Final = tuple(field.name for field in attrs.fields(LooseTrust))
_NAMES: Final = tuple("mark" if field == "expires_at" else field for field in _FIELDS)
"""The columns, in the order of the fields."""
_ADD: Final = f"""
insert into loose_trusts ({", ".join(_NAMES)}) values ({", ".join(f":{n}" for n in _FIELDS)})
on conflict (id) do nothing
"""
_TAKE: Final = "delete from loose_trusts where id = :id and doomed = 0"
_DOOM: Final = "update loose_trusts set doomed = 1 where id = :id"
_DELAY: Final = """
update loose_trusts set due_at = :due_at, tries = :tries, trouble = :trouble where id = :id
"""
_FORGET: Final = "delete from loose_trusts where id = :id"
_FIRST: Final = f"select {', '.join(_NAMES)} from loose_trusts order by due_at, id limit :limit"


class LooseTrusts:
    """Implements ports.LooseTrustRows within one transaction."""

    def __init__(self, scope: Scope) -> None:
        self._sql = scope.sql

    async def add(self, trust: LooseTrust) -> None:
        values = attrs.asdict(trust) | {"doomed": int(trust.doomed)}
        await self._sql.run(_ADD, values)

    async def take(self, id_: str) -> bool:
        return await self._sql.run(_TAKE, {"id": id_}) == 1

    async def doom(self, id_: str) -> bool:
        return await self._sql.run(_DOOM, {"id": id_}) == 1

    async def delay(self, trust: LooseTrust) -> None:
        values = {
            "id": trust.id,
            "due_at": trust.due_at,
            "tries": trust.tries,
            "trouble": trust.trouble,
        }
        await self._sql.run(_DELAY, values)

    async def forget(self, id_: str) -> None:
        await self._sql.run(_FORGET, {"id": id_})

    async def first(self, limit: int) -> Sequence[LooseTrust]:
        rows = await self._sql.all(_FIRST, {"limit": limit})
        return [_record(row) for row in rows]


def _record(row: Sequence[Any]) -> LooseTrust:
    """The columns in the order of `_NAMES`."""
    values = dict(zip(_FIELDS, row, strict=True))
    return LooseTrust(**values | {"doomed": bool(values["doomed"])})
