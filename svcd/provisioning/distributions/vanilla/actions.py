"""The commands and probes of which the plans consist. Values; `stages` puts them in order."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from attrs import evolve

from svcd.model.cluster import Cluster
from svcd.provisioning.distributions.spi import Command, HttpProbe, IdleProbe, Machine
from svcd.provisioning.distributions.vanilla import probes
from svcd.provisioning.distributions.vanilla.daemons import (
    DAEMONS,
    DATANODE,
    IDENTITY,
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SPARKHISTORY,
    YARN,
)
from svcd.provisioning.distributions.vanilla.layout import holder, holders, layout, web_url
from svcd.provisioning.distributions.vanilla.oozie import SHARE_LIBRARY
from svcd.provisioning.distributions.vanilla.script import daemon
from svcd.provisioning.distributions.vanilla.spark import HISTORY_FOLDER

GRACE_S = 900  # running applications keep a leaving node manager for this long at most
LIBRARY = "lib_20200101000000"  # Oozie takes the newest lib_<time>; this one is part of the image


def start(machine: Machine, process: str) -> Command:
    """Start a daemon; it returns at once."""
    return Command(
        machine=machine.instance_id,
        what=f"start {process}",
        script=daemon(machine, "start", process),
        timeout_s=60.0,
        log=layout(machine).log(process),
    )


def ports_free(machine: Machine) -> Command:
    """No other program listens on a port of the machine's daemons."""
    return Command(
        machine=machine.instance_id,
        what="check that the ports are free",
        script=daemon(machine, "free"),
    )


def listening(server: Machine, process: str, verb: str, *within: str) -> Command:
    """Whether a daemon of Spark runs and is the one that listens on its port.

    No page of these daemons shows its cluster. So svcd asks the machine.
    """
    return Command(
        machine=server.instance_id,
        what=process,
        script=daemon(server, verb, process, str(DAEMONS[process].ports[0]), *within),
        log=layout(server).log(process),
    )


def refresh(machine: Machine, part: str) -> Command:
    """Make `hdfs` or `yarn` read its list of leaving nodes."""
    process = NAMENODE if part == "hdfs" else RESOURCEMANAGER
    environment = shlex.quote(f"{layout(machine).base}/env.sh")
    command = (
        "hadoop org.svcd.hadoop.RefreshNodes hdfs"
        if part == "hdfs"
        else f"yarn rmadmin -refreshNodes -g {GRACE_S} -server"
    )
    return Command(
        machine=machine.instance_id,
        what=f"make {part.upper()} read the list of leaving nodes",
        script=f". {environment} && {command}",
        timeout_s=120.0,
        log=layout(machine).log(process),
    )


def folders(machines: Sequence[Machine], head: Machine) -> Command:
    """Make the folders of HDFS that daemons and jobs need."""
    user = head.user
    words = ["mkdir", "/tmp", "1777", "-", "mkdir", "/user", "755", "-"]
    words += ["mkdir", "/user/history", "1777", "-", "mkdir", f"/user/{user}", "755", user]
    if holder(machines, SPARKHISTORY):
        words += ["mkdir", HISTORY_FOLDER, "1777", "-"]
    return _hdfs(head, head, "make the folders of HDFS", words, 180.0)


def library(oozie: Machine, head: Machine) -> Command:
    """Upload Oozie's share library from the machine of Oozie."""
    words = [
        "put",
        f"{oozie.prefix}/oozie/sharelib",
        f"/user/{oozie.user}/{SHARE_LIBRARY}/{LIBRARY}",
    ]
    return _hdfs(oozie, head, "upload Oozie's share library", words, 300.0)


def _hdfs(
    machine: Machine, head: Machine, what: str, words: Sequence[str], within: float
) -> Command:
    """Run a program on `machine` that uses WebHDFS. It starts much faster than `hdfs dfs`."""
    environment = shlex.quote(f"{layout(machine).base}/env.sh")
    jar = f"{machine.prefix}/hadoop/lib/svcd-hadoop-helpers.jar"
    command = (
        f"{machine.prefix}/java/bin/java", "-Xmx64m", "-cp", jar, "org.svcd.hadoop.Folders",
        f"http://{head.address}:9870/webhdfs/v1", head.user, *words,
    )  # fmt: skip
    return Command(
        machine=machine.instance_id,
        what=what,
        script=f". {environment} && {shlex.join(command)}",
        timeout_s=within,
        log=layout(head).log(NAMENODE) if machine == head else None,
    )


# ---- probes -------------------------------------------------------------------------------------


def probe(
    watched: Machine, process: str, what: str, url: str, missing: Callable[[int, bytes], str]
) -> HttpProbe:
    """Request `url` for the state of `process` on the machine `watched`, which may have died."""
    return HttpProbe(
        machine=watched.instance_id,
        what=what,
        url=url,
        missing=missing,
        log=layout(watched).log(process),
        alive=daemon(watched, "alive", process),
    )


def _name_node_url(head: Machine) -> str:
    return f"{web_url(head, NAMENODE)}/jmx?qry=Hadoop:service=NameNode,name=NameNodeInfo"


def nodes_url(manager: Machine) -> str:
    """The resource manager's list of node managers."""
    return f"{web_url(manager, RESOURCEMANAGER)}/ws/v1/cluster/nodes"


def name_node_probe(head: Machine, what: str, missing: Callable[[int, bytes], str]) -> HttpProbe:
    """Wait until the name node's state satisfies `missing`."""
    return probe(head, NAMENODE, what, _name_node_url(head), missing)


def awaited(probe: HttpProbe, waiting: Machine) -> HttpProbe:
    """Let the chain of `waiting` wait for `probe`.

    Another chain starts the daemon, and tells when it dies.
    """
    return evolve(probe, machine=waiting.instance_id, log=None, alive=None)


def own_hdfs(cluster: Cluster, head: Machine, waiting: Machine) -> HttpProbe:
    """Let the chain of `waiting` use the name node only if it is the one of `cluster`."""
    return evolve(awaited(own(cluster, head, NAMENODE), waiting), what="HDFS")


def some_data_node(
    machines: Sequence[Machine], head: Machine, waiting: Machine, what: str
) -> HttpProbe:
    """Let the chain of `waiting` wait for any data node of the cluster."""
    data = probes.AnyDataNode(tuple(m.address for m in holders(machines, DATANODE)))
    return awaited(name_node_probe(head, what, data), waiting)


def live(head: Machine, watched: Machine) -> HttpProbe:
    """The data node on `watched` has joined."""
    missing = probes.DataNodeServes(watched.address)
    return probe(watched, DATANODE, "the data node to join", _name_node_url(head), missing)


def registered(cluster: Cluster, manager: Machine, watched: Machine) -> HttpProbe:
    """The node manager on `watched` has joined."""
    missing = probes.NodeManagerServes(watched.address, watched.name, cluster.id)
    return probe(watched, NODEMANAGER, "the node manager to join", nodes_url(manager), missing)


def own_nodes(cluster: Cluster, manager: Machine) -> HttpProbe:
    """The resource manager gives no work to machines of others."""
    missing = probes.OwnNodes(cluster.id)
    return probe(manager, RESOURCEMANAGER, YARN, nodes_url(manager), missing)


def own(cluster: Cluster, machine: Machine, process: str) -> HttpProbe:
    """The daemon on `machine` answers, and it is the one of `cluster`."""
    row = DAEMONS[process]
    url = f"{web_url(machine, process)}/{row.page}"
    shows = probes.Shows(row.title, IDENTITY)
    return evolve(probe(machine, process, row.title, url, shows), identity=cluster.id)


def no_applications(manager: Machine, tag: str) -> IdleProbe:
    """YARN runs no application but the idle one with `tag`. The first ones of many are enough."""
    path = (
        "ws/v1/cluster/apps?limit=20&states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING&deSelects="
        "resourceRequests,timeouts,appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
    )
    marked = counters(manager, RESOURCEMANAGER, path, probes.memory_used)
    return evolve(marked, what="the applications of YARN", missing=probes.NoApplications(tag))


def counters(machine: Machine, process: str, path: str, mark: Callable[[bytes], str]) -> IdleProbe:
    """Counters of a daemon that change with each use."""
    what, url = f"the counters of {DAEMONS[process].title}", f"{web_url(machine, process)}/{path}"
    missing = probes.Counts(mark)
    return IdleProbe(machine=machine.instance_id, what=what, url=url, missing=missing, mark=mark)


def oozie_accepts(machine: Machine) -> HttpProbe:
    """Oozie accepts jobs."""
    url = f"{web_url(machine, OOZIE)}/oozie/v1/admin/status"
    return probe(machine, OOZIE, "Oozie to accept jobs", url, probes.OozieNormal())
