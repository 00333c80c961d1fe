"""The configuration of Oozie, and the configuration that Oozie passes on to jobs.

Note: configuration of jobs. Oozie sends the defaults of its own, older Hadoop client with every
action. They override the site files of the nodes. So Oozie's `hadoop-conf` holds everything that
jobs need, and it names no folder or address of a single machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources

from svcd.model import small_jobs
from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Machine
from svcd.provisioning.distributions.vanilla import layout as places
from svcd.provisioning.distributions.vanilla import topology
from svcd.provisioning.distributions.vanilla.daemons import (
    HDFS,
    RESOURCEMANAGER,
)
from svcd.provisioning.distributions.vanilla.entries import CLUSTER_WIDE, Site
from svcd.provisioning.distributions.vanilla.hadoop import (
    CLASS_PATH,
    HDFS_WRITERS,
    LAUNCHER_QUEUE,
    SHARED_JVM,
    job_settings,
    name_node,
    proxy_hosts,
)
from svcd.provisioning.distributions.vanilla.layout import layout
from svcd.provisioning.distributions.vanilla.sites import Properties, address_of, asked

SHARE_LIBRARY = "share/lib"


def oozie_site(machines: Sequence[Machine], machine: Machine) -> Properties:
    place, user = layout(machine), machine.user
    service = "oozie.service"
    return {
        f"{service}.JPAService.create.db.schema": "true",
        f"{service}.HadoopAccessorService.hadoop.configurations": (
            f"*={place.oozie_conf}/hadoop-conf"
        ),
        f"{service}.HadoopAccessorService.action.configurations": (
            f"*={place.oozie_conf}/action-conf"
        ),
        f"{service}.HadoopAccessorService.supported.filesystems": "hdfs,webhdfs,file",
        f"{service}.ProxyUserService.proxyuser.{user}.hosts": proxy_hosts(machines),
        f"{service}.ProxyUserService.proxyuser.{user}.groups": "*",
        f"{service}.WorkflowAppService.system.libpath": f"/user/{user}/{SHARE_LIBRARY}",
        f"{service}.ActionCheckerService.action.check.interval": "5",
        f"{service}.ActionCheckerService.action.check.delay": "10",
        f"{service}.RecoveryService.interval": "20",
        f"{service}.RecoveryService.wf.actions.older.than": "30",
        f"{service}.SchedulerService.threads": "4",
        f"{service}.CallableQueueService.threads": "6",
        # the default is one folder in /tmp for all users: the host's second user gets 503 for ever
        "oozie.jsp.tmp.dir": place.tmp,
        "oozie.action.retries.max": "2",
        "oozie.action.retry.interval": "1",
        "oozie.launcher.default.memory.mb": str(places.task_sizes(machines).launcher),
        "oozie.launcher.default.queue": LAUNCHER_QUEUE,
        "oozie.launcher.default.max.attempts": "2",
        "oozie.notification.url.connection.timeout": "5000",
        "oozie.server.threadpool.max.threads": "40",
    }


def hadoop_conf(cluster: Cluster, machines: Sequence[Machine], machine: Machine) -> Properties:
    manager = address_of(machines, RESOURCEMANAGER)
    jobs = job_settings(cluster, machines, machine) | asked(Site.MAPRED, machine.configs)
    hdfs = asked(Site.HDFS, {HDFS: cluster.cluster_configs.get(HDFS, {})})
    return jobs | {
        **HDFS_WRITERS,
        **{name: value for name, value in hdfs.items() if name in CLUSTER_WIDE},
        "dfs.replication": str(topology.replication(cluster)),
        "fs.defaultFS": name_node(machines),
        # each Java virtual machine inserts its own folder; the default is one in /tmp
        "hadoop.tmp.dir": "${java.io.tmpdir}/hadoop",
        "fs.permissions.umask-mode": "022",
        "fs.objstore.impl": "org.svcd.objstore.ObjStoreFileSystem",
        "ipc.client.connect.max.retries": "5",
        "ipc.client.connect.retry.interval": "300",
        "yarn.application.classpath": CLASS_PATH,
        "yarn.resourcemanager.hostname": manager,
        "yarn.resourcemanager.address": f"{manager}:8032",
        "yarn.resourcemanager.connect.max-wait.ms": "3000",
        "yarn.resourcemanager.connect.retry-interval.ms": "1000",
        "yarn.client.application-client-protocol.poll-interval-ms": "100",
    }


def action_conf(machines: Sequence[Machine], machine: Machine) -> Properties:
    # Oozie puts an option that turns on the debugging of log4j before these: without this flag the
    # debug lines fill the job's own output
    heap = f"-Xmx{places.task_sizes(machines).launcher_heap}m -Dlog4j.debug=false"
    options = f"{heap} {SHARED_JVM}" if machine.root else heap
    return {
        "oozie.launcher.javaopts": options,
        # by default Pig chooses another garbage collector, and waits 5 s between two checks of its
        # jobs
        "pig.gc.default.params": "-XX:+UseSerialGC",
        "pig.jobcontrol.sleep": "200",
        # each node has this jar; Pig would copy it for each job, because it has a class of Pig
        "pig.predeployed.jars": "svcd-hadoop-helpers.jar",
        # small steps of Pig run within the launcher, see image/java/org/svcd/pig/SmallSteps.java
        "exectype": "small",
        "pig.auto.local.input.maxbytes": str(small_jobs.MOST_BYTES),
        "svcd.pig.options.of.tasks": small_jobs.OF_TASKS,
    }


def log4j() -> str:
    image = resources.files("svcd.provisioning.distributions.vanilla") / "image"
    return (image / "etc" / "oozie-log4j.properties").read_text(encoding="utf-8")
