"""One task per unsettled cluster: row -> observe -> plan -> intents -> perform -> outcomes.

Note: who wins. The row has two writers, the requests and this controller. A request changes
`generation`; every write of the controller is a compare-and-set. When it loses, it reads the row
again and adds only what has become known (server ids, steps that are done), never its own view of
status or generation: so what a user wants is never overwritten, and what a call has made is never
forgotten. A request also interrupts what is being waited for (`wake`).

Nothing is remembered that a restart may not lose: see `steps.Memory`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, assert_never

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import NotFound, ServiceUnavailable
from svcd.fencing import Alone
from svcd.logs import about
from svcd.model.cluster import Cluster, ClusterEvent, ClusterStatus, Desired
from svcd.model.ids import ClusterId, InstanceId
from svcd.ports import CloudError, Leases, Tx
from svcd.provisioning import lifecycle, stamps, story
from svcd.provisioning.failures import Code, code_of
from svcd.provisioning.observed import Observed
from svcd.provisioning.perform import Performer, Ports
from svcd.provisioning.planner import Plan, World, needs_sight, plan
from svcd.provisioning.removal import access_being_given_up
from svcd.provisioning.steps import (
    AnyStep,
    Distribute,
    Done,
    Fail,
    Interrupted,
    Memory,
    Outcome,
    Prepare,
    Reach,
    Retry,
    Tried,
    Wait,
)
from svcd.settings import Provisioning
from svcd.tasks import Backoff, Interrupt, KeyedTasks, Loop, gather

log = Logger()

_RETRY: Final = Backoff(first_s=0.5, most_s=30.0)
_WAIT: Final = Backoff(first_s=0.2, most_s=2.0, jitter=0.1)
_LOOK_FIRST_S: Final = 0.1
_MOST_CRASHES: Final = 5
_MOST_CONFLICTS: Final = 20
_MOST_REFUSALS: Final = 5
_BELIEVED_S: Final = 15.0
_OBSERVE: Final = "observe"
RESCAN_S: Final = 60.0
_JITTER_S: Final = 5.0

_ON_MACHINES = (Reach, Prepare, Distribute)


@frozen(kw_only=True)
class _Crash:
    """Unexpected failures of one cluster's task, in a row."""

    count: int
    incident: str
    text: str


class Controller:
    """Drives all clusters towards what was asked for. Implements the wake of the commands.

    settled: told of each cluster that has come to rest (also of one that is gone). leases: only
    clusters that they hold are driven. rescan_s: looks for rows that nobody works on.
    """

    def __init__(
        self,
        ports: Ports,
        clock: IReactorTime,
        settings: Provisioning,
        rng: random.Random,
        settled: Callable[[ClusterId], None] | None = None,
        leases: Leases | None = None,
        rescan_s: float = RESCAN_S,
    ) -> None:
        self._leases: Leases = leases or Alone()
        self._ports = ports
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._settled = settled
        self._memory: dict[ClusterId, Memory] = {}
        self._interrupts: dict[ClusterId, Interrupt] = {}
        self._crashes: dict[ClusterId, _Crash] = {}
        self._seen: dict[ClusterId, tuple[float, Observed]] = {}
        self._aliens: set[ClusterId] = set()  # not looked at yet since others may have driven them
        self._tasks: KeyedTasks[ClusterId] = KeyedTasks(
            clock,
            "cluster",
            self._drive,
            rng=rng,
            failed=self._crashed,
            leases=self._leases,
            parked=self._forget,
        )
        self._rescan = Loop(clock, "unsettled clusters", rescan_s, self._scan)

    # ---- owner's side ----

    async def start(self) -> None:
        """Take up all unfinished clusters, spread over some seconds when there are many."""
        found = await self._unsettled()
        self._aliens.update(found)
        spread = min(_JITTER_S, 0.01 * len(found))
        for cluster_id in found:
            self._tasks.wake(cluster_id, self._rng.random() * spread)
        self._rescan.start(now=False)

    async def stop(self) -> None:
        """Park: no task runs any more. Rows say what is left to do."""
        await self._rescan.stop()
        await self._tasks.stop()

    async def announce(self, tx: Tx, cluster_id: ClusterId) -> None:
        """In the transaction that changes a row: the daemon that drives it will look at it."""
        if not self._leases.holds(cluster_id):
            await tx.tell(f"cluster {cluster_id}")

    def rescan(self) -> None:
        """Look at once for rows that nobody works on: leases were got."""
        self._rescan.poke()

    def forget(self) -> None:
        """Leases were lost: what is remembered of those clusters counts no more."""
        known = {*self._memory, *self._interrupts, *self._crashes, *self._seen}
        for cluster_id in [*known, *self._tasks.active()]:
            if not self._leases.holds(cluster_id):
                self._tasks.rest(cluster_id)
                self._forget(cluster_id)

    def wake(self, cluster_id: ClusterId) -> None:
        """A request has changed the row: look at once, and drop what is being waited for."""
        if not self._leases.holds(cluster_id):
            return
        interrupt = self._interrupts.get(cluster_id)
        if interrupt is not None:
            interrupt.fire()
        self._tasks.wake(cluster_id)

    def active(self) -> int:
        """Clusters that are being worked on."""
        return len(self._tasks.active())

    async def _scan(self) -> None:
        """A net under the wakes: rows that nobody works on, or not as they are wanted now."""
        found = await self._unsettled()
        busy = set(self._tasks.active())
        for cluster_id, generation in found.items():
            memory = self._memory.get(cluster_id)
            if cluster_id not in busy:
                if cluster_id not in self._interrupts:
                    self._aliens.add(cluster_id)
                self._tasks.wake(cluster_id)
            elif memory is not None and memory.generation < generation:
                self.wake(cluster_id)  # nobody told us

    async def _unsettled(self) -> Mapping[ClusterId, int]:
        found = await self._ports.store.read(lambda tx: tx.clusters.unsettled())
        return {each: found[each] for each in found if self._leases.holds(each)}

    def _crashed(self, cluster_id: ClusterId, count: int, incident: str, error: Exception) -> None:
        if not isinstance(error, ServiceUnavailable):
            self._crashes[cluster_id] = _Crash(
                count=count, incident=incident, text=type(error).__name__
            )

    # ---- one cluster ----

    async def _drive(self, cluster_id: ClusterId) -> float | None:
        """Passes until the cluster rests (None) or there is only waiting to do (seconds)."""
        interrupt = self._interrupts.setdefault(cluster_id, Interrupt())
        while True:
            interrupt.clear()  # before the row is read: a wake from now on is about something newer
            cluster = await self._ports.store.read(lambda tx: tx.clusters.find(cluster_id))
            if cluster is None or lifecycle.is_settled(cluster):
                self._rest(cluster_id)
                return None
            alien = cluster_id in self._aliens
            sound = stamps.believable(cluster, self._clock.seconds(), alien)
            if sound is not cluster:
                if await self._write(cluster, sound, ()):
                    self._aliens.discard(cluster_id)
                continue
            self._aliens.discard(cluster_id)
            crash = self._crashes.get(cluster_id)
            if crash is not None and crash.count >= _MOST_CRASHES:
                await self._give_up(cluster, crash)
                continue
            with about(tenant=cluster.tenant_id, cluster=cluster_id):
                wait_s = await self._pass(cluster, interrupt)
            if wait_s is not None:
                return wait_s

    def _forget(self, cluster_id: ClusterId) -> None:
        for kept in (self._memory, self._interrupts, self._crashes, self._seen):
            kept.pop(cluster_id, None)
        self._aliens.discard(cluster_id)

    def _rest(self, cluster_id: ClusterId) -> None:
        self._forget(cluster_id)
        if self._settled is not None:
            self._settled(cluster_id)

    async def _give_up(self, cluster: Cluster, crash: _Crash) -> None:
        reason = f"{crash.text} in {crash.count} tries, incident {crash.incident}"
        now = self._clock.seconds()
        failed = lifecycle.broken(cluster, Code.INTERNAL, reason, now)
        text = failed.status_description
        told = self._event(cluster, cluster.status, "failed", text, code=Code.INTERNAL)
        if await self._write(cluster, failed, [told]):
            self._crashes.pop(cluster.id, None)

    async def _pass(self, cluster: Cluster, interrupt: Interrupt) -> float | None:
        """Observe, plan, write, perform, write. Seconds to wait, or None to go on at once."""
        events: list[ClusterEvent] = []
        performer = self._performer(cluster, interrupt, events)
        observed = await self._observe(cluster, performer)
        memory = self._memory_of(cluster)
        now = self._clock.seconds()
        hopeless = self._hopeless(cluster, memory)
        if hopeless is not None:
            await self._fail(cluster, hopeless, events)
            return None
        planned = plan(
            cluster,
            World(
                observed=observed,
                memory=memory,
                settings=self._settings,
                open_ports=self._open_ports(cluster),
                installation=self._ports.installation,
                now=now,
            ),
        )
        if planned.fail is not None:
            marked = lifecycle.with_instances(cluster, planned.fail.instances)
            await self._fail(marked, planned.fail, events)
            return None
        written, changed = planned.cluster, False
        if written != cluster:
            events.extend(story.replaced(cluster, planned, now))
            events.extend(story.moved(cluster, written, self._settings, now))
            if not await self._write(cluster, written, events):
                return None
            events.clear()
            changed = True
            written = evolve(written, version=cluster.version + 1)
        if planned.settled:
            return None
        due = [s for s in planned.steps if memory.of(s.key).not_before <= now]
        if not due:
            if not planned.steps and not planned.waiting and changed:
                return None
            told = story.waiting(written, planned, memory, self._settings, now)
            await self._tell(cluster.id, told)
            return self._idle(written, planned, memory, now)
        await self._act(written, due, interrupt)
        return None

    async def _act(self, cluster: Cluster, due: Sequence[AnyStep], interrupt: Interrupt) -> None:
        """Perform, remember, write what has become known."""
        events: list[ClusterEvent] = []
        performer = self._performer(cluster, interrupt, events)
        results = await gather(
            [partial(performer.perform, s) for s in due], self._settings.machines_at_once
        )
        outcomes: list[tuple[AnyStep, Outcome]] = []
        bugs: list[BaseException] = []
        for step, result in zip(due, results, strict=True):
            if isinstance(result, BaseException):
                bugs.append(result)
            else:
                outcomes.append((step, result))
        if not all(isinstance(s, _ON_MACHINES) for s in due):  # what was seen is out of date
            self._seen.pop(cluster.id, None)
        failure = self._remember(cluster, outcomes, events)
        await self._record(cluster, outcomes, failure, events)
        if bugs:
            raise bugs[0]

    # ---- parts of a pass ----

    def _performer(
        self, cluster: Cluster, interrupt: Interrupt, events: list[ClusterEvent]
    ) -> Performer:
        def report(
            step: str,
            outcome: str,
            text: str = "",
            machine: str = "",
            code: str = "",
            attempt: int = 0,
            until: float | None = None,
        ) -> None:
            events.append(self._event(cluster, step, outcome, text, machine, code, attempt, until))

        async def flush() -> None:
            told = events[:]
            events.clear()
            await self._tell(cluster.id, told)

        return Performer(
            self._ports, cluster, self._clock, self._settings, self._rng, interrupt, report, flush
        )

    async def _observe(self, cluster: Cluster, performer: Performer) -> Observed | None:
        """What the cloud shows; None when it cannot be read, and memory then says why.

        Not asked again for a moment when only machines were worked on since.
        """
        if not needs_sight(cluster):
            return Observed()
        now = self._clock.seconds()
        seen = self._seen.get(cluster.id)
        if seen is not None and now - seen[0] < _BELIEVED_S:
            return seen[1]
        memory = self._memory_of(cluster)
        if memory.of(_OBSERVE).not_before > now:
            return None
        try:
            observed = await performer.observe()
        except CloudError as error:
            trouble = Retry(code=code_of(error), reason=error.text, after_s=error.retry_after_s)
            tried = {**memory.tried, _OBSERVE: self._after(memory.of(_OBSERVE), trouble)}
            self._memory[cluster.id] = evolve(memory, tried=tried)
            return None
        if _OBSERVE in memory.tried:
            tried = {k: v for k, v in memory.tried.items() if k != _OBSERVE}
            self._memory[cluster.id] = evolve(memory, tried=tried)
        self._seen[cluster.id] = (now, observed)
        return observed

    def _open_ports(self, cluster: Cluster) -> tuple[int, ...]:
        try:
            distribution = self._ports.distributions.get(cluster.plugin_name)
        except NotFound:
            return ()  # configuring says so; a deletion needs no distribution
        ports: set[int] = set()
        for group in cluster.node_groups:
            ports.update(distribution.open_ports(cluster.engine_version, group.node_processes))
        return tuple(sorted(ports))

    def _memory_of(self, cluster: Cluster) -> Memory:
        memory = self._memory.get(cluster.id)
        if memory is None or memory.generation != cluster.generation:
            since = self._clock.seconds()
            memory = Memory(generation=cluster.generation, since=since)
            self._memory[cluster.id] = memory
            self._seen.pop(cluster.id, None)
        return memory

    def _after(self, before: Tried, outcome: Outcome) -> Tried:
        """A step's history with one more outcome."""
        now = self._clock.seconds()
        count = before.failures + 1
        match outcome:
            case Done(repeat_s=repeat_s):
                return Tried(done=True, not_before=now + repeat_s if repeat_s else 0.0)
            case Wait(reason=reason, code=code, seconds=seconds):
                delay = max(seconds, _WAIT.delay_s(count, self._rng))
                return Tried(failures=count, not_before=now + delay, reason=reason, code=code)
            case Retry(reason=reason, code=code, after_s=after_s):
                delay = max(after_s or 0.0, _RETRY.delay_s(count, self._rng))
                return Tried(failures=count, not_before=now + delay, reason=reason, code=code)
            case Fail(reason=reason, code=code):
                return Tried(failures=count, reason=reason, code=code)
            case Interrupted():
                return before
            case _:
                assert_never(outcome)

    def _remember(
        self,
        cluster: Cluster,
        outcomes: Sequence[tuple[AnyStep, Outcome]],
        events: list[ClusterEvent],
    ) -> Fail | None:
        """Keep counts and times; write the story; the first failure, if there is one."""
        memory = self._memory_of(cluster)
        failure: Fail | None = None
        tried = dict(memory.tried)
        for step, outcome in outcomes:
            tried[step.key] = self._after(memory.of(step.key), outcome)
            match outcome:
                case Done(quiet=False):
                    events.append(self._event(cluster, step.what, "done", machine=step.machine))
                case Wait(code=code, reason=reason):
                    count = tried[step.key].failures
                    if count in story.TOLD_WAITS:
                        events.append(
                            self._event(
                                cluster, step.what, "waiting", reason, step.machine, code, count
                            )
                        )
                case Retry(code=code, reason=reason, limit=limit):
                    count = tried[step.key].failures
                    if count <= 3 or count % 10 == 0:
                        events.append(
                            self._event(
                                cluster, step.what, "retry", reason, step.machine, code, count
                            )
                        )
                    log.warn(
                        "Step {step} of cluster {id} will be repeated: {reason}",
                        step=step.what,
                        id=cluster.id,
                        reason=reason,
                    )
                    if limit is not None and count >= limit and failure is None:
                        told = f"{reason} ({count} tries)"
                        failure = Fail(code=code, reason=told, machine=step.machine)
                case Fail(code=code, reason=reason):
                    if not isinstance(step, Distribute):  # its stage has told it
                        events.append(
                            self._event(cluster, step.what, "failed", reason, step.machine, code)
                        )
                    machine = outcome.machine or step.machine
                    failure = failure or evolve(outcome, machine=machine)
                case _:
                    pass
        progress = any(isinstance(o, Done) for _, o in outcomes)
        self._memory[cluster.id] = evolve(memory, tried=tried, idle=0 if progress else memory.idle)
        return failure

    def _hopeless(self, cluster: Cluster, memory: Memory) -> Fail | None:
        """The cloud keeps refusing to show the cluster: no use in waiting.

        A deletion waits all the same, unless its trust is lost, which only a new request replaces.
        """
        trouble = memory.of(_OBSERVE)
        passing = {Code.CLOUD_UNAVAILABLE, Code.CLOUD_BUSY, Code.PHASE_TIMEOUT}
        refused = trouble.code not in passing
        if not refused or trouble.failures < _MOST_REFUSALS:
            return None
        if cluster.desired is Desired.DELETED or cluster.status is ClusterStatus.ERROR:
            lost = trouble.code is Code.CREDENTIALS_EXPIRED and cluster.trust_id is not None
            if not lost or cluster.force_delete or access_being_given_up(cluster, memory):
                return None
        return Fail(code=trouble.code, reason=f"{trouble.reason} ({trouble.failures} tries)")

    def _idle(self, cluster: Cluster, planned: Plan, memory: Memory, now: float) -> float:
        """How long to wait: short at first, never past a deadline or a step's time."""
        delay = min(self._settings.poll_s, _LOOK_FIRST_S * 1.5 ** min(memory.idle, 20))
        times = [memory.of(s.key).not_before - now for s in planned.steps]
        if _OBSERVE in memory.tried:
            times.append(memory.of(_OBSERVE).not_before - now)
        if times and not planned.waiting:
            delay = min(times)
        elif times:
            delay = min(delay, *times)
        if not all(isinstance(s, _ON_MACHINES) for s in planned.steps) or planned.waiting:
            self._seen.pop(cluster.id, None)  # look again
        left = lifecycle.remaining_s(cluster, self._settings, now)
        self._memory[cluster.id] = evolve(memory, idle=memory.idle + 1)
        return max(0.01, min(delay, left + 0.001))

    # ---- writing ----

    async def _fail(self, cluster: Cluster, failure: Fail, events: list[ClusterEvent]) -> bool:
        now = self._clock.seconds()
        failed = lifecycle.fail(
            cluster, failure.code, failure.reason, self._settings.on_failure, now
        )
        events.append(
            self._event(
                cluster,
                cluster.status,
                "failed",
                failed.status_description,
                failure.machine,
                failure.code,
            )
        )
        events.extend(story.moved(cluster, failed, self._settings, now))
        log.warn(
            "Cluster {name} {id} failed while {status}: {reason}",
            name=cluster.name,
            id=cluster.id,
            status=cluster.status,
            reason=failed.status_description,
        )
        self._memory.pop(cluster.id, None)  # what comes next counts from the beginning
        self._seen.pop(cluster.id, None)
        return await self._write(cluster, failed, events)

    async def _record(
        self,
        cluster: Cluster,
        outcomes: Sequence[tuple[AnyStep, Outcome]],
        failure: Fail | None,
        events: list[ClusterEvent],
    ) -> None:
        """Add what has become known to the row, whoever else has written it meanwhile."""
        latest: Cluster | None = cluster
        for _ in range(_MOST_CONFLICTS):
            if latest is None:
                return  # dropped
            known = _known(latest, outcomes)
            if failure is not None and latest.generation == cluster.generation:
                if await self._fail_known(latest, known, failure, events):
                    return
            elif known == latest:
                await self._tell(cluster.id, events)
                return
            elif await self._write(latest, known, events):
                return
            latest = await self._ports.store.read(lambda tx: tx.clusters.find(cluster.id))
        raise ServiceUnavailable(f"cluster {cluster.id} is written by others all the time")

    async def _fail_known(
        self, latest: Cluster, known: Cluster, failure: Fail, events: list[ClusterEvent]
    ) -> bool:
        """Known facts and the failure in one write."""
        if lifecycle.is_settled(latest):
            return await self._write(latest, known, events)
        return await self._fail(known, failure, events)

    async def _write(self, before: Cluster, after: Cluster, events: Sequence[ClusterEvent]) -> bool:
        """One compare-and-set, with its events. False: another writer was faster."""
        told = tuple(events)

        async def work(tx: Tx) -> bool:
            if not await tx.clusters.save(after):
                return False
            if told:
                await tx.clusters.add_events(after.id, told)
            return True

        saved = await self._ports.store.tx(work)
        if saved and after.status is not before.status:
            log.info(
                "Cluster {name} {id} became {status}",
                name=after.name,
                id=after.id,
                status=after.status,
            )
        return saved

    async def _tell(self, cluster_id: ClusterId, events: Sequence[ClusterEvent]) -> None:
        told = tuple(events)
        if not told:
            return

        async def work(tx: Tx) -> None:
            if await tx.clusters.find(cluster_id) is not None:
                await tx.clusters.add_events(cluster_id, told)

        await self._ports.store.tx(work)

    def _event(
        self,
        cluster: Cluster,
        step: str,
        outcome: str,
        text: str = "",
        machine: str = "",
        code: str = "",
        attempt: int = 0,
        until: float | None = None,
    ) -> ClusterEvent:
        now = self._clock.seconds()
        return lifecycle.event(cluster, step, outcome, now, text, machine, code, attempt, until)


def _known(cluster: Cluster, outcomes: Sequence[tuple[AnyStep, Outcome]]) -> Cluster:
    """`cluster` with the fields that outcomes make known."""
    changes: dict[InstanceId, dict[str, Any]] = {}
    fields: dict[str, Any] = {}
    for _, outcome in outcomes:
        if isinstance(outcome, Done):
            fields.update(outcome.cluster)
        if isinstance(outcome, Done | Retry | Fail):
            for instance_id, change in outcome.instances.items():
                changes.setdefault(instance_id, {}).update(change)
    merged = lifecycle.with_instances(cluster, changes)
    return evolve(merged, **fields) if fields else merged
