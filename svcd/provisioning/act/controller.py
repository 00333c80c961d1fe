"""One task per unsettled cluster: row -> observe -> plan -> intents -> perform -> outcomes.

Note: who wins. The row has two writers, the requests and this controller. A request changes
`generation`; every write of the controller is a compare-and-set. When it loses, it reads the row
again and adds only new facts (server ids, steps that are done), never its own view of status or
generation. So the controller never overwrites a request, and never loses the result of a call. A
request also interrupts the present waits (`wake`).

The controller keeps in memory only facts that a restart may lose: see `steps.Memory`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import define, evolve, field, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, ServiceUnavailable
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import ClusterId
from svcd.ports.cloud import CloudError
from svcd.ports.lease import Lease
from svcd.ports.store import Tx, until_saved
from svcd.provisioning.act.perform import Performer, Ports
from svcd.provisioning.act.rows import Journal, Rows
from svcd.provisioning.decide import clock_skew, events, lifecycle, outcomes
from svcd.provisioning.decide.failures import Code, code_of
from svcd.provisioning.decide.observed import Observed
from svcd.provisioning.decide.outcomes import OBSERVE, Outcomes
from svcd.provisioning.decide.planner import World, needs_sight, plan
from svcd.provisioning.decide.steps import AnyStep, Fail, Memory, Outcome, Retry
from svcd.provisioning.distributions.spi import web_ports
from svcd.runtime.fencing import Alone
from svcd.runtime.logs import about
from svcd.runtime.tasks import KeyedTasks, Loop, gather
from svcd.runtime.waits import Interrupt
from svcd.settings import Provisioning

log = Logger()

_MOST_CRASHES: Final = 5
"""Unexpected failures in a row; after them the cluster goes to Error."""
_FRESH_S: Final = 15.0
"""The controller uses the cloud's lists for this long before it reads them again."""
RESCAN_S: Final = 60.0
"""Time between two scans for unfinished rows."""
_JITTER_S: Final = 5.0
"""A start spreads the unfinished clusters over this time at most."""


@frozen(kw_only=True)
class _Crash:
    """Unexpected failures of one cluster's task, in a row."""

    count: int
    incident: str
    text: str


@define(kw_only=True)
class _State:
    """The memory of one cluster while the controller drives it; a restart may lose it.

    alien: another daemon, or a former process, may have driven it since this one read its row.
    taken_at: when this process took it over from such a one (clock seconds); None: it did not.
    sight: the time of the last read of the cloud's lists (clock seconds), and their content.
    """

    interrupt: Interrupt = field(factory=Interrupt)
    alien: bool = False
    taken_at: float | None = None
    memory: Memory | None = None
    sight: tuple[float, Observed] | None = None
    crash: _Crash | None = None

    def memory_of(self, cluster: Cluster, now: float) -> Memory:
        """The memory for the row's generation. A newer generation begins with an empty one."""
        if self.memory is None or self.memory.generation != cluster.generation:
            self.memory = Memory(generation=cluster.generation, since=now, taken_at=self.taken_at)
            self.sight = None
        return self.memory


class Controller:
    """Drives all clusters towards the requested state. Implements the wake of the commands.

    settled: called with each cluster that has come to rest, or whose row is gone. lease: the
    controller drives clusters only while it is held. rescan_s: period of the scan for unfinished
    rows.
    """

    def __init__(
        self,
        ports: Ports,
        clock: IReactorTime,
        settings: Provisioning,
        rng: random.Random,
        settled: Callable[[ClusterId], None] | None = None,
        lease: Lease | None = None,
        rescan_s: float = RESCAN_S,
    ) -> None:
        self._lease: Lease = lease or Alone()
        self._ports = ports
        self._store = ports.store
        self._rows = Rows(ports.store, ports.metrics)
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._settled = settled
        self._states: dict[ClusterId, _State] = {}
        self._tasks: KeyedTasks[ClusterId] = KeyedTasks(
            clock,
            "cluster",
            self._drive,
            rng=rng,
            failed=self._crashed,
            lease=self._lease,
            parked=self._forget,
        )
        self._rescan = Loop(clock, "unsettled clusters", rescan_s, self._scan, self._lease)

    # ---- owner's side ----

    async def start(self) -> None:
        """Resume all unfinished clusters, spread over some seconds when there are many."""
        clusters = await self._unsettled() if self._lease.held else {}
        spread = min(_JITTER_S, 0.01 * len(clusters))
        for cluster_id in clusters:
            self._take_over(cluster_id)
            self._tasks.wake(cluster_id, self._rng.random() * spread)
        self._rescan.start(now=False)

    async def stop(self) -> None:
        """Stop all tasks. The rows hold the remaining work."""
        await self._rescan.stop()
        await self._tasks.stop()

    async def notify(self, tx: Tx, cluster_id: ClusterId) -> None:
        """In the transaction that changes a row: notify the daemon that does the work."""
        if not self._lease.held:
            await tx.notify(f"cluster {cluster_id}")

    def gained(self) -> None:
        """Scan now for unfinished rows, because this daemon has got the lease."""
        self._rescan.wake()

    def forget(self) -> None:
        """Drop the memory of all clusters, because this daemon has lost the lease."""
        for cluster_id in {*self._states, *self._tasks.active()}:
            self._tasks.rest(cluster_id)
            self._forget(cluster_id)

    def wake(self, cluster_id: ClusterId) -> None:
        """Read the row of the cluster now, and interrupt its waits: a request has changed it."""
        if not self._lease.held:
            return
        state = self._states.get(cluster_id)
        if state is not None:
            state.interrupt.fire()
        self._tasks.wake(cluster_id)

    def active(self) -> int:
        """The number of clusters with a running task."""
        return len(self._tasks.active())

    def _take_over(self, cluster_id: ClusterId) -> None:
        """Note that another daemon, or a former process, may have driven the cluster until now."""
        state = self._state(cluster_id)
        state.alien = True
        state.taken_at = self._clock.seconds()

    async def _scan(self) -> None:
        """Wake rows without a task, and tasks of an older request, because a wake can be lost."""
        clusters = await self._unsettled()
        busy = set(self._tasks.active())
        for cluster_id, generation in clusters.items():
            state = self._states.get(cluster_id)
            if cluster_id not in busy:
                if state is None:
                    self._take_over(cluster_id)
                self._tasks.wake(cluster_id)
            elif (
                state is not None
                and state.memory is not None
                and state.memory.generation < generation
            ):
                self.wake(cluster_id)  # its wake was lost

    async def _unsettled(self) -> Mapping[ClusterId, int]:
        return await self._store.read(lambda tx: tx.clusters.unsettled())

    def _crashed(self, cluster_id: ClusterId, count: int, incident: str, error: Exception) -> None:
        if not isinstance(error, ServiceUnavailable):
            text = type(error).__name__
            self._state(cluster_id).crash = _Crash(count=count, incident=incident, text=text)

    def _state(self, cluster_id: ClusterId) -> _State:
        return self._states.setdefault(cluster_id, _State())

    # ---- one cluster ----

    async def _drive(self, cluster_id: ClusterId) -> float | None:
        """Do passes until the cluster rests (None), or until it only waits (seconds)."""
        state = self._state(cluster_id)
        while True:
            state.interrupt.clear()  # before the row is read: a later wake is newer
            cluster = await self._store.read(lambda tx: tx.clusters.find(cluster_id))
            if cluster is None or lifecycle.is_settled(cluster):
                self._rest(cluster_id)
                return None
            sound = clock_skew.corrected(cluster, self._clock.seconds(), state.alien)
            if sound is not cluster:
                if await self._rows.write(cluster, sound, ()):
                    state.alien = False
                continue
            state.alien = False
            crash = state.crash
            if crash is not None and crash.count >= _MOST_CRASHES:
                await self._give_up(cluster, state, crash)
                continue
            with about(tenant=cluster.tenant_id, cluster=cluster_id):
                wait_s = await self._pass(cluster, state)
            if wait_s is not None:
                return wait_s

    def _forget(self, cluster_id: ClusterId) -> None:
        self._states.pop(cluster_id, None)

    def _rest(self, cluster_id: ClusterId) -> None:
        self._forget(cluster_id)
        if self._settled is not None:
            self._settled(cluster_id)

    async def _give_up(self, cluster: Cluster, state: _State, crash: _Crash) -> None:
        reason = f"{crash.text} in {crash.count} tries, incident {crash.incident}"
        now = self._clock.seconds()
        failed = lifecycle.broken(cluster, Code.INTERNAL, reason, now)
        text = failed.status_description
        event = lifecycle.event(cluster, cluster.status, "failed", now, text, code=Code.INTERNAL)
        if await self._rows.write(cluster, failed, [event]):
            state.crash = None

    async def _pass(self, cluster: Cluster, state: _State) -> float | None:
        """Observe, plan, write, perform, write. Seconds to wait; None: another pass at once."""
        journal = Journal(self._rows, self._clock, cluster)
        performer = self._performer(cluster, state, journal)
        observed = await self._observe(cluster, state, performer)
        now = self._clock.seconds()
        memory = state.memory_of(cluster, now)
        hopeless = outcomes.hopeless(cluster, memory)
        if hopeless is not None:
            await self._fail(cluster, state, hopeless, journal.gathered)
            return None
        planned = plan(
            cluster,
            World(
                observed=observed,
                memory=memory,
                settings=self._settings,
                firewall=self._ports.firewall,
                web_ports=self._web_ports(cluster),
                installation=self._ports.installation,
                now=now,
            ),
        )
        if planned.fail is not None:
            updated = lifecycle.with_instances(cluster, planned.fail.instances)
            await self._fail(updated, state, planned.fail, journal.gathered)
            return None
        written, changed = planned.cluster, False
        if written != cluster:
            spawned, memory = events.spawned(cluster, written, memory, now)
            changes = [
                *journal.gathered,
                *events.replaced(cluster, planned, now),
                *spawned,
                *events.moved(cluster, written, self._settings, now),
            ]
            if not await self._rows.write(cluster, written, changes):
                return None
            changed = True
            state.memory = memory
            written = evolve(written, version=cluster.version + 1)
        if planned.settled:
            return None
        due = [s for s in planned.steps if memory.of(s.key).not_before <= now]
        if not due:
            if not planned.steps and not planned.waiting and changed:
                return None
            waits = events.waiting(written, planned, memory, self._settings, now)
            await self._rows.record(cluster.id, waits)
            if planned.waiting or not outcomes.only_on_machines(planned.steps):
                state.sight = None  # read the lists again
            state.memory = evolve(memory, idle=memory.idle + 1)
            return outcomes.wait_s(written, planned, memory, self._settings, now)
        await self._act(written, state, due)
        return None

    async def _act(self, cluster: Cluster, state: _State, due: Sequence[AnyStep]) -> None:
        """Perform the steps, remember their outcomes, and write the new facts."""
        memory = state.memory_of(cluster, self._clock.seconds())
        journal = Journal(self._rows, self._clock, cluster, memory.last)
        performer = self._performer(cluster, state, journal)
        times: dict[str, tuple[float, float]] = {}

        async def timed(step: AnyStep) -> Outcome:
            began = self._clock.seconds()
            try:
                return await performer.perform(step)
            finally:
                times[step.key] = (began, self._clock.seconds())

        results = await gather([partial(timed, s) for s in due], self._settings.machines_at_once)
        found: list[tuple[AnyStep, Outcome]] = []
        bugs: list[BaseException] = []
        for step, result in zip(due, results, strict=True):
            if isinstance(result, BaseException):
                bugs.append(result)
            else:
                found.append((step, result))
        if not outcomes.only_on_machines(due):  # the lists are out of date
            state.sight = None
        for step, outcome in found:
            if isinstance(outcome, Retry):
                log.warn(
                    "Step {step} of cluster {id} will be repeated: {reason}",
                    step=step.what,
                    id=cluster.id,
                    reason=outcome.reason,
                )
        now = self._clock.seconds()
        memory = state.memory_of(cluster, now)
        if journal.last is not memory.last:  # a plan has run, and its actions have events
            memory = evolve(memory, last=journal.last)
        learned = outcomes.learned(cluster, memory, found, now, self._rng, times)
        state.memory = learned.memory
        now_known = [*journal.gathered, *learned.events]
        await self._record(cluster, state, found, learned.failure, now_known)
        if bugs:
            raise bugs[0]

    # ---- parts of a pass ----

    def _performer(self, cluster: Cluster, state: _State, journal: Journal) -> Performer:
        return Performer(
            self._ports,
            cluster,
            self._clock,
            self._settings,
            self._rng,
            state.interrupt,
            journal,
        )

    async def _observe(
        self, cluster: Cluster, state: _State, performer: Performer
    ) -> Observed | None:
        """The cloud's lists. None: they cannot be read, and the memory holds the reason.

        Lists younger than `_FRESH_S` are used again when steps have changed only machines since.
        """
        if not needs_sight(cluster):
            return Observed()
        now = self._clock.seconds()
        if state.sight is not None and now - state.sight[0] < _FRESH_S:
            return state.sight[1]
        memory = state.memory_of(cluster, now)
        if memory.of(OBSERVE).not_before > now:
            return None
        trouble: Retry | None = None
        observed: Observed | None = None
        try:
            observed = await performer.observe()
        except CloudError as error:
            trouble = Retry(code=code_of(error), reason=error.text, after_s=error.retry_after_s)
        else:
            state.sight = (now, observed)
        state.memory = outcomes.observed(memory, trouble, self._clock.seconds(), self._rng)
        return observed

    def _web_ports(self, cluster: Cluster) -> tuple[int, ...]:
        try:
            distribution = self._ports.distributions.get(cluster.plugin_name)
        except NotFound:
            return ()  # the step `configure` reports this; a deletion needs no distribution
        ports: set[int] = set()
        for group in cluster.node_groups:
            ports.update(web_ports(distribution, cluster.engine_version, group.node_processes))
        return tuple(sorted(ports))

    # ---- writing ----

    async def _fail(
        self, cluster: Cluster, state: _State, failure: Fail, gathered: Sequence[ClusterEvent]
    ) -> bool:
        now, code = self._clock.seconds(), failure.code
        failed = lifecycle.fail(cluster, code, failure.reason, self._settings.on_failure, now)
        text = failed.status_description
        changes = [
            *gathered,
            lifecycle.event(cluster, cluster.status, "failed", now, text, failure.machine, code),
            *events.moved(cluster, failed, self._settings, now),
        ]
        log.warn(
            "Cluster {name} {id} failed while {status}: {reason}",
            name=cluster.name,
            id=cluster.id,
            status=cluster.status,
            reason=failed.status_description,
        )
        state.memory = state.sight = None  # the next work begins with fresh counts
        return await self._rows.write(cluster, failed, changes)

    async def _record(
        self,
        cluster: Cluster,
        state: _State,
        found: Outcomes,
        failure: Fail | None,
        gathered: Sequence[ClusterEvent],
    ) -> None:
        """Add the new facts to the row, also when another writer has changed it meanwhile."""
        latest: Cluster | None = cluster

        async def attempt() -> tuple[bool, None]:
            nonlocal latest
            if latest is None:
                return True, None  # the row is gone
            known = outcomes.known(latest, found)
            if failure is not None and latest.generation == cluster.generation:
                won = await self._fail_known(latest, known, state, failure, gathered)
            elif known == latest:
                await self._rows.record(cluster.id, gathered)
                won = True
            else:
                won = await self._rows.write(latest, known, gathered)
            if not won:
                latest = await self._store.read(lambda tx: tx.clusters.find(cluster.id))
            return won, None

        await until_saved(f"cluster {cluster.id}", attempt)

    async def _fail_known(
        self,
        latest: Cluster,
        known: Cluster,
        state: _State,
        failure: Fail,
        gathered: Sequence[ClusterEvent],
    ) -> bool:
        """Write the new facts and the failure together."""
        if lifecycle.is_settled(latest):
            return await self._rows.write(latest, known, gathered)
        return await self._fail(known, state, failure, gathered)
