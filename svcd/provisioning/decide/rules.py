"""Checks requests against facts, and expands them into records. Pure.

Every function adds its faults to a list of errors, so that one answer names all of them (`joined`).
Only a request without faults becomes a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import evolve, frozen

from svcd.errors import (
    InvalidReference,
    SvcdError,
)
from svcd.model.cluster import (
    DAEMON_USER,
    Cluster,
    ClusterStatus,
    Desired,
    Instance,
    NodeGroup,
)
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    InstanceId,
    NodeGroupTemplateId,
    TenantId,
    Timestamp,
    timestamp,
)
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroup,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.template import (
    ClusterTemplate,
    Configs,
    NodeGroupTemplate,
    TemplateNodeGroup,
    shape_of,
)
from svcd.model.wire import IMAGE_USERNAME
from svcd.provisioning.decide import checks, lifecycle
from svcd.provisioning.decide.facts import SSH_PORT, Bounds, Facts
from svcd.provisioning.decide.machines_view import merged
from svcd.provisioning.distributions.spi import IUnprivileged

NewId = Callable[[], str]


@frozen(kw_only=True)
class Made:
    """Ids, tenant and time of a new record, which do not come from the request."""

    id: str
    tenant_id: TenantId
    now: float
    new_id: NewId


def joined(errors: Sequence[SvcdError]) -> SvcdError:
    """One error for all `errors`: the class of the first, and each message on its own line."""
    lines = list(dict.fromkeys(e.message for e in errors))
    return type(errors[0])("\n".join(lines))


# ---- templates ----------------------------------------------------------------------------------


def check_node_group_template(
    new: NewNodeGroupTemplate, facts: Facts, made: Made
) -> NodeGroupTemplate | list[SvcdError]:
    """The record, or all faults of the request."""
    errors = checks.Faults()
    distribution = checks.plugin(new.plugin_name, new.engine_version, facts, errors)
    group = TemplateNodeGroup(name=new.name, count=1, **shape_of(new))
    checks.group_fits("$", group, distribution, new.engine_version, facts, errors)
    if errors:
        return errors
    return NodeGroupTemplate(
        id=NodeGroupTemplateId(made.id),
        tenant_id=made.tenant_id,
        name=new.name,
        description=new.description,
        plugin_name=new.plugin_name,
        engine_version=new.engine_version,
        **shape_of(new),
        created_at=timestamp(made.now),
    )


def check_cluster_template(
    new: NewClusterTemplate, facts: Facts, bounds: Bounds, made: Made
) -> ClusterTemplate | list[SvcdError]:
    """The record with complete node groups, or all faults; checked like a cluster of it."""
    errors = checks.Faults()
    distribution = checks.plugin(new.plugin_name, new.engine_version, facts, errors)
    groups = _groups(
        "$.node_groups", new.node_groups, new.plugin_name, new.engine_version, facts, errors
    )
    checks.names_differ("$.node_groups", [g.name for g in new.node_groups], errors)
    for number, each in enumerate(groups):
        checks.group_fits(
            f"$.node_groups[{number}]", each, distribution, new.engine_version, facts, errors
        )
    checks.within_bounds("$.node_groups", groups, bounds, errors)
    checks.whole_fits(
        new.cluster_configs,
        new.anti_affinity,
        new.neutron_management_network,
        distribution,
        new.engine_version,
        facts,
        errors,
    )
    if new.default_image_id is not None:
        checks.image_fits(new.default_image_id, distribution, new.engine_version, facts, errors)
    if errors or distribution is None:
        return errors
    template = ClusterTemplate(
        id=ClusterTemplateId(made.id),
        tenant_id=made.tenant_id,
        name=new.name,
        description=new.description,
        plugin_name=new.plugin_name,
        engine_version=new.engine_version,
        cluster_configs=new.cluster_configs,
        anti_affinity=new.anti_affinity,
        neutron_management_network=new.neutron_management_network,
        default_image_id=new.default_image_id,
        node_groups=tuple(groups),
        created_at=timestamp(made.now),
    )
    return list(distribution.check_topology(_made_of(template, facts, made))) or template


def _made_of(template: ClusterTemplate, facts: Facts, made: Made) -> Cluster:
    """A cluster of `template` without changes, for the check of its topology only."""
    now = timestamp(made.now)
    return Cluster(
        id=ClusterId(made.id),
        tenant_id=made.tenant_id,
        name=template.name,
        plugin_name=template.plugin_name,
        engine_version=template.engine_version,
        default_image_id=template.default_image_id or "",
        cluster_configs=template.cluster_configs,
        anti_affinity=template.anti_affinity,
        node_groups=tuple(
            _node_group(template.name, g, facts, made.new_id, now) for g in template.node_groups
        ),
        status_since=now,
        created_at=now,
    )


# ---- clusters -----------------------------------------------------------------------------------


def check_cluster(
    new: NewCluster, facts: Facts, bounds: Bounds, made: Made
) -> Cluster | list[SvcdError]:
    """The full record in status Waiting, instances named, without keys and trust; or all faults.

    Values: defaults, then the node group template's, then the cluster template's, then the
    request's. cluster_configs are merged name by name; node groups given replace the template's.
    """
    errors = checks.Faults()
    distribution = checks.plugin(new.plugin_name, new.engine_version, facts, errors)
    template = facts.cluster_template
    if new.cluster_template_id is not None:
        if template is None:
            errors.reference(
                f"$.cluster_template_id: cluster template {new.cluster_template_id!r} not found"
            )
        else:
            checks.same_plugin("$.cluster_template_id", template, new, errors)
    given = new.node_groups is not None
    if new.node_groups is not None:
        path = "$.node_groups"
        groups = _groups(path, new.node_groups, new.plugin_name, new.engine_version, facts, errors)
        checks.names_differ(path, [g.name for g in new.node_groups], errors)
    else:
        path = "$.cluster_template_id.node_groups"
        groups = list(template.node_groups) if template is not None else []
    for number, each in enumerate(groups):
        checks.group_fits(
            f"{path}[{number}]", each, distribution, new.engine_version, facts, errors
        )
        checks.host_name_fits(f"{path}[{number}]", new.name, each.name, each.count, errors)
    if not groups and (given or template is not None) and not errors:
        errors.data(f"{path}: a cluster needs at least one node group")
    checks.within_bounds(path, groups, bounds, errors)
    inherited: Configs = template.cluster_configs if template is not None else {}
    configs = merged(inherited, new.cluster_configs)
    affinity = new.anti_affinity
    network = new.neutron_management_network
    image_id = new.default_image_id
    if template is not None:
        affinity = template.anti_affinity if affinity is None else affinity
        network = template.neutron_management_network if network is None else network
        image_id = template.default_image_id if image_id is None else image_id
    checks.whole_fits(
        configs, affinity or (), network, distribution, new.engine_version, facts, errors
    )
    if image_id is None:
        errors.reference(
            "$.default_image_id: missing; neither request nor cluster template names an image"
        )
    else:
        checks.image_fits(image_id, distribution, new.engine_version, facts, errors)
    checks.keypair_found(new.user_keypair_id, facts, errors)
    checks.within_quota(groups, facts, errors)
    if errors or distribution is None or image_id is None or facts.image is None:
        return errors
    now = timestamp(made.now)
    properties = facts.image.properties
    cluster = Cluster(
        id=ClusterId(made.id),
        tenant_id=made.tenant_id,
        name=new.name,
        description=new.description,
        plugin_name=new.plugin_name,
        engine_version=new.engine_version,
        cluster_template_id=(
            ClusterTemplateId(new.cluster_template_id) if new.cluster_template_id else None
        ),
        default_image_id=image_id,
        username=properties[IMAGE_USERNAME],
        ssh_port=checks.ssh_port(properties.get(SSH_PORT, "")),
        user_keypair_id=new.user_keypair_id,
        cluster_configs=configs,
        anti_affinity=affinity or (),
        neutron_management_network=network,
        node_groups=tuple(_node_group(new.name, g, facts, made.new_id, now) for g in groups),
        is_transient=new.is_transient,
        daemon_user=DAEMON_USER if IUnprivileged.providedBy(distribution) else "",
        status_since=now,
        created_at=now,
    )
    errors.extend(distribution.check_topology(cluster))
    return errors or cluster


def check_scale(
    cluster: Cluster, change: ScaleRequest, facts: Facts, bounds: Bounds, made: Made
) -> Cluster | list[SvcdError]:
    """The changed record in status Validating, with new and leaving instances; or all faults.

    An empty request resumes an Error cluster at its failed step. On an Active cluster it starts one
    more pass, which replaces the machines whose servers no longer exist.
    """
    resizes, added = change.resize_node_groups, change.add_node_groups
    if cluster.status is ClusterStatus.ERROR and not resizes and not added:
        return lifecycle.retry(cluster, made.now)
    if cluster.status is not ClusterStatus.ACTIVE or cluster.desired is not Desired.ACTIVE:
        hint = "; an empty resize retries it" if cluster.status is ClusterStatus.ERROR else ""
        return [
            InvalidReference(
                f"cluster {cluster.name!r} cannot be scaled in status {cluster.status}, "
                f"only in {ClusterStatus.ACTIVE}{hint}"
            )
        ]
    errors = checks.Faults()
    distribution = checks.plugin(cluster.plugin_name, cluster.engine_version, facts, errors)
    existing = {g.name: g for g in cluster.node_groups}
    taken = {name.lower(): name for name in existing}
    checks.names_differ("$.resize_node_groups", [r.name for r in resizes], errors)
    for number, resize in enumerate(resizes):
        if resize.name not in existing:
            errors.reference(
                f"$.resize_node_groups[{number}].name: the cluster has no node group "
                f"{resize.name!r}; it has {', '.join(existing)}"
            )
    checks.names_differ("$.add_node_groups", [a.name for a in added], errors)
    for number, add in enumerate(added):
        has = taken.get(add.name.lower())
        if has is not None:
            why = "" if has == add.name else "; names that differ only in case are the same"
            errors.reference(
                f"$.add_node_groups[{number}].name: the cluster has a node group "
                f"{has!r} already{why}; use resize_node_groups"
            )
    groups = _groups(
        "$.add_node_groups", added, cluster.plugin_name, cluster.engine_version, facts, errors
    )
    for number, each in enumerate(groups):
        path = f"$.add_node_groups[{number}]"
        checks.group_fits(path, each, distribution, cluster.engine_version, facts, errors)
        checks.host_name_fits(path, cluster.name, each.name, each.count, errors)
    wanted = {r.name: r.count for r in resizes}
    remaking = remakes(cluster, change)
    growth = [
        evolve(g, count=more)
        for g in cluster.node_groups
        if (more := _gone(g) if remaking else wanted.get(g.name, 0) - g.count) > 0
    ]
    if growth or groups:
        checks.image_usable(cluster.default_image_id, facts, errors)
    checks.within_quota([*growth, *groups], facts, errors)
    now = timestamp(made.now)
    resized = [
        _remade(cluster.name, g, made.new_id, now)
        if remaking
        else _resized(cluster.name, g, wanted.get(g.name, g.count), made.new_id, now)
        for g in cluster.node_groups
    ]
    new_groups = [_node_group(cluster.name, g, facts, made.new_id, now) for g in groups]
    changed = evolve(cluster, node_groups=(*resized, *new_groups))
    after = _without_leaving(changed)
    checks.within_bounds("$", after.node_groups, bounds, errors)
    if not after.node_groups:
        errors.data("$.resize_node_groups: a cluster needs at least one node group")
    if errors or distribution is None:
        return errors
    # faults of the change come alone: faults of the topology would only follow from them
    before = _left(cluster) if remaking else cluster
    refused = distribution.check_scaling(before, after) or distribution.check_topology(after)
    if refused:
        return list(refused)
    return evolve(
        lifecycle.move(changed, lifecycle.Input.SCALE, made.now),
        generation=cluster.generation + 1,
        accepted_at=now,
        status_description="",
        updated_at=now,
    )


def remakes(cluster: Cluster, change: ScaleRequest) -> bool:
    """Whether the request replaces machines whose servers no longer exist."""
    asked = change.resize_node_groups or change.add_node_groups
    active = cluster.status is ClusterStatus.ACTIVE
    return active and not asked and any(_gone(g) for g in cluster.node_groups)


def _gone(group: NodeGroup) -> int:
    return sum(i.status == lifecycle.GONE for i in group.instances)


def _left(cluster: Cluster) -> Cluster:
    """The cluster without its lost machines; the distribution compares its growth with this."""
    marked = (
        evolve(
            g,
            count=g.count - _gone(g),
            instances=tuple(i for i in g.instances if i.status != lifecycle.GONE),
        )
        for g in cluster.node_groups
    )
    return evolve(cluster, node_groups=tuple(g for g in marked if g.count > 0))


# ---- expanding ----------------------------------------------------------------------------------


def _groups(
    path: str,
    news: Iterable[NewNodeGroup],
    plugin_name: str,
    engine_version: str,
    facts: Facts,
    errors: checks.Faults,
) -> list[TemplateNodeGroup]:
    """Complete node groups; a group with an unknown template is left out."""
    result: list[TemplateNodeGroup] = []
    for number, new in enumerate(news):
        template: NodeGroupTemplate | None = None
        if new.node_group_template_id is not None:
            where = f"{path}[{number}].node_group_template_id"
            template = facts.node_group_templates.get(new.node_group_template_id)
            if template is None:
                errors.reference(
                    f"{where}: node group template {new.node_group_template_id!r} not found"
                )
                continue
            if (template.plugin_name, template.engine_version) != (plugin_name, engine_version):
                errors.reference(
                    f"{where}: node group template {template.name!r} is for plugin "
                    f"{template.plugin_name} {template.engine_version}, "
                    f"but the request names {plugin_name} {engine_version}"
                )
        result.append(_expanded(new, template))
    return result


def _expanded(new: NewNodeGroup, template: NodeGroupTemplate | None) -> TemplateNodeGroup:
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


def _node_group(
    cluster_name: str, group: TemplateNodeGroup, facts: Facts, new_id: NewId, now: Timestamp
) -> NodeGroup:
    flavor = facts.flavors.get(group.flavor_id)
    return NodeGroup(
        name=group.name,
        count=group.count,
        node_group_template_id=group.node_group_template_id,
        flavor_ram_mib=flavor.ram_mib if flavor is not None else 1024,
        flavor_vcpus=flavor.vcpus if flavor is not None else 1,
        **shape_of(group),
        instances=tuple(
            _instance(cluster_name, group.name, n, new_id, now) for n in range(1, group.count + 1)
        ),
        created_at=now,
    )


def _instance(
    cluster_name: str, group_name: str, index: int, new_id: NewId, now: Timestamp
) -> Instance:
    return Instance(
        instance_id=InstanceId(new_id()),
        instance_name=checks.instance_name(cluster_name, group_name, index),
        index=index,
        created_at=now,
    )


def _remade(cluster_name: str, group: NodeGroup, new_id: NewId, now: Timestamp) -> NodeGroup:
    """The group with one new machine for each lost one; new numbers follow the highest."""
    lost = _gone(group)
    if not lost:
        return group
    first = max(i.index for i in group.instances) + 1
    marked = (evolve(i, leaving=i.status == lifecycle.GONE) for i in group.instances)
    more = (_instance(cluster_name, group.name, first + n, new_id, now) for n in range(lost))
    return evolve(group, instances=(*marked, *more), updated_at=now)


def _resized(
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


def _without_leaving(cluster: Cluster) -> Cluster:
    """The cluster after the change: without leaving instances and empty groups."""
    groups = (
        evolve(g, instances=tuple(i for i in g.instances if not i.leaving))
        for g in cluster.node_groups
    )
    return evolve(cluster, node_groups=tuple(g for g in groups if g.count > 0))
