"""A site of provisioning: SQLite in memory, a small cloud, a virtual clock, faults as data."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen
from twisted.internet.defer import Deferred
from zope.interface import implementer

from svcd.embedded.faults import Faults
from svcd.embedded.scripted import ScriptedProbe, ScriptedRemote
from svcd.errors import SvcdError
from svcd.model.cloud import (
    Caller,
    Flavor,
    FloatingIp,
    Image,
    KeyPair,
    Network,
    NewServer,
    Opening,
    Quota,
    Server,
    VolumeState,
)
from svcd.model.cluster import Cluster, Instance, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, timestamp
from svcd.model.job import JobType
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.ports.leases import Leases
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
from svcd.runtime.tasks import sleep
from svcd.settings import Provisioning
from svcd.store.database import Database
from svcd.store.sqlite import SqliteDatabase
from tests.unit.provisioning.stored import TENANT as TENANT
from tests.unit.provisioning.stored import StoredStore

NOW = 1_767_225_600.0
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
        default_image_id="image",
        username="debian",
        node_groups=groups or (group(),),
        management_public_key="ssh-ed25519 AAAA svcd",
        management_private_key="sealed:key",
        openings=("22 0.0.0.0/0",),
        status_since=timestamp(NOW),
        created_at=timestamp(NOW),
    )
    return evolve(made, **fields)


# ---- cloud --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Rule:
    """The next `times` calls of `method` raise `error`; with `after` the call is done first."""

    method: str
    error: CloudError
    times: int = 1
    after: bool = False


class MemoryCloud:
    """A cloud of one tenant. Times in seconds; `calls` counts by method."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.boot_s = 0.0
        self.lag_s = 0.0
        self.delete_s = 0.0
        self.broken: dict[str, int] = {}  # server name -> how many of it go to ERROR
        self.fault_text = "No valid host was found."
        self.rules: list[Rule] = []
        self.calls: dict[str, int] = {}
        self.call_s = 0.0
        self.made: dict[str, dict[str, Any]] = {}
        self.disks: dict[str, VolumeState] = {}
        self.addresses: dict[str, FloatingIp] = {}
        self.security: dict[str, str] = {}
        self.openings: dict[str, list[str]] = {}
        self.server_groups: dict[str, str] = {}
        self.trusts: set[str] = set()
        self.given: dict[str, GivenTrust] = {}
        self.left = Quota()
        self.pictures: dict[str, Image] = {
            "image": Image(
                id="image", name="i", status="active", properties={"_svc_username": "debian"}
            )
        }
        self._number = 0

    def session(self, access: object) -> MemoryCloud:
        return self

    async def create_trust(self, caller: Caller, expires_at: str) -> str | None:
        await self._call("create_trust")
        if caller.token is None:
            return None
        trust = self._id("trust")
        self.trusts.add(trust)
        self.given[trust] = GivenTrust(
            id=trust, tenant_id=caller.tenant_id, trustor_id=caller.user_id, expires_at=expires_at
        )
        await self._call("create_trust", after=True)
        return trust

    async def given_trusts(self, wanted: Collection[str]) -> Sequence[GivenTrust]:
        await self._call("given_trusts")
        return [g for i, g in self.given.items() if i in self.trusts and g.expires_at in wanted]

    async def delete_trust(self, trust_id: str) -> None:
        await self._call("delete_trust")
        self.trusts.discard(trust_id)

    def _id(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"

    async def _call(self, method: str, after: bool = False) -> None:
        if not after:
            self.calls[method] = self.calls.get(method, 0) + 1
            if self.call_s:
                await sleep(self.clock, self.call_s)
        for rule in self.rules:
            if rule.method == method and rule.after is after:
                self.rules.remove(rule)
                if rule.times > 1:
                    self.rules.insert(0, evolve(rule, times=rule.times - 1))
                raise rule.error

    def fail(
        self,
        method: str,
        kind: Fault = Fault.SERVER_ERROR,
        times: int = 1,
        after: bool = False,
        text: str = "out of order",
    ) -> None:
        error = CloudError("cloud", kind, text)
        self.rules.append(Rule(method=method, error=error, times=times, after=after))

    # reading
    async def images(self) -> Sequence[Image]:
        await self._call("images")
        return list(self.pictures.values())

    async def image(self, image_id: str) -> Image:
        await self._call("image")
        if image_id not in self.pictures:
            raise CloudError("image", Fault.NOT_FOUND, f"no image {image_id}")
        return self.pictures[image_id]

    async def flavors(self) -> Sequence[Flavor]:
        await self._call("flavors")
        return FLAVORS

    async def keypair(self, name: str) -> KeyPair:
        await self._call("keypair")
        if name != "demo":
            raise CloudError("compute", Fault.NOT_FOUND, f"no key pair {name}")
        return KeyPair(name=name, public_key="ssh-rsa A")

    async def keypairs(self) -> Sequence[str]:
        await self._call("keypairs")
        return ["demo"]

    async def quota(self) -> Quota:
        await self._call("quota")
        return self.left

    async def networks(self) -> Sequence[Network]:
        await self._call("networks")
        return [
            Network(id="private-id", name="private"),
            Network(id="public-id", name="public", external=True),
        ]

    # servers
    async def servers(self, cluster_id: ClusterId, name_prefix: str = "") -> Sequence[Server]:
        await self._call("servers")
        self.forget_deleted()
        now = self.clock.seconds()
        return [
            self._server(row)
            for row in self.made.values()
            if row["new"].name.startswith(name_prefix)
            and (not self.lag_s or row["at"] + self.lag_s <= now)
        ]

    async def server(self, server_id: str) -> Server:
        await self._call("server")
        self.forget_deleted()
        if server_id not in self.made:
            raise CloudError("compute", Fault.NOT_FOUND, f"no server {server_id}")
        return self._server(self.made[server_id])

    def forget_deleted(self) -> None:
        """Servers whose time is over."""
        now = self.clock.seconds()
        for row in list(self.made.values()):
            if row["gone_at"] is not None and row["gone_at"] <= now:
                del self.made[row["id"]]

    def _server(self, row: dict[str, Any]) -> Server:
        ready = row["at"] + self.boot_s <= self.clock.seconds()
        status = "BUILD" if not ready else "ERROR" if row["broken"] else "ACTIVE"
        new: NewServer = row["new"]
        return Server(
            id=row["id"],
            name=new.name,
            status=status,
            task_state="deleting" if row["gone_at"] is not None else None,
            addresses=((row["address"], "fixed"),) if status == "ACTIVE" else (),
            fault=self.fault_text if status == "ERROR" else "",
            metadata=new.metadata,
        )

    async def create_server(self, new: NewServer) -> str:
        await self._call("create_server")
        server_id = self._id("server")
        broken = self.broken.get(new.name, 0) > 0
        if broken:
            self.broken[new.name] -= 1
        self.made[server_id] = {
            "id": server_id,
            "new": new,
            "at": self.clock.seconds(),
            "gone_at": None,
            "broken": broken,
            "address": f"10.0.0.{self._number}",
        }
        await self._call("create_server", after=True)
        return server_id

    async def delete_server(self, server_id: str) -> None:
        await self._call("delete_server")
        row = self.made.get(server_id)
        if row is None:
            return
        if self.delete_s:
            row["gone_at"] = row["gone_at"] or self.clock.seconds() + self.delete_s
        else:
            del self.made[server_id]
        for volume in list(self.disks.values()):
            if volume.attached_to == server_id:
                self.disks[volume.id] = evolve(
                    volume, attached_to=None, device=None, status="available"
                )

    async def create_server_group(self, name: str) -> str:
        await self._call("create_server_group")
        self.server_groups[name] = self._id("server-group")
        await self._call("create_server_group", after=True)
        return self.server_groups[name]

    async def find_server_groups(self, name: str) -> Sequence[str]:
        return [self.server_groups[name]] if name in self.server_groups else []

    async def delete_server_group(self, group_id: str) -> None:
        await self._call("delete_server_group")
        self.server_groups = {n: g for n, g in self.server_groups.items() if g != group_id}

    # networks
    async def create_security_group(
        self,
        name: str,
        description: str,
        openings: Sequence[Opening],
        others: Sequence[int] = (),
    ) -> str:
        await self._call("create_security_group")
        if name not in self.security:
            self.security[name] = self._id("security-group")
        self.openings[name] = [str(each) for each in openings]
        await self._call("create_security_group", after=True)
        return self.security[name]

    async def find_security_groups(self, name: str) -> Sequence[str]:
        await self._call("find_security_groups")
        return [self.security[name]] if name in self.security else []

    async def delete_security_group(self, group_id: str) -> None:
        await self._call("delete_security_group")
        self.security = {n: g for n, g in self.security.items() if g != group_id}

    async def floating_ips(self) -> Sequence[FloatingIp]:
        await self._call("floating_ips")
        return list(self.addresses.values())

    async def create_floating_ip(self, pool: str, description: str) -> FloatingIp:
        await self._call("create_floating_ip")
        made = FloatingIp(
            id=self._id("fip"),
            address=f"203.0.113.{self._number}",
            pool_id=pool,
            description=description,
        )
        self.addresses[made.id] = made
        await self._call("create_floating_ip", after=True)
        return made

    async def associate_floating_ip(self, floating_ip_id: str, server_id: str) -> None:
        await self._call("associate_floating_ip")
        self.addresses[floating_ip_id] = evolve(
            self.addresses[floating_ip_id], port_id=f"port-{server_id}"
        )
        await self._call("associate_floating_ip", after=True)

    async def delete_floating_ip(self, floating_ip_id: str) -> None:
        await self._call("delete_floating_ip")
        self.addresses.pop(floating_ip_id, None)

    # volumes
    async def volumes(self, cluster_id: ClusterId) -> Sequence[VolumeState]:
        await self._call("volumes")
        return list(self.disks.values())

    async def create_volume(self, name: str, size_gib: int, metadata: Mapping[str, str]) -> str:
        await self._call("create_volume")
        made = VolumeState(
            id=self._id("volume"),
            name=name,
            status="available",
            size_gib=size_gib,
            metadata=dict(metadata),
        )
        self.disks[made.id] = made
        await self._call("create_volume", after=True)
        return made.id

    async def attach_volume(self, server_id: str, volume_id: str) -> str:
        await self._call("attach_volume")
        held = sum(v.attached_to == server_id for v in self.disks.values())
        device = f"/dev/vd{'bcdefgh'[held]}"
        self.disks[volume_id] = evolve(
            self.disks[volume_id], status="in-use", attached_to=server_id, device=device
        )
        await self._call("attach_volume", after=True)
        return device

    async def delete_volume(self, volume_id: str) -> None:
        await self._call("delete_volume")
        volume = self.disks.get(volume_id)
        if volume is not None and volume.attached_to is not None:
            raise CloudError("volume", Fault.BUSY, f"volume {volume_id} is in use")
        self.disks.pop(volume_id, None)
        await self._call("delete_volume", after=True)


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


class PlainSealer:
    def seal(self, secret: Secret) -> str:
        return "sealed:" + secret.reveal()

    def open(self, sealed: str) -> Secret:
        return Secret(sealed.removeprefix("sealed:"))


# ---- all together -------------------------------------------------------------------------------


class Site:
    """A controller with all its fakes on one virtual clock."""

    leases: Leases | None = None

    def new_database(self) -> Database:
        """Empty; every site has its own."""
        return SqliteDatabase(None)

    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock(NOW)
        self.store = StoredStore(self.new_database())
        self.cloud = MemoryCloud(self.clock)
        self.remote_faults = Faults()
        self.remote = ScriptedRemote(self.clock, self.remote_faults)
        self.probe = ScriptedProbe(self.clock)
        self.distribution = Scripted()
        self.distributions = Distributions(["test"], found=[self.distribution])
        self.killed: list[ClusterId] = []
        self.settings = Provisioning(**settings)
        self.settled: list[ClusterId] = []
        self.controller = self.new_controller()

    def new_controller(self) -> Controller:
        return Controller(
            self.ports(),
            self.clock,
            self.settings,
            random.Random(1),
            settled=self.settled.append,
            leases=self.leases,
        )

    def ports(self) -> Ports:
        return Ports(
            store=self.store,  # type: ignore[arg-type]
            cloud=self.cloud,  # type: ignore[arg-type]
            remote=self.remote,
            probe=self.probe,
            distributions=self.distributions,
            sealer=PlainSealer(),
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

    def leftovers(self) -> list[str]:
        """What is still there in the cloud."""
        cloud = self.cloud
        cloud.forget_deleted()
        found: list[str] = []
        for things in (
            cloud.made,
            cloud.disks,
            cloud.addresses,
            cloud.security,
            cloud.server_groups,
        ):
            found.extend(things)
        return [*found, *cloud.trusts]


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
