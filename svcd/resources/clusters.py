"""The resource of the clusters, and of their events (additive)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import (
    RULES,
    ClusterCannotBeScaled,
    ClusterNameTaken,
    NodeGroupCannotBeScaled,
    ValidationError,
)
from svcd.model import usage, wire
from svcd.model.cluster import ClusterEvent
from svcd.model.ids import ClusterId
from svcd.model.requests import NewCluster, ScaleRequest
from svcd.model.wire_plans import ClusterPlan
from svcd.model.wire_story import ClusterStory
from svcd.provisioning.decide.story import story_of
from svcd.resources._call import Call
from svcd.resources._query import WAIT, Query, paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices
from svcd.runtime.slices import Slices

_LIST = paged(
    "name", "plugin_name", "engine_version", "status", "cluster_template_id", "default_image_id"
)
_FORCE = Query("force", "drop the record even when objects of the cluster stay behind", flag=True)
_IMAGE_USER = Query(
    "image_user",
    "for a dry run: plan as if the image were registered with this login and the plugin's tags",
)
_SINCE = Query("since", "only events with a larger number", most=2**31 - 1)
_CHANGE = Query(
    "change", "also the steps of the change with this number; 0: the newest", most=2**31 - 1
)
_TRIMMED = "X-Events-Trimmed"


class Clusters:
    """Clusters: start, list, show, scale, delete, and their events."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._waits = services.waits
        self._commands = services.clusters
        self._tokens = services.tokens
        self._clock = services.clock
        self._slices = Slices(services.clock)

    @route(app, "GET", "/clusters", returns="clusters", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire.Cluster]]:
        """List the clusters of the tenant, in the order of their creation."""
        found = await self._lists.rendered(call, "clusters")
        return [self._shown(call, cluster) for cluster in found]

    @route(app, "GET", "/clusters/<cluster_id>", returns="cluster")
    async def get(self, call: Call, cluster_id: str) -> Annotated[bytes, wire.Cluster]:
        """Return one cluster, from v1.1 with its usage."""
        id_ = ClusterId(cluster_id)
        row = await self._store.rendered("clusters", call.tenant_id, id_)
        text, _, stored = row.rpartition(b"\n")
        text, now = self._shown(call, text), self._clock.seconds()
        if not call.is_since_1_1:
            return text
        return b'%b,"usage":%b}' % (text[:-1], usage.shown(stored, now - now % 60.0))

    def _shown(self, call: Call, text: bytes) -> bytes:
        """Stored JSON of clusters, with their tokens for a caller who may change them."""
        return text if call.hides_credentials else self._tokens.shown(call.tenant_id, text)

    async def _exists(self, call: Call, cluster_id: str) -> None:
        await self.get(call, cluster_id)

    @route(
        app,
        "POST",
        "/clusters",
        body=NewCluster,
        returns="cluster",
        creates=True,
        plan="_plan",
        query=(_IMAGE_USER,),
        raises=(*RULES, ClusterNameTaken),
    )
    async def create(self, call: Call, body: NewCluster) -> wire.Cluster:
        """Accept a new cluster. svcd builds the cluster after the answer."""
        if call.query["image_user"] is not None:
            raise ValidationError("?image_user: only a dry run takes it; register the image first")
        cluster = await self._commands.create(
            call.caller, body, key=call.key, inherits_life=call.is_since_1_1
        )
        return wire.Cluster.of(cluster)

    async def _plan(self, call: Call, body: NewCluster) -> ClusterPlan:
        user = call.query["image_user"] or ""
        return await self._commands.plan(call.caller, body, image_user=user)

    async def _plan_scale(self, call: Call, cluster_id: str, body: ScaleRequest) -> ClusterPlan:
        return await self._commands.plan_scale(call.caller, ClusterId(cluster_id), body)

    @route(
        app,
        "PUT",
        "/clusters/<cluster_id>",
        body=ScaleRequest,
        returns="cluster",
        exists="_exists",
        plan="_plan_scale",
        raises=(*RULES, ClusterCannotBeScaled, NodeGroupCannotBeScaled),
    )
    async def scale(self, call: Call, cluster_id: str, body: ScaleRequest) -> wire.Cluster:
        """Accept a change of the cluster's size, or of the time when svcd deletes it."""
        id_ = ClusterId(cluster_id)
        return wire.Cluster.of(await self._commands.scale(call.caller, id_, body))

    @route(app, "DELETE", "/clusters/<cluster_id>", query=(_FORCE,))
    async def delete(self, call: Call, cluster_id: str) -> None:
        """Accept the deletion of a cluster."""
        await self._commands.delete(call.caller, ClusterId(cluster_id), call.query["force"])

    @route(
        app,
        "GET",
        "/clusters/<cluster_id>/events",
        returns="events",
        operation="listClusterEvents",
        since="1.1",
        query=(_SINCE, WAIT),
        headers={_TRIMMED: "number of events after `since` that are no longer kept"},
    )
    async def events(self, call: Call, cluster_id: str) -> Sequence[wire.Event]:
        """List the events of a cluster, oldest first (additive).

        With `wait` the answer comes when there is an event after `since`.
        """
        id_ = ClusterId(cluster_id)
        since = call.query["since"] or 0

        async def read() -> tuple[bool, Sequence[ClusterEvent]]:
            found = await self._store.read(
                lambda tx: tx.clusters.events(call.tenant_id, id_, since)
            )
            return bool(found), found

        events = await self._waits.newer(call, read)
        if events and events[0].number > since + 1:
            call.headers[_TRIMMED] = str(events[0].number - since - 1)
        return [wire.Event.of(event) for event in events]

    @route(
        app,
        "GET",
        "/clusters/<cluster_id>/story",
        returns="story",
        since="1.1",
        operation="getClusterStory",
        query=(_CHANGE,),
    )
    async def story(self, call: Call, cluster_id: str) -> ClusterStory:
        """Tell what svcd does with a cluster, what is wrong, and its changes (additive)."""
        id_ = ClusterId(cluster_id)
        cluster, events = await self._store.read(
            lambda tx: tx.clusters.with_events(call.tenant_id, id_)
        )
        known: list[ClusterEvent] = []

        def decode() -> Generator[None, None, None]:
            for event in events:
                known.append(event)
                yield

        await self._slices.run(decode())
        return story_of(cluster, known, self._clock.seconds(), call.query["change"])

    @route(
        app,
        "GET",
        "/clusters/<cluster_id>/machines",
        returns="machines",
        since="1.1",
        operation="listClusterMachines",
    )
    async def machines(self, call: Call, cluster_id: str) -> Sequence[wire.Machine]:
        """List the machines of a cluster with their logins and pinned host keys (additive)."""
        id_ = ClusterId(cluster_id)
        cluster = await self._store.read(lambda tx: tx.clusters.get(call.tenant_id, id_))
        return [wire.Machine.of(cluster, instance) for instance in cluster.instances()]
