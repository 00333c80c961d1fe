"""The files of a machine: settings of Hadoop, Oozie and Spark, environment, daemon script."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.model import cluster_token
from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Machine, WriteFile
from svcd.provisioning.distributions.vanilla import hadoop, oozie, spark
from svcd.provisioning.distributions.vanilla.entries import Site
from svcd.provisioning.distributions.vanilla.environment import LOG4J, environment
from svcd.provisioning.distributions.vanilla.layout import holders, layout
from svcd.provisioning.distributions.vanilla.script import daemon_script
from svcd.provisioning.distributions.vanilla.sites import site_xml, with_asked
from svcd.provisioning.distributions.vanilla.topology import (
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SPARKCONNECT,
    SPARKHISTORY,
)


def files(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> tuple[WriteFile, ...]:
    """All files that svcd writes on `machine`."""
    place = layout(machine)
    conf = place.conf
    mapred = hadoop.job_settings(cluster, machines, machine) | hadoop.mapred_site(machines, machine)
    sites = {
        f"{conf}/core-site.xml": with_asked(
            Site.CORE, hadoop.core_site(cluster, machines, machine), machine
        ),
        f"{conf}/hdfs-site.xml": with_asked(
            Site.HDFS, hadoop.hdfs_site(cluster, machines, machine), machine
        ),
        f"{conf}/yarn-site.xml": with_asked(
            Site.YARN, hadoop.yarn_site(cluster, machines, machine), machine
        ),
        f"{conf}/mapred-site.xml": with_asked(Site.MAPRED, mapred, machine),
        f"{conf}/capacity-scheduler.xml": hadoop.queues(machines),
    }
    texts = {
        f"{conf}/log4j.properties": LOG4J,
        f"{conf}/spark-defaults.conf": spark.properties(spark.spark_defaults(machines, machine)),
        f"{conf}/log4j2.properties": spark.LOG4J2,
        f"{place.base}/env.sh": environment(cluster, machines, machine),
        place.daemon: daemon_script(cluster, machine),
    }
    if NAMENODE in machine.processes:
        texts[f"{conf}/{hadoop.EXCLUDE_HDFS}"] = ""
    if RESOURCEMANAGER in machine.processes:
        texts[f"{conf}/{hadoop.EXCLUDE_YARN}"] = ""
        texts[f"{conf}/{hadoop.INCLUDE_YARN}"] = _included(machines)
    if SPARKHISTORY in machine.processes or SPARKCONNECT in machine.processes:
        texts[place.spark_log4j] = spark.DAEMON_LOG4J2
    tokens: list[WriteFile] = []
    if SPARKCONNECT in machine.processes:
        settings = spark.connect_settings(machines, machine)
        texts[place.connect_conf] = spark.properties(settings)
        tokens.append(
            WriteFile(
                machine=machine.instance_id,
                path=place.connect_token,
                content=cluster_token.CONTENT,
                mode=0o600,
                token=True,
            )
        )
    if OOZIE in machine.processes:
        folder = place.oozie_conf
        sites[f"{folder}/oozie-site.xml"] = with_asked(
            Site.OOZIE, oozie.oozie_site(machines, machine), machine
        )
        sites[f"{folder}/hadoop-conf/core-site.xml"] = oozie.hadoop_conf(cluster, machines, machine)
        sites[f"{folder}/action-conf/default.xml"] = oozie.action_conf(machines, machine)
        texts[f"{folder}/oozie-log4j.properties"] = oozie.log4j()
        texts[f"{folder}/adminusers.txt"] = ""
    written = {path: site_xml(properties) for path, properties in sites.items()} | texts
    return (
        *tokens,
        *(
            WriteFile(
                machine=machine.instance_id,
                path=path,
                content=text.encode(),
                mode=0o755 if path == place.daemon else 0o644,
            )
            for path, text in written.items()
        ),
    )


def include(machines: Sequence[Machine], manager: Machine) -> WriteFile:
    """The list of the node managers that the resource manager on `manager` admits."""
    return WriteFile(
        machine=manager.instance_id,
        path=f"{layout(manager).conf}/{hadoop.INCLUDE_YARN}",
        content=_included(machines).encode(),
    )


def _included(machines: Sequence[Machine]) -> str:
    """Address and name of each: see `probes.NodeManagerServes` for what one reports."""
    nodes = holders(machines, NODEMANAGER)
    return "".join(f"{node.address}\n{node.name}\n" for node in nodes)


def exclude(machine: Machine, name: str, addresses: Sequence[str]) -> WriteFile:
    """The exclude list of HDFS or YARN: the addresses of the machines that leave."""
    return WriteFile(
        machine=machine.instance_id,
        path=f"{layout(machine).conf}/{name}",
        content="".join(f"{address}\n" for address in addresses).encode(),
    )
