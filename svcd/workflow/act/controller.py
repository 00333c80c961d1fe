"""Follows executions from `Pending` to their end. It holds the tick; other modules hold the tasks.

Each tick reads the unfinished rows and passes each on: to `Submissions` (before the engine has the
job), `EngineJobs` (while the engine has it) or `Endings` (after the end). The controller decides
nothing: see `svcd.workflow.decide`. Only the rows hold state: after a restart the first tick finds
all unfinished executions.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.model.ids import ClusterId, ExecutionId
from svcd.model.job import Execution
from svcd.ports.cloud import ApplicationCredentials, ObjectStore
from svcd.ports.engine import Engine, Engines, FileSystem
from svcd.ports.leases import Leases
from svcd.ports.machines import Probe
from svcd.ports.store import Sealer, Store
from svcd.runtime.fencing import Alone, if_held
from svcd.runtime.tasks import Loop, gather, sleep
from svcd.runtime.work_metrics import WorkMetrics
from svcd.settings import Workflow
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.endings import Endings
from svcd.workflow.act.engine_jobs import EngineJobs, raise_first
from svcd.workflow.act.job_credentials import JobCredentials
from svcd.workflow.act.kept_logs import KeptLogs
from svcd.workflow.act.launchers import Launchers
from svcd.workflow.act.logs import Logs
from svcd.workflow.act.perform import Performer
from svcd.workflow.act.pruning import Pruning
from svcd.workflow.act.rows import Rows
from svcd.workflow.act.submissions import Submissions
from svcd.workflow.act.tasks import AT_ONCE, Means
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.binaries import Binaries
from svcd.workflow.decide import planner
from svcd.workflow.decide.clock_skew import Bounds
from svcd.workflow.decide.object_store import ObjectStoreAccess

log = Logger()

ENGINES_AT_ONCE: Final = 10
"""Engines that a tick asks in parallel."""
_MOMENT_S: Final = 0.2
"""A cancel gives a start that is under way this time to end."""


class Controller:
    """Drives all executions.

    idle: called when an execution of a transient cluster has ended. noticed: called with a cluster
    when an execution begins to wait for something of it. credentials: makes the application
    credentials of jobs; None: jobs get the passwords of their accounts. access: the object store as
    the clusters' machines reach it. leases: svcd drives only executions of leases that they hold.
    It performs requests (refresh, kill) for any execution, and notifies the daemon that drives it.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        object_store: ObjectStore,
        credentials: ApplicationCredentials | None,
        engines: Engines,
        probe: Probe,
        sealer: Sealer,
        clock: IReactorTime,
        settings: Workflow,
        access: ObjectStoreAccess | None,
        idle: Callable[[], None],
        rng: random.Random,
        installation: str = "",
        leases: Leases | None = None,
        noticed: Callable[[ClusterId], None] = lambda _: None,
        metrics: WorkMetrics | None = None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._leases: Leases = leases or Alone()
        self._tidied = False
        self.binaries = Binaries(store, object_store)
        self.containers = Containers(probe, clock)
        self.rows = Rows(store, engines, clock, self._leases, sealer, noticed, metrics)
        self.credentials = JobCredentials(
            store=store,
            cloud=credentials,
            clock=clock,
            leases=self._leases,
            installation=installation,
            life_s=settings.job_credential_s,
        )
        performer = Performer(
            store=store,
            rows=self.rows,
            engine=engine,
            files=files,
            probe=probe,
            binaries=self.binaries,
            credentials=self.credentials,
            containers=self.containers,
            launchers=Launchers(probe, clock),
            clock=clock,
            access=access,
        )
        means = Means(
            rows=self.rows,
            performer=performer,
            clock=clock,
            settings=settings,
            rng=rng,
            leases=self._leases,
        )
        starting: set[ExecutionId] = set()
        self.logs = Logs(engine, self.containers, settings.log_bytes)
        self.kept_logs = KeptLogs(store, self.rows, self.logs, clock)
        self._endings = Endings(means, self.credentials, starting, self.kept_logs, idle)
        self.jobs = EngineJobs(means, self._endings, engine, ResourceManager(probe), idle)
        self._submissions = Submissions(means, self.jobs, self._endings, starting)
        self._ticks = Loop(clock, "execution status", settings.poll_s, self.tick)
        self._pruning = Pruning(store, clock, self._leases, settings.keep_days)

    # ---- owner's side ----

    def start(self) -> None:
        """Begin with a tick at once; the starts of many executions are spread."""
        self._ticks.start()
        self.credentials.start()
        self._pruning.start()

    async def stop(self) -> None:
        """Stop all tasks. The rows hold the remaining work."""
        await self._ticks.stop()
        await self._pruning.stop()
        await self.jobs.stop()
        await self._submissions.stop()
        await self._endings.stop()
        await self.credentials.stop()

    def wake(self, id_: ExecutionId | None = None) -> None:
        """Read one execution soon, or all of them."""
        if id_ is None:
            self._ticks.wake()
        else:
            self._submissions.wake(id_)

    def notified(self, id_: ExecutionId, key: str) -> None:
        """Read the row soon, because another daemon has written it."""
        if self._leases.holds(key):
            self._submissions.wake(id_)
            self._ticks.wake()

    def gained(self) -> None:
        """Read all unfinished executions as after a start, because this daemon has got leases."""
        self._tidied = False
        self._ticks.wake()
        self.credentials.wake()

    def forget(self) -> None:
        """Drop the memory of executions and engines whose leases this daemon has lost."""
        self.jobs.retain(self._leases.holds)
        self.rows.retain(self._leases.holds)

    def active(self) -> int:
        """The number of executions that svcd starts or tidies up now, without running ones."""
        return len({*self._submissions.active(), *self._endings.active()})

    async def settled(self, id_: ExecutionId) -> None:
        """Wait a moment, so that a start that is under way can end."""
        self._submissions.wake(id_)
        await sleep(self._clock, _MOMENT_S)

    # ---- the tick ----

    async def tick(self) -> None:
        """Start pending executions and read the status of running ones."""
        if not self._tidied:
            await self._find_untidy()
        rows = await self._corrected(await self.rows.unfinished())
        due = planner.due(rows, self._clock.seconds())
        for id_ in due.ended:
            self._endings.wake(id_, 0.0)  # removes its folder, then its row
        for index, id_ in enumerate(due.starts):
            self._submissions.wake(id_, self._rng.random() if index >= AT_ONCE else 0.0)
        for id_ in due.orphans:
            await if_held(
                self._leases, id_, partial(self.jobs.orphan, id_, "the cluster was deleted")
            )
        self.jobs.retain(due.at_engines.__contains__)
        self.rows.retain(due.at_engines.__contains__)
        results = await gather(
            [partial(self._turn, each, rows) for each, rows in due.at_engines.items()],
            ENGINES_AT_ONCE,
        )
        raise_first(results)

    async def _corrected(self, found: Sequence[Execution]) -> Sequence[Execution]:
        """`found` with impossible times corrected, in the rows too: see `clock_skew`."""
        bounds = Bounds(self._clock.seconds())
        rows: list[Execution] = []
        for row in found:
            if bounds.corrected(row) is row:
                rows.append(row)
                continue
            sound = await self.rows.change(row.id, bounds.corrected)
            if sound is not None:
                rows.append(sound)
        return rows

    async def _find_untidy(self) -> None:
        """Remove folders of executions that ended under a former daemon, beside the first ticks.

        With very many rows this query can exceed the time limit of a statement.
        """
        self._tidied = True
        try:
            found = await self.rows.untidy()
        except ServiceUnavailable as error:
            self._tidied = False
            log.warn("Folders of ended executions could not be listed: {why}", why=error.message)
            return
        except BaseException:
            self._tidied = False
            raise
        for id_ in found:
            self._endings.wake(id_)

    async def _turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        await if_held(self._leases, cluster_id, partial(self.jobs.turn, cluster_id, rows))
