"""Follows executions from `Pending` to their end. The tick here, the tasks in the modules beside.

Each tick reads the unfinished rows and gives each to the one that has to do with it: `Submissions`
(on its way to the engine), `EngineJobs` (at its engine) or `Endings` (ended). The controller
decides nothing: see `svcd.workflow.decide`. State is in the rows alone: after a restart the first
tick finds everything.
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
from svcd.ports.cloud import ObjectStore
from svcd.ports.engine import Engine, FileSystem
from svcd.ports.leases import Leases
from svcd.ports.machines import Probe
from svcd.ports.store import Store
from svcd.runtime.fencing import Alone, if_held
from svcd.runtime.tasks import Loop, gather, sleep
from svcd.settings import Workflow
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.endings import Endings
from svcd.workflow.act.engine_jobs import EngineJobs, raise_first
from svcd.workflow.act.launchers import Launchers
from svcd.workflow.act.perform import Performer
from svcd.workflow.act.rows import Rows
from svcd.workflow.act.submissions import AT_ONCE, Submissions
from svcd.workflow.act.yarn import ResourceManager
from svcd.workflow.binaries import Binaries
from svcd.workflow.decide import document, planner
from svcd.workflow.decide.clock_skew import Bounds
from svcd.workflow.engines import Engines

log = Logger()

ENGINES_AT_ONCE: Final = 10
_MOMENT_S: Final = 0.2


class Controller:
    """Drives all executions.

    idle: called when an execution of a transient cluster has ended. noticed: called with a cluster
    when an execution begins to wait for something of it. access: the object store as the clusters'
    machines reach it. leases: svcd works only on what they hold; what a request asks for (refresh,
    kill) is done all the same, and the daemon that drives the execution is notified.
    """

    def __init__(
        self,
        *,
        store: Store,
        engine: Engine,
        files: FileSystem,
        object_store: ObjectStore,
        engines: Engines,
        probe: Probe,
        clock: IReactorTime,
        settings: Workflow,
        access: document.ObjectStoreAccess | None,
        idle: Callable[[], None],
        rng: random.Random,
        leases: Leases | None = None,
        noticed: Callable[[ClusterId], None] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._leases: Leases = leases or Alone()
        self._tidied = False
        self.binaries = Binaries(store, object_store)
        self.containers = Containers(probe, clock)
        self.rows = Rows(store, engines, clock, self._leases, noticed)
        performer = Performer(
            store=store,
            rows=self.rows,
            engine=engine,
            files=files,
            binaries=self.binaries,
            containers=self.containers,
            launchers=Launchers(probe, clock),
            clock=clock,
            access=access,
        )
        starting: set[ExecutionId] = set()
        self._endings = Endings(
            rows=self.rows,
            performer=performer,
            clock=clock,
            rng=rng,
            leases=self._leases,
            starting=starting,
        )
        self.jobs = EngineJobs(
            rows=self.rows,
            performer=performer,
            endings=self._endings,
            engine=engine,
            manager=ResourceManager(probe),
            clock=clock,
            settings=settings,
            rng=rng,
            leases=self._leases,
            idle=idle,
        )
        self._submissions = Submissions(
            rows=self.rows,
            performer=performer,
            jobs=self.jobs,
            endings=self._endings,
            clock=clock,
            settings=settings,
            rng=rng,
            leases=self._leases,
            running=starting,
        )
        self._ticks = Loop(clock, "execution status", settings.poll_s, self.tick)

    # ---- owner's side ----

    def start(self) -> None:
        """Begin; the first tick comes at once, starts of many executions are spread."""
        self._ticks.start()

    async def stop(self) -> None:
        """Park everything; nothing is lost."""
        await self._ticks.stop()
        await self.jobs.stop()
        await self._submissions.stop()
        await self._endings.stop()

    def wake(self, id_: ExecutionId | None = None) -> None:
        """Look at an execution soon, or at all of them."""
        if id_ is None:
            self._ticks.poke()
        else:
            self._submissions.wake(id_)

    def notified(self, id_: ExecutionId, key: str) -> None:
        """Another daemon has written the row."""
        if self._leases.holds(key):
            self._submissions.wake(id_)
            self._ticks.poke()

    def gained(self) -> None:
        """Leases were got: look at all that they are for, as after a start."""
        self._tidied = False
        self._ticks.poke()

    def forget(self) -> None:
        """Leases were lost: forget what is known of what they are for."""
        self.jobs.retain(self._leases.holds)

    def active(self) -> int:
        """Executions that are being started or tidied up; those that only run do not count."""
        return len({*self._submissions.active(), *self._endings.active()})

    async def settled(self, id_: ExecutionId) -> None:
        """A moment later: gives a start that is under way the time to end."""
        self._submissions.wake(id_)
        await sleep(self._clock, _MOMENT_S)

    # ---- the tick ----

    async def tick(self) -> None:
        """Start what is pending, read the status of what runs."""
        if not self._tidied:
            await self._find_untidy()
        rows = await self._believable(await self.rows.unfinished())
        due = planner.due(rows, self._clock.seconds())
        for id_ in due.ended:
            self._endings.wake(id_, 0.0)  # its folder, then it is dropped
        for index, id_ in enumerate(due.starts):
            self._submissions.wake(id_, self._rng.random() if index >= AT_ONCE else 0.0)
        for id_ in due.orphans:
            await if_held(
                self._leases, id_, partial(self.jobs.orphan, id_, "the cluster was deleted")
            )
        self.jobs.retain(due.at_engines.__contains__)
        results = await gather(
            [partial(self._turn, each, rows) for each, rows in due.at_engines.items()],
            ENGINES_AT_ONCE,
        )
        raise_first(results)

    async def _believable(self, found: Sequence[Execution]) -> Sequence[Execution]:
        """`found`; those with times that cannot be are written anew: see `clock_skew`."""
        bounds = Bounds(self._clock.seconds())
        rows: list[Execution] = []
        for row in found:
            if bounds.believable(row) is row:
                rows.append(row)
                continue
            sound = await self.rows.change(row.id, bounds.believable)
            if sound is not None:
                rows.append(sound)
        return rows

    async def _find_untidy(self) -> None:
        """Folders of those that a former daemon may have seen end: what runs does not wait for it.

        With very many rows this can take longer than a statement may.
        """
        self._tidied = True
        try:
            found = await self.rows.untidy()
        except ServiceUnavailable as error:
            self._tidied = False
            log.warn("Folders that are left could not be looked for: {why}", why=error.message)
            return
        except BaseException:
            self._tidied = False
            raise
        for id_ in found:
            self._endings.wake(id_)

    async def _turn(self, cluster_id: ClusterId, rows: Sequence[Execution]) -> None:
        await if_held(self._leases, cluster_id, partial(self.jobs.turn, cluster_id, rows))
