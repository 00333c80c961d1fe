"""What the lease keeper's statements do, on SQLite: the same rows, one function a statement.

PostgreSQL carries out each of them at one moment; so does this. The clock is the server's.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from svcd.runtime.fencing import LeaseLost, Term
from svcd.store import migrations
from svcd.store.database import Sql
from svcd.store.lease import keeper, upgrades

Row = tuple[Any, ...]
Values = Mapping[str, Any]

LOOKS = frozenset(
    {
        migrations.CURRENT,
        upgrades.IS_SHARED,
        upgrades.OTHERS,
        keeper._BEAT,
        keeper._DAEMONS,
    }
)
"""Statements of every start or turn that take nothing."""
_FENCE = keeper.FENCE.replace("for share", "")
_LEASE = "select holder, epoch from lease"


async def require(sql: Sql, term: Term) -> None:
    """See svcd.store.lease.keeper.require: here nothing follows it."""
    if await sql.one(_FENCE, {"holder": term.holder, "epoch": term.epoch}) is None:
        raise LeaseLost("the lease has been taken by another daemon")


class LeaseRows:
    """now: the server's clock. up_s: how long it has been up. ended: told whose connections it has
    closed. told: gets what is notified.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: Callable[[], float],
        up_s: Callable[[], float],
        ended: Callable[[Sequence[str]], None],
        told: Callable[[str], None],
    ) -> None:
        self._connection = connection
        self._now = now
        self._up_s = up_s
        self._ended = ended
        self._told = told
        self._statements: Mapping[str, Callable[[Values], Sequence[Row]]] = {
            keeper._PREPARE: lambda _: (),
            keeper._END: self._end,
            upgrades.IS_SHARED: lambda _: ((True,),),
            migrations.CURRENT: lambda _: self._run(migrations.CURRENT, {}),
            upgrades.OTHERS: lambda _: (("",),),
            keeper._REGISTER: self._register,
            keeper._BEAT: self._beat,
            keeper._DAEMONS: self._daemons,
            keeper._DECLARE_DEAD: self._declare_dead,
            keeper._TAKE: self._take,
            keeper._LEAVE: self._leave,
            keeper._NOTIFY: self._tell,
        }

    def answer(self, text: str, values: Values) -> Sequence[Row]:
        """The rows that the statement gives."""
        if "pg_try_advisory_lock_shared" in text:
            return ((True,),)
        return self._statements[text](values)

    def _run(self, sql: str, values: Values) -> list[Row]:
        return self._connection.execute(sql, dict(values)).fetchall()

    def _end(self, values: Values) -> Sequence[Row]:
        self._ended(values["names"])
        return ()

    def _tell(self, values: Values) -> Sequence[Row]:
        self._told(values["text"])
        return ()

    def _register(self, values: Values) -> Sequence[Row]:
        until_s = self._now() + values["lease_s"]
        self._run(
            "insert into daemons (id, about, until_s, knows)"
            " values (:id, :about, :until_s, :knows) on conflict (id) do update"
            " set about = excluded.about, until_s = excluded.until_s",
            {**values, "until_s": until_s},
        )
        return self._run(_LEASE, {})

    def _beat(self, values: Values) -> Sequence[Row]:
        now = self._now()
        found = self._run(
            "update daemons set until_s = :until_s where id = :id returning id",
            {"id": values["id"], "until_s": now + values["lease_s"]},
        )
        [lease] = self._run(_LEASE, {})
        schema = migrations.newest(), migrations.needed()
        return [(*lease, now, self._up_s(), *schema) for _ in found]

    def _daemons(self, _: Values) -> Sequence[Row]:
        return self._run("select id, until_s - :now from daemons order by id", {"now": self._now()})

    def _declare_dead(self, values: Values) -> Sequence[Row]:
        freed: list[Row] = []
        for name in values["ids"]:
            dead = {"id": name, "now": self._now()}
            for _, until_s in self._run(
                "delete from daemons where id = :id and until_s < :now returning id, until_s", dead
            ):
                freed += self._freed(name, until_s)
        return freed

    def _freed(self, name: str, free_s: float) -> list[Row]:
        return self._run(
            "update lease set holder = '', epoch = epoch + 1, free_s = :free_s"
            " where holder = :id returning epoch",
            {"id": name, "free_s": free_s},
        )

    def _take(self, values: Values) -> Sequence[Row]:
        return self._run(
            "update lease set holder = :id, epoch = epoch + 1 where epoch = :epoch"
            " and exists (select 1 from daemons where id = :id) returning epoch, :now - free_s",
            {**values, "now": self._now()},
        )

    def _leave(self, values: Values) -> Sequence[Row]:
        self._run("delete from daemons where id = :id", {"id": values["id"]})
        return self._freed(values["id"], self._now() - values["quiet_s"])
