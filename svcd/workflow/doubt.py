"""What became of a submit whose answer was lost: a job at the engine, or surely none.

Note: never twice, never unwatched. A submit may still be inside the engine (or in its queue) long
after its connection was given up, while the engine says that it knows no such job. So its no is not
believed, at any age of the submit, until the submit can do no harm any more:

1. The engine has answered no for `QUIET_S`, without a silence in between.
2. Then the execution's folder is removed from HDFS. The engine reads the definition from there when
   it takes a job, and refuses one without (E0307); what read it just before cannot run, since the
   script and the libraries were in the same folder. Each submit has a folder of its own, so the
   next one is not touched by it.
3. The engine answers no for another `QUIET_S`: what was between reading and keeping is seen.

Only then the execution is staged and submitted anew, or ended as the caller wished. A job that
appears after its folder has gone is killed, and the execution fails with that reason.

An execution whose time is over in the middle of this ends as `FAILED`, but svcd goes on with the
same steps for at most `WATCH_S`, also after a restart: what appears is killed. After that time
nothing more can be done from here, and the failure has said so from the beginning.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve
from twisted.internet.interfaces import IReactorTime

from svcd.model.ids import seconds_of, timestamp
from svcd.model.job import Doubt, Execution
from svcd.ports import Engine, EngineError, FileSystem
from svcd.workflow.changes import Changes
from svcd.workflow.engines import Endpoints

QUIET_S: Final = 10.0
"""How long the engine has to answer, and to deny the job, before and after its folder goes."""

WATCH_S: Final = 3600.0
"""How long the job of an execution that was given up in doubt is looked for."""


class StillOpen(Exception):
    """Not known yet. args[0]: why; least_s: when it makes sense to ask again."""

    def __init__(self, text: str, least_s: float = 0.0) -> None:
        super().__init__(text)
        self.text = text
        self.least_s = least_s


class Doubts:
    """Settles doubts, one step a call; what is known is in the row."""

    def __init__(
        self, engine: Engine, files: FileSystem, changes: Changes, clock: IReactorTime
    ) -> None:
        self._engine = engine
        self._files = files
        self._changes = changes
        self._clock = clock

    async def settle(self, endpoints: Endpoints, row: Execution) -> str | None:
        """The engine's job, or None: there is none, and the submit will not make one any more.

        Raises StillOpen.
        """
        doubt = row.doubt or Doubt()
        try:
            found = await self._engine.find(endpoints.engine, row.id)
        except EngineError as error:
            if doubt.denied_at is not None:
                await self._keep(row, evolve(doubt, denied_at=None))
            raise StillOpen(error.text) from None
        if found is not None:
            return found
        now = self._clock.seconds()
        if doubt.denied_at is None:
            await self._keep(row, evolve(doubt, denied_at=timestamp(now)))
            raise StillOpen("the engine does not know the job yet", QUIET_S)
        quiet_since = seconds_of(doubt.denied_at)
        if doubt.fenced_at is not None:
            quiet_since = max(quiet_since, seconds_of(doubt.fenced_at))
        if now < quiet_since + QUIET_S:
            raise StillOpen("the engine does not know the job yet", quiet_since + QUIET_S - now)
        if doubt.fenced_at is None:
            await self._fence(endpoints, row)
            await self._keep(row, evolve(doubt, fenced_at=timestamp(now)))
            raise StillOpen("the engine does not know the job yet", QUIET_S)
        return None

    async def _fence(self, endpoints: Endpoints, row: Execution) -> None:
        if row.workflow_dir is None:
            return
        try:
            await self._files.delete(endpoints.webhdfs, row.workflow_dir, endpoints.user)
        except EngineError as error:
            text = f"the definition of the submit cannot be removed: {error.text}"
            raise StillOpen(text) from None

    async def _keep(self, row: Execution, doubt: Doubt) -> None:
        await self._changes.apply(row.id, lambda r: evolve(r, doubt=doubt) if r.submitting else r)
