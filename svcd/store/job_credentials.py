"""Application credentials of jobs: those in use, and those that svcd still has to delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypedDict

import msgspec
from twisted.logger import Logger

from svcd.model.ids import ExecutionId, TenantId
from svcd.model.job import Credentials
from svcd.model.job_credential import ApplicationCredential, JobCredential
from svcd.model.secret import Secret
from svcd.store.database import Row
from svcd.store.family import Scope
from svcd.store.sealer import SealerError

log = Logger()

_NAMES: Final = (
    "name",
    "execution_id",
    "cluster_id",
    "tenant_id",
    "sealed",
    "asked_at",
    "expires_at",
    "due_at",
    "tries",
    "trouble",
)
_ADD: Final = f"""
insert into job_credentials ({", ".join(_NAMES)}) values ({", ".join(f":{n}" for n in _NAMES)})
on conflict (name) do nothing
"""
_SAVE: Final = """
update job_credentials
   set sealed = :sealed, asked_at = :asked_at, expires_at = :expires_at, due_at = :due_at,
       tries = :tries, trouble = :trouble
 where name = :name
"""
_FORGET: Final = "delete from job_credentials where name = :name"
_SELECT: Final = f"select {', '.join(_NAMES)} from job_credentials"
_OF_EXECUTION: Final = f"{_SELECT} where execution_id = :id order by name"
_LOOSE: Final = f"""
{_SELECT} where not exists (
  select 1 from executions e where e.id = job_credentials.execution_id and e.ended = 0
) order by due_at, name limit :limit
"""
_KNOWN: Final = """
select name from job_credentials where tenant_id = :tenant_id and trouble = '' order by name
"""


class Sealed(TypedDict):
    """The content of the column `sealed`. id, secret: "" while svcd does not know them."""

    user: str
    password: str
    id: str
    secret: str
    again: bool


class JobCredentials:
    """Implements ports.JobCredentialRows within one transaction."""

    def __init__(self, scope: Scope) -> None:
        self._sql = scope.sql
        self._sealer = scope.sealer

    async def add(self, new: JobCredential) -> None:
        await self._sql.run(_ADD, self._values(new))

    async def save(self, row: JobCredential) -> bool:
        return await self._sql.run(_SAVE, self._values(row)) == 1

    async def forget(self, name: str) -> None:
        await self._sql.run(_FORGET, {"name": name})

    async def of_execution(self, id_: ExecutionId) -> Sequence[JobCredential]:
        return [self._record(row) for row in await self._sql.all(_OF_EXECUTION, {"id": id_})]

    async def loose(self, limit: int) -> Sequence[JobCredential]:
        credentials: list[JobCredential] = []
        damaged: list[str] = []
        for row in await self._sql.all(_LOOSE, {"limit": limit}):
            try:
                credentials.append(self._record(row))
            except (SealerError, msgspec.MsgspecError, ValueError) as error:
                damaged.append(f"{row[0]}: {error}")
        if damaged:
            log.warn(
                "Skipped {n} rows of job_credentials that cannot be read; `svcd db check` lists"
                " them. The first is {row}",
                n=len(damaged),
                row=damaged[0],
            )
        return credentials

    async def known(self, tenant_id: TenantId) -> Sequence[str]:
        rows = await self._sql.all(_KNOWN, {"tenant_id": tenant_id})
        return [str(row[0]) for row in rows]

    def _values(self, row: JobCredential) -> dict[str, object]:
        made = row.made
        inner: Sealed = {
            "user": row.account.user,
            "password": row.account.password,
            "id": "" if made is None else made.id,
            "secret": "" if made is None else made.secret.reveal(),
            "again": row.again,
        }
        sealed = self._sealer.seal(Secret(msgspec.json.encode(inner).decode()))
        return {"sealed": sealed, **{n: getattr(row, n) for n in _NAMES if n != "sealed"}}

    def _record(self, row: Row) -> JobCredential:
        """row: the columns in the order of `_NAMES`."""
        values: dict[str, Any] = dict(zip(_NAMES, row, strict=True))
        inner = msgspec.json.decode(self._sealer.open(values.pop("sealed")).reveal(), type=Sealed)
        made = None
        if inner["id"]:
            made = ApplicationCredential(id=inner["id"], secret=Secret(inner["secret"]))
        account = Credentials(user=inner["user"], password=inner["password"])
        return JobCredential(account=account, made=made, again=inner["again"], **values)
