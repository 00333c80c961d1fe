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

from benchmarks.client import Connection, connect, request
from benchmarks.cloud import asked, cluster_body
from benchmarks.figures import Figure, quantile, ratio
from benchmarks.growing import NODES, SETTINGS
from benchmarks.lives import Unexpected
from benchmarks.processes import Server, beside, twistd

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
_DIAGRAM: Final = re.compile(
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
    one = few["cpu_ms"] / (nodes // 100)
    each = many["cpu_ms"] / nodes
    found = [
        _figure(f"a node of {nodes}, CPU", "ms", each, _NODE_MS),
        ratio("growth", f"a node of {nodes} to one of {nodes // 100}", [each], [one], _GROWTH),
        _figure(f"memory with {nodes} nodes", "MiB", many["memory_mib"], _MEMORY_MIB),
    ]
    for what in ("objects", "trusts", "templates"):
        one = _taken(what, things // 100)["cpu_ms"] / (things // 100)
        each = _taken(what, things)["cpu_ms"] / things
        found.append(_figure(f"one of {things} {what}, CPU", "ms", each))
        name = f"one of {things} {what} to one of {things // 100}"
        found.append(ratio("growth", name, [each], [one], _GROWTH))
    return found


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
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        given = {key: SETTINGS[key] for key in SETTINGS if key.startswith("embedded.")}
        cloud, told, _ = twistd("cloud", "svcd-cloud", folder, given)
        try:
            settings = {
                **beside(told),
                "limits.instances": "0",
            }
            daemon, endpoints, _ = twistd("daemon", "svcd", folder, settings)
            try:
                api = endpoints["api"].rstrip("/")
                return _converging(cloud, daemon, told, api, clusters, nodes)
            finally:
                daemon.stop()
        finally:
            cloud.stop()


def _converging(
    cloud: Server, daemon: Server, told: Mapping[str, Any], api: str, clusters: int, nodes: int
) -> list[Figure]:
    base = f"{api}/v1.1/{told['tenant']}"
    image = next(i["id"] for i in told["images"] if i["name"] == "plain")
    asked("POST", f"{base}/images/{image}", {"username": "svcd", "description": ""})
    asked("POST", f"{base}/images/{image}/tag", {"tags": ["fake", "0.1"]})
    body = cluster_body(nodes, default_image_id=image, user_keypair_id="demo")
    before = _late(api)
    used = daemon.cpu_s(), cloud.cpu_s()
    begin = time.perf_counter()
    made = [
        asked("POST", f"{base}/clusters", body | {"name": f"grown-{number}"})[0]["cluster"]["id"]
        for number in range(clusters)
    ]
    connection = connect(daemon.port)
    try:
        waits = _watched(connection, f"/v1.1/{told['tenant']}/clusters", made)
    finally:
        connection.close()
    seconds = time.perf_counter() - begin
    count = clusters * nodes
    late = {bound: number - before[bound] for bound, number in _late(api).items()}
    lag_s = next(bound for bound in sorted(late) if late[bound] >= 0.99 * late[float("inf")])
    name = f"{clusters} x {nodes} over sockets"
    found = [
        _figure(f"{name}: all Active", "s", seconds),
        _figure(f"{name}: GET of a cluster, p99", "ms", quantile(waits, 0.99), _API_MS),
        _figure(f"{name}: lag of the reactor, p99 below", "ms", lag_s * 1000.0, _LAG_MS),
        _figure(f"{name}: a node, CPU of svcd", "ms", (daemon.cpu_s() - used[0]) / count * 1e3),
        _figure(f"{name}: a node, CPU of the cloud", "ms", (cloud.cpu_s() - used[1]) / count * 1e3),
        _figure(f"{name}: memory of svcd", "MiB", daemon.memory_mib()),
        _figure(f"{name}: memory of the cloud", "MiB", cloud.memory_mib()),
    ]
    for each in made:
        asked("DELETE", f"{base}/clusters/{each}?force=true")
    return found


def _watched(connection: Connection, path: str, made: list[str]) -> list[float]:
    """Milliseconds of each GET of a cluster, in turns until all are Active."""
    waits: list[float] = []
    left, end = list(made), time.perf_counter() + _ACTIVE_S
    while left:
        for each in list(left):
            begin = time.perf_counter()
            cluster = json.loads(connection.exchange(request("GET", f"{path}/{each}")))["cluster"]
            waits.append((time.perf_counter() - begin) * 1000.0)
            if cluster["status"] == "Active":
                left.remove(each)
            elif cluster["status"] == "Error" or begin > end:
                raise Unexpected(f"{cluster['name']}: {cluster['status_description']}")
            time.sleep(_PAUSE_S)
    return waits


def _late(api: str) -> Mapping[float, float]:
    """How many beats of the daemon's reactor were late by at most each bound, in seconds."""
    with urllib.request.urlopen(f"{api}/metrics", timeout=60.0) as answer:
        text = answer.read().decode()
    return {float(bound): float(count) for bound, count in _DIAGRAM.findall(text)}
