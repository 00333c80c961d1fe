"""The daemons of a Hadoop cluster: one row of a table for each process of the interface.

A further process needs a row here, its rules in `topology`, its settings and its place in `stages`.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

NAMENODE = "namenode"
SECONDARYNAMENODE = "secondarynamenode"
DATANODE = "datanode"
RESOURCEMANAGER = "resourcemanager"
NODEMANAGER = "nodemanager"
HISTORYSERVER = "historyserver"
OOZIE = "oozie"
SPARKHISTORY = "sparkhistory"
SPARKCONNECT = "sparkconnect"

HDFS, YARN, MAPREDUCE, JOBFLOW = "HDFS", "YARN", "MapReduce", "JobFlow"
SPARK, GENERAL = "Spark", "general"

IDENTITY = "svcd.cluster"
"""The property that each daemon of Hadoop shows at `/conf`: the id of its cluster."""
_CONF = f"conf?name={IDENTITY}"


@frozen(kw_only=True)
class Daemon:
    """A process. service: its service, the target of its options.

    program: the script of the software tree that becomes it. ports: on which it listens at the
    address of its machine. web: the port of its web pages, if it has any. heap: smallest heap in
    MiB, share of the machine's memory in 32nds, largest heap in MiB. heap_option: the option that
    sets the heap. title: its name in texts. page: the web page that shows its cluster; "": none.
    """

    service: str
    program: str
    ports: tuple[int, ...]
    web: int | None = None
    heap: tuple[int, int, int]
    heap_option: str
    title: str = ""
    page: str = ""


DAEMONS: Mapping[str, Daemon] = {
    NAMENODE: Daemon(
        service=HDFS,
        program="hdfs",
        ports=(8020, 9870),
        web=9870,
        heap=(128, 4, 8192),
        heap_option="NameNode Heap Size",
        title="the name node",
        page=_CONF,
    ),
    SECONDARYNAMENODE: Daemon(
        service=HDFS,
        program="hdfs",
        ports=(9868,),
        web=9868,
        heap=(128, 4, 8192),
        heap_option="SecondaryNameNode Heap Size",
        title="the secondary name node",
        page=_CONF,
    ),
    DATANODE: Daemon(
        service=HDFS,
        program="hdfs",
        ports=(9864, 9866, 9867),
        web=9864,
        heap=(96, 2, 2048),
        heap_option="DataNode Heap Size",
    ),
    RESOURCEMANAGER: Daemon(
        service=YARN,
        program="yarn",
        ports=(8030, 8031, 8032, 8033, 8088),
        web=8088,
        heap=(192, 4, 4096),
        heap_option="ResourceManager Heap Size",
        title="the resource manager",
        page=_CONF,
    ),
    NODEMANAGER: Daemon(
        service=YARN,
        program="yarn",
        ports=(8040, 8041, 8042),
        web=8042,
        heap=(128, 2, 2048),
        heap_option="NodeManager Heap Size",
    ),
    HISTORYSERVER: Daemon(
        service=MAPREDUCE,
        program="mapred",
        ports=(10020, 10033, 19888),
        web=19888,
        heap=(96, 2, 2048),
        heap_option="JobHistoryServer Heap Size",
        title="the history server",
        page=_CONF,
    ),
    OOZIE: Daemon(
        service=JOBFLOW,
        program="oozied",
        ports=(11000,),
        web=11000,
        heap=(256, 4, 2048),
        heap_option="Oozie Heap Size",
        title="Oozie",
        page="oozie/v1/admin/os-env",
    ),
    SPARKHISTORY: Daemon(
        service=SPARK,
        program="spark-class",
        ports=(18080,),
        web=18080,
        heap=(128, 2, 2048),
        heap_option="Spark History Server Heap Size",
    ),
    SPARKCONNECT: Daemon(
        service=SPARK,
        program="spark-submit",
        ports=(15002,),
        heap=(512, 4, 4096),  # the driver of its sessions; Spark refuses less than 450 MiB
        heap_option="Spark Connect Server Heap Size",
    ),
}

PROCESSES: Mapping[str, tuple[str, ...]] = {
    service: tuple(process for process, daemon in DAEMONS.items() if daemon.service == service)
    for service in (HDFS, YARN, MAPREDUCE, JOBFLOW, SPARK)
}
"""The processes of each service."""
