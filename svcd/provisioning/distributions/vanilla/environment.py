"""The environment of a machine's daemons and of people who log in there, and the log settings.

On machines that are folders of one host each Java virtual machine has its own hosts file. Without
this file YARN replaces loopback addresses by the host's name.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla.entries import JVM_OPTIONS
from svcd.provisioning.distributions.vanilla.layout import holder, layout
from svcd.provisioning.distributions.vanilla.topology import GENERAL, OOZIE

IDENTITY = "SVCD_CLUSTER"
"""The variable that Oozie shows among those of its environment: the id of its cluster."""


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
        IDENTITY: cluster.id,
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
    oozie = holder(machines, OOZIE)
    if oozie:
        variables["OOZIE_URL"] = f"http://{oozie.address}:11000/oozie"
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    head = f"# Made by svcd. To use the cluster by hand: . {shlex.quote(place.base + '/env.sh')}\n"
    return head + "".join(lines) + f"export PATH={shlex.quote(machine.prefix + '/bin')}:$PATH\n"


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
