"""The resource of the cluster templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import RULES, ClusterTemplateNameTaken, InvalidReference
from svcd.model import wire
from svcd.model.ids import ClusterTemplateId
from svcd.model.requests import NewClusterTemplate
from svcd.model.wire_plans import RecordPlan
from svcd.resources._call import Call
from svcd.resources._query import paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices

_LIST = paged("name", "plugin_name", "engine_version")


class ClusterTemplates:
    """Cluster templates: reusable definitions of a cluster."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.templates

    @route(app, "GET", "/cluster-templates", returns="cluster_templates", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire.ClusterTemplate]]:
        """List the cluster templates of the tenant, in the order of their creation."""
        return await self._lists.rendered(call, "cluster_templates")

    @route(app, "GET", "/cluster-templates/<template_id>", returns="cluster_template")
    async def get(self, call: Call, template_id: str) -> Annotated[bytes, wire.ClusterTemplate]:
        """Return one cluster template."""
        id_ = ClusterTemplateId(template_id)
        return await self._store.rendered("cluster_templates", call.tenant_id, id_)

    @route(
        app,
        "POST",
        "/cluster-templates",
        body=NewClusterTemplate,
        returns="cluster_template",
        creates=True,
        plan="_plan_new",
        raises=(*RULES, ClusterTemplateNameTaken),
    )
    async def create(self, call: Call, body: NewClusterTemplate) -> wire.ClusterTemplate:
        """Create a cluster template."""
        return wire.ClusterTemplate.of(
            await self._commands.create_cluster_template(call.caller, body, call.key)
        )

    async def _plan_new(self, call: Call, body: NewClusterTemplate) -> RecordPlan:
        made = await self._commands.create_cluster_template(call.caller, body, dry=True)
        return RecordPlan(name=made.name)

    @route(app, "DELETE", "/cluster-templates/<template_id>", raises=(InvalidReference,))
    async def delete(self, call: Call, template_id: str) -> None:
        """Delete a cluster template. It is refused while a cluster uses the template."""
        id_ = ClusterTemplateId(template_id)
        await self._store.tx(lambda tx: tx.cluster_templates.remove(call.tenant_id, id_))
