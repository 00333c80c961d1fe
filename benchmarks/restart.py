"""A daemon that was killed with 1,000 operations open: what it costs to take all of them up again.

Half of them are creates, the rest scales, deletes and executions (`unfinished`), as they stand
after a kill: half of the creates were just accepted, of half the servers were asked for. The cloud
and the engine take connections and never answer, so that each chain gets as far as its first call
and no further: it was found, leased, woken and read, its first step was decided, and what that step
asks of the outside waits for its turn. Those calls, ten and more a create, are what the cloud's
benchmark is about. Executions are started 20 at a time: the others of those wait in that line.

What is told is the processor time from the start of the process until it is at rest, less that of
a start with nothing open, and the memory likewise. Each start is killed, and has rows of its own.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve

from benchmarks.figures import Figure, ratio
from benchmarks.postgres_server import NotInstalled, PostgresServer
from benchmarks.processes import Server, twistd
from benchmarks.rows import cluster, fill, fill_postgres
from svcd.model.cluster import Cluster, ClusterStatus, Desired
from svcd.model.ids import (
    ClusterId,
    ExecutionId,
    JobBinaryId,
    JobId,
    TenantId,
    Timestamp,
    timestamp,
)
from svcd.model.job import Execution, ExecutionStatus, Job, JobBinary, JobType
from svcd.ports.store import Tx

OPEN: Final = 1000
_ACCEPTED: Final = 250
_ENGINES: Final = 25
_MOST_S: Final = 1.0
_CALM_S: Final = 2.0
_CALM_CPU_S: Final = 0.03
_LONGEST_S: Final = 60.0
_JOB: Final = JobId("00000000-0000-4000-9000-000000000001")
_BINARY: Final = JobBinaryId("00000000-0000-4000-9000-000000000002")
_ROOT: Final = Path(__file__).absolute().parent.parent
_TENANT: Final = TenantId("thousand")


def unfinished(now: Timestamp) -> Iterator[Cluster | Execution]:
    """The rows: 500 creates, 150 scales, 100 deletes, 250 executions on 25 clusters at rest."""
    for number in range(750 + _ENGINES):
        base = evolve(
            cluster("thousand", number),
            status_since=now,
            trust_id=f"trust-{number}",
            created_at=now,
        )
        started = _stepped(base, step="started")
        if number < 500:
            new = _stepped(base, server_id=None, status=None, internal_ip=None, management_ip=None)
            if number >= _ACCEPTED:
                new = evolve(
                    _stepped(new, requested_at=now),
                    status=ClusterStatus.SPAWNING,
                    security_group_id="00000000-0000-4000-8000-000000000004",
                )
            else:
                new = evolve(new, status=ClusterStatus.WAITING)
            yield evolve(new, settled_generation=0, info={})
        elif number < 650:
            yield evolve(started, status=ClusterStatus.VALIDATING, generation=2)
        elif number < 750:
            yield evolve(
                started, status=ClusterStatus.DELETING, desired=Desired.DELETED, generation=2
            )
        else:
            yield started
    for number in range(250):
        running = number >= 100
        yield Execution(
            id=ExecutionId(f"00000000-0000-4000-a000-{number:012d}"),
            tenant_id=_TENANT,
            job_id=_JOB,
            cluster_id=ClusterId(cluster("thousand", 750 + number % _ENGINES).id),
            status=ExecutionStatus.RUNNING if running else ExecutionStatus.PENDING,
            workflow_job_id=f"{number:07d}-260101000000000-oozie-svcd-W" if running else None,
            start_time=now if running else None,
            created_at=now,
        )


def _stepped(row: Cluster, **fields: Any) -> Cluster:
    groups = tuple(
        evolve(g, instances=tuple(evolve(i, **fields) for i in g.instances))
        for g in row.node_groups
    )
    return evolve(row, node_groups=groups)


async def _work(tx: Tx) -> None:
    now = timestamp(time.time())
    await tx.job_binaries.add(
        JobBinary(
            id=_BINARY,
            tenant_id=_TENANT,
            name="count.pig",
            url="internaldb://00000000-0000-4000-9000-000000000003",
            created_at=now,
        )
    )
    await tx.jobs.add(
        Job(
            id=_JOB,
            tenant_id=_TENANT,
            name="count",
            type=JobType.PIG,
            mains=(_BINARY,),
            created_at=now,
        )
    )
    for each in unfinished(now):
        if isinstance(each, Cluster):
            await tx.clusters.add(each)
        else:
            await tx.executions.add(each)


class _Silence:
    """Takes connections (the kernel does) and never says a word."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._socket.close()


def settled(server: Server) -> tuple[float, float]:
    """CPU seconds until the process does nothing any more, and its memory then, MiB."""
    spent: list[tuple[float, float]] = []
    while True:
        age, cpu = server.age_s(), server.cpu_s()
        spent.append((age, cpu))
        calm = [c for a, c in spent if a <= age - _CALM_S]
        if calm and cpu - calm[-1] < _CALM_CPU_S and age > 8.0:  # wakes are spread over 5 s
            return calm[-1], server.memory_mib()
        if age > _LONGEST_S:
            raise RuntimeError(f"the daemon goes on working: {cpu:.2f} s of CPU in {age:.0f} s")
        time.sleep(0.1)


class _Starts:
    """Starts of one kind of database, each on rows of its own, and what they cost."""

    def __init__(self, folder: Path, kind: str, server: PostgresServer | None) -> None:
        self._folder = folder
        self._kind = kind
        self._server = server

    def measure(self, settings: Mapping[str, str], number: int, much: bool) -> tuple[float, float]:
        """CPU seconds and MiB of one start, which is killed at rest."""
        name = f"{self._kind}_{'much' if much else 'nothing'}_{number}"
        url = ""
        if self._server is not None:
            self._server.execute(f"create database {name}")
            url = self._server.url(name)
        if much:
            fill(self._folder / name, url, "benchmarks.restart", _work)
        server, _, _ = twistd(
            name, "svcd", self._folder, {**settings, "database.url": url} if url else settings
        )
        try:
            cost = settled(server)
        finally:
            server.kill()
        began = server.said().count(" became Spawning")
        if much and began != _ACCEPTED:
            raise RuntimeError(f"{began} of {_ACCEPTED} creates were begun:\n{server.said()}")
        return cost


def _measured(
    folder: Path, kind: str, database: PostgresServer | None, rounds: int
) -> list[Figure]:
    """Figures of one kind of database."""
    silence = _Silence()
    settings = {
        "cloud.kind": "openstack",
        "cloud.auth_url": f"{silence.url}/identity/v3",
        "cloud.username": "svcd",
        "cloud.password": "svcd",
        "cloud.project": "service",
        "cloud.timeout_s": "600",
        "auth.mode": "keystone",
        "fake.engine_url": f"{silence.url}/engine",
        "workflow.poll_s": "600",
    }
    try:
        starts = _Starts(folder, kind, database)
        # In the first round Python compiles its modules.
        idle = [starts.measure(settings, n, False) for n in range(rounds + 1)][1:]
        busy = [starts.measure(settings, n, True) for n in range(rounds)]
    finally:
        silence.close()
    none, none_mib = [c for c, _ in idle], [m for _, m in idle]
    many, many_mib = [c for c, _ in busy], [m for _, m in busy]

    def figure(what: str, unit: str, values: list[float], most: float | None = None) -> Figure:
        return Figure(
            benchmark="restart",
            name=f"{kind}, {what}",
            unit=unit,
            rounds=tuple(values),
            target=most,
        )

    more = [a - b for a, b in zip(many, none, strict=True)]
    mib = [a - b for a, b in zip(many_mib, none_mib, strict=True)]
    return [
        figure("start with nothing open, CPU", "s", none),
        figure(f"{OPEN} operations taken up, CPU", "s", more, _MOST_S),
        ratio("restart", f"{kind}, taken up / start", more, none),
        figure(f"memory of {OPEN} open operations", "MiB", mib),
    ]


def run(quick: bool) -> list[Figure]:
    """All figures; those of PostgreSQL when it is installed."""
    rounds = 2 if quick else 5
    with tempfile.TemporaryDirectory(prefix="svcd-bench-") as name:
        folder = Path(name)
        figures = _measured(folder, "sqlite", None, rounds)
        try:
            postgres = PostgresServer()
        except NotInstalled as missing:
            print(missing, file=sys.stderr)
            return figures
        try:
            figures += _measured(folder, "postgresql", postgres, rounds)
        finally:
            postgres.remove()
    return figures


if __name__ == "__main__":
    fill_postgres(_work)
