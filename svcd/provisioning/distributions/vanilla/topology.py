"""The rules for clusters of Hadoop daemons: counts, dependencies and changes of size.

Pure: the functions take a cluster's record and return all its faults. They count the requested
machines (`count` of the groups), not the machines that exist.

Note: replication. When the caller sets `dfs.replication`, it is binding: svcd refuses fewer data
nodes, at creation and in a change of size. When the caller does not set it, files get three copies,
or one for each data node if there are fewer than three, and a cluster may shrink to one data node.
The name node then releases a leaving node as soon as every block has one copy elsewhere (see
`hadoop`).
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
from svcd.provisioning.distributions.vanilla.daemons import (
    DATANODE,
    HDFS,
    HISTORYSERVER,
    NAMENODE,
    NODEMANAGER,
    OOZIE,
    RESOURCEMANAGER,
    SECONDARYNAMENODE,
    SPARKCONNECT,
    SPARKHISTORY,
)

SCALABLE = frozenset((DATANODE, NODEMANAGER))
_AT_MOST_ONE = (
    RESOURCEMANAGER, HISTORYSERVER, SECONDARYNAMENODE, OOZIE, SPARKHISTORY, SPARKCONNECT
)  # fmt: skip
_NEEDS: Mapping[str, tuple[str, ...]] = {
    NODEMANAGER: (RESOURCEMANAGER,),
    OOZIE: (DATANODE, NODEMANAGER, RESOURCEMANAGER, HISTORYSERVER),
    SPARKHISTORY: (DATANODE, NODEMANAGER, RESOURCEMANAGER),
    SPARKCONNECT: (DATANODE, NODEMANAGER, RESOURCEMANAGER),
}
"""Process -> further processes that it needs; every cluster has a name node."""
REPLICATION = "dfs.replication"
MOST_COPIES = 3
"""The copies of a file when the caller does not set `dfs.replication`."""


def count(cluster: Cluster, process: str) -> int:
    """The number of machines of `cluster` that shall run `process`."""
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
    """The number of copies of a new file."""
    wanted = replication_set(cluster)
    return max(1, min(MOST_COPIES, count(cluster, DATANODE))) if wanted is None else wanted


def creation_faults(cluster: Cluster) -> Sequence[SvcdError]:
    """All faults of a new cluster, the most serious first."""
    return tuple(_creation_faults(cluster))


def _creation_faults(cluster: Cluster) -> Iterator[SvcdError]:
    if (found := count(cluster, NAMENODE)) != 1:
        yield InvalidComponentCount(
            f"the cluster needs exactly 1 {NAMENODE}, it has {found}: "
            f"give {NAMENODE} to one node group with count 1"
        )
    for process in _AT_MOST_ONE:
        if (found := count(cluster, process)) > 1:
            yield InvalidComponentCount(f"the cluster takes at most 1 {process}, it has {found}")
    missing: dict[str, str] = {}
    for process, needed in _NEEDS.items():
        if count(cluster, process):
            for needed_process in needed:
                if not count(cluster, needed_process):
                    missing.setdefault(needed_process, process)
    for needed_process, process in missing.items():
        yield _missing(needed_process, process)
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
            f"{REPLICATION} is {wanted}, so the cluster needs at least {wanted} of {DATANODE}, "
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
                f"and svcd changes the size only of groups of {DATANODE} and {NODEMANAGER}"
            )
    yield from _shrinking_faults(before, after)


def _shrinking_faults(before: Cluster, after: Cluster) -> Iterator[SvcdError]:
    had, left = count(before, DATANODE), count(after, DATANODE)
    least = replication_set(after) or 1
    if left < had and left < least:
        why = f"{REPLICATION} is {least}" if replication_set(after) else "the data must stay"
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: the count of {DATANODE} would be {left}, "
            f"and at least {least} must remain ({why})"
        )
    workers = count(after, NODEMANAGER)
    users = [p for p, needed in _NEEDS.items() if NODEMANAGER in needed and count(after, p)]
    if workers < count(before, NODEMANAGER) and not workers and users:
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: no {NODEMANAGER} would be left, "
            f"and {users[0]} needs one"
        )
    if workers and not count(after, RESOURCEMANAGER) and not count(before, NODEMANAGER):
        yield ClusterCannotBeScaled(
            f"cluster {after.name!r} cannot be scaled: {NODEMANAGER} needs {RESOURCEMANAGER}, "
            "which the cluster does not have"
        )
