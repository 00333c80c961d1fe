"""The resource of the node group templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import RULES, InvalidReference, NodeGroupTemplateNameTaken
from svcd.model import wire
from svcd.model.ids import NodeGroupTemplateId
from svcd.model.requests import NewNodeGroupTemplate
from svcd.model.wire_plans import RecordPlan
from svcd.resources._call import Call
from svcd.resources._query import paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices

_LIST = paged("name", "plugin_name", "engine_version", "flavor_id")


class NodeGroupTemplates:
    """Node group templates: reusable definitions of a group of machines."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.templates

    @route(app, "GET", "/node-group-templates", returns="node_group_templates", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire.NodeGroupTemplate]]:
        """List the node group templates of the tenant, in the order of their creation."""
        return await self._lists.rendered(call, "node_group_templates")

    @route(app, "GET", "/node-group-templates/<template_id>", returns="node_group_template")
    async def get(self, call: Call, template_id: str) -> Annotated[bytes, wire.NodeGroupTemplate]:
        """Return one node group template."""
        id_ = NodeGroupTemplateId(template_id)
        return await self._store.rendered("node_group_templates", call.tenant_id, id_)

    @route(
        app,
        "POST",
        "/node-group-templates",
        body=NewNodeGroupTemplate,
        returns="node_group_template",
        creates=True,
        plan="_plan_new",
        raises=(*RULES, NodeGroupTemplateNameTaken),
    )
    async def create(self, call: Call, body: NewNodeGroupTemplate) -> wire.NodeGroupTemplate:
        """Create a node group template."""
        return wire.NodeGroupTemplate.of(
            await self._commands.create_node_group_template(call.caller, body, call.key)
        )

    async def _plan_new(self, call: Call, body: NewNodeGroupTemplate) -> RecordPlan:
        made = await self._commands.create_node_group_template(call.caller, body, dry=True)
        return RecordPlan(name=made.name)

    @route(app, "DELETE", "/node-group-templates/<template_id>", raises=(InvalidReference,))
    async def delete(self, call: Call, template_id: str) -> None:
        """Delete a node group template. It is refused while a cluster or template uses it."""
        id_ = NodeGroupTemplateId(template_id)
        await self._store.tx(lambda tx: tx.node_group_templates.remove(call.tenant_id, id_))
