"""The files of a machine: settings of Hadoop, Oozie and Spark, environment, daemon script.

On machines that are folders of one host each Java virtual machine has its own hosts file. Without
this file YARN replaces loopback addresses by the host's name.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from svcd.model import cluster_token
from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Machine, WriteFile
from svcd.provisioning.distributions.vanilla import hadoop, oozie, spark
from svcd.provisioning.distributions.vanilla.daemons import (
    GENERAL,
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SPARKCONNECT,
    SPARKHISTORY,
)
from svcd.provisioning.distributions.vanilla.entries import JVM_OPTIONS, Site
from svcd.provisioning.distributions.vanilla.layout import holder, holders, layout
from svcd.provisioning.distributions.vanilla.script import daemon_script
from svcd.provisioning.distributions.vanilla.sites import site_xml, with_asked

CLUSTER_VARIABLE = "SVCD_CLUSTER"
"""The variable that Oozie shows among those of its environment: the id of its cluster."""

LOG4J = """\
# Made by svcd. Daemons log to a file of limited size, command lines to standard error.
hadoop.root.logger=WARN,console
log4j.rootLogger=${hadoop.root.logger}
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.appender.file=org.apache.log4j.RollingFileAppender
log4j.appender.file.File=${hadoop.log.dir}/${svcd.daemon}.log
log4j.appender.file.MaxFileSize=20MB
log4j.appender.file.MaxBackupIndex=4
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d{ISO8601} %p %c{2}: %m%n
log4j.logger.BlockStateChange=WARN
log4j.logger.org.apache.hadoop.util.NativeCodeLoader=ERROR
"""


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
        settings = spark.connect_settings(cluster, machines, machine)
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


def environment(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> str:
    """`env.sh`: the variables that daemons, and people on the machine, need to use the cluster."""
    place = layout(machine)
    options = [f"-Duser.home={machine.home}"]
    if machine.root:
        options += [
            f"-Dsvcd.address={machine.address}",
            f"-Djdk.net.hosts.file={place.conf}/hosts",
        ]
    extra = machine.configs.get(GENERAL, {}).get(JVM_OPTIONS, "")
    variables = {
        CLUSTER_VARIABLE: cluster.id,
        "SVCD_BASE": place.base,
        "SVCD_PREFIX": machine.prefix,
        "HADOOP_CONF_DIR": place.conf,
        "HADOOP_LOG_DIR": place.logs,
        "HADOOP_OPTS": " ".join((*options, *str(extra).split())),
        # daemons and their owner are the same user in HDFS, whatever their system user is
        "HADOOP_USER_NAME": machine.user,
        "SPARK_HOME": f"{machine.prefix}/spark",
        "SPARK_LOCAL_IP": machine.address,
        "TMPDIR": place.tmp,
        # Java takes its encoding from LANG. SSH logins do not set it, and letters would be lost
        "LANG": "C.UTF-8",
    }
    if not machine.root:
        variables["SVCD_JVM_FLAGS"] = (
            ""  # servers run for long: Java uses all compilers and chooses its own collector
        )
    server = holder(machines, OOZIE)
    if server:
        variables["OOZIE_URL"] = f"http://{server.address}:11000/oozie"
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    head = f"# Made by svcd. To use the cluster by hand: . {shlex.quote(place.base + '/env.sh')}\n"
    return head + "".join(lines) + f"export PATH={shlex.quote(machine.prefix + '/bin')}:$PATH\n"


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
