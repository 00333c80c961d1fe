"""Brings executions to their engines: row -> observe -> plan -> perform -> row.

One task per execution. `submission` decides the next step.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.model.cluster import Cluster
from svcd.model.ids import ExecutionId
from svcd.model.job import Execution, ExecutionStatus
from svcd.runtime.tasks import Backoff
from svcd.workflow.act.endings import Endings
from svcd.workflow.act.engine_jobs import EngineJobs
from svcd.workflow.act.rows import Place
from svcd.workflow.act.tasks import ExecutionTasks, Means
from svcd.workflow.decide import failures, lifecycle, planner, submission
from svcd.workflow.decide.failures import Code
from svcd.workflow.decide.steps import (
    Adopt,
    Again,
    End,
    Forget,
    RemoteStep,
    Rest,
    Retry,
    Step,
)

log = Logger()

CRASHES: Final = 8
"""Starts in a row that end in a bug before the execution is given up."""
_BACKOFF: Final = Backoff(first_s=1.0, most_s=30.0)


class Submissions(ExecutionTasks):
    """Starts executions. running: the set that holds the executions in their start."""

    name = "execution start"

    def __init__(
        self, means: Means, jobs: EngineJobs, endings: Endings, running: set[ExecutionId]
    ) -> None:
        super().__init__(means, self._crashed)
        self._jobs = jobs
        self._endings = endings
        self._running = running
        self._incidents: dict[ExecutionId, str] = {}

    def _crashed(self, id_: ExecutionId, count: int, incident: str, error: Exception) -> None:
        """Count failures: a bug must not keep an execution `Pending` for ever, a lost store may."""
        if count >= CRASHES and not isinstance(error, ServiceUnavailable):
            self._incidents[id_] = incident

    async def _run(self, id_: ExecutionId) -> float | None:
        incident = self._incidents.pop(id_, None)
        if incident is not None:
            text = f"svcd could not start the job, incident {incident}"
            failure = failures.failure(Code.INTERNAL, "start", text)
            now = self._clock.seconds()
            end = End(status=ExecutionStatus.FAILED, failure=failure)
            await self._rows.change(id_, partial(submission.ended, end=end, now=now))
            return None
        self._running.add(id_)
        try:
            again, place, row = await self._passes(id_)
        finally:
            self._running.discard(id_)
        if row is None:
            row = await self._rows.find(id_)
        if row is not None and planner.is_to_tidy(row):
            self._endings.wake(id_)
        elif (
            row is not None
            and place is not None
            and row.workflow_job_id is not None
            and not lifecycle.is_over(row)
        ):
            await self._jobs.follow(place, row)
        return again

    async def _passes(
        self, id_: ExecutionId
    ) -> tuple[float | None, Place | None, Execution | None]:
        """Plan and perform until no work is left (None), or only a wait (seconds).

        Also returns the place of the execution in the last pass, and its row when the last act was
        to write the engine's job to it.
        """
        while True:
            row, cluster = await self._rows.with_cluster(id_)
            if row is None:
                return None, None, None
            if row.workflow_dir is not None:
                self._endings.repeated(id_)
            place = None if cluster is None else self._rows.place_on(cluster)
            user = None if place is None else place.endpoints.user
            seen = submission.Seen(cluster=cluster, user=user)
            step = submission.plan(row, seen, self._clock.seconds())
            while place is not None and isinstance(step, RemoteStep):
                outcome = await self._performer.perform(step, row, place)
                now = self._clock.seconds()
                follows = submission.follow(row, step, outcome, now)
                if follows.move is not None:
                    moved = partial(lifecycle.submit_move, move=follows.move, now=now)
                    row = await self._rows.change(id_, moved) or row
                step = follows.step
            if isinstance(step, Adopt):
                return None, place, await self._adopt(step, row)
            if not isinstance(step, Again):
                return await self._conclude(step, row, cluster), place, None

    async def _adopt(self, step: Adopt, row: Execution) -> Execution | None:
        """Write the engine's job to the row, and return the row."""
        adopted = partial(submission.adopted, job_id=step.job_id, now=self._clock.seconds())
        after = await self._rows.change(row.id, adopted)
        if lifecycle.is_over(row):
            log.warn("Execution {id} had been given up, killed {job}", id=row.id, job=step.job_id)
        else:
            log.info("Execution {id} was submitted as {job}", id=row.id, job=step.job_id)
        return after

    async def _conclude(self, step: Step, row: Execution, cluster: Cluster | None) -> float | None:
        """Write the result of a pass; return the seconds until the next one."""
        now = self._clock.seconds()
        match step:
            case Rest(wait_s=wait_s):
                return wait_s
            case Retry():
                return await self._retry(step, row, cluster)
            case End():
                await self._rows.change(row.id, partial(submission.ended, end=step, now=now))
                if step.failure is not None:
                    code = step.failure.code
                    log.info("Execution {id} failed to start: {code}", id=row.id, code=code)
            case Forget():
                await self._rows.change(row.id, partial(submission.forgotten, now=now))
            case _:
                raise AssertionError(f"{step} needs an engine, and there is none")
        return None

    async def _retry(self, retry: Retry, row: Execution, cluster: Cluster | None) -> float | None:
        """Write a passing fault; return the seconds until the next try."""
        now, tries = self._clock.seconds(), row.attempts + 1
        delay_s = max(retry.least_s, _BACKOFF.delay_s(tries, self._rng))
        until = submission.last_try(row, cluster, self._settings.submit_deadline_s, now)
        retried = partial(submission.retried, retry=retry, delay_s=delay_s, until=until, now=now)
        await self._rows.change(row.id, retried)
        tries_again = submission.tries_again(row, delay_s, until, now)
        if not lifecycle.is_over(row):
            log.warn(
                "Execution {id} could not be started, try {n}: {why}",
                id=row.id,
                n=tries,
                why=retry.text,
            )
            if not tries_again:
                log.info("Execution {id} failed to start: {code}", id=row.id, code=retry.code)
        elif not tries_again:
            log.error(
                "Execution {id} was given up, and its engine cannot be asked: a job of it may run"
                " there unwatched: {why}",
                id=row.id,
                why=retry.text,
            )
        return delay_s if tries_again else None

    def _parked(self, id_: ExecutionId) -> None:
        self._incidents.pop(id_, None)
