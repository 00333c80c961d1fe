"""The plans that configure, start, check and decommission daemons.

Note: the start. One stage runs as many chains in parallel as possible, because the start of the
Java virtual machines takes most of the time. Order matters only here:

    name node (formats itself) -> HDFS folders -> history server of Spark (ends without its folder)
    name node -> history server of MapReduce (makes its folders; without HDFS it sleeps 10 s)
    data nodes + HDFS folders + Oozie's answer -> share library -> Oozie reads it
    resource manager + a data node -> Spark Connect (it is an application of YARN, and ends with it)

Data nodes, node managers and Oozie start at once, and repeat their requests until the other daemons
answer.

Note: leaving. The exclude lists name exactly the machines that are leaving. A leaving node manager
gets no new containers. It leaves when the applications that use it have ended, or after `GRACE_S`.
svcd empties the lists before new machines start, because a cloud reuses addresses.

Note: idle clusters. Spark Connect is an application that runs for ever; only its settings have its
tag. It is in use while it has a container or a client: a session keeps its connection to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import evolve

from svcd.model.cluster import Cluster
from svcd.model.ids import InstanceId
from svcd.provisioning.distributions.spi import (
    Action,
    Chain,
    Command,
    HttpProbe,
    Machine,
    Plan,
    Stage,
)
from svcd.provisioning.distributions.vanilla import actions, probes
from svcd.provisioning.distributions.vanilla.configuration import exclude, files, include
from svcd.provisioning.distributions.vanilla.daemons import (
    DATANODE,
    HDFS,
    HISTORYSERVER,
    JOBFLOW,
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SECONDARYNAMENODE,
    SPARKCONNECT,
    SPARKHISTORY,
)
from svcd.provisioning.distributions.vanilla.hadoop import EXCLUDE_HDFS, EXCLUDE_YARN
from svcd.provisioning.distributions.vanilla.layout import holder, holders, layout, web_url
from svcd.provisioning.distributions.vanilla.script import daemon
from svcd.provisioning.distributions.vanilla.spark import connect_tag

# deadlines of the stages
START_S = 600.0
CONFIGURE_S = 300.0
DECOMMISSION_S = 4 * 3600.0
CHECK_S = 30.0
CONNECT_S = 300.0
PORTS_S = 60.0


def configure(cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]) -> Plan:
    chains = tuple(files(cluster, machines, m) for m in machines if m.instance_id in on)
    return _plan("write the configuration", chains, CONFIGURE_S)


def start(cluster: Cluster, machines: Sequence[Machine], on: Sequence[InstanceId]) -> Plan:
    new = [m for m in machines if m.instance_id in on]
    if not new:
        return ()
    advice = _advice(machines)
    before = [(actions.ports_free(m),) for m in new] + list(_present_chains(cluster, machines, new))
    free = _plan("check the ports", before, PORTS_S)
    admitted = _plan("admit the new nodes", tuple(_admissions(machines, new)), START_S, advice)
    chains = (
        *_name_node_chain(cluster, machines, new),
        *_history_chain(cluster, machines, new),
        *_oozie_chain(cluster, machines, new),
        *_single_chains(cluster, new),
        *(c for m in new for c in _worker_chains(cluster, machines, m)),
        *_connect_chain(cluster, machines, new),
    )
    return free + admitted + _plan("start the daemons", chains, START_S, advice)


def decommission(
    cluster: Cluster, machines: Sequence[Machine], leaving: Sequence[InstanceId]
) -> Plan:
    gone = [m for m in machines if m.instance_id in leaving]
    chains: list[Chain] = []
    head, manager = holder(machines, NAMENODE), holder(machines, RESOURCEMANAGER)
    data = tuple(m.address for m in holders(gone, DATANODE))
    if head and data and head not in gone:
        chains.append(
            (
                actions.own(cluster, head, NAMENODE),
                exclude(head, EXCLUDE_HDFS, data),
                actions.refresh(head, "hdfs"),
                actions.name_node_probe(
                    head, f"{_number(data, 'data node')} to be decommissioned",
                    probes.Decommissioned(data),
                ),
            )
        )  # fmt: skip
    work = {m.address: m.name for m in holders(gone, NODEMANAGER)}
    if manager and work and manager not in gone:
        chains.append(
            (
                actions.own(cluster, manager, RESOURCEMANAGER),
                exclude(manager, EXCLUDE_YARN, tuple(work)),
                actions.refresh(manager, "yarn"),
                actions.probe(
                    manager,
                    RESOURCEMANAGER,
                    f"{_number(tuple(work), 'node manager')} to finish",
                    actions.nodes_url(manager),
                    probes.NodesGone(work),
                ),
            )
        )
    return _plan("decommission the nodes", tuple(chains), DECOMMISSION_S)


def check(cluster: Cluster, machines: Sequence[Machine]) -> Plan:
    """The probes of all daemons: findings name processes as `daemon start` does, and services.

    A data node that the cluster's name node lists is the cluster's own: HDFS accepts no data node
    that has joined another HDFS before.
    """
    chains: list[Chain] = []
    head, manager = holder(machines, NAMENODE), holder(machines, RESOURCEMANAGER)
    for process in (NAMENODE, RESOURCEMANAGER, HISTORYSERVER, OOZIE, SECONDARYNAMENODE):
        chains += [
            (evolve(actions.own(cluster, m, process), what=process),)
            for m in holders(machines, process)
        ]
    if head:
        chains.append((actions.name_node_probe(head, HDFS, probes.SafeModeOff()),))
        chains += [
            (evolve(actions.live(head, m), what=DATANODE),) for m in holders(machines, DATANODE)
        ]
    if manager:
        chains += [
            (evolve(actions.registered(cluster, manager, m), what=NODEMANAGER),)
            for m in holders(machines, NODEMANAGER)
        ]
        chains.append((actions.own_nodes(cluster, manager),))
    chains += [(evolve(actions.oozie_accepts(m), what=JOBFLOW),) for m in holders(machines, OOZIE)]
    for process in (SPARKHISTORY, SPARKCONNECT):
        chains += [(actions.listening(m, process, "listens"),) for m in holders(machines, process)]
    advice = _advice(machines)
    return _plan("check the daemons", tuple(chains), CHECK_S, advice)


def idle_probes(cluster: Cluster, machines: Sequence[Machine]) -> Iterator[HttpProbe | Command]:
    """YARN has no application, Spark Connect has no client, no block of HDFS is used.

    The counters show uses that began and ended between two probes. Without YARN those of HDFS are
    asked only.
    """
    for manager in holders(machines, RESOURCEMANAGER):
        yield actions.awaited(actions.own(cluster, manager, RESOURCEMANAGER), manager)
        yield actions.no_applications(manager, connect_tag(cluster))
        path = "ws/v1/cluster/metrics"
        yield actions.counters(manager, RESOURCEMANAGER, path, probes.submissions)
    for head in holders(machines, NAMENODE):
        yield actions.awaited(actions.own(cluster, head, NAMENODE), head)
        path = "jmx?qry=Hadoop:service=NameNode,name=NameNodeActivity"
        yield actions.counters(head, NAMENODE, path, probes.blocks_used)
    for server in holders(machines, SPARKCONNECT):
        unused = actions.listening(server, SPARKCONNECT, "unused")
        yield evolve(unused, what="the clients of Spark Connect")


def _advice(machines: Sequence[Machine]) -> str:
    """The folder of the logs, and the command that starts a daemon by hand."""
    own = next((m for m in machines if m.runs_as), None)
    if own is None:
        logs, start = "svcd/logs of the login user's home", "sh svcd/bin/daemon start NAME"
    else:
        logs = layout(own).logs
        start = f"sudo -u {own.runs_as} {daemon(own, 'start', 'NAME')}"
    return f"logs are in {logs}; `{start}` on the machine named above starts a daemon that is down"


def _plan(name: str, chains: Sequence[Chain], deadline_s: float, advice: str = "") -> Plan:
    kept = tuple(c for c in chains if c)
    return (Stage(name=name, chains=kept, deadline_s=deadline_s, advice=advice),) if kept else ()


# ---- chains of the start ------------------------------------------------------------------------


def _admissions(machines: Sequence[Machine], new: Sequence[Machine]) -> Iterator[Chain]:
    for process, worker, part in (
        (NAMENODE, DATANODE, "hdfs"), (RESOURCEMANAGER, NODEMANAGER, "yarn")
    ):  # fmt: skip
        head = holder(machines, process)
        if head and head not in new and holders(new, worker):
            admitted = (include(machines, head),) if part == "yarn" else ()
            yield (
                *admitted,
                Command(
                    machine=head.instance_id,
                    what=f"admit the new nodes to {part.upper()}",
                    script=daemon(head, "admit", part),
                    timeout_s=60.0,
                    log=layout(head).log(process),
                ),
            )


def _present_chains(
    cluster: Cluster, machines: Sequence[Machine], new: Sequence[Machine]
) -> Iterator[Chain]:
    """The daemons that run already are those of the cluster, before the new ones join them."""
    for process in (NAMENODE, RESOURCEMANAGER):
        head = holder(machines, process)
        if head and head not in new:
            yield (actions.own(cluster, head, process),)


def _name_node_chain(
    cluster: Cluster, machines: Sequence[Machine], new: Sequence[Machine]
) -> Iterator[Chain]:
    head, readers = holder(new, NAMENODE), holders(new, SPARKHISTORY)
    chain: list[Action] = []
    if head:
        chain += [
            actions.start(head, NAMENODE),
            actions.own(cluster, head, NAMENODE),
            actions.name_node_probe(head, "HDFS to take changes", probes.SafeModeOff()),
            actions.folders(machines, head),
        ]
    chain += [actions.start(machine, SPARKHISTORY) for machine in readers]
    chain += [_listened(machine, SPARKHISTORY, START_S) for machine in readers]
    yield tuple(chain)


def _history_chain(
    cluster: Cluster, machines: Sequence[Machine], new: Sequence[Machine]
) -> Iterator[Chain]:
    head = holder(machines, NAMENODE)
    for machine in holders(new, HISTORYSERVER):
        chain: list[Action] = []
        if head:
            writes = actions.name_node_probe(
                head, "HDFS for the history server", probes.SafeModeOff()
            )
            chain += [actions.own_hdfs(cluster, head, machine), actions.awaited(writes, machine)]
        chain += [
            actions.start(machine, HISTORYSERVER),
            actions.own(cluster, machine, HISTORYSERVER),
        ]
        yield tuple(chain)


def _oozie_chain(
    cluster: Cluster, machines: Sequence[Machine], new: Sequence[Machine]
) -> Iterator[Chain]:
    oozie, head = holder(new, OOZIE), holder(machines, NAMENODE)
    if oozie and head:
        yield (
            actions.start(oozie, OOZIE),
            actions.own_hdfs(cluster, head, oozie),
            actions.some_data_node(machines, head, oozie, "a data node for the share library"),
            actions.library(oozie, head),
            actions.own(cluster, oozie, OOZIE),
            actions.oozie_accepts(oozie),
            HttpProbe(
                machine=oozie.instance_id,
                what="Oozie to read its share library",
                url=f"{web_url(oozie, OOZIE)}/oozie/v2/admin/update_sharelib",
                missing=probes.ShareLibraryKnown(),
                log=layout(oozie).log(OOZIE),
                alive=daemon(oozie, "alive", OOZIE),
                every_s=1.0,
            ),
        )


def _single_chains(cluster: Cluster, new: Sequence[Machine]) -> Iterator[Chain]:
    """The daemons that start without waiting for another one."""
    for process in (RESOURCEMANAGER, SECONDARYNAMENODE):
        for machine in holders(new, process):
            yield (actions.start(machine, process), actions.own(cluster, machine, process))


def _connect_chain(
    cluster: Cluster, machines: Sequence[Machine], new: Sequence[Machine]
) -> Iterator[Chain]:
    server, head = holder(new, SPARKCONNECT), holder(machines, NAMENODE)
    manager = holder(machines, RESOURCEMANAGER)
    if server and head and manager:
        yield (
            evolve(actions.own(cluster, manager, RESOURCEMANAGER), what="YARN for Spark Connect"),
            actions.own_hdfs(cluster, head, server),
            actions.some_data_node(machines, head, server, "a data node for Spark Connect"),
            actions.start(server, SPARKCONNECT),
            _listened(server, SPARKCONNECT, CONNECT_S),
        )


def _listened(server: Machine, process: str, within_s: float) -> Command:
    """Wait until a daemon of Spark listens."""
    limit = f"{within_s + 30:.0f}"  # the script's limit is longer than that of svcd
    wait = actions.listening(server, process, "await", limit)
    return evolve(wait, what=f"{process} to listen", timeout_s=within_s)


def _worker_chains(
    cluster: Cluster, machines: Sequence[Machine], machine: Machine
) -> Iterator[Chain]:
    head, manager = holder(machines, NAMENODE), holder(machines, RESOURCEMANAGER)
    if DATANODE in machine.processes and head:
        yield (actions.start(machine, DATANODE), actions.live(head, machine))
    if NODEMANAGER in machine.processes and manager:
        yield (actions.start(machine, NODEMANAGER), actions.registered(cluster, manager, machine))


def _number(addresses: Sequence[str], noun: str) -> str:
    return f"1 {noun}" if len(addresses) == 1 else f"{len(addresses)} {noun}s"
