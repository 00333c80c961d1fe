"""Makes the node groups of a cluster's record: new ones, and existing ones with another size. Pure.

A group is complete when it has the values of its template where the request gives none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import evolve

from svcd.model.cluster import Cluster, ClusterStatus, InitScript, Instance, NodeGroup
from svcd.model.ids import InstanceId, Timestamp
from svcd.model.job import JobBinaryInternal
from svcd.model.requests import NewNodeGroup, ScaleRequest
from svcd.model.template import NodeGroupTemplate, TemplateNodeGroup, merged, shape_of
from svcd.provisioning.decide import lifecycle
from svcd.provisioning.decide.facts import Facts

NewId = Callable[[], str]


def instance_name(cluster_name: str, group_name: str, index: int) -> str:
    """The instance name `<cluster>-<group>-NNN` in lower case."""
    return f"{cluster_name}-{group_name}-{index:03d}".lower()


def completed(new: NewNodeGroup, template: NodeGroupTemplate | None) -> TemplateNodeGroup:
    """The group with the template's values, where the request gives none."""
    missing: dict[str, Any] = {"flavor_id": "", "node_processes": (), "node_configs": {}}
    inherited = missing if template is None else shape_of(template)
    configs = merged(inherited["node_configs"], new.node_configs or {})
    return TemplateNodeGroup(
        name=new.name,
        count=new.count,
        node_group_template_id=None if template is None else template.id,
        **{**inherited, **shape_of(new), "node_configs": configs},
    )


def new_group(
    cluster_name: str, group: TemplateNodeGroup, facts: Facts, new_id: NewId, now: Timestamp
) -> NodeGroup:
    """The group of a cluster's record, with named instances."""
    flavor = facts.flavors.get(group.flavor_id)
    return NodeGroup(
        name=group.name,
        count=group.count,
        node_group_template_id=group.node_group_template_id,
        flavor_ram_mib=flavor.ram_mib if flavor is not None else 1024,
        flavor_vcpus=flavor.vcpus if flavor is not None else 1,
        **shape_of(group),
        scripts=tuple(_fixed(facts.scripts[name]) for name in group.init_scripts),
        instances=tuple(
            _instance(cluster_name, group.name, n, new_id, now) for n in range(1, group.count + 1)
        ),
        created_at=now,
    )


def _fixed(script: JobBinaryInternal) -> InitScript:
    return InitScript(name=script.name, internal_id=script.id, sha256=script.digest)


def _instance(
    cluster_name: str, group_name: str, index: int, new_id: NewId, now: Timestamp
) -> Instance:
    return Instance(
        instance_id=InstanceId(new_id()),
        instance_name=instance_name(cluster_name, group_name, index),
        index=index,
        created_at=now,
    )


def remade(cluster_name: str, group: NodeGroup, new_id: NewId, now: Timestamp) -> NodeGroup:
    """The group with one new machine for each lost one; new numbers follow the highest."""
    lost = lost_machines(group)
    if not lost:
        return group
    first = max(i.index for i in group.instances) + 1
    marked = (evolve(i, leaving=i.status == lifecycle.GONE) for i in group.instances)
    more = (_instance(cluster_name, group.name, first + n, new_id, now) for n in range(lost))
    return evolve(group, instances=(*marked, *more), updated_at=now)


def resized(
    cluster_name: str, group: NodeGroup, count: int, new_id: NewId, now: Timestamp
) -> NodeGroup:
    """The group with `count` machines.

    New numbers follow the highest. Lost machines leave first, then those with the highest numbers.
    """
    if count == group.count:
        return group
    ordered = sorted(group.instances, key=lambda i: i.index)
    if count > len(ordered):
        first = ordered[-1].index + 1 if ordered else 1
        more = range(first, first + count - len(ordered))
        instances = (*ordered, *(_instance(cluster_name, group.name, n, new_id, now) for n in more))
    else:
        ordered.sort(key=lambda i: i.status == lifecycle.GONE)
        instances = (*ordered[:count], *(evolve(i, leaving=True) for i in ordered[count:]))
    return evolve(group, count=count, instances=instances, updated_at=now)


def without_leaving(cluster: Cluster) -> Cluster:
    """The cluster after the change: without leaving instances and empty groups."""
    groups = (
        evolve(g, instances=tuple(i for i in g.instances if not i.leaving))
        for g in cluster.node_groups
    )
    return evolve(cluster, node_groups=tuple(g for g in groups if g.count > 0))


def remakes(cluster: Cluster, change: ScaleRequest) -> bool:
    """Whether the request replaces machines whose servers no longer exist."""
    asked = change.resize_node_groups or change.add_node_groups or change.life
    active = cluster.status is ClusterStatus.ACTIVE
    return active and not asked and any(lost_machines(g) for g in cluster.node_groups)


def lost_machines(group: NodeGroup) -> int:
    """The number of machines whose servers no longer exist."""
    return sum(i.status == lifecycle.GONE for i in group.instances)


def without_lost(cluster: Cluster) -> Cluster:
    """The cluster without its lost machines; the distribution compares its growth with this."""
    marked = (
        evolve(
            g,
            count=g.count - lost_machines(g),
            instances=tuple(i for i in g.instances if i.status != lifecycle.GONE),
        )
        for g in cluster.node_groups
    )
    return evolve(cluster, node_groups=tuple(g for g in marked if g.count > 0))
