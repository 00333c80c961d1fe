"""Requests over sockets, svcd with PostgreSQL: what the daemon and the server use for each.

The server is one of our own, with its durability left on. A bare twisted.web resource that answers
constants of the same size takes turns with svcd. All connections ask again as soon as they are
answered; milliseconds are what such a connection waits, so they grow with the connections.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen

from benchmarks.client import Connection, closed_loop, connect, request
from benchmarks.figures import Figure, quantile, ratio
from benchmarks.postgres_server import PostgresServer
from benchmarks.processes import Server, peer, twistd
from benchmarks.rows import BINARY_BYTES, LISTS, cluster_id, write

_MOST: Final = 128
_FEW: Final = 16
_BIG: Final = 2
_MILLI: Final = 1e3
_MOST_SPREAD: Final = 10.0
_PATH: Final = "/v1.1/demo"


@frozen(kw_only=True)
class Load:
    """Requests of one kind. count: a round; most_ms: the target of the daemon's CPU.

    spread: whether p99 has a target too. before: makes what the round needs, outside of it.
    """

    name: str
    make: Callable[[], bytes]
    count: int
    connections: int = _FEW
    most_ms: float | None = None
    spread: bool = False
    before: Callable[[int], None] | None = None


class Contestant:
    """A server with open connections, and what was measured of it."""

    def __init__(self, server: Server, database: PostgresServer | None) -> None:
        self.server = server
        self.name = server.name
        self._database = database
        self.connections: list[Connection] = []
        self._forget()

    def begin(self, load: Load) -> None:
        """Connect anew, for idle connections are closed after a while, and warm up."""
        self.close()
        self.connections = [connect(self.server.port) for _ in range(load.connections)]
        self.round(load, load.connections)
        self._forget()

    def exchange(self, data: bytes) -> bytes:
        """One request on a connection of its own."""
        connection = connect(self.server.port)
        try:
            return connection.exchange(data)
        finally:
            connection.close()

    def _forget(self) -> None:
        self.cpu_ms: list[float] = []
        self.database_ms: list[float] = []
        self.waits_ms: list[float] = []

    def round(self, load: Load, count: int) -> None:
        """One round of `count`."""
        if load.before is not None and self._database is not None:
            load.before(count)
        used, database = self.server.cpu_s(), self._database
        theirs = database.cpu_s() if database is not None else 0.0
        self.waits_ms += closed_loop(self.connections, load.make, count)
        self.cpu_ms.append((self.server.cpu_s() - used) * _MILLI / count)
        if database is not None:
            self.database_ms.append((database.cpu_s() - theirs) * _MILLI / count)

    def close(self) -> None:
        """Hang up."""
        for each in self.connections:
            each.close()


def loads(svcd: Contestant, quick: bool) -> Iterator[Load]:
    """What is asked for, one after the other. Names are new with each request that makes something.

    A bare resource answers the same requests, except those that end what was made before.
    """
    part = 4 if quick else 1
    number = itertools.count()
    binary = random.Random(1).randbytes(BINARY_BYTES)  # as little compressible as a jar
    all_ = [
        request("GET", f"/v1.1/thousand/clusters/{cluster_id('thousand', n)}")
        for n in range(LISTS["thousand"])
    ]
    turn = itertools.cycle(all_)
    lists = {t: request("GET", f"/v1.1/{t}/clusters") for t in LISTS}
    ids: list[str] = []

    def source() -> bytes:
        body = {
            "name": f"s{next(number)}",
            "type": "objstore",
            "url": "objstore://demo/in",
            "credentials": {"user": "demo", "password": "demo"},
        }
        return request("POST", f"{_PATH}/data-sources", json.dumps(body).encode())

    def template() -> bytes:
        body = {
            "name": f"t{next(number)}",
            "plugin_name": "fake",
            "engine_version": "0.1",
            "flavor_id": "2",
            "node_processes": ["datanode", "nodemanager"],
            "node_configs": {"HDFS": {"dfs.datanode.handler.count": 10}},
        }
        return request("POST", f"{_PATH}/node-group-templates", json.dumps(body).encode())

    def fill(count: int) -> None:
        ids.extend(json.loads(svcd.exchange(source()))["data_source"]["id"] for _ in range(count))

    def delete() -> bytes:
        return request("DELETE", f"{_PATH}/data-sources/{ids.pop() if ids else 'none'}")

    def put() -> bytes:
        path = f"{_PATH}/job-binary-internals/b{next(number)}"
        return request("PUT", path, binary, "application/octet-stream")

    def mixed() -> bytes:
        return source() if next(number) % 10 == 0 else next(turn)

    for connections, spread in ((_FEW, False), (_MOST, True)):
        yield Load(
            name=f"GET one, {connections} connections",
            make=lambda: next(turn),
            count=3200 // part,
            connections=connections,
            most_ms=0.2,
            spread=spread,
        )
    yield Load(name="LIST 100", make=lambda: lists["hundred"], count=320 // part)
    yield Load(name="LIST 1000", make=lambda: lists["thousand"], count=32 // part, most_ms=7.0)
    yield Load(name="POST data source", make=source, count=640 // part, most_ms=0.6)
    yield Load(name="POST template", make=template, count=640 // part, most_ms=0.6)
    yield Load(name="DELETE data source", make=delete, count=640 // part, before=fill)
    for connections in (_FEW, _MOST):
        yield Load(
            name=f"90 GET, 10 POST, {connections} connections",
            make=mixed,
            count=1600 // part,
            connections=connections,
            spread=connections == _MOST,
        )
    yield Load(name="PUT 5 MB", make=put, count=8 // part, connections=_BIG)
    made = json.loads(svcd.exchange(put()))["job_binary_internal"]["id"]
    data = request("GET", f"{_PATH}/job-binary-internals/{made}/data")
    yield Load(name="GET 5 MB", make=lambda: data, count=16 // part, connections=_BIG)  # fmt: skip


@contextmanager
def contestants(more: Sequence[str] = ()) -> Iterator[tuple[Contestant, Contestant]]:
    """bare and svcd, the cloud in a process of its own."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svcd-bench-")))
        bare = peer("bare", folder)
        stack.callback(bare.stop)
        cloud, endpoints, _ = twistd("cloud", "svcd-cloud", folder, {})
        stack.callback(cloud.stop)
        database = PostgresServer(settings=("max_connections=60",))
        stack.callback(database.remove)
        database.execute("create database svcd")
        write(folder / "svcd", database.url("svcd"))
        database.execute("analyze", "svcd")
        settings = {
            "provisioning.health_poll_s": "0",  # of clusters that only the database has
            "cloud.kind": "openstack",
            "cloud.auth_url": str(endpoints["identity"]),
            "cloud.username": str(endpoints["username"]),
            "cloud.password": str(endpoints["password"]),
            "cloud.project": str(endpoints["tenant"]),
            "database.url": database.url("svcd"),
            "log.access": "false",
        }
        server, _, _ = twistd("svcd", "svcd", folder, settings)
        stack.callback(server.stop)
        them = Contestant(bare, None), Contestant(server, database)
        for each in them:
            stack.callback(each.close)
        yield them


def run(quick: bool) -> list[Figure]:
    """All figures."""
    figures: list[Figure] = []
    with contestants() as (bare, svcd):
        for load in loads(svcd, quick):
            for each in (bare, svcd):
                each.begin(load)
            for _ in range(3 if quick else 5):
                for each in (bare, svcd):
                    each.round(load, load.count)
            figures += _figures(load, bare, svcd)
    return figures


def _figures(load: Load, bare: Contestant, svcd: Contestant) -> Iterator[Figure]:
    def figure(name: str, rounds: Sequence[float], most: float | None = None) -> Figure:
        title = f"PostgreSQL, {load.name}"
        return Figure(benchmark=title, name=name, unit="ms", rounds=tuple(rounds), target=most)

    yield figure("bare, CPU", bare.cpu_ms)
    yield figure("svcd, CPU", svcd.cpu_ms, load.most_ms)
    yield figure("server, CPU", svcd.database_ms)
    yield ratio(f"PostgreSQL, {load.name}", "svcd / bare", svcd.cpu_ms, bare.cpu_ms)
    for each in (bare, svcd):
        middle, late = (quantile(each.waits_ms, share) for share in (0.5, 0.99))
        yield figure(f"{each.name}, p50", [middle])
        yield figure(f"{each.name}, p99", [late])
        if load.spread:
            most = _MOST_SPREAD if each is svcd else None
            yield ratio(
                f"PostgreSQL, {load.name}", f"{each.name}, p99 / p50", [late], [middle], most
            )
