"""Which clusters of Hadoop daemons make sense: counts, needs and changes of size.

Pure: a cluster's record in, all its faults out. Counts are what was asked for (`count` of the
groups), not the machines there are.

Note: replication. When `dfs.replication` is set it is binding: fewer data nodes are refused, at
creation and in a change of size. When it is not set, files get three copies or as many as there
are data nodes, and a cluster may shrink to one data node: the name node is then told to let a
leaving node go as soon as every block has one copy elsewhere (see `hadoop`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from svcd.errors import (
    ClusterCannotBeScaled,
    InvalidComponentCount,
    InvalidData,
    MissingService,
    NodeGroupCannotBeScaled,
    SvcdError,
)
from svcd.model.cluster import Cluster

NAMENODE = "namenode"
SECONDARYNAMENODE = "secondarynamenode"
DATANODE = "datanode"
RESOURCEMANAGER = "resourcemanager"
NODEMANAGER = "nodemanager"
HISTORYSERVER = "historyserver"
OOZIE = "oozie"

HDFS, YARN, MAPREDUCE, JOBFLOW, GENERAL = "HDFS", "YARN", "MapReduce", "JobFlow", "general"

PROCESSES: Mapping[str, tuple[str, ...]] = {
    HDFS: (NAMENODE, SECONDARYNAMENODE, DATANODE),
    YARN: (RESOURCEMANAGER, NODEMANAGER),
    MAPREDUCE: (HISTORYSERVER,),
    JOBFLOW: (OOZIE,),
}
SCALABLE = frozenset((DATANODE, NODEMANAGER))
REPLICATION = "dfs.replication"
MOST_COPIES = 3


def count(cluster: Cluster, process: str) -> int:
    """How many machines of `cluster` are to run `process`."""
    return sum(g.count for g in cluster.node_groups if process in g.node_processes)


def replication_set(cluster: Cluster) -> int | None:
    """`dfs.replication` as the caller set it; None when unset or not a number."""
    value = cluster.cluster_configs.get(HDFS, {}).get(REPLICATION)
    if value is None or isinstance(value, bool):
        return None
    try:
        return int(value)
    except ValueError:
        return None


def replication(cluster: Cluster) -> int:
    """The copies that a new file gets."""
    wanted = replication_set(cluster)
    return max(1, min(MOST_COPIES, count(cluster, DATANODE))) if wanted is None else wanted


def creation_faults(cluster: Cluster) -> Sequence[SvcdError]:
    """All faults of `cluster`'s make-up, the weightiest first."""
    return tuple(_creation_faults(cluster))


def _creation_faults(cluster: Cluster) -> Iterator[SvcdError]:
    if (found := count(cluster, NAMENODE)) != 1:
        yield InvalidComponentCount(
            f"the cluster needs exactly 1 {NAMENODE}, it has {found}: "
            f"give {NAMENODE} to one node group with count 1"
        )
    for process in (RESOURCEMANAGER, HISTORYSERVER, SECONDARYNAMENODE, OOZIE):
        if (found := count(cluster, process)) > 1:
            yield InvalidComponentCount(f"the cluster takes at most 1 {process}, it has {found}")
    if count(cluster, NODEMANAGER) and not count(cluster, RESOURCEMANAGER):
        yield _missing(RESOURCEMANAGER, NODEMANAGER)
    if count(cluster, OOZIE):
        for process in (DATANODE, NODEMANAGER, RESOURCEMANAGER, HISTORYSERVER):
            told = process == RESOURCEMANAGER and count(cluster, NODEMANAGER)
            if not count(cluster, process) and not told:
                yield _missing(process, OOZIE)
    yield from _replication_faults(cluster)


def _replication_faults(cluster: Cluster) -> Iterator[SvcdError]:
    wanted, data_nodes = replication_set(cluster), count(cluster, DATANODE)
    if wanted is None:
        return
    if wanted < 1:
        yield InvalidData(
            f'$.cluster_configs.{HDFS}["{REPLICATION}"]: expected at least 1, got {wanted}'
        )
    elif data_nodes < wanted:
        yield InvalidComponentCount(
            f"{REPLICATION} is {wanted}, so the cluster needs {wanted} or more of {DATANODE}, "
            f"it has {data_nodes}"
        )


def _missing(process: str, needed_by: str) -> MissingService:
    return MissingService(f"{needed_by} needs {process}: add {process} to a node group")


def scaling_faults(before: Cluster, after: Cluster) -> Sequence[SvcdError]:
    """All faults of the change from `before` to `after`."""
    return tuple(_scaling_faults(before, after))


def _scaling_faults(before: Cluster, after: Cluster) -> Iterator[SvcdError]:
    old = {g.name: g for g in before.node_groups}
    new = {g.name: g for g in after.node_groups}
    for name in dict.fromkeys((*old, *new)):
        was, will = old.get(name), new.get(name)
        group = will or was
        if group is None or (was and will and was.count == will.count):
            continue
        fixed = [p for p in group.node_processes if p not in SCALABLE]
        if fixed:
            yield NodeGroupCannotBeScaled(
                f"node group {name!r} cannot be scaled: it runs {', '.join(fixed)}, "
                f"and only groups of {DATANODE} and {NODEMANAGER} change their size"
            )
    yield from _shrinking_faults(before, after)


def _shrinking_faults(before: Cluster, after: Cluster) -> Iterator[SvcdError]:
    had, left = count(before, DATANODE), count(after, DATANODE)
    least = replication_set(after) or 1
    if left < had and left < least:
        why = f"{REPLICATION} is {least}" if replication_set(after) else "the data must stay"
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: {left} of {DATANODE} would be left and "
            f"at least {least} must remain ({why})"
        )
    workers = count(after, NODEMANAGER)
    if workers < count(before, NODEMANAGER) and not workers and count(after, OOZIE):
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: no {NODEMANAGER} would be left, "
            f"and {OOZIE} needs one"
        )
    if workers and not count(after, RESOURCEMANAGER) and not count(before, NODEMANAGER):
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: {NODEMANAGER} needs {RESOURCEMANAGER}, "
            "which the cluster does not have"
        )
