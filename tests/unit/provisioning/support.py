"""Records of clusters and a distribution, for tests by literal values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve
from zope.interface import implementer_only

from svcd.errors import SvcdError
from svcd.model.cloud import Flavor
from svcd.model.cluster import Cluster, Instance, NodeGroup
from svcd.model.ids import ClusterId, InstanceId, TenantId, timestamp
from svcd.model.secret import Secret
from svcd.provisioning.distributions.fake import Fake
from svcd.provisioning.distributions.spi import ConfigEntry, IDistribution, Scope
from svcd.store.sealer import MemorySealer

NOW: Final = 1_767_225_600.0
TENANT: Final = TenantId("t1")
IMAGE: Final = "image"
_KEY: Final = MemorySealer().seal(Secret("key"))
"""Of all clusters: each sealing is different."""
FLAVORS: Final = (
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


@implementer_only(IDistribution)
class Scripted(Fake):
    """Four options and three processes; any cluster and any change of size has the given faults.

    tags: of the images that it needs.
    """

    name = "test"
    versions = ("1", "2")

    def __init__(self) -> None:
        super().__init__()
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
                name=name, description="", default_value="", config_type=kind,
                applicable_target="HDFS", scope=scope,
            )  # fmt: skip

        return (
            entry("dfs.replication", "int"),
            entry("dfs.permissions", "bool"),
            entry("dfs.name", "string"),
            entry("dfs.blocksize", "int", Scope.CLUSTER),
        )

    def open_ports(self, version: str, processes: Sequence[str]) -> Sequence[int]:
        return (9870,)

    def check_topology(self, cluster: Cluster) -> Sequence[SvcdError]:
        return self.faults

    def check_scaling(self, before: Cluster, after: Cluster) -> Sequence[SvcdError]:
        return self.scaling
