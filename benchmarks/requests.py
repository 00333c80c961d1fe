"""Requests over sockets: svcd with SQLite in a file against a bare resource and Klein alone."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from benchmarks.client import connect, latencies, load, request
from benchmarks.figures import Figure, quantile, ratio
from benchmarks.processes import Server, peer, twistd
from benchmarks.rows import BINARY_BYTES, LISTS, cluster_id, write

_CONNECTIONS: Final = 16
_AT_ONCE_OF_BIG: Final = 2
_MICRO: Final = 1e6


@frozen(kw_only=True)
class Work:
    """Requests of one kind. count: a round, for the processor; paced: a round, one by one.

    per_row: rows in the answer, 0 for none. Targets: most_bare and most_klein, times the processor
    time of the bare server and of Klein; most_row_us.
    """

    name: str
    make: Callable[[], bytes]
    count: int
    paced: int
    connections: int = _CONNECTIONS
    per_row: int = 0
    most_bare: float | None = None
    most_klein: float | None = None
    most_row_us: float | None = None


class Contestant:
    """A server with open connections, and what was measured of it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = server.name
        self.single = connect(server.port)
        self._connections = [connect(server.port) for _ in range(_CONNECTIONS)]
        self.cpu_us: list[float] = []
        self.waits_ms: list[float] = []

    def begin(self, work: Work) -> None:
        """Forget what was measured, and warm up."""
        self.cpu_us, self.waits_ms = [], []
        load(self._connections[: work.connections], work.make, work.connections)

    def round(self, work: Work) -> None:
        """One round."""
        before = self.server.cpu_s()
        load(self._connections[: work.connections], work.make, work.count)
        self.cpu_us.append((self.server.cpu_s() - before) * _MICRO / work.count)
        self.waits_ms += latencies(self.single, work.make, work.paced)

    def close(self) -> None:
        """Hang up."""
        for each in (self.single, *self._connections):
            each.close()


def works(quick: bool, binary_id: str) -> list[Work]:
    """What is asked for. Names are new with each request that makes something."""
    part = 4 if quick else 1
    number = itertools.count()
    binary = bytes(range(256)) * (BINARY_BYTES // 256)
    one = request("GET", f"/v1.1/thousand/clusters/{cluster_id('thousand', 500)}")
    lists = {t: request("GET", f"/v1.1/{t}/clusters") for t in LISTS}
    data = request("GET", f"/v1.1/demo/job-binary-internals/{binary_id}/data")

    def template() -> bytes:
        body = {
            "name": f"t{next(number)}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "flavor_id": "2",
            "node_processes": ["datanode", "nodemanager"],
            "node_configs": {"HDFS": {"dfs.datanode.handler.count": 10}},
        }
        return request("POST", "/v1.1/demo/node-group-templates", json.dumps(body).encode())

    def put() -> bytes:
        path = f"/v1.1/demo/job-binary-internals/b{next(number)}"
        return request("PUT", path, binary, "application/octet-stream")

    return [
        Work(name="GET one cluster", make=lambda: one, count=3200 // part, paced=400 // part,
             most_klein=1.3),
        Work(name="LIST 100", make=lambda: lists["hundred"], count=320 // part, paced=40 // part,
             per_row=100),
        Work(name="LIST 1000", make=lambda: lists["thousand"], count=32 // part, paced=8 // part,
             per_row=1000, most_row_us=2.0),
        Work(name="POST template", make=template, count=320 // part, paced=40 // part,
             most_bare=10.0),
        Work(name="PUT 5 MB", make=put, count=8 // part, paced=4 // part,
             connections=_AT_ONCE_OF_BIG),
        Work(name="GET 5 MB", make=lambda: data, count=16 // part, paced=8 // part,
             connections=_AT_ONCE_OF_BIG),
    ]  # fmt: skip


@contextmanager
def contestants() -> Iterator[Sequence[Contestant]]:
    """bare, klein, svcd and svcd with its access log, the cloud in a process of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcd-bench-")))
        servers = []
        for kind in ("bare", "klein"):
            servers.append(peer(kind, folder))
            stack.callback(servers[-1].stop)
        cloud, endpoints, _ = twistd("cloud", "svcd-cloud", folder, {})
        stack.callback(cloud.stop)
        settings = {
            "provisioning.health_poll_s": "0",  # of clusters that only the database has
            "cloud.kind": "openstack",
            "cloud.auth_url": str(endpoints["identity"]),
            "cloud.username": str(endpoints["username"]),
            "cloud.password": str(endpoints["password"]),
            "cloud.project": str(endpoints["tenant"]),
        }
        for name, access in (("svcd", "false"), ("svcd, access log", "true")):
            write(folder / name)
            server, _, _ = twistd(name, "svcd", folder, {**settings, "log.access": access})
            servers.append(server)
            stack.callback(server.stop)
        made = [Contestant(server) for server in servers]
        for each in made:
            stack.callback(each.close)
        yield made


def run(quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    with contestants() as them:
        bare, klein, svcd, logging = them
        put = request("PUT", "/v1.1/demo/job-binary-internals/first", bytes(BINARY_BYTES), "x/y")
        ids = {c.name: json.loads(c.single.exchange(put)) for c in (svcd, logging)}
        binaries = {n: a["job_binary_internal"]["id"] for n, a in ids.items()}
        by_server = {c.name: works(quick, binaries.get(c.name, "1")) for c in them}
        for at, work in enumerate(by_server[bare.name]):
            for each in them:
                each.begin(by_server[each.name][at])
            for _ in range(3 if quick else 7):
                for each in them:
                    each.round(by_server[each.name][at])
            figures += _figures(work, bare, klein, svcd, logging)
    return figures


def _figures(
    work: Work, bare: Contestant, klein: Contestant, svcd: Contestant, logging: Contestant
) -> Iterator[Figure]:
    def figure(name: str, unit: str, rounds: Sequence[float], most: float | None = None) -> Figure:
        return Figure(benchmark=work.name, name=name, unit=unit, rounds=tuple(rounds), target=most)

    for each in (bare, klein, svcd, logging):
        yield figure(f"{each.name}, CPU", "us", each.cpu_us)
    yield ratio(work.name, "svcd / bare", svcd.cpu_us, bare.cpu_us, work.most_bare)
    yield ratio(work.name, "svcd / klein", svcd.cpu_us, klein.cpu_us, work.most_klein)
    yield ratio(work.name, "svcd, access log / bare", logging.cpu_us, bare.cpu_us)
    if work.per_row:
        rows = [us / work.per_row for us in svcd.cpu_us]
        yield figure("svcd, CPU a row", "us", rows, work.most_row_us)
    for each in (bare, klein, svcd):
        for word, share in (("p50", 0.5), ("p99", 0.99)):
            yield figure(f"{each.name}, {word}", "ms", [quantile(each.waits_ms, share)])
