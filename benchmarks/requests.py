"""Requests over sockets: svcd with SQLite and with PostgreSQL, a bare resource, and Klein alone.

The bare resource and Klein answer constants of the same size as svcd's answers. All servers take
turns. Each connection asks again as soon as it is answered, so the milliseconds, which are the
waits of these connections, grow with their number. PostgreSQL is a server of our own, with its
durability left on; without an installation its figures are left out.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from benchmarks.client import Connection, closed_loop, connect, request
from benchmarks.figures import Figure, quantile, ratio
from benchmarks.postgres_server import NotInstalled, PostgresServer
from benchmarks.processes import Server, beside, peer, twistd
from benchmarks.rows import BINARY_BYTES, LISTS, cluster_id, write

_CONNECTIONS: Final = 16
_CONNECTIONS_OF_BIG: Final = 2
_MICRO: Final = 1e6
_BINARIES: Final = "/v1.1/demo/job-binary-internals"


@frozen(kw_only=True)
class Load:
    """Requests of one kind. count: a round.

    rows: in the answer, 0 for none. Targets: most_bare and most_klein, how many times the processor
    time of the bare server and of Klein; most_row_us, microseconds a row. All are for SQLite.
    """

    name: str
    make: Callable[[], bytes]
    count: int
    connections: int = _CONNECTIONS
    rows: int = 0
    most_bare: float | None = None
    most_klein: float | None = None
    most_row_us: float | None = None


class Contestant:
    """A server with open connections, and what was measured of it."""

    def __init__(self, server: Server, database: PostgresServer | None = None) -> None:
        self.server = server
        self.name = server.name
        self._database = database
        self._connections: list[Connection] = []
        self._forget()

    def begin(self, load: Load) -> None:
        """Connect anew, for idle connections are closed after a while, and warm up."""
        self.close()
        self._connections = [connect(self.server.port) for _ in range(load.connections)]
        closed_loop(self._connections, load.make, load.connections)
        self._forget()

    def round(self, load: Load) -> None:
        """One round."""
        used, theirs, begin = self.server.cpu_s(), self._database_s(), time.perf_counter()
        self.waits_ms += closed_loop(self._connections, load.make, load.count)
        self.rates.append(load.count / (time.perf_counter() - begin))
        self.cpu_us.append((self.server.cpu_s() - used) * _MICRO / load.count)
        self.database_us.append((self._database_s() - theirs) * _MICRO / load.count)

    def close(self) -> None:
        """Hang up."""
        for connection in self._connections:
            connection.close()

    def figures(self, load: Load) -> Iterator[Figure]:
        """The figures of this server alone."""
        yield _figure(load, f"{self.name}, CPU", "us", self.cpu_us)
        if self._database is not None:
            yield _figure(load, f"{self.name}, CPU of the database", "us", self.database_us)
        yield _figure(load, f"{self.name}, requests a second", "1/s", self.rates)
        for word, share in (("p50", 0.5), ("p99", 0.99)):
            yield _figure(load, f"{self.name}, {word}", "ms", [quantile(self.waits_ms, share)])

    def _database_s(self) -> float:
        return self._database.cpu_s() if self._database is not None else 0.0

    def _forget(self) -> None:
        self.cpu_us: list[float] = []
        self.database_us: list[float] = []
        self.rates: list[float] = []
        self.waits_ms: list[float] = []


def loads(quick: bool, binary_id: str) -> list[Load]:
    """The requests. Names are new with each request that makes something."""
    part = 4 if quick else 1
    number = itertools.count()
    binary = bytes(range(256)) * (BINARY_BYTES // 256)
    one = request("GET", f"/v1.1/thousand/clusters/{cluster_id('thousand', 500)}")
    lists = {tenant: request("GET", f"/v1.1/{tenant}/clusters") for tenant in LISTS}
    data = request("GET", f"{_BINARIES}/{binary_id}/data")

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
        return request("PUT", f"{_BINARIES}/b{next(number)}", binary, "application/octet-stream")

    return [
        Load(name="GET one cluster", make=lambda: one, count=3200 // part, most_klein=1.3),
        Load(name="LIST 100", make=lambda: lists["hundred"], count=320 // part, rows=100),
        Load(name="LIST 1000", make=lambda: lists["thousand"], count=32 // part, rows=1000,
             most_row_us=2.0),
        Load(name="POST template", make=template, count=320 // part, most_bare=10.0),
        Load(name="PUT 5 MB", make=put, count=8 // part, connections=_CONNECTIONS_OF_BIG),
        Load(name="GET 5 MB", make=lambda: data, count=16 // part, connections=_CONNECTIONS_OF_BIG),
    ]  # fmt: skip


@contextmanager
def contestants() -> Iterator[Sequence[Contestant]]:
    """bare, klein, svcd, and svcd with PostgreSQL; the cloud in a process of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcd-bench-")))

        def daemon(name: str, url: str) -> Server:
            write(folder / name, url)
            more = {"database.url": url} if url else {}
            server, _, _ = twistd(name, "svcd", folder, {**settings, **more})
            stack.callback(server.stop)
            return server

        servers = []
        for kind in ("bare", "klein"):
            server = peer(kind, folder)
            stack.callback(server.stop)
            servers.append(Contestant(server))
        cloud, told, _ = twistd("cloud", "svcd-cloud", folder, {})
        stack.callback(cloud.stop)
        settings = {
            **beside(told),
            "provisioning.health_poll_s": "0",  # of clusters that only the database has
            "log.access": "false",
        }
        servers.append(Contestant(daemon("svcd", "")))
        try:
            database = PostgresServer(settings=("max_connections=60",))
        except NotInstalled as missing:
            print(missing, file=sys.stderr)
        else:
            stack.callback(database.remove)
            database.execute("create database svcd")
            server = daemon("svcd, PostgreSQL", database.url("svcd"))
            database.execute("analyze", "svcd")
            servers.append(Contestant(server, database))
        for contestant in servers:
            stack.callback(contestant.close)
        yield servers


def run(quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    with contestants() as servers:
        of_server = {
            contestant.name: loads(quick, _binary(contestant)) for contestant in servers
        }  # names are new for each server
        for at, load in enumerate(of_server["bare"]):
            for contestant in servers:
                contestant.begin(of_server[contestant.name][at])
            for _ in range(3 if quick else 7):
                for contestant in servers:
                    contestant.round(of_server[contestant.name][at])
            figures += _figures(load, {contestant.name: contestant for contestant in servers})
    return figures


def _binary(contestant: Contestant) -> str:
    """The id of a stored binary; "1" where a server stores nothing."""
    connection = connect(contestant.server.port)
    try:
        put = request("PUT", f"{_BINARIES}/first", bytes(BINARY_BYTES), "x/y")
        answer = json.loads(connection.exchange(put))
    finally:
        connection.close()
    return str(answer["job_binary_internal"]["id"]) if "job_binary_internal" in answer else "1"


def _figures(load: Load, servers: Mapping[str, Contestant]) -> Iterator[Figure]:
    for contestant in servers.values():
        yield from contestant.figures(load)
    bare, klein, svcd = (servers[name].cpu_us for name in ("bare", "klein", "svcd"))
    yield ratio(load.name, "svcd / bare", svcd, bare, load.most_bare)
    yield ratio(load.name, "svcd / klein", svcd, klein, load.most_klein)
    if load.rows:
        rows = [us / load.rows for us in svcd]
        yield _figure(load, "svcd, CPU a row", "us", rows, load.most_row_us)


def _figure(
    load: Load, name: str, unit: str, rounds: Sequence[float], most: float | None = None
) -> Figure:
    return Figure(benchmark=load.name, name=name, unit=unit, rounds=tuple(rounds), target=most)
