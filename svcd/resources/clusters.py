"""The resource of the clusters, and of their events (additive)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.model import wire
from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId
from svcd.model.requests import NewCluster, ScaleRequest
from svcd.resources._paging import flag, page_of, refuse_misspelled, whole_number
from svcd.resources._route import WAIT, Call, Query, route
from svcd.resources.dependencies import ApiServices

_FILTERS = (
    "name",
    "plugin_name",
    "engine_version",
    "status",
    "cluster_template_id",
    "default_image_id",
)
_SINCE = Query("since", 2**31 - 1, "only events with a larger number")
_TRIMMED = "X-Events-Trimmed"


class Clusters:
    """The handlers of `/clusters`."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._waits = services.waits
        self._commands = services.clusters

    @route(app, "GET", "/clusters", returns="clusters")
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire.Cluster]]:
        """List the clusters of the tenant, in the order of their creation."""
        page = page_of(call, _FILTERS)
        with self._lists.begin(call.gone) as reading:
            return await reading.rendered(
                page, lambda tx, *part: tx.clusters.rendered_page(call.tenant_id, *part)
            )

    @route(app, "GET", "/clusters/<cluster_id>", returns="cluster")
    async def get(self, call: Call, cluster_id: str) -> Annotated[bytes, wire.Cluster]:
        """Return one cluster."""
        id_ = ClusterId(cluster_id)
        return await self._store.rendered("clusters", call.tenant_id, id_)

    async def _exists(self, call: Call, cluster_id: str) -> None:
        await self.get(call, cluster_id)

    @route(app, "POST", "/clusters", body=NewCluster, returns="cluster", creates=True)
    async def create(self, call: Call, body: NewCluster) -> wire.Cluster:
        """Accept a new cluster. svcd builds the cluster after the answer."""
        also = call.keeping(wire.Cluster.of)
        return wire.Cluster.of(await self._commands.create(call.caller, body, also))

    @route(
        app, "PUT", "/clusters/<cluster_id>", body=ScaleRequest, returns="cluster", exists="_exists"
    )
    async def scale(self, call: Call, cluster_id: str, body: ScaleRequest) -> wire.Cluster:
        """Accept a change of the cluster's size."""
        id_ = ClusterId(cluster_id)
        return wire.Cluster.of(await self._commands.scale(call.caller, id_, body))

    @route(app, "DELETE", "/clusters/<cluster_id>")
    async def delete(self, call: Call, cluster_id: str) -> None:
        """Accept the deletion of a cluster. `?force=true` (v1.1, additive) drops the record."""
        refuse_misspelled(call, ("force",))
        force = call.version != "1.0" and flag(call, "force")
        await self._commands.delete(call.caller, ClusterId(cluster_id), force)

    @route(
        app,
        "GET",
        "/clusters/<cluster_id>/events",
        returns="events",
        since="1.1",
        query=(_SINCE, WAIT),
        headers={_TRIMMED: "number of events after `since` that are no longer kept"},
    )
    async def events(self, call: Call, cluster_id: str) -> Sequence[wire.Event]:
        """List the events of a cluster, oldest first (additive).

        With `wait` the answer comes when there is an event after `since`.
        """
        id_ = ClusterId(cluster_id)
        refuse_misspelled(call, ("since", "wait"))
        since = whole_number(call, _SINCE.name, _SINCE.most) or 0

        async def read() -> tuple[bool, Sequence[ClusterEvent]]:
            found = await self._store.read(
                lambda tx: tx.clusters.events(call.tenant_id, id_, since)
            )
            return bool(found), found

        events = await self._waits.newer(call, read)
        if events and events[0].number > since + 1:
            call.headers[_TRIMMED] = str(events[0].number - since - 1)
        return [wire.Event.of(each) for each in events]

    @route(app, "GET", "/clusters/<cluster_id>/machines", returns="machines", since="1.1")
    async def machines(self, call: Call, cluster_id: str) -> Sequence[wire.Machine]:
        """List the machines of a cluster with their logins and pinned host keys (additive)."""
        id_ = ClusterId(cluster_id)
        cluster = await self._store.read(lambda tx: tx.clusters.get(call.tenant_id, id_))
        return [wire.Machine.of(cluster, each) for each in cluster.instances()]
