"""Job executions. Only `find` and `unfinished` return those whose deletion was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from svcd.model import wire_jobs
from svcd.model.changes import Word
from svcd.model.ids import ClusterId, Timestamp
from svcd.model.job import Execution, ExecutionStatus
from svcd.ports.store import StatusFigures
from svcd.store.family import Family, Table, among

_USED = "update clusters set used = 1 where id = :id and is_transient = 1 and used = 0"
_HEADS = """
select version, id, ended, created_at
  from executions where ended = 0
 union all
select version, id, ended, created_at
  from executions where ended = 2
 order by ended, created_at, id
"""
"""The executions with work left; see `_ended` for the values of `ended`.

One statement, because every tick runs it. Each half has an index in the order of the result; in
SQLite that of the first half has all that is read."""
_UNFINISHED = _HEADS.replace("version", "record")
_SOME = 200
"""Changed executions that one statement reads."""
_BY_STATUS = """
select status, count(*), min(created_at) from executions where ended = 0 group by status
"""
_ENDED = """
select record from executions
 where ended > 0 and hidden = 0 and created_at < :before and (created_at, id) > (:created_at, :id)
 order by created_at, id limit :limit
"""
_PRUNE = """
delete from executions
 where id = :id and version = :version and ended > 0 and hidden = 0
   and (:tidy = 1 or not exists (select 1 from clusters c where c.id = executions.cluster_id))
   and not exists (select 1 from job_credentials j where j.execution_id = executions.id)
"""
_OF_CLUSTER = """
select record from executions where cluster_id = :cluster_id order by created_at, id
"""
_USE_OF = "select min(ended), max(created_at) from executions where cluster_id = :cluster_id"


class Executions(Family[Execution]):
    table = Table(
        name="executions",
        kind="job_executions",
        what="job execution",
        record=Execution,
        columns={
            "job_id": lambda r: r.job_id,
            "cluster_id": lambda r: r.cluster_id,
            "input_id": lambda r: r.input_id,
            "output_id": lambda r: r.output_id,
            "status": lambda r: r.status.value,
            "ended": lambda r: _ended(r),
            "hidden": lambda r: int(r.delete_requested),
            "version": lambda r: r.version,
        },
        filters=frozenset({"job_id", "cluster_id", "input_id", "output_id", "status"}),
        fixed=frozenset({"job_id", "input_id", "output_id"}),
        wire=wire_jobs.JobExecution.of,
        visible=" and hidden = 0",
    )
    counted = " and ended = 0"
    limit = "executions"

    async def add(self, record: Execution) -> None:
        """Add the execution. Its transient cluster records that it was used.

        So the cluster also ends when the execution has been deleted.
        """
        await super().add(record)
        await self._sql.run(_USED, {"id": record.cluster_id})

    def _word(self, after: Execution) -> Word:
        return "deleted" if after.delete_requested else "updated"

    async def unfinished(self, known: Sequence[Execution] = ()) -> Sequence[Execution]:
        if not known:
            return [self._record(row) for row in await self._sql.all(_UNFINISHED)]
        read = {execution.id: execution for execution in known}
        executions: list[Execution | None] = []
        changed: dict[str, int] = {}
        for version, id_, _, _ in await self._sql.all(_HEADS):
            row = read.get(id_)
            if row is None or row.version != version:
                row, changed[id_] = None, len(executions)
            executions.append(row)
        ids = [*changed]
        for at in range(0, len(ids), _SOME):
            for id_, row in (await self._some(ids[at : at + _SOME])).items():
                executions[changed[id_]] = row
        return [execution for execution in executions if execution is not None]

    async def _some(self, ids: Sequence[str]) -> Mapping[str, Execution]:
        where, values = among(ids)
        rows = await self._sql.all(f"select record, id from executions where {where}", values)
        return {row[1]: self._record(row) for row in rows}

    async def figures(self) -> StatusFigures:
        rows = await self._sql.all(_BY_STATUS)
        waits = [Timestamp(row[2]) for row in rows if row[0] == ExecutionStatus.PENDING]
        return StatusFigures({str(row[0]): int(row[1]) for row in rows}, next(iter(waits), None))

    async def of_cluster(self, cluster_id: ClusterId) -> Sequence[Execution]:
        rows = await self._sql.all(_OF_CLUSTER, {"cluster_id": cluster_id})
        return [self._record(row) for row in rows]

    async def use_of(self, cluster_id: ClusterId) -> tuple[bool, Timestamp | None]:
        row = await self._sql.one(_USE_OF, {"cluster_id": cluster_id})
        if row is None or row[1] is None:
            return False, None
        return row[0] == 0, Timestamp(row[1])

    async def ended(
        self, before: Timestamp, after: Execution | None, limit: int
    ) -> Sequence[Execution]:
        values = {
            "before": before,
            "created_at": "" if after is None else after.created_at,
            "id": "" if after is None else after.id,
            "limit": limit,
        }
        return [self._record(row) for row in await self._sql.all(_ENDED, values)]

    async def prune(self, execution: Execution) -> bool:
        values = {
            "id": execution.id,
            "version": execution.version,
            "tidy": int(execution.workflow_dir is None),
        }
        pruned = await self._sql.run(_PRUNE, values) == 1
        if pruned:
            await self._note(execution, "deleted")
        return pruned


def _ended(execution: Execution) -> int:
    """0: not ended; 1: no work left; 2: svcd still has to remove its folder, or to delete it.

    A submission without a known result may still have a job in the engine.
    """
    if execution.end_time is None or execution.submitting:
        return 0
    return 1 if execution.workflow_dir is None and not execution.delete_requested else 2
