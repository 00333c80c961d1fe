"""The metrics of one daemon, in a registry of its own so that several daemons fit in one process.

Nothing here costs a request more than a few dict operations, see `tallies`. The metrics of clusters
and executions are in `work_metrics`. Names follow Prometheus' conventions (`promlint`): base units,
`_total` for counters.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from svcd.model.trust import TrustFigures
from svcd.ports.store import DatabaseFigures
from svcd.runtime.tallies import Counts, Durations
from svcd.runtime.work_metrics import Census, WorkMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
)  # fmt: skip
"""Upper bounds of the histogram of request durations."""
_LAG_BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LABELS = ["route", "method"]


class _Reading(Collector):
    """Families that svcd makes at each read of the metrics."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        return iter(self._read())


def _database(now: DatabaseFigures | None) -> Iterator[Metric]:
    """The connections to PostgreSQL; nothing without a figure."""
    if now is None:
        return
    connections = GaugeMetricFamily(
        "svcd_database_connections", "Open connections to the database.", labels=["state"]
    )
    connections.add_metric(["busy"], now.busy)
    connections.add_metric(["idle"], now.idle)
    yield connections
    for name, text, value in (
        ("connections_most", "Most connections (database.connections).", now.most),
        ("waiting", "Transactions that wait for a connection.", now.waiting),
        ("reachable", "1 when transactions can begin, else 0.", int(now.reachable)),
    ):
        yield GaugeMetricFamily(f"svcd_database_{name}", text, value)
    for name, text, count in (
        ("connections_opened", "Connections opened.", now.opened),
        ("connections_lost", "Connections found broken.", now.lost),
        ("refused", "Transactions that got no connection.", now.refused),
        ("transactions_repeated", "Transactions begun again after conflicts.", now.repeated),
        ("waits", "Transactions that had to wait for a connection.", now.waits),
        ("wait_seconds", "Total time that transactions waited for a connection.", now.waited_s),
    ):
        yield CounterMetricFamily(f"svcd_database_{name}", text, count)


def _trusts(now: TrustFigures) -> Iterator[Metric]:
    """Trusts that no cluster needs."""
    text = "Trusts without a cluster that svcd still has to find or delete, at the last check."
    yield GaugeMetricFamily("svcd_loose_trusts", text, now.loose)
    text = "Trusts without a cluster that svcd deleted."
    yield CounterMetricFamily("svcd_loose_trusts_returned", text, now.returned)
    text = "Failed attempts to find or delete a trust without a cluster."
    yield CounterMetricFamily("svcd_loose_trusts_failed", text, now.failed)


class Metrics:
    """All metrics of a daemon. Other rooms register theirs in `registry`. work: see WorkMetrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.work = WorkMetrics()
        self._in_flight = 0
        self._connections = 0
        self._requests = Counts("svcd_requests", "Answered requests.", [*_LABELS, "status"])
        self._durations = Durations(
            "svcd_request_duration_seconds",
            "Time from the request to its answer.",
            _LABELS,
            _BUCKETS_S,
        )
        self._uploaded = Counts("svcd_uploaded_bytes", "Bytes of internal job binaries.", [])
        self._refused = Counts(
            "svcd_refused_connections",
            "Connections or requests refused below the level of routes.",
            ["reason"],
        )
        self._lag = Durations(
            "svcd_reactor_lag_seconds",
            "How much later than asked the reactor called a timer; one is asked for every second.",
            [],
            _LAG_BOUNDS_S,
        )
        for collector in (
            self._requests,
            self._durations,
            self._uploaded,
            self._refused,
            self._lag,
            self.work,
        ):
            self.registry.register(collector)
        text = "Requests that are not answered yet."
        self._gauge("svcd_requests_in_flight", text, lambda: self._in_flight)
        text = "Open connections of the API."
        self._gauge("svcd_connections", text, lambda: self._connections)
        self._census: Census | None = None

    def of_process(self, more: Mapping[str, str]) -> None:
        """Show the version of svcd, and the memory, processor time and files of this process.

        more: further labels of `svcd_build_info`.
        """
        info = _build_info(more)
        self.registry.register(_Reading(lambda: [info]))
        ProcessCollector(registry=self.registry)

    def lease(self, held: Callable[[], bool]) -> None:
        """Show whether this daemon holds the lease."""
        text = "1 when this daemon does the work, of those that share the database, else 0."
        self._gauge("svcd_lease_held", text, held)

    def unwell(self, count: Callable[[], int]) -> None:
        """Show the number of unwell clusters.

        count: the number of Active clusters in which the last health check found a failed part.
        """
        text = "Active clusters of this daemon in which the last health check found a failed part."
        self._gauge("svcd_clusters_unwell", text, count)

    def watchers(self, count: Callable[[], int]) -> None:
        """Show the number of open `watch` requests."""
        self._gauge("svcd_watchers", "Open watch requests of this daemon.", count)

    def watch_work(self, census: Census) -> None:
        """Show how many clusters and executions there are."""
        self._census = census
        self.registry.register(census)

    def request_started(self) -> None:
        """Count a request that has reached the door."""
        self._in_flight += 1

    def request_finished(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request. route: the pattern, never the path."""
        self._in_flight -= 1
        self._requests.add(route, method, status)
        self._durations.add(seconds, route, method)

    def lagged(self, seconds: float) -> None:
        """Count a call of a timer that came `seconds` late."""
        self._lag.add(seconds)

    def watch_database(self, read: Callable[[], DatabaseFigures | None]) -> None:
        """Show the figures of the database's connections. read: None when it has none."""
        self.registry.register(_Reading(lambda: _database(read())))

    def watch_trusts(self, read: Callable[[], TrustFigures]) -> None:
        """Show the figures of the trusts that no cluster needs."""
        self.registry.register(_Reading(lambda: _trusts(read())))

    def uploaded(self, size: int) -> None:
        """Count an internal binary of `size` bytes that was stored."""
        self._uploaded.add(by=size)

    def connections(self, count: int) -> None:
        """Show the number of connections that are open now."""
        self._connections = count

    def refused(self, reason: str) -> None:
        """Count a request that could not be read: `bad_request`, `too_slow`, `too_many`."""
        self._refused.add(reason)

    async def refresh(self) -> None:
        """Read what the next `exposition` shows of the database; at most 2 s."""
        if self._census is not None:
            await self._census.refresh()

    def _gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        self.registry.register(_Reading(lambda: [GaugeMetricFamily(name, text, read())]))

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


def _build_info(more: Mapping[str, str]) -> Metric:
    """The version and build of this process; the value is always 1."""
    from importlib import metadata  # here: only a process shows it

    labels = {
        "version": metadata.version("svcd"),
        "python": platform.python_version(),
        "twisted": metadata.version("Twisted"),
        **more,
    }
    text = "Versions of svcd, Python and Twisted, and kinds of cloud and database."
    family = GaugeMetricFamily("svcd_build_info", text, labels=list(labels))
    family.add_metric(list(labels.values()), 1)
    return family
