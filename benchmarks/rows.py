"""The rows of the HTTP benchmarks: clusters of three, in a database before it is served."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from twisted.internet import task
from twisted.internet.defer import Deferred

from benchmarks.lives import MASTER, WORKER
from svcd.model import wire
from svcd.model.cluster import Cluster, ClusterStatus, Instance, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, TenantId, Timestamp, timestamp
from svcd.ports.store import Tx
from svcd.settings import Database
from svcd.store.sealer import FernetSealer
from svcd.store.sqlite import SqliteDatabase
from svcd.store.store import SqlStore

LISTS: Final[Mapping[str, int]] = {"hundred": 100, "thousand": 1000}
"""tenant -> how many clusters it has."""

BINARY_BYTES: Final = 5 * 1024 * 1024
_ROOT: Final = Path(__file__).absolute().parent.parent
_AT: Final = Timestamp("2026-01-01 00:00:00.000000")
_INFO: Final = {
    "HDFS": {"NameNode": "hdfs://10.0.0.2:8020", "Web UI": "http://10.0.0.2:9870"},
    "YARN": {"Web UI": "http://10.0.0.2:8088"},
    "Oozie": {"Oozie": "http://10.0.0.2:11000/oozie"},
}


def cluster_id(tenant: str, number: int) -> ClusterId:
    """The id of a tenant's cluster, from 0."""
    return ClusterId(f"00000000-0000-4000-{LISTS[tenant]:04d}-{number:012d}")


def cluster(tenant: str, number: int) -> Cluster:
    """A settled cluster of one master and two workers."""
    id_ = cluster_id(tenant, number)
    groups = []
    for group, processes, count in (("master", MASTER, 1), ("worker", WORKER, 2)):
        instances = tuple(
            Instance(
                instance_id=InstanceId(f"{id_[:-1]}{index}"),
                instance_name=f"c{number}-{group}-{index:03d}",
                index=index,
                server_id=id_,
                status="ACTIVE",
                internal_ip="10.0.0.2",
                management_ip="10.0.0.2",
                created_at=_AT,
            )
            for index in range(1, count + 1)
        )
        groups.append(
            NodeGroup(
                name=group,
                count=count,
                flavor_id="2",
                node_processes=processes,
                instances=instances,
                created_at=_AT,
            )
        )
    return Cluster(
        id=id_,
        tenant_id=TenantId(tenant),
        name=f"c{number}",
        plugin_name="fake",
        engine_version="0.1",
        default_image_id="00000000-0000-4000-8000-000000000002",
        user_keypair_id="demo",
        cluster_configs={"HDFS": {"dfs.replication": 2}},
        node_groups=tuple(groups),
        status=ClusterStatus.ACTIVE,
        status_since=_AT,
        info=_INFO,
        settled_generation=1,
        created_at=_AT,
    )


def rendered(count: int) -> list[bytes]:
    """The wire form of as many clusters."""
    return [msgspec.json.encode(wire.Cluster.of(cluster("thousand", n))) for n in range(count)]


def write(state: Path, url: str = "") -> None:
    """Put the clusters of `LISTS` into the database of a daemon that is not running.

    url: of a PostgreSQL database; "" for SQLite in the state folder.
    """
    state.mkdir(exist_ok=True)
    if url:  # a process has one reactor
        command = [sys.executable, "-m", "benchmarks.rows", str(state), url]
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        subprocess.run(command, check=True, cwd=_ROOT, env=environment)
    else:
        database = SqliteDatabase(state / "svcd.sqlite")
        asyncio.run(_fill(SqlStore(database, FernetSealer(state / "seal.key"))))


def _fill_postgres(state: Path, url: str) -> None:
    async def run(reactor: Any) -> None:
        from svcd.store.postgres import PostgresDatabase

        database = PostgresDatabase(reactor, Database(url=url), print)
        await database.open()
        await _fill(SqlStore(database, FernetSealer(state / "seal.key")))

    task.react(lambda reactor: Deferred.fromCoroutine(run(reactor)))


async def _fill(store: SqlStore) -> None:
    await store.open(timestamp(time.time()))
    await store.tx(_add_clusters)
    await store.close()


async def _add_clusters(tx: Tx) -> None:
    for tenant, count in LISTS.items():
        for number in range(count):
            await tx.clusters.add(cluster(tenant, number))


if __name__ == "__main__":
    _fill_postgres(Path(sys.argv[1]), sys.argv[2])
