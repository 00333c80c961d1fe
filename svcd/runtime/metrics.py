"""The metrics of one daemon, in a registry of its own so that several daemons fit in one process.

Requests are counted in plain dicts, which become metric families when the metrics are read: the
library's own counters cost a microsecond each, on every request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from svcd.model.trust import TrustFigures
from svcd.ports.store import DatabaseFigures

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the histogram of request durations."""
_LABELS = ["route", "method"]


class _Requests(Collector):
    """Counts and durations by route."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, str, int], int] = {}
        self.slots: dict[tuple[str, str], list[int]] = {}
        self.sums: dict[tuple[str, str], float] = {}
        self.in_flight = 0

    def collect(self) -> Iterator[Metric]:
        total = CounterMetricFamily(
            "svcd_requests", "Answered requests.", labels=[*_LABELS, "status"]
        )
        for (route, method, status), count in sorted(self.counts.items()):
            total.add_metric([route, method, str(status)], count)
        yield total
        seconds = HistogramMetricFamily(
            "svcd_request_duration_seconds", "Time from the request to its answer.", labels=_LABELS
        )
        for key, slots in sorted(self.slots.items()):
            running, buckets = 0, []
            for bound, count in zip([*map(str, _BUCKETS_S), "+Inf"], slots, strict=True):
                running += count
                buckets.append((bound, running))
            seconds.add_metric(list(key), buckets, self.sums[key])
        yield seconds
        yield GaugeMetricFamily(
            "svcd_requests_in_flight", "Requests that are not answered yet.", self.in_flight
        )


class _Database(Collector):
    """The connections to PostgreSQL, read when the metrics are read."""

    def __init__(self, read: Callable[[], DatabaseFigures | None]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        now = self._read()
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


class _Trusts(Collector):
    """Trusts that no cluster needs."""

    def __init__(self, read: Callable[[], TrustFigures]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        now = self._read()
        text = "Trusts without a cluster that svcd still has to find or delete, at the last check."
        yield GaugeMetricFamily("svcd_loose_trusts", text, now.loose)
        text = "Trusts without a cluster that svcd deleted."
        yield CounterMetricFamily("svcd_loose_trusts_returned", text, now.returned)
        text = "Failed attempts to find or delete a trust without a cluster."
        yield CounterMetricFamily("svcd_loose_trusts_failed", text, now.failed)


class Metrics:
    """All metrics of a daemon. Other rooms register theirs in `registry`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = _Requests()
        self.registry.register(self._requests)
        self._uploaded = Counter(
            "svcd_uploaded_bytes", "Bytes of internal job binaries.", registry=self.registry
        )
        self._connections = Gauge(
            "svcd_connections", "Open connections of the API.", registry=self.registry
        )
        self._refused = Counter(
            "svcd_refused_connections",
            "Connections or requests refused below the level of routes.",
            ["reason"],
            registry=self.registry,
        )

    def leases(self, held: Callable[[], int]) -> None:
        """Show the number of leases. held: the number of shards that this daemon drives now."""
        text = "Shards of clusters that this daemon drives, of 64 in a shared database."
        Gauge("svcd_leases_held", text, registry=self.registry).set_function(held)

    def unwell(self, count: Callable[[], int]) -> None:
        """Show the number of unwell clusters.

        count: the number of Active clusters in which the last health check found a failed part.
        """
        text = "Active clusters of this daemon in which the last health check found a failed part."
        Gauge("svcd_clusters_unwell", text, registry=self.registry).set_function(count)

    def watchers(self, count: Callable[[], int]) -> None:
        """Show the number of open `watch` requests."""
        text = "Open watch requests of this daemon."
        Gauge("svcd_watchers", text, registry=self.registry).set_function(count)

    def request_started(self) -> None:
        """Count a request that has reached the door."""
        self._requests.in_flight += 1

    def request_finished(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answered request. route: the pattern, never the path."""
        requests = self._requests
        requests.in_flight -= 1
        key = (route, method, status)
        requests.counts[key] = requests.counts.get(key, 0) + 1
        place = (route, method)
        slots = requests.slots.get(place)
        if slots is None:
            slots = requests.slots[place] = [0] * (len(_BUCKETS_S) + 1)
            requests.sums[place] = 0.0
        slots[bisect_left(_BUCKETS_S, seconds)] += 1
        requests.sums[place] += seconds

    def watch_database(self, read: Callable[[], DatabaseFigures | None]) -> None:
        """Show the figures of the database's connections. read: None when it has none."""
        self.registry.register(_Database(read))

    def watch_trusts(self, read: Callable[[], TrustFigures]) -> None:
        """Show the figures of the trusts that no cluster needs."""
        self.registry.register(_Trusts(read))

    def uploaded(self, size: int) -> None:
        """Count an internal binary of `size` bytes that was stored."""
        self._uploaded.inc(size)

    def connections(self, count: int) -> None:
        """Show the number of connections that are open now."""
        self._connections.set(count)

    def refused(self, reason: str) -> None:
        """Count a request that could not be read: `bad_request`, `too_slow`, `too_many`."""
        self._refused.labels(reason).inc()

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)
