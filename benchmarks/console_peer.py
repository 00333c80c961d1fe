# mypy: allow-untyped-calls
"""What the `console` benchmark looks at: a FakeService with many clusters and runs, on a port.

`python -m benchmarks.console_peer COUNT FILE` makes COUNT clusters and RUNS_OF_EACH times as many
runs, and writes the port to FILE. The virtual time runs with the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from attrs import evolve
from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall

from benchmarks.rows import cluster
from svcd.model.ids import ExecutionId, JobId, TenantId, Timestamp
from svcd.model.job import Execution, ExecutionStatus, Job, JobType
from svcd.ports.store import Tx
from svcd.resources.api import build
from svcd.testing import FakeService

_TICK_S: Final = 0.01
_TENANT: Final = TenantId("demo")
_JOBS: Final = 20
RUNS_OF_EACH: Final = 10
SETTINGS: Final = {"provisioning.health_poll_s": "0", "limits.clusters": "0"}
reactor = cast("Any", _reactor)


def _at(number: int, more_s: int = 0) -> Timestamp:
    minute, second = divmod(number, 60)
    return Timestamp(f"2025-12-31 {minute // 60:02}:{minute % 60:02}:{second + more_s:02}.000000")


def _jobs() -> Iterator[Job]:
    for number in range(_JOBS):
        id_ = JobId(f"10000000-0000-4000-8000-{number:012d}")
        yield Job(id=id_, tenant_id=_TENANT, name=f"j{number}", type=JobType.PIG, created_at=_at(0))


def fill(service: FakeService, clusters: int, runs: int) -> None:
    """Write settled clusters, and runs of 20 jobs on them, into the database of a service."""
    daemon = service._daemon
    assert daemon is not None
    jobs = list(_jobs())

    async def write(tx: Tx) -> None:
        for job in jobs:
            await tx.jobs.add(job)
        made = [cluster("thousand", number) for number in range(clusters)]
        for number, each in enumerate(made):
            await tx.clusters.add(evolve(each, tenant_id=_TENANT, created_at=_at(number)))
        for number in range(runs):
            await tx.executions.add(
                Execution(
                    id=ExecutionId(f"20000000-0000-4000-8000-{number:012d}"),
                    tenant_id=_TENANT,
                    job_id=jobs[number % _JOBS].id,
                    cluster_id=made[number % clusters].id,
                    status=ExecutionStatus.SUCCEEDED,
                    start_time=_at(number),
                    end_time=_at(number // 60 * 60, 59),
                    created_at=_at(number),
                )
            )

    service.result_of(Deferred.fromCoroutine(daemon.services.store.tx(write)))


def main(count: int, ready: Path) -> None:
    """Serve until the process is ended."""
    service = FakeService(SETTINGS)
    fill(service, count, count * RUNS_OF_EACH)
    daemon = service._daemon
    assert daemon is not None
    site = build(daemon.services)[1]
    site.noisy = False
    LoopingCall(service.advance, _TICK_S).start(_TICK_S)
    listening = reactor.listenTCP(0, site, interface="127.0.0.1")
    partial = ready.with_suffix(".partial")
    partial.write_text(str(listening.getHost().port))
    partial.replace(ready)
    reactor.run()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
