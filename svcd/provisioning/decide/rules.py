"""Checks requests against facts, in an order that the answers keep, and makes records. Pure.

Every check adds its faults to one list, so that one answer names all of them (`joined`). Only a
request without faults becomes a record. `checks` has the single checks, `node_groups` makes the
groups of a record.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from svcd.errors import InvalidReference, SvcdError
from svcd.model.cluster import DAEMON_USER, Cluster, ClusterStatus, Desired
from svcd.model.failures import EMPTY_RESIZE
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    NodeGroupTemplateId,
    TenantId,
    timestamp,
)
from svcd.model.requests import (
    NewCluster,
    NewClusterTemplate,
    NewNodeGroupTemplate,
    ScaleRequest,
)
from svcd.model.template import (
    ClusterTemplate,
    NodeGroupTemplate,
    TemplateNodeGroup,
    merged,
    shape_of,
)
from svcd.model.wire import IMAGE_USERNAME
from svcd.provisioning.decide import lifecycle, lifetimes
from svcd.provisioning.decide.checks import Checks, ssh_port
from svcd.provisioning.decide.facts import SSH_PORT, Bounds, Facts
from svcd.provisioning.decide.lifetimes import DURATIONS
from svcd.provisioning.decide.node_groups import (
    NewId,
    lost_machines,
    new_group,
    remade,
    remakes,
    resized,
    without_leaving,
    without_lost,
)
from svcd.provisioning.distributions.spi import IUnprivileged


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
    checks = Checks(new.plugin_name, new.engine_version, facts)
    checks.group("$", TemplateNodeGroup(name=new.name, count=1, **shape_of(new)))
    if checks.faults:
        return checks.faults
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
    checks = Checks(new.plugin_name, new.engine_version, facts)
    path = "$.node_groups"
    groups = checks.complete_groups(path, new.node_groups)
    checks.names_differ(path, [g.name for g in new.node_groups])
    for number, group in enumerate(groups):
        checks.group(f"{path}[{number}]", group)
    checks.bounds(path, groups, bounds)
    checks.whole(new.cluster_configs, new.anti_affinity, new.neutron_management_network)
    if new.default_image_id is not None:
        checks.image(new.default_image_id)
    checks.durations(new, new, bounds)
    if checks.faults or checks.distribution is None:
        return checks.faults
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
        idle_delete_s=new.idle_delete_s,
        max_age_s=new.max_age_s,
        node_groups=tuple(groups),
        created_at=timestamp(made.now),
    )
    cluster = _cluster_of(template, facts, made)
    return list(checks.distribution.check_topology(cluster)) or template


def _cluster_of(template: ClusterTemplate, facts: Facts, made: Made) -> Cluster:
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
            new_group(template.name, g, facts, made.new_id, now) for g in template.node_groups
        ),
        status_since=now,
        created_at=now,
    )


# ---- clusters -----------------------------------------------------------------------------------


def with_template(new: NewCluster, template: ClusterTemplate | None) -> NewCluster:
    """The request with the template's values where it gives none; node groups stay as they are.

    cluster_configs are merged name by name.
    """
    if template is None:
        return new
    inherited = {
        name: getattr(template, name)
        for name in ("anti_affinity", "neutron_management_network", "default_image_id", *DURATIONS)
        if getattr(new, name) is None
    }
    configs = merged(template.cluster_configs, new.cluster_configs)
    return evolve(new, cluster_configs=configs, **inherited)


def check_cluster(
    new: NewCluster, facts: Facts, bounds: Bounds, made: Made
) -> Cluster | list[SvcdError]:
    """The full record in status Waiting, instances named, without keys and trust; or all faults.

    Values: defaults, then the node group template's, then the cluster template's, then the
    request's. Node groups of the request replace those of the cluster template.
    """
    checks = Checks(new.plugin_name, new.engine_version, facts)
    checks.cluster_template(new.cluster_template_id)
    template = facts.cluster_template
    if new.node_groups is not None:
        path = "$.node_groups"
        groups = checks.complete_groups(path, new.node_groups)
        checks.names_differ(path, [g.name for g in new.node_groups])
    else:
        path = "$.cluster_template_id.node_groups"
        groups = list(template.node_groups) if template is not None else []
    for number, group in enumerate(groups):
        checks.group(f"{path}[{number}]", group)
        checks.host_name(f"{path}[{number}]", new.name, group)
    if not groups and not checks.faults:
        checks.data(f"{path}: a cluster needs at least one node group")
    checks.bounds(path, groups, bounds)
    whole = with_template(new, template)
    affinity = whole.anti_affinity or ()
    checks.whole(whole.cluster_configs, affinity, whole.neutron_management_network)
    image_id = whole.default_image_id
    if image_id is None:
        checks.reference(
            "$.default_image_id: missing; neither request nor cluster template names an image"
        )
    else:
        checks.image(image_id)
    checks.durations(new, whole, bounds)
    checks.keypair(new.user_keypair_id)
    checks.quota(groups)
    distribution, image = checks.distribution, facts.image
    if checks.faults or distribution is None or image_id is None or image is None:
        return checks.faults
    now = timestamp(made.now)
    most = lifetimes.fitting(bounds, distribution)
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
        username=image.properties[IMAGE_USERNAME],
        ssh_port=ssh_port(image.properties.get(SSH_PORT, "")),
        user_keypair_id=new.user_keypair_id,
        cluster_configs=whole.cluster_configs,
        anti_affinity=affinity,
        neutron_management_network=whole.neutron_management_network,
        node_groups=tuple(new_group(new.name, g, facts, made.new_id, now) for g in groups),
        is_transient=new.is_transient,
        idle_delete_s=most.most_idle_s if whole.idle_delete_s is None else whole.idle_delete_s,
        max_age_s=most.most_age_s if whole.max_age_s is None else whole.max_age_s,
        most_idle_s=most.most_idle_s,
        most_age_s=most.most_age_s,
        daemon_user=DAEMON_USER if IUnprivileged.providedBy(distribution) else "",
        status_since=now,
        created_at=now,
    )
    return list(distribution.check_topology(cluster)) or cluster


def check_scale(
    cluster: Cluster, change: ScaleRequest, facts: Facts, bounds: Bounds, made: Made
) -> Cluster | list[SvcdError]:
    """The changed record in status Validating, with new and leaving instances; or all faults.

    An empty request resumes an Error cluster at its failed step. On an Active cluster it starts one
    more pass, which replaces the machines whose servers no longer exist. One with a lifetime alone
    changes nothing else, in any status but those of a deletion.
    """
    cluster, faults = lifetimes.changed(cluster, change, bounds, facts.distribution, made.now)
    if change.is_only_life:
        return faults or cluster
    resizes, added = change.resize_node_groups, change.add_node_groups
    if cluster.status is ClusterStatus.ERROR and not resizes and not added:
        return lifecycle.retry(cluster, made.now)
    if cluster.status is not ClusterStatus.ACTIVE or cluster.desired is not Desired.ACTIVE:
        hint = f"; {EMPTY_RESIZE} retries it" if cluster.status is ClusterStatus.ERROR else ""
        return [
            InvalidReference(
                f"cluster {cluster.name!r} cannot be scaled in status {cluster.status}, "
                f"only in {ClusterStatus.ACTIVE}{hint}"
            )
        ]
    checks = Checks(cluster.plugin_name, cluster.engine_version, facts)
    checks.faults.extend(faults)
    existing = {g.name: g for g in cluster.node_groups}
    taken = {name.lower(): name for name in existing}
    checks.names_differ("$.resize_node_groups", [r.name for r in resizes])
    for number, resize in enumerate(resizes):
        if resize.name not in existing:
            checks.reference(
                f"$.resize_node_groups[{number}].name: the cluster has no node group "
                f"{resize.name!r}; it has {', '.join(existing)}"
            )
    checks.names_differ("$.add_node_groups", [a.name for a in added])
    for number, add in enumerate(added):
        has = taken.get(add.name.lower())
        if has is not None:
            why = "" if has == add.name else "; names that differ only in case are the same"
            checks.reference(
                f"$.add_node_groups[{number}].name: the cluster has a node group "
                f"{has!r} already{why}; use resize_node_groups"
            )
    groups = checks.complete_groups("$.add_node_groups", added)
    for number, group in enumerate(groups):
        path = f"$.add_node_groups[{number}]"
        checks.group(path, group)
        checks.host_name(path, cluster.name, group)
    wanted = {r.name: r.count for r in resizes}
    remaking = remakes(cluster, change)
    growth = [
        evolve(g, count=more)
        for g in cluster.node_groups
        if (more := lost_machines(g) if remaking else wanted.get(g.name, 0) - g.count) > 0
    ]
    if growth or groups:
        checks.image_usable(cluster.default_image_id)
    checks.quota([*growth, *groups])
    now = timestamp(made.now)
    kept = [
        remade(cluster.name, g, made.new_id, now)
        if remaking
        else resized(cluster.name, g, wanted.get(g.name, g.count), made.new_id, now)
        for g in cluster.node_groups
    ]
    new_groups = [new_group(cluster.name, g, facts, made.new_id, now) for g in groups]
    changed = evolve(cluster, node_groups=(*kept, *new_groups))
    after = without_leaving(changed)
    checks.bounds("$", after.node_groups, bounds)
    if not after.node_groups:
        checks.data("$.resize_node_groups: a cluster needs at least one node group")
    distribution = checks.distribution
    if checks.faults or distribution is None:
        return checks.faults
    # faults of the change come alone: faults of the topology would only follow from them
    before = without_lost(cluster) if remaking else cluster
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
