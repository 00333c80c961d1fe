"""The metrics of the work: clusters, executions, and calls to the cloud.

The writers of rows count the work of this daemon since its start. The database counts its present
clusters and executions by indexes, at most once in `_FRESH_S`, and only when a reader asks for the
metrics.

Note: a database that does not answer. The counts then disappear instead of showing old numbers, and
`svcd_work_counted` is 0. The reader of the metrics waits for the database for `_PATIENCE_S` at
most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.errors import ServiceUnavailable
from svcd.model.cluster import RESTING, Cluster, ClusterEvent, ClusterStatus
from svcd.model.failures import Code, Of
from svcd.model.ids import Timestamp, seconds_of
from svcd.model.job import Execution, ExecutionStatus
from svcd.model.step_kind import RUN_SCRIPT
from svcd.ports.store import StatusFigures, Store, Tx
from svcd.runtime.coalesce import Coalescer
from svcd.runtime.tallies import Counts, Durations
from svcd.runtime.tasks import DeadlineExceeded, with_deadline

log = Logger()

_FRESH_S: Final = 10.0
"""Age in seconds at which svcd reads the counts of the database again."""
_PATIENCE_S: Final = 2.0
"""Longest wait of a reader of the metrics for the database."""
_MOST_TENANTS: Final = 1000
"""Most tenants with a line of their own in the metrics."""
_CALL_BOUNDS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_STEP_BOUNDS_S: Final = (0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_PHASE_BOUNDS_S: Final = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0, 86_400.0)
_STATUSES: Final = frozenset(ClusterStatus)
_ENDS: Final = (ExecutionStatus.SUCCEEDED, ExecutionStatus.KILLED, ExecutionStatus.FAILED)
_END_VALUES: Final = tuple((status.value,) for status in _ENDS)
_CODES: Final = {
    of: tuple((code.value,) for code in Code if of in code.of) for of in (Of.CLUSTER, Of.EXECUTION)
}


class WorkMetrics(Collector):
    """Counts what this daemon did for clusters and executions, and its calls to the cloud."""

    def __init__(self) -> None:
        self._cluster_failures = Counts(
            "svcd_cluster_failures",
            "Failures of clusters, by failure code.",
            ["code"],
            _CODES[Of.CLUSTER],
        )
        self._cluster_phases = Durations(
            "svcd_cluster_phase_duration_seconds",
            "Time that clusters spent in each status that is not at rest.",
            ["status"],
            _PHASE_BOUNDS_S,
        )
        self._cluster_steps = Durations(
            "svcd_cluster_step_duration_seconds",
            "Time of one attempt of a provisioning step.",
            ["step", "outcome"],
            _STEP_BOUNDS_S,
        )
        self._ended = Counts(
            "svcd_executions_ended",
            "Job executions that ended, by last status.",
            ["status"],
            _END_VALUES,
        )
        self._execution_failures = Counts(
            "svcd_execution_failures",
            "Job executions that failed, by failure code.",
            ["code"],
            _CODES[Of.EXECUTION],
        )
        self._execution_phases = Durations(
            "svcd_execution_phase_duration_seconds",
            "Time of job executions before the engine took them (pending), and in it (running).",
            ["phase"],
            _PHASE_BOUNDS_S,
        )
        self._calls = Counts(
            "svcd_cloud_requests", "Calls to the cloud, by outcome.", ["service", "outcome"]
        )
        self._call_times = Durations(
            "svcd_cloud_request_duration_seconds",
            "Time of calls to the cloud.",
            ["service"],
            _CALL_BOUNDS_S,
        )

    def collect(self) -> Iterator[Metric]:
        """See Collector. The tallies are its attributes."""
        for tally in vars(self).values():
            if isinstance(tally, Counts | Durations):
                yield from tally.collect()

    def cluster_written(
        self, before: Cluster, after: Cluster, events: Sequence[ClusterEvent]
    ) -> None:
        """Count the change of status between two rows, and the events written with it."""
        if before.status is not after.status and before.status not in RESTING:
            self.cluster_left(before, seconds_of(after.status_since))
        self.cluster_events(events)

    def cluster_left(self, cluster: Cluster, now: float) -> None:
        """Count the phase that the row shows, and that ended at `now`."""
        spent = max(0.0, now - seconds_of(cluster.status_since))
        self._cluster_phases.add(spent, cluster.status.value)

    def cluster_events(self, events: Sequence[ClusterEvent]) -> None:
        """Count the attempts of steps that ended, and the failures of whole clusters."""
        for event in events:
            if event.began is not None and event.ended is not None:
                spent = max(0.0, seconds_of(event.ended) - seconds_of(event.began))
                step = RUN_SCRIPT if event.step.startswith(RUN_SCRIPT) else event.step
                self._cluster_steps.add(spent, step, event.outcome)
            elif event.outcome == "failed" and event.step in _STATUSES:
                self._cluster_failures.add(event.code)

    def execution_written(self, before: Execution, after: Execution, now: float) -> None:
        """Count the end of a phase between two rows."""
        pending, over = ExecutionStatus.PENDING, after.end_time is not None
        if before.status is pending and after.status is not pending:
            self._phase("pending", after.created_at, now)
        if not over or before.end_time is not None:
            return
        self._ended.add(after.status.value)
        if after.failure is not None:
            self._execution_failures.add(after.failure.code)
        if after.start_time is not None and after.end_time is not None:
            self._phase("running", after.start_time, seconds_of(after.end_time))

    def _phase(self, phase: str, since: Timestamp, until: float) -> None:
        self._execution_phases.add(max(0.0, until - seconds_of(since)), phase)

    def cloud_called(self, service: str, outcome: str, seconds: float) -> None:
        """Count a call. outcome: `2xx` to `5xx`, or the kind of the fault."""
        self._calls.add(service, outcome)
        self._call_times.add(seconds, service)


@frozen
class _Counted:
    """executions: only those without an end. seconds: of machines, by tenant."""

    clusters: StatusFigures
    executions: StatusFigures
    seconds: Mapping[str, float]


class Census(Collector):
    """The numbers of clusters and executions in the database, and the age of unsettled work."""

    def __init__(self, store: Store, clock: IReactorTime) -> None:
        self._store = store
        self._clock = clock
        self._asking = Coalescer()
        self._counted: _Counted | None = None
        self._at = float("-inf")

    async def refresh(self) -> None:
        """Count again when the counts are old. Several callers share one count."""
        if self._clock.seconds() - self._at < _FRESH_S:
            return
        reading = self._asking.get("census", self._read)
        try:
            await with_deadline(self._clock, _PATIENCE_S, "the count of the work", reading)
        except DeadlineExceeded:
            self._counted = None
            log.warn("The database did not count clusters and executions in time")

    async def _read(self) -> None:
        try:
            self._counted = await self._store.read(_count)
        except ServiceUnavailable as error:
            self._counted = None
            log.warn("Clusters and executions were not counted: {why}", why=error.message)
        self._at = self._clock.seconds()

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        counted = self._counted
        text = "1 when the last count of clusters and executions in the database succeeded, else 0."
        yield GaugeMetricFamily("svcd_work_counted", text, int(counted is not None))
        if counted is None:
            return
        clusters = GaugeMetricFamily(
            "svcd_clusters", "Clusters of the database, by status.", labels=["status"]
        )
        for status in ClusterStatus:
            clusters.add_metric([status], counted.clusters.counts.get(status, 0))
        yield clusters
        executions = GaugeMetricFamily(
            "svcd_executions",
            "Job executions of the database that have not ended, by status.",
            labels=["status"],
        )
        for word in ExecutionStatus:
            if word not in _ENDS:
                executions.add_metric([word], counted.executions.counts.get(word, 0))
        yield executions
        oldest = GaugeMetricFamily(
            "svcd_oldest_unsettled_seconds",
            "Age of the oldest cluster request that is not carried out, and of the oldest execution"
            " that the engine has not taken; 0 when there is none.",
            labels=["work"],
        )
        oldest.add_metric(["cluster"], self._age(counted.clusters.oldest))
        oldest.add_metric(["execution"], self._age(counted.executions.oldest))
        yield oldest
        used = CounterMetricFamily(
            "svcd_instance_seconds",
            "Time of all machines, also of former ones; tenants with least share one without name.",
            labels=["tenant"],
        )
        ordered = Counter(counted.seconds).most_common()
        others = sum(seconds for _, seconds in ordered[_MOST_TENANTS:])
        for tenant, seconds in [*ordered[:_MOST_TENANTS], *([("", others)] if others else [])]:
            used.add_metric([tenant], seconds)
        yield used

    def _age(self, since: Timestamp | None) -> float:
        return 0.0 if since is None else max(0.0, self._clock.seconds() - seconds_of(since))


async def _count(tx: Tx) -> _Counted:
    figures = await tx.clusters.figures(), await tx.executions.figures()
    return _Counted(*figures, await tx.clusters.seconds_by_tenant())
