"""The configuration of Hadoop's daemons and jobs.

Note: progress. A launcher waits for the job that it started, and the application master of a job
waits for containers. If launchers and masters filled the cluster, all would wait for ever. So
launchers have a queue with a small share, and masters have at most half of the other memory. What
then stays free is enough for an executor of Spark on at least one machine, wherever launchers and
masters run. A job of MapReduce needs less. A test counts all cases.

svcd writes addresses where Hadoop expects host names. So links in its pages and redirects of
WebHDFS work from anywhere, and the same files work on servers and on machines that are folders of
one host. On such folders two things differ: RPC sockets are bound to the machine's own address
(else data nodes replace each other, see the socket factory), and intervals are short.
"""

from __future__ import annotations

from collections.abc import Sequence

from svcd.model import small_jobs
from svcd.model.cluster import Cluster
from svcd.ports.engine import LauncherLimits
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla import layout as places
from svcd.provisioning.distributions.vanilla import probes, topology
from svcd.provisioning.distributions.vanilla.daemons import (
    HISTORYSERVER,
    IDENTITY,
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SECONDARYNAMENODE,
)
from svcd.provisioning.distributions.vanilla.entries import Site
from svcd.provisioning.distributions.vanilla.layout import holders, layout
from svcd.provisioning.distributions.vanilla.sites import Properties, address_of, asked
from svcd.provisioning.distributions.vanilla.topology import (
    REPLICATION,
)

EXCLUDE_HDFS = "exclude.hdfs"
EXCLUDE_YARN = "exclude.yarn"
INCLUDE_YARN = "include.yarn"
"""The list of node managers that may register. It keeps those of other clusters out, which may
contact the address of their former resource manager."""
LAUNCHER_QUEUE = "launchers"
_MOST_MIB = "yarn.scheduler.maximum-allocation-mb"
_STEP_MIB = 64
"""YARN gives containers in steps of this size."""

CLASS_PATH = "$HADOOP_CONF_DIR,$HADOOP_HOME/lib/*"
HOST_FILTER = "org.svcd.hadoop.HostFilterInitializer"
STATIC_USER = "org.apache.hadoop.http.lib.StaticUserWebFilter"
SHARED_JVM = "-XX:ActiveProcessorCount=1 -Djdk.net.hosts.file=$HADOOP_CONF_DIR/hosts"
# Variables that the node manager passes on to containers. HADOOP_USER_NAME: command lines in shell
# jobs are the same user in HDFS as the job, whatever their system user is. SVCD_MACHINE_ROOT: svcd
# finds the processes of a container by it, and ends them with their machine
_PASSED_ON = (
    "JAVA_HOME,HADOOP_HOME,HADOOP_CONF_DIR,HADOOP_USER_NAME,SPARK_HOME,PATH,LANG,TZ,TMPDIR,"
    "SVCD_JAVA_HOME,SVCD_JVM_FLAGS,SVCD_MACHINE_ROOT"
)


def name_node(machines: Sequence[Machine]) -> str:
    return f"hdfs://{address_of(machines, NAMENODE)}:8020"


def proxy_hosts(machines: Sequence[Machine]) -> str:
    """The hosts from which Oozie may act for a user: Oozie's machine.

    On a loopback machine Oozie's connections come from 127.0.0.1.
    """
    address = address_of(machines, OOZIE)
    return f"{address},127.0.0.1" if address.startswith("127.") else address


def core_site(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    # web pages of others must not reach the daemons by a name of their own that points at 127.x
    filters = {"hadoop.http.filter.initializers": f"{HOST_FILTER},{STATIC_USER}"}
    return (filters if machine.root else {}) | {
        IDENTITY: cluster.id,
        "fs.defaultFS": name_node(machines),
        "fs.objstore.impl": "org.svcd.objstore.ObjStoreFileSystem",
        "fs.permissions.umask-mode": "022",
        "hadoop.tmp.dir": f"{layout(machine).tmp}/hadoop",
        "hadoop.http.staticuser.user": machine.user,
        f"hadoop.proxyuser.{machine.user}.hosts": proxy_hosts(machines),
        f"hadoop.proxyuser.{machine.user}.groups": "*",
        "hadoop.rpc.socket.factory.class.default": "org.svcd.hadoop.LocalAddressSocketFactory",
        "io.file.buffer.size": "65536",
        "ipc.client.connect.max.retries": "50",
        "ipc.client.connect.retry.interval": "200",
    }


def hdfs_site(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    place, own = layout(machine), machine.address
    head = address_of(machines, NAMENODE)
    # a node may leave when its blocks have this many copies elsewhere (see `topology`)
    keeps_one = NAMENODE in machine.processes and topology.replication_set(cluster) is None
    return {
        REPLICATION: "1" if keeps_one else str(topology.replication(cluster)),
        "dfs.namenode.name.dir": place.urls("hdfs/namenode"),
        "dfs.namenode.checkpoint.dir": place.urls("hdfs/checkpoint"),
        "dfs.datanode.data.dir": place.urls("hdfs/datanode"),
        "dfs.namenode.http-address": f"{head}:9870",
        "dfs.namenode.secondary.http-address": f"{address_of(machines, SECONDARYNAMENODE)}:9868",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",
        "dfs.datanode.address": f"{own}:9866",
        "dfs.datanode.http.address": f"{own}:9864",
        "dfs.datanode.ipc.address": f"{own}:9867",
        "dfs.datanode.hostname": own,
        "dfs.hosts.exclude": f"{place.conf}/{EXCLUDE_HDFS}",
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.safemode.min.datanodes": "0",
        "dfs.blockreport.initialDelay": "0",
        "dfs.webhdfs.enabled": "true",
        **HDFS_WRITERS,
    } | (_HDFS_SHARED if machine.root else _HDFS_SERVER)


# The writer of a file asks the name node whether the last block has arrived. After a no it waits,
# each time twice as long. A data node reports a block within milliseconds, but Hadoop first waits
# 0.4 s, and a job writes ten files. These waits are 12.8 s together, those of Hadoop 12.4 s.
HDFS_WRITERS: Properties = {
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "25",
    "dfs.client.block.write.locateFollowingBlock.retries": "9",
}


_HDFS_SHARED: Properties = {
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "3000",
    "dfs.namenode.decommission.interval": "1",
    "dfs.namenode.redundancy.interval.seconds": "1s",
    "dfs.namenode.replication.work.multiplier.per.iteration": "20",
    "dfs.namenode.replication.max-streams": "16",
    "dfs.namenode.replication.max-streams-hard-limit": "32",
    "dfs.namenode.handler.count": "4",
    "dfs.datanode.handler.count": "2",
    "dfs.datanode.max.transfer.threads": "256",
    "dfs.namenode.fs-limits.min-block-size": "4096",
    "dfs.namenode.resource.du.reserved": "10485760",
    "dfs.datanode.httpserver.filter.handlers": (
        "org.svcd.hadoop.DataNodeHostHandler,"
        "org.apache.hadoop.hdfs.server.datanode.web.RestCsrfPreventionFilterHandler"
    ),
}


_HDFS_SERVER: Properties = {
    "dfs.heartbeat.interval": "3",
    "dfs.namenode.heartbeat.recheck-interval": "45000",
    "dfs.namenode.decommission.interval": "5",
    "dfs.namenode.replication.work.multiplier.per.iteration": "10",
    "dfs.namenode.replication.max-streams": "8",
    "dfs.namenode.replication.max-streams-hard-limit": "16",
}


def yarn_site(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    place, own = layout(machine), machine.address
    heartbeat = "200" if machine.root else "500"
    offered = str(places.containers_mib(machine))
    most = max((places.containers_mib(m) for m in machines), default=0)
    return {
        "yarn.resourcemanager.hostname": address_of(machines, RESOURCEMANAGER),
        "yarn.resourcemanager.nodes.exclude-path": f"{place.conf}/{EXCLUDE_YARN}",
        "yarn.resourcemanager.nodes.include-path": f"{place.conf}/{INCLUDE_YARN}",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": heartbeat,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-min-ms": heartbeat,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-max-ms": heartbeat,
        "yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs": "1",
        "yarn.resourcemanager.connect.retry-interval.ms": "200",
        "yarn.resourcemanager.recovery.enabled": "false",
        "yarn.scheduler.minimum-allocation-mb": str(_STEP_MIB),
        _MOST_MIB: str(most),
        "yarn.scheduler.maximum-allocation-vcores": str(max(map(places.vcores, machines))),
        "yarn.nm.liveness-monitor.expiry-interval-ms": "10000" if machine.root else "60000",
        "yarn.nodemanager.hostname": own,
        # the resource manager shows for each node the cluster that it belongs to
        "yarn.nodemanager.node-attributes.provider": "config",
        "yarn.nodemanager.node-attributes.provider.configured-node-attributes": (
            f"{probes.NODE_IDENTITY},STRING,{cluster.id}"
        ),
        # makes the configured address the node's id, never a name that a resolver returns
        "yarn.nodemanager.bind-host": own,
        "yarn.nodemanager.address": f"{own}:8041",
        "yarn.nodemanager.localizer.address": f"{own}:8040",
        "yarn.nodemanager.webapp.address": f"{own}:8042",
        "yarn.nodemanager.aux-services": "mapreduce_shuffle",
        "yarn.nodemanager.local-dirs": ",".join(place.data("yarn/local")),
        "yarn.nodemanager.log-dirs": ",".join(place.data("yarn/logs")),
        "yarn.nodemanager.resource.memory-mb": offered,
        "yarn.nodemanager.resource.cpu-vcores": str(places.vcores(machine)),
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.pmem-check-enabled": "false",
        # by its default, this option switches the check above off where the host has no cgroups
        "yarn.nodemanager.resource.memory.enforced": "false",
        **_disk_checks(machine),
        "yarn.nodemanager.resourcemanager.connect.retry-interval.ms": "200",
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": "100" if machine.root else "250",
        "yarn.nodemanager.process-kill-wait.ms": "500" if machine.root else "5000",
        "yarn.nodemanager.container-monitor.interval-ms": "1000",
        "yarn.nodemanager.env-whitelist": _PASSED_ON,
        "yarn.nodemanager.container-localizer.java.opts": "-Xmx64m",
        # files of jobs that have ended hold their options, which may be secrets: none is kept
        "yarn.nodemanager.localizer.cache.target-size-mb": "0",
        "yarn.nodemanager.localizer.cache.cleanup.interval-ms": "60000"
        if machine.root
        else "300000",
        # the copy would be in a folder that the node manager's page shows
        "yarn.nodemanager.log-container-debug-info.enabled": "false",
        "yarn.application.classpath": CLASS_PATH,
        "yarn.client.app-submission.poll-interval": "100",
        "yarn.log-aggregation-enable": "false",
        "yarn.node-attribute.fs-store.root-dir": f"file://{place.run}/node-attribute",
        "yarn.node-labels.fs-store.root-dir": f"file://{place.run}/node-labels",
    }


def _disk_checks(machine: Machine) -> Properties:
    """A node manager with a full disk reports it and takes no work, before programs fail.

    Machines that share a disk with other programs are full when no space is left, not at 90 %.
    """
    checker = "yarn.nodemanager.disk-health-checker"
    if not machine.root:
        return {f"{checker}.interval-ms": "30000"}
    return {
        f"{checker}.interval-ms": "10000",
        f"{checker}.disk-utilization-threshold.enabled": "false",
        f"{checker}.min-free-space-per-disk-mb": "32",
    }


def queues(machines: Sequence[Machine]) -> Properties:
    """The queues of YARN. Launchers of Oozie have their own queue; see the note on progress."""
    root = "yarn.scheduler.capacity"
    queues: Properties = {
        f"{root}.root.queues": f"default,{LAUNCHER_QUEUE}",
        f"{root}.maximum-am-resource-percent": "0.5",
        f"{root}.resource-calculator": (
            "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
        ),
        f"{root}.node-locality-delay": "1",
    }
    for name, capacity, most, masters in (
        ("default", "70", "100", "0.5"),
        (LAUNCHER_QUEUE, "30", str(launcher_percent(machines)), "1.0"),
    ):
        queues |= {
            f"{root}.root.{name}.capacity": capacity,
            f"{root}.root.{name}.maximum-capacity": most,
            f"{root}.root.{name}.maximum-am-resource-percent": masters,
            f"{root}.root.{name}.user-limit-factor": "10",
            f"{root}.root.{name}.state": "RUNNING",
        }
    return queues


def launcher_percent(machines: Sequence[Machine]) -> int:
    """The largest share of the cluster for launchers, in percent.

    One launcher fits also when a single node manager is left, the smallest one.
    """
    offers = [places.containers_mib(m) for m in holders(machines, NODEMANAGER)]
    launcher = places.task_sizes(machines).launcher
    return max(30, -(-100 * launcher // min(offers))) if offers else 30


def launcher_limits(machines: Sequence[Machine]) -> LauncherLimits:
    """The largest launchers: a node takes them whole, and so does the share of their queue.

    YARN rounds a request up to its step. It would hold back a launcher that is larger than the
    share, and refuse one that is larger than each node.
    """
    nodes = holders(machines, NODEMANAGER)
    if not nodes:
        return LauncherLimits()
    options = [asked(Site.YARN, m.configs) for m in nodes]
    offers = [
        _number(own, "yarn.nodemanager.resource.memory-mb", places.containers_mib(m))
        for m, own in zip(nodes, options, strict=True)
    ]
    cores = [
        _number(own, "yarn.nodemanager.resource.cpu-vcores", places.vcores(m))
        for m, own in zip(nodes, options, strict=True)
    ]
    step = max(1, _number(options[0], "yarn.scheduler.minimum-allocation-mb", _STEP_MIB))
    most = min(
        max(offers), _number(options[0], _MOST_MIB, max(map(places.containers_mib, machines)))
    )
    share = sum(offers) * launcher_percent(machines) // 100 // step * step
    return LauncherLimits(
        queue=LAUNCHER_QUEUE,
        most_mib={"default": most, LAUNCHER_QUEUE: min(most, share)},
        most_cores=max(cores),
    )


def _number(options: Properties, name: str, ours: int) -> int:
    """The caller's number for an option of YARN, else `ours`."""
    value = options.get(name, "")
    return int(value) if value.isdecimal() else ours


def job_settings(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    """The settings of jobs, the same on every machine; without the options of `machine`."""
    sizes = places.task_sizes(machines)
    history = address_of(machines, HISTORYSERVER)
    shared = bool(machine.root)
    jvm = SHARED_JVM if shared else ""
    poll = "200" if shared else "500"
    return {
        "mapreduce.framework.name": "yarn",
        "mapreduce.jobhistory.address": f"{history}:10020",
        "mapreduce.jobhistory.webapp.address": f"{history}:19888",
        "mapreduce.application.classpath": CLASS_PATH,
        "yarn.app.mapreduce.am.staging-dir": "/user",
        "yarn.app.mapreduce.am.resource.mb": str(sizes.master),
        "yarn.app.mapreduce.am.command-opts": f"-Xmx{sizes.master_heap}m",
        # these flags go into the admin options: a job that sets its own options keeps them
        "yarn.app.mapreduce.am.admin-command-opts": jvm,
        "mapreduce.admin.map.child.java.opts": jvm,
        "mapreduce.admin.reduce.child.java.opts": jvm,
        "mapreduce.map.memory.mb": str(sizes.task),
        "mapreduce.reduce.memory.mb": str(sizes.task),
        "mapreduce.map.java.opts": f"-Xmx{sizes.task_heap}m",
        "mapreduce.reduce.java.opts": f"-Xmx{sizes.task_heap}m",
        "mapreduce.task.io.sort.mb": str(sizes.sort),
        **_small_jobs(machine),
        "mapreduce.job.maps": "1" if shared else "2",
        "mapreduce.job.reduce.slowstart.completedmaps": "1.0" if shared else "0.5",
        "yarn.app.mapreduce.am.scheduler.heartbeat.interval-ms": poll,
        "mapreduce.client.progressmonitor.pollinterval": poll,
        "mapreduce.client.completion.pollinterval": poll,
        "mapreduce.client.submit.file.replication": str(topology.replication(cluster)),
    }


def _small_jobs(machine: Machine) -> Properties:
    """Small jobs run within their master: that saves the start of a Java virtual machine a task.

    The tasks run one after the other. On servers a job of more than one map keeps its parallel
    tasks, because svcd does not know how long a map works on a small input.
    """
    apart = small_jobs.keeps_tasks_apart(asked(Site.MAPRED, machine.configs))
    return {
        small_jobs.ENABLED: "false" if apart else "true",
        "mapreduce.job.ubertask.maxmaps": "4" if machine.root else "1",
        "mapreduce.job.ubertask.maxreduces": "1",
        "mapreduce.job.ubertask.maxbytes": str(small_jobs.MOST_BYTES),
    }


def mapred_site(machines: Sequence[Machine], machine: Machine) -> Properties:
    history = address_of(machines, HISTORYSERVER)
    own = {
        "mapreduce.jobhistory.admin.address": f"{history}:10033",
        "mapreduce.jobhistory.move.interval-ms": "1000" if machine.root else "10000",
        "mapreduce.jobhistory.intermediate-done-dir": "/user/history/done_intermediate",
        "mapreduce.jobhistory.done-dir": "/user/history/done",
        "mapreduce.cluster.local.dir": ",".join(layout(machine).data("mapred/local")),
    }
    if machine.root:
        own["mapreduce.shuffle.port"] = "0"
    return own
