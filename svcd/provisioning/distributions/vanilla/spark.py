"""The configuration of Spark: of its jobs on YARN, of its history server, of Spark Connect.

Every machine gets the same settings, also when no process of Spark runs there: a job is submitted
from any machine. They name no folder or address of a single machine, because the configuration of
the submitting machine travels to all containers of the job. Values that differ between machines are
variables of the container (`$NM_HOST`, `${java.io.tmpdir}`).

Note: Spark Connect. The server is a Spark application whose driver and application master run in
the daemon itself, so that a server without work has no container at all. It gets executors when a
query needs them, and returns them when they are idle: there is no shuffle service, so Spark tracks
which executors hold the data of a shuffle. It writes no event log, which would grow for ever. The
settings of jobs hold for it too, with the differences in `connect_settings`. Its token is in the
environment of the daemon, because Spark copies each setting to the executors.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from svcd.model.cluster import Cluster
from svcd.model.failures import EMPTY_RESIZE
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla import layout as places
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    NODEMANAGER,
    PROCESSES,
    SPARK,
    SPARKCONNECT,
    SPARKHISTORY,
)
from svcd.provisioning.distributions.vanilla.entries import Site
from svcd.provisioning.distributions.vanilla.hadoop import name_node
from svcd.provisioning.distributions.vanilla.layout import holder
from svcd.provisioning.distributions.vanilla.sites import Properties, asked
from svcd.provisioning.distributions.vanilla.topology import (
    count,
)

HISTORY_FOLDER = "/spark-history"
"""The folder of HDFS where jobs record their events."""
CONNECT_NAME = "Spark Connect"
"""The name of the server's application in YARN."""
HOST_FILTER = "org.svcd.spark.HostFilter"

_PYTHON = "spark.pyspark.python"
_DEFAULT_PYTHON = "/usr/bin/python3"
_EVENT_LOG = "spark.eventLog.enabled"
_DYNAMIC = "spark.dynamicAllocation.enabled"
_IDLE = "spark.dynamicAllocation.executorIdleTimeout"
_MOST_EXECUTORS = "spark.dynamicAllocation.maxExecutors"


def spark_defaults(machines: Sequence[Machine], machine: Machine) -> Properties:
    """`spark-defaults.conf`, with the caller's options."""
    given = _given(machine)
    settings = _jobs(machines, machine) | _history(machines, machine) | given
    if holder(machines, SPARKHISTORY) is None:
        settings[_EVENT_LOG] = "false"
    if _DYNAMIC not in given and "spark.executor.instances" in given:
        settings[_DYNAMIC] = "false"  # the caller has counted the executors
    return settings


def image_fault(cluster: Cluster, machine: Machine) -> str:
    """The lack of Spark in the image of a machine that needs it; "" when nothing is missing.

    Node managers need it too when the cluster has a process of Spark: they run its executors.
    """
    asked_for = [p for p in PROCESSES[SPARK] if count(cluster, p)]
    needing = [p for p in (*PROCESSES[SPARK], NODEMANAGER) if p in machine.processes]
    if not asked_for or not needing or "spark" in machine.software:
        return ""
    lack = f"{asked_for[0]} needs Spark, and the software in {machine.prefix} comes without it"
    build = f"svcd image build vanilla {machine.prefix}"
    if machine.root:
        return f"{lack}: run {build}, then retry with {EMPTY_RESIZE}"
    return f"{lack}: make an image with {build}, and create the cluster again with that image"


def _jobs(machines: Sequence[Machine], machine: Machine) -> Properties:
    sizes = places.spark_sizes(machines)
    spark = f"{machine.prefix}/spark"
    shared = bool(machine.root)
    return {
        "spark.master": "yarn",
        "spark.submit.deployMode": "cluster",
        # the software of the image: a job uploads nothing but its program
        "spark.yarn.jars": f"local:{quote(spark)}/jars/*",
        "spark.yarn.populateHadoopClasspath": "false",
        # a second driver would find the output of the first one
        "spark.yarn.maxAppAttempts": "1",
        _PYTHON: _DEFAULT_PYTHON,
        # without Hive tables live as long as their job; the files must be seen by all its machines
        "spark.sql.warehouse.dir": f"{name_node(machines)}/user/{machine.user}/spark-warehouse",
        # each Java virtual machine inserts its own folder
        "spark.hadoop.hadoop.tmp.dir": "${java.io.tmpdir}/hadoop",
        "spark.driver.memory": f"{sizes.driver_heap}m",
        "spark.driver.memoryOverhead": f"{sizes.driver - sizes.driver_heap}m",
        "spark.executor.memory": f"{sizes.executor_heap}m",
        "spark.executor.memoryOverhead": f"{sizes.executor - sizes.executor_heap}m",
        "spark.executor.cores": str(sizes.cores),
    } | (_SHARED if shared else _SERVER | {_MOST_EXECUTORS: str(sizes.most)})


_SHARED: Properties = {
    # the network cards of the host are not those of the machine
    "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "$NM_HOST",
    "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME": "$NM_HOST",
    "spark.executorEnv.SPARK_LOCAL_IP": "$NM_HOST",
    "spark.executorEnv.SPARK_LOCAL_HOSTNAME": "$NM_HOST",
    "spark.ui.filters": HOST_FILTER,
    "spark.ui.enabled": "false",
    _DYNAMIC: "false",
    "spark.executor.instances": "1",
    # a driver plans its first stage while the executors start; on one host it does not matter which
    # of them gets the first tasks
    "spark.scheduler.minRegisteredResourcesRatio": "0",
    "spark.default.parallelism": "2",
    "spark.sql.shuffle.partitions": "4",
    "spark.yarn.report.interval": "200ms",
    "spark.yarn.scheduler.heartbeat.interval-ms": "200",
    "spark.yarn.scheduler.initial-allocation.interval": "100ms",
}

_SERVER: Properties = {
    _DYNAMIC: "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.yarn.report.interval": "500ms",
    "spark.yarn.scheduler.heartbeat.interval-ms": "500",
}


def _history(machines: Sequence[Machine], machine: Machine) -> Properties:
    server = holder(machines, SPARKHISTORY)
    if server is None:
        return {}
    folder = f"{name_node(machines)}{HISTORY_FOLDER}"
    return {
        _EVENT_LOG: "true",
        "spark.eventLog.dir": folder,
        "spark.yarn.historyServer.address": f"http://{server.public}:{DAEMONS[SPARKHISTORY].web}",
        "spark.history.fs.logDirectory": folder,
        "spark.history.fs.update.interval": "2s" if machine.root else "10s",
        "spark.history.fs.cleaner.enabled": "true",
        "spark.history.ui.port": str(DAEMONS[SPARKHISTORY].web),
    }


def _given(machine: Machine) -> Properties:
    """The caller's options; 0 and the empty text leave the choice to svcd."""
    found = asked(Site.SPARK, machine.configs)
    return {name: value for name, value in found.items() if value not in ("", "0")}


def connect_tag(cluster: Cluster) -> str:
    """The tag in YARN of the application of the Spark Connect server of `cluster`."""
    return f"svcd-spark-connect-{cluster.id}"


def connect_settings(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    """`spark-connect.conf`: all settings of the Spark Connect server on `machine`."""
    given = _given(machine)
    settings = spark_defaults(machines, machine)
    counted = settings.pop("spark.executor.instances", None)
    most = given.get(_MOST_EXECUTORS) or counted or str(places.spark_sizes(machines).most)
    idle = given.get(_IDLE, "60s")
    packages = f"{machine.prefix}/spark/python"
    return settings | {
        "spark.app.name": CONNECT_NAME,
        "spark.yarn.tags": connect_tag(cluster),
        "spark.submit.deployMode": "client",
        "spark.yarn.unmanagedAM.enabled": "true",
        # the driver has no container, but YARN counts this size among the memory of masters
        "spark.yarn.am.memory": "64m",
        "spark.yarn.am.memoryOverhead": "64m",
        # the server ends with its application: it could serve nothing any more
        "spark.yarn.am.clientModeExitOnError": "true",
        "spark.driver.host": machine.address,
        "spark.driver.bindAddress": machine.address,
        "spark.connect.grpc.binding.address": machine.address,
        "spark.connect.grpc.binding.port": str(DAEMONS[SPARKCONNECT].ports[0]),
        # a larger result is refused by name, before it fills the heap of the server
        "spark.driver.maxResultSize": f"{places.heap_mib(machine, SPARKCONNECT) // 2}m",
        _EVENT_LOG: "false",
        "spark.ui.enabled": "false",
        _DYNAMIC: "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": "0",
        "spark.dynamicAllocation.initialExecutors": "0",
        _MOST_EXECUTORS: most,
        _IDLE: idle,
        "spark.dynamicAllocation.shuffleTracking.timeout": idle,
        "spark.dynamicAllocation.cachedExecutorIdleTimeout": "1800s",
        # plain functions of a notebook then need no package on the workers
        "spark.sql.execution.pythonUDF.arrow.enabled": "false",
        "spark.executorEnv.PYTHONPATH": f"{packages}/packages:{packages}/svcd",
        # Spark copies all variables SPARK* to the executors, and YARN keeps those in a log folder
        "spark.executorEnv.SPARK_CONNECT_AUTHENTICATE_TOKEN": "none",
        "spark.python.daemon.module": "svcd_daemon",
        # the software tree stays as it was built
        "spark.executorEnv.PYTHONDONTWRITEBYTECODE": "1",
    }


def python_of_workers(machine: Machine) -> str:
    """The Python of functions. Spark Connect takes it from its environment, not from a setting."""
    return _given(machine).get(_PYTHON, _DEFAULT_PYTHON)


def properties(values: Properties) -> str:
    """A file of Java properties, as Spark reads it."""
    lines = (f"{name}={_escaped(value)}\n" for name, value in values.items())
    return "# Made by svcd.\n" + "".join(lines)


def _escaped(value: str) -> str:
    for plain, written in (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        value = value.replace(plain, written)
    return f"\\{value}" if value.startswith(" ") else value


_PATTERN = "%d{yyyy-MM-dd HH:mm:ss.SSS} %p %c: %m%n%ex"
"""The form of a log line. It has the whole name of the logger, by which `svcd job logs` leaves out
the steps of Spark."""

LOG4J2 = f"""\
# Made by svcd. Jobs and command lines log to standard error.
rootLogger.level = ${{sys:svcd.log.level:-info}}
rootLogger.appenderRef.main.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = {_PATTERN}
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""

DAEMON_LOG4J2 = f"""\
# Made by svcd. Daemons of Spark log to a file of limited size.
rootLogger.level = info
rootLogger.appenderRef.main.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = ${{env:HADOOP_LOG_DIR}}/${{sys:svcd.daemon}}.log
appender.file.filePattern = ${{env:HADOOP_LOG_DIR}}/${{sys:svcd.daemon}}.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = {_PATTERN}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 20MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 4
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
"""
