"""Keeps the log of each execution: fills it while callers read it, and completes it after the end.

A log that cannot be read never changes the result of its execution, and is given up some time after
the end: then the kept text says what is missing.

Note: overlapping reads. Two callers, or two daemons, may read the files of one execution at the
same time, and the one that began first may write last. So svcd reads the state of the kept text
before it reads the files, and writes only if the state is still the same: a text is never compared
with a state that is newer than itself. After a lost write, a caller that wants new text relies on
the other writer, and one that completes the log reads the files again.

Note: an early end. When an execution succeeds, its programs have ended by themselves, and most of
their containers too. So the first caller after the end gets the complete log, if node managers and
job history prove that each file is whole. Without this proof (the master of a map-reduce job runs
for some seconds more), and after any other end, the task completes the log when the engine and the
programs have had time.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, ValidationError
from svcd.model.cluster import ClusterStatus
from svcd.model.execution_log import ExecutionLog, LogPart
from svcd.model.ids import ClusterId, ExecutionId, timestamp
from svcd.model.job import Execution, ExecutionStatus
from svcd.ports.store import Store
from svcd.runtime.slices import Slices
from svcd.runtime.tasks import DeadlineExceeded, with_deadline
from svcd.workflow.act.containers import Output
from svcd.workflow.act.logs import Logs
from svcd.workflow.act.rows import Place, Rows
from svcd.workflow.decide import log_growth, planner
from svcd.workflow.decide.program_output import ProgramOutput, place_behind, program_lines

logger = Logger()

_READ_S: Final = 20.0
"""Time for reading all files of one execution."""
_EVERY_S: Final = 2.0
"""Shortest time between two reads of the files of one execution by this daemon."""
_AT_END_EVERY_S: Final = 0.5
"""The same for an execution that has succeeded and whose log is not complete yet."""
_MOST_REMEMBERED: Final = 1000
"""Executions whose last read this daemon remembers."""
_MOST_PLACES: Final = 500
"""Places in logs that this daemon remembers, to continue an answer of program lines at once."""
_TRIES: Final = 3
"""Tries to complete a log to which others append meanwhile."""


class KeptLogs:
    """The kept logs of all executions."""

    def __init__(self, store: Store, rows: Rows, logs: Logs, clock: IReactorTime) -> None:
        self._store = store
        self._rows = rows
        self._logs = logs
        self._clock = clock
        self._slices = Slices(clock)
        self._read_at: dict[ExecutionId, float] = {}
        self._places: dict[
            tuple[ExecutionId, int], ProgramOutput
        ] = {}  # the last one is the place that was used last

    # ---- for callers ----

    async def text(self, id_: ExecutionId) -> bytes | None:
        """The whole kept text if it is complete, else None."""
        found = await self._store.read(lambda tx: tx.execution_logs.read(id_, 0))
        return found.text if found is not None and found.complete else None

    async def part(
        self, row: Execution, offset: int, programs: bool = False, look: bool = True
    ) -> LogPart:
        """The text from `offset` on. Raises ValidationError.

        programs: only the lines of the programs. look: first read the files.
        """
        id_ = row.id
        if look and not (await self._state(id_)).complete:
            await self._fill(row)
        part = await self._store.read(lambda tx: tx.execution_logs.read(id_, offset))
        if part is None:
            part = LogPart(start=0, end=0, complete=False, text=b"")
        if offset > part.end:
            raise ValidationError(
                f"?offset: the log of job execution {id_} has only {part.end} bytes so far: send"
                " an offset that an answer had in X-Log-Offset"
            )
        if not programs or not part.text:
            return part
        before = await self._place_at(id_, offset, part)
        text, after = await self._slices.run(program_lines(before, part.text))
        if part.text.endswith(b"\n"):
            self._remember(id_, part.end, after)
        return evolve(part, text=text, left_out=after.left_out - before.left_out)

    async def _place_at(self, id_: ExecutionId, offset: int, part: LogPart) -> ProgramOutput:
        """The place before `part`, which begins at `offset`.

        A follower continues where an answer ended. For others the log is read from its beginning.
        """
        if not offset:
            return ProgramOutput()
        place = self._places.get((id_, offset))
        if place is None:
            return await self._slices.run(place_behind(await self._above(id_, part)))
        self._remember(id_, offset, place)
        return place

    def _remember(self, id_: ExecutionId, offset: int, place: ProgramOutput) -> None:
        self._places.pop((id_, offset), None)
        self._places[id_, offset] = place
        while len(self._places) > _MOST_PLACES:
            del self._places[next(iter(self._places))]

    async def _above(self, id_: ExecutionId, part: LogPart) -> bytes:
        """The kept text before `part`. It may have grown since `part` was read."""
        whole = await self._store.read(lambda tx: tx.execution_logs.read(id_, 0))
        if whole is None:
            return b""
        return whole.text[: max(0, len(whole.text) - (whole.end - part.end) - len(part.text))]

    async def _fill(self, row: Execution) -> None:
        """Append the new lines of the files, unless this daemon has just read them."""
        now = self._clock.seconds()
        over = planner.is_to_tidy(row)
        succeeded = over and row.status is ExecutionStatus.SUCCEEDED
        least_s = _AT_END_EVERY_S if succeeded else _EVERY_S
        if now - self._read_at.get(row.id, float("-inf")) < least_s:
            return
        self._read_at.pop(row.id, None)
        while len(self._read_at) >= _MOST_REMEMBERED:
            del self._read_at[next(iter(self._read_at))]
        self._read_at[row.id] = now
        place = await self._place(row)
        unread = place is None or row.workflow_job_id is None
        if over and (unread or planner.leaves_folder(row, now)):
            await self.complete(row)
        elif succeeded and not planner.needs_last_record(row):
            await self.complete(row, settled=False)
        elif place is not None:
            before = await self._state(row.id)
            await self._grow(before, await self._files(row, place))

    # ---- after an end ----

    async def complete(self, row: Execution, settled: bool = True) -> bool:
        """Read the files for the last time, and complete the log. False: try again later.

        settled: the programs have had time to end; without it only files that are proven to be
        whole complete the log.
        """
        for _ in range(_TRIES):
            before = await self._state(row.id)
            if before.complete:
                return True
            place = await self._place(row)
            if place is not None:
                files = await self._files(row, place)
            elif row.workflow_job_id is None:
                files = Output()
            else:
                files = Output(missed="the cluster is gone, or its deletion has begun")
            is_over = place is None or planner.leaves_folder(row, self._clock.seconds())
            if (files.missed and not is_over) or (files.may_grow and not settled):
                await self._grow(before, files)
                return False
            after, text = log_growth.grown(before, files.files, files.secrets, whole=True)
            text += log_growth.closing(row, files.missed, files.left_out)
            gap = after.gap or bool(files.missed or files.left_out)
            if await self._save(evolve(after, complete=True, gap=gap), text):
                if files.missed:
                    why = files.missed
                    logger.warn(
                        "The log of execution {id} is not complete: {why}", id=row.id, why=why
                    )
                return True
        return False

    async def holds(self, cluster_id: ClusterId) -> bool:
        """Whether a log is still to be read before the transient cluster goes."""
        now = self._clock.seconds()
        for row in await self._rows.of_cluster(cluster_id):
            if planner.waits_for_log(row, now) and not (await self._state(row.id)).complete:
                return True
        return False

    async def _state(self, id_: ExecutionId) -> ExecutionLog:
        found = await self._store.read(lambda tx: tx.execution_logs.find(id_))
        return found or ExecutionLog(execution_id=id_)

    async def _place(self, row: Execution) -> Place | None:
        """The place of `row`; None when its files can no longer be read."""
        place = await self._rows.place(row)
        return None if place is None or place.cluster.status is ClusterStatus.DELETING else place

    async def _files(self, row: Execution, place: Place) -> Output:
        try:
            secrets = await self._rows.secrets(row)
            work = self._logs.files(row, place, secrets)
            return await with_deadline(self._clock, _READ_S, "log", work)
        except DeadlineExceeded:
            return Output(missed=f"the cluster did not send it within {_READ_S:g} s")
        except NotFound as error:  # without its data sources its credentials cannot be masked
            return Output(missed=error.message)

    async def _grow(self, before: ExecutionLog, files: Output) -> None:
        """Append the new lines of `files`. before: the state from before they were read."""
        after, text = log_growth.grown(before, files.files, files.secrets, whole=False)
        if after != before and not before.complete:
            await self._save(after, text)

    async def _save(self, log: ExecutionLog, text: str) -> bool:
        """Whether it was written. False: there is a newer state, or the execution is deleted."""
        at, data = timestamp(self._clock.seconds()), text.encode("utf-8", "replace")
        return await self._store.tx(lambda tx: tx.execution_logs.append(log, data, at))
