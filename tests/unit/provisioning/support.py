"""A site of provisioning: SQLite in memory, the embedded cloud, a virtual clock, faults as data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from zope.interface import implementer

from svcd.embedded.faults import Faults
from svcd.embedded.lifeline import Lifeline
from svcd.embedded.scripted import ScriptedProbe, ScriptedRemote
from svcd.errors import SvcdError
from svcd.model.cloud import (
    Flavor,
)
from svcd.model.cluster import Cluster, ClusterEvent, Instance, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, timestamp
from svcd.model.job import JobType
from svcd.model.secret import Secret
from svcd.ports.lease import Lease
from svcd.provisioning.act.controller import Controller
from svcd.provisioning.act.perform import Ports
from svcd.provisioning.distributions.registry import Distributions
from svcd.provisioning.distributions.spi import (
    Command,
    ConfigEntry,
    HttpProbe,
    IDistribution,
    Machine,
    Plan,
    Scope,
    Stage,
    WriteFile,
)
from svcd.runtime.clock import VirtualClock
from svcd.settings import Provisioning
from svcd.store.database import Database
from svcd.store.sqlite import SqliteDatabase
from tests.unit.provisioning.cloud import IMAGE, SiteCloud
from tests.unit.provisioning.stored import SEALER, StoredStore
from tests.unit.provisioning.stored import TENANT as TENANT

NOW = 1_767_225_600.0
_KEY = SEALER.seal(Secret("key"))
"""Of all clusters: each sealing is different."""
ADDRESSES = tuple(f"127.1.0.{n}" for n in range(10, 50))
"""Those of the first servers."""
FLAVORS = (
    Flavor(id="1", name="m1.tiny", ram_mib=512, vcpus=1),
    Flavor(id="2", name="m1.small", ram_mib=2048, vcpus=1, disk_gib=10),
)


# ---- records ------------------------------------------------------------------------------------


def instance(index: int, group: str = "worker", **fields: Any) -> Instance:
    """`demo-<group>-00<index>` with the id `<group><index>`."""
    made = Instance(
        instance_id=InstanceId(f"{group}{index}"),
        instance_name=f"demo-{group}-{index:03d}",
        index=index,
        created_at=timestamp(NOW),
    )
    return evolve(made, **fields)


def group(
    name: str = "worker", count: int = 2, instances: Sequence[Instance] | None = None, **fields: Any
) -> NodeGroup:
    made = NodeGroup(
        name=name,
        count=count,
        flavor_id="2",
        node_processes=("datanode", "nodemanager"),
        instances=tuple(
            instances if instances is not None else [instance(n, name) for n in range(1, count + 1)]
        ),
        created_at=timestamp(NOW),
    )
    return evolve(made, **fields)


def cluster(*groups: NodeGroup, **fields: Any) -> Cluster:
    """A cluster that has just been accepted: two workers unless groups are given."""
    made = Cluster(
        id=ClusterId("c1"),
        tenant_id=TENANT,
        name="demo",
        plugin_name="test",
        engine_version="1",
        default_image_id=IMAGE,
        username="debian",
        node_groups=groups or (group(),),
        management_public_key="ssh-ed25519 AAAA svcd",
        management_private_key=_KEY,
        openings=("22 0.0.0.0/0",),
        status_since=timestamp(NOW),
        created_at=timestamp(NOW),
    )
    return evolve(made, **fields)


# ---- distribution -------------------------------------------------------------------------------


@implementer(IDistribution)
class Scripted:
    """Two files, a command and a probe a machine; each verb can be watched by its commands."""

    name = "test"
    title = "Test"
    description = ""
    versions = ("1", "2")

    def __init__(self) -> None:
        self.faults: list[SvcdError] = []
        self.scaling: list[SvcdError] = []
        self.tags: tuple[str, ...] = ()

    def node_processes(self, version: str) -> Mapping[str, Sequence[str]]:
        return {"HDFS": ("namenode", "datanode"), "YARN": ("nodemanager",)}

    def required_image_tags(self, version: str) -> Sequence[str]:
        return self.tags

    def configs(self, version: str) -> Sequence[ConfigEntry]:
        def entry(name: str, kind: str, scope: Scope = Scope.NODE) -> ConfigEntry:
            return ConfigEntry(
                name=name,
                description="",
                default_value="",
                config_type=kind,
                applicable_target="HDFS",
                scope=scope,
            )

        return (
            entry("dfs.replication", "int"),
            entry("dfs.permissions", "bool"),
            entry("dfs.name", "string"),
            entry("dfs.blocksize", "int", Scope.CLUSTER),
        )

    def job_types(self, version: str) -> Sequence[JobType]:
        return ()

    def hints(self, version: str, job_type: JobType) -> Sequence[Any]:
        return ()

    def open_ports(self, version: str, processes: Sequence[str]) -> Sequence[int]:
        return (9870,)

    def check_topology(self, cluster: Cluster) -> Sequence[SvcdError]:
        return self.faults

    def check_scaling(self, before: Cluster, after: Cluster) -> Sequence[SvcdError]:
        return self.scaling

    def configure(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        chains = tuple(
            (
                WriteFile(machine=i, path="/home/debian/a", content=b"1"),
                WriteFile(machine=i, path="/home/debian/b", content=b"2"),
                Command(machine=i, what="configure node", script=f"configure {i}"),
            )
            for i in on
        )
        return (Stage(name="configure", chains=chains, deadline_s=60, advice="look"),)

    def start(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        urls = {m.instance_id: m.public for m in machines}
        chains = tuple(
            (
                Command(machine=i, what="start node", script=f"start {i}", log="/log"),
                HttpProbe(
                    machine=i,
                    what="daemon serves",
                    url=f"http://{urls[i]}:9870/",
                    missing=lambda status, body: "" if status == 200 else f"status {status}",
                    log="/log",
                    alive=f"alive {i}",
                ),
            )
            for i in on
        )
        return (Stage(name="start nodes", chains=chains, deadline_s=100, advice="read it"),)

    def decommission(
        self, cluster: Cluster, machines: Sequence[Machine], leaving: Sequence[InstanceId]
    ) -> Plan:
        chains = tuple(
            (Command(machine=i, what="leave", script=f"leave {i}", timeout_s=300),) for i in leaving
        )
        return (Stage(name="decommission", chains=chains, deadline_s=600, advice=""),)

    def check(self, cluster: Cluster, machines: Sequence[Machine]) -> Plan:
        return ()

    def links(
        self, cluster: Cluster, machines: Sequence[Machine]
    ) -> Mapping[str, Mapping[str, str]]:
        return {"HDFS": {"Web UI": f"http://{machines[0].public}:9870"}}

    def endpoints(self, cluster: Cluster, machines: Sequence[Machine]) -> None:
        return None


# ---- all together -------------------------------------------------------------------------------


class Site:
    """A controller with all its fakes on one virtual clock.

    own_clock: the same time, with the timers of all but the cloud.
    """

    lease: Lease | None = None

    def new_database(self) -> Database:
        """Empty; every site has its own."""
        return SqliteDatabase(None)

    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock(NOW)
        self.store = StoredStore(self.new_database())
        self.own_clock = Lifeline(self.clock)
        self.cloud = SiteCloud(self.clock, self.own_clock)
        self.remote_faults = Faults()
        self.remote = ScriptedRemote(self.own_clock, self.remote_faults)
        self.probe = ScriptedProbe(self.own_clock)
        self.distribution = Scripted()
        self.distributions = Distributions(["test"], found=[self.distribution])
        self.killed: list[ClusterId] = []
        self.settings = Provisioning(**settings)
        self.settled: list[ClusterId] = []
        self.controller = self.new_controller()

    def new_controller(self) -> Controller:
        return Controller(
            self.ports(),
            self.own_clock,
            self.settings,
            random.Random(1),
            settled=self.settled.append,
            lease=self.lease,
        )

    def ports(self) -> Ports:
        return Ports(
            store=self.store,  # type: ignore[arg-type]
            cloud=self.cloud.client,
            remote=self.remote,
            probe=self.probe,
            distributions=self.distributions,
            sealer=SEALER,
            kill_executions=self.kill,
        )

    async def kill(self, cluster_id: ClusterId) -> None:
        self.killed.append(cluster_id)

    def restart(self) -> None:
        """The daemon dies without a word and another one takes over."""
        run(self.controller.stop())
        self.controller = self.new_controller()
        run(self.controller.start())

    def add(self, row: Cluster) -> None:
        self.store.clusters.rows[row.id] = row
        self.controller.wake(row.id)

    def change(self, to: Callable[[Cluster], Cluster]) -> None:
        """A request: a write of the row, then a wake."""
        row = self.row
        self.store.clusters.rows[row.id] = evolve(to(row), version=row.version + 1)
        self.controller.wake(row.id)

    @property
    def row(self) -> Cluster:
        return self.store.clusters.rows[ClusterId("c1")]

    @property
    def gone(self) -> bool:
        return ClusterId("c1") not in self.store.clusters.rows

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def commands(self) -> list[str]:
        return [r.command for r in self.remote.ran if "svcd-facts" not in r.command]

    def events(self) -> list[tuple[str, str, str]]:
        return [
            (e.step, e.machine, e.outcome)
            for e in self.store.clusters.events.get(ClusterId("c1"), [])
        ]

    def stored_events(self) -> list[ClusterEvent]:
        return list(self.store.clusters.events.get(ClusterId("c1"), []))

    def leftovers(self) -> list[str]:
        """What is still there in the cloud."""
        cloud = self.cloud
        return [
            *cloud.made,
            *cloud.disks,
            *cloud.addresses,
            *cloud.security,
            *cloud.server_groups,
            *cloud.trusts,
        ]

    def cut_off(self) -> None:
        """No machine is reached by SSH."""
        for address in ADDRESSES:
            self.remote.take_down(address)

    def connect(self, *but: str) -> None:
        """All machines are reached again, except `but`."""
        for address in ADDRESSES:
            if address not in but:
                self.remote.bring_up(address)


def run(work: Any) -> Any:
    """The result of a coroutine that needs no time."""
    results: list[Any] = []
    done = Deferred.fromCoroutine(work)
    done.addBoth(results.append)
    if not results:
        raise AssertionError("it has not come to an end")
    if hasattr(results[0], "raiseException"):
        results[0].raiseException()
    return results[0]
