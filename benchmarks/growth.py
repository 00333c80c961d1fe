"""What one more node, object, trust or template costs when there are many of them.

Each amount is done in a process of its own on a `FakeService` (`benchmarks.growing`): a hundredth
of it and all of it, and the cost of one is compared. After that, clusters on `svcd-cloud` over
sockets, with servers that answer on SSH: what the API takes meanwhile, and how late its reactor is.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.api import Api, master_and_workers
from benchmarks.figures import Figure, quantile, ratio
from benchmarks.growing import NODES, SETTINGS
from benchmarks.lives import Unexpected
from benchmarks.processes import Server, cloud_and_daemon

_CLUSTERS: Final = 1000
_THINGS: Final = 10_000
_ON_SOCKETS: Final = 300
_GROWTH: Final = 1.2
_NODE_MS: Final = 1.5
_MEMORY_MIB: Final = 700.0
_API_MS: Final = 50.0
_LAG_MS: Final = 25.0
_OTHER_FILES: Final = 1000
_PAUSE_S: Final = 0.01
_ACTIVE_S: Final = 3600.0
_HISTOGRAM: Final = re.compile(
    r'^svcd_reactor_lag_seconds_bucket\{le="([^"]+)"\} ([0-9.e+]+)$', re.MULTILINE
)


def run(quick: bool) -> list[Figure]:
    """All figures."""
    clusters, nodes = (5, 20) if quick else (_ON_SOCKETS, NODES)
    return [*_fake(quick), *_sockets(clusters, nodes)]


def _fake(quick: bool) -> list[Figure]:
    clusters, things = (100, 1000) if quick else (_CLUSTERS, _THINGS)
    few, many = _taken("clusters", clusters // 100 or 1), _taken("clusters", clusters)
    nodes = clusters * NODES
    small = few["cpu_ms"] / (nodes // 100)
    large = many["cpu_ms"] / nodes
    figures = [
        _figure(f"a node of {nodes}, CPU", "ms", large, _NODE_MS),
        ratio("growth", f"a node of {nodes} to one of {nodes // 100}", [large], [small], _GROWTH),
        _figure(f"memory with {nodes} nodes", "MiB", many["memory_mib"], _MEMORY_MIB),
    ]
    for what in ("objects", "trusts", "templates"):
        small = _taken(what, things // 100)["cpu_ms"] / (things // 100)
        large = _taken(what, things)["cpu_ms"] / things
        figures.append(_figure(f"one of {things} {what}, CPU", "ms", large))
        name = f"one of {things} {what} to one of {things // 100}"
        figures.append(ratio("growth", name, [large], [small], _GROWTH))
    return figures


def _taken(what: str, count: int) -> Mapping[str, float]:
    """What `count` of them took in a process of their own."""
    command = [sys.executable, "-m", "benchmarks.growing", what, str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    taken: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    words = f"{taken['cpu_ms'] / count:.2f} ms each, {taken['memory_mib']:.0f} MiB"
    print(f"growth: {count} {what}: {words}", file=sys.stderr, flush=True)
    return taken


def _figure(name: str, unit: str, value: float, target: float | None = None) -> Figure:
    return Figure(benchmark="growth", name=name, unit=unit, rounds=(value,), target=target)


# ---- over sockets ----


def _sockets(clusters: int, nodes: int) -> list[Figure]:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files != resource.RLIM_INFINITY:  # each server has a listening socket
        clusters = max(1, min(clusters, (files - _OTHER_FILES) // (2 * nodes)))
    cloud_settings = {key: SETTINGS[key] for key in SETTINGS if key.startswith("embedded.")}
    with (
        tempfile.TemporaryDirectory(prefix="svcd-bench-") as folder,
        cloud_and_daemon(Path(folder), cloud_settings, {"limits.instances": "0"}) as pair,
    ):
        return _converging(*pair, clusters, nodes)


def _converging(
    cloud: Server, daemon: Server, told: Mapping[str, Any], clusters: int, nodes: int
) -> list[Figure]:
    api = Api(daemon.port, told)
    before = _late(daemon.port)
    used = daemon.cpu_s(), cloud.cpu_s()
    begin = time.perf_counter()
    groups = master_and_workers(nodes)
    ids = [api.cluster(f"grown-{number}", groups) for number in range(clusters)]
    waits = _watched(api, ids)
    seconds = time.perf_counter() - begin
    count = clusters * nodes
    late = {bound: number - before[bound] for bound, number in _late(daemon.port).items()}
    lag_s = next(bound for bound in sorted(late) if late[bound] >= 0.99 * late[float("inf")])
    name = f"{clusters} x {nodes} over sockets"
    figures = [
        _figure(f"{name}: all Active", "s", seconds),
        _figure(f"{name}: GET of a cluster, p99", "ms", quantile(waits, 0.99), _API_MS),
        _figure(f"{name}: lag of the reactor, p99 below", "ms", lag_s * 1000.0, _LAG_MS),
        _figure(f"{name}: a node, CPU of svcd", "ms", (daemon.cpu_s() - used[0]) / count * 1e3),
        _figure(f"{name}: a node, CPU of the cloud", "ms", (cloud.cpu_s() - used[1]) / count * 1e3),
        _figure(f"{name}: memory of svcd", "MiB", daemon.memory_mib()),
        _figure(f"{name}: memory of the cloud", "MiB", cloud.memory_mib()),
    ]
    for id_ in ids:
        api.asked("DELETE", f"/clusters/{id_}?force=true")
    api.close()
    return figures


def _watched(api: Api, ids: list[str]) -> list[float]:
    """Milliseconds of each GET of a cluster, in turns until all are Active."""
    waits: list[float] = []
    left, end = list(ids), time.perf_counter() + _ACTIVE_S
    while left:
        for id_ in list(left):
            begin = time.perf_counter()
            cluster = api.asked("GET", f"/clusters/{id_}")["cluster"]
            waits.append((time.perf_counter() - begin) * 1000.0)
            if cluster["status"] == "Active":
                left.remove(id_)
            elif cluster["status"] == "Error" or begin > end:
                raise Unexpected(f"{cluster['name']}: {cluster['status_description']}")
            time.sleep(_PAUSE_S)
    return waits


def _late(port: int) -> Mapping[float, float]:
    """How many beats of the daemon's reactor were late by at most each bound, in seconds."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60.0) as answer:
        text = answer.read().decode()
    return {float(bound): float(count) for bound, count in _HISTOGRAM.findall(text)}
