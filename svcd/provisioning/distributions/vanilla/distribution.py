"""`Vanilla`: Apache Hadoop, Pig and Oozie, from their released artifacts.

Other modules decide: `topology` (rules), `entries` and `hints` (options), `configuration` (files),
`stages` (order). This module only implements the interface with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import implementer

from svcd.errors import SvcdError
from svcd.model import cluster_token
from svcd.model.cluster import Cluster
from svcd.model.ids import InstanceId
from svcd.model.job import JobType
from svcd.provisioning.distributions.spi import (
    Command,
    ConfigEntry,
    Endpoints,
    Hint,
    HttpProbe,
    IDistribution,
    IIdleProbes,
    IImageCheck,
    IUnprivileged,
    IWebPorts,
    Machine,
    Plan,
)
from svcd.provisioning.distributions.vanilla import actions, spark, stages, topology
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    HDFS,
    HISTORYSERVER,
    JOBFLOW,
    MAPREDUCE,
    NAMENODE,
    OOZIE,
    PROCESSES,
    RESOURCEMANAGER,
    SPARK,
    SPARKCONNECT,
    SPARKHISTORY,
    YARN,
)
from svcd.provisioning.distributions.vanilla.entries import entries
from svcd.provisioning.distributions.vanilla.hadoop import launcher_limits
from svcd.provisioning.distributions.vanilla.hints import JOB_TYPES, hints
from svcd.provisioning.distributions.vanilla.layout import holder, web_url


@implementer(IDistribution, IIdleProbes, IImageCheck, IUnprivileged, IWebPorts)
class Vanilla:
    """The distribution `vanilla`."""

    name = "vanilla"
    title = "Vanilla Apache Hadoop"
    description = (
        "Apache Hadoop 3.5.0 (HDFS, YARN, MapReduce) with Pig 0.18.0, Oozie 5.2.1 and "
        "Spark 4.2.0, as released, without extensions of a vendor"
    )
    versions = ("3.5.0",)

    def node_processes(self, version: str) -> Mapping[str, Sequence[str]]:
        return PROCESSES

    def required_image_tags(self, version: str) -> Sequence[str]:
        return (self.name, version)

    def configs(self, version: str) -> Sequence[ConfigEntry]:
        return entries()

    def job_types(self, version: str) -> Sequence[JobType]:
        return JOB_TYPES

    def hints(self, version: str, job_type: JobType) -> Sequence[Hint]:
        return hints(job_type)

    def open_ports(self, version: str, processes: Sequence[str]) -> Sequence[int]:
        return ()

    def web_ports(self, version: str, processes: Sequence[str]) -> Sequence[int]:
        # they take any user name: cloud.web_cidrs decides who reaches them
        daemons = [DAEMONS[process] for process in processes if process in DAEMONS]
        return sorted({daemon.web for daemon in daemons if daemon.web is not None})

    def image_fault(self, cluster: Cluster, machine: Machine) -> str:
        return spark.image_fault(cluster, machine)

    def check_topology(self, cluster: Cluster) -> Sequence[SvcdError]:
        return topology.creation_faults(cluster)

    def check_scaling(self, before: Cluster, after: Cluster) -> Sequence[SvcdError]:
        return topology.scaling_faults(before, after)

    def configure(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        return stages.configure(cluster, machines, on)

    def start(
        self, cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]
    ) -> Plan:
        return stages.start(cluster, machines, on)

    def decommission(
        self, cluster: Cluster, machines: Sequence[Machine], leaving: Sequence[InstanceId]
    ) -> Plan:
        return stages.decommission(cluster, machines, leaving)

    def check(self, cluster: Cluster, machines: Sequence[Machine]) -> Plan:
        return stages.check(cluster, machines)

    def idle_probes(
        self, cluster: Cluster, machines: Sequence[Machine]
    ) -> Sequence[HttpProbe | Command]:
        return tuple(stages.idle_probes(cluster, machines))

    def links(
        self, cluster: Cluster, machines: Sequence[Machine]
    ) -> Mapping[str, Mapping[str, str]]:
        links: dict[str, Mapping[str, str]] = {}
        if head := holder(machines, NAMENODE):
            links[HDFS] = {
                "Web UI": web_url(head, NAMENODE),
                "NameNode": f"hdfs://{head.address}:8020",
            }
        if manager := holder(machines, RESOURCEMANAGER):
            links[YARN] = {"Web UI": web_url(manager, RESOURCEMANAGER)}
        if history := holder(machines, HISTORYSERVER):
            links[MAPREDUCE] = {"Web UI": web_url(history, HISTORYSERVER)}
        of_spark: dict[str, str] = {}
        if server := holder(machines, SPARKHISTORY):
            of_spark["Web UI"] = web_url(server, SPARKHISTORY)
        if connect := holder(machines, SPARKCONNECT):
            of_spark["Connect"] = cluster_token.link(
                f"sc://{connect.address}:{DAEMONS[SPARKCONNECT].ports[0]}/"
            )
        if of_spark:
            links[SPARK] = of_spark
        if oozie := holder(machines, OOZIE):
            base = web_url(oozie, OOZIE)
            links[JOBFLOW] = {"Oozie": base, "Web UI": f"{base}/oozie"}
        return links

    def endpoints(self, cluster: Cluster, machines: Sequence[Machine]) -> Endpoints | None:
        oozie, head = holder(machines, OOZIE), holder(machines, NAMENODE)
        manager, history = holder(machines, RESOURCEMANAGER), holder(machines, HISTORYSERVER)
        if not (oozie and head and manager):
            return None
        used = {NAMENODE: head, OOZIE: oozie, RESOURCEMANAGER: manager, HISTORYSERVER: history}
        return Endpoints(
            engine=f"{web_url(oozie, OOZIE)}/oozie",
            webhdfs=web_url(head, NAMENODE),
            name_node=f"hdfs://{head.address}:8020",
            resource_manager=f"{manager.address}:8032",
            history=web_url(history, HISTORYSERVER) if history else "",
            user=head.user,
            identities=tuple(
                actions.own(cluster, machine, process)
                for process, machine in used.items()
                if machine
            ),
            launcher_limits=launcher_limits(machines),
        )
