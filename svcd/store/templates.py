"""Node group templates and cluster templates."""

from __future__ import annotations

from svcd.errors import (
    ClusterTemplateNameTaken,
    InvalidReference,
    NodeGroupTemplateNameTaken,
)
from svcd.model import wire
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.store.family import Family, Table, references

_USERS_OF_GROUP = """
select 'cluster template', name from cluster_templates
 where tenant_id = :tenant_id and refs like :pattern
union all
select 'cluster', name from clusters where tenant_id = :tenant_id and refs like :pattern
limit 5
"""
_USERS_OF_TEMPLATE = """
select 'cluster', name from clusters
 where tenant_id = :tenant_id and cluster_template_id = :id
limit 5
"""


class NodeGroupTemplates(Family[NodeGroupTemplate]):
    table = Table(
        name="node_group_templates",
        kind="node_group_templates",
        what="node group template",
        record=NodeGroupTemplate,
        columns={
            "name": lambda r: r.name,
            "plugin_name": lambda r: r.plugin_name,
            "engine_version": lambda r: r.engine_version,
            "flavor_id": lambda r: r.flavor_id,
        },
        filters=frozenset({"name", "plugin_name", "engine_version", "flavor_id"}),
        taken=NodeGroupTemplateNameTaken,
        wire=wire.NodeGroupTemplate.of,
        users=_USERS_OF_GROUP,
        still_used=InvalidReference,
    )


class ClusterTemplates(Family[ClusterTemplate]):
    table = Table(
        name="cluster_templates",
        kind="cluster_templates",
        what="cluster template",
        record=ClusterTemplate,
        columns={
            "name": lambda r: r.name,
            "plugin_name": lambda r: r.plugin_name,
            "engine_version": lambda r: r.engine_version,
            "refs": lambda r: references(g.node_group_template_id for g in r.node_groups),
        },
        filters=frozenset({"name", "plugin_name", "engine_version"}),
        taken=ClusterTemplateNameTaken,
        wire=wire.ClusterTemplate.of,
        users=_USERS_OF_TEMPLATE,
        still_used=InvalidReference,
    )
