"""The ownership tags of an installation in a tenant's cloud (additive).

`svcd orphans` compares them with the tags in the cloud to find leftovers.
"""

from __future__ import annotations

from klein import Klein

from svcd.model import wire_service
from svcd.ports.store import Page
from svcd.resources._call import Call
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices


class OwnershipTags:
    """Ownership tags: what svcd has in the cloud of the tenant."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._installation = services.installation

    @route(app, "GET", "/marks", returns="marks", since="1.1", operation="getOwnershipTags")
    async def get(self, call: Call) -> wire_service.OwnershipTags:
        """Return the tag of this installation, the tenant's clusters and the caller's trusts.

        And the names of the application credentials of jobs that svcd deletes itself.
        """
        tenant = call.tenant_id
        user = call.caller.user_id
        clusters: list[str] = []
        mine: list[str] = []
        with self._lists.begin(call.gone) as reading:
            parts = reading.records(Page(), lambda tx, part: tx.clusters.page(tenant, part))
            async for part in parts:
                for row in part:
                    clusters.append(row.id)
                    if row.trust_id is not None and row.trustor_id == user:
                        mine.append(row.trust_id)
        names = await self._store.read(lambda tx: tx.job_credentials.known(tenant))
        return wire_service.OwnershipTags(
            installation=self._installation,
            clusters=clusters,
            trusts=mine,
            job_credentials=list(names),
        )
