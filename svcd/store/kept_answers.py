"""The answers to requests with an Idempotency-Key, each written with the row that its request made.

The primary key decides between two requests at once: the transaction of the second one fails.

Note: the count of a tenant's answers. A count in the transaction that adds an answer conflicts with
all others that add one, and PostgreSQL would run most of them several times. So the count comes
before the transaction, and requests at the same moment may exceed the limit by their number.
"""

from __future__ import annotations

from typing import Final

from svcd.errors import IdempotencyKeyReused, QuotaExceeded
from svcd.model.idempotency import KeyedRequest
from svcd.model.ids import Timestamp
from svcd.model.secret import Secret
from svcd.store.family import Scope

_FIND: Final = "select request, sealed from kept_answers where id = :id and created_at > :since"
_ADMIT: Final = """
select kept.request, kept.sealed, used.number
  from (select count(*) as number from (
          select 1 from kept_answers
           where tenant_id = :tenant_id and created_at > :since limit :most) as counted) as used
  left join kept_answers as kept on kept.id = :id and kept.created_at > :since
"""
_ADD: Final = """
insert into kept_answers (id, tenant_id, created_at, request, sealed)
values (:id, :tenant_id, :at, :request, :sealed)
on conflict (id) do update
   set created_at = excluded.created_at, request = excluded.request, sealed = excluded.sealed
 where kept_answers.created_at <= :since
"""
"""An expired answer gives way; an answer in force stays, and no row is changed."""
_PRUNE: Final = """
delete from kept_answers where id in (
  select id from kept_answers where created_at <= :before order by created_at limit :limit
)
"""


class KeptAnswers:
    """Implements ports.KeptAnswerRows within one transaction."""

    def __init__(self, scope: Scope) -> None:
        self._sql = scope.sql
        self._sealer = scope.sealer
        self._most = scope.limits.idempotency_keys

    async def find(self, keyed: KeyedRequest) -> bytes | None:
        values = {"id": self._sealer.digest(keyed.identity), "since": keyed.since}
        row = await self._sql.one(_FIND, values)
        return None if row is None else self._opened(keyed, row[0], row[1])

    async def admit(self, keyed: KeyedRequest) -> bytes | None:
        if not self._most:
            return await self.find(keyed)
        values = {
            "id": self._sealer.digest(keyed.identity),
            "tenant_id": keyed.tenant_id,
            "since": keyed.since,
            "most": self._most,
        }
        row = await self._sql.one(_ADMIT, values)
        assert row is not None  # a count always has a row
        request, sealed, used = row
        if request is not None:
            return self._opened(keyed, request, sealed)
        if used >= self._most:
            raise QuotaExceeded(
                f"the tenant has used {self._most} Idempotency-Keys within 24 hours, which is the"
                " limit (limits.idempotency_keys): try again later, or send the request without one"
            )
        return None

    async def add(self, keyed: KeyedRequest, answer: bytes) -> None:
        added = await self._sql.run(
            _ADD,
            {
                "id": self._sealer.digest(keyed.identity),
                "tenant_id": keyed.tenant_id,
                "at": keyed.at,
                "since": keyed.since,
                "request": self._sealer.digest(keyed.content),
                "sealed": self._sealer.seal(Secret(answer.decode())),
            },
        )
        if not added:
            raise _reused()

    async def prune(self, before: Timestamp, limit: int) -> int:
        return await self._sql.run(_PRUNE, {"before": before, "limit": limit})

    def _opened(self, keyed: KeyedRequest, request: str, sealed: str) -> bytes:
        if request != self._sealer.digest(keyed.content):
            raise _reused()
        return self._sealer.open(sealed).reveal().encode()


def _reused() -> IdempotencyKeyReused:
    return IdempotencyKeyReused(
        "Idempotency-Key: another request with this key has succeeded within 24 hours: send exactly"
        " that request to get its answer again, or take a new key"
    )
