"""The resource of the data sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from klein import Klein

from svcd.errors import DataSourceNameTaken, DeletionFailed, InvalidCredentials, InvalidData
from svcd.model import wire_jobs
from svcd.model.ids import DataSourceId
from svcd.model.requests import NewDataSource
from svcd.model.wire_plans import RecordPlan
from svcd.resources._call import Call
from svcd.resources._query import paged
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices

_LIST = paged("name", "type", "url")


class DataSources:
    """Data sources: locations of the input and output of jobs."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._store = services.store
        self._lists = services.lists
        self._commands = services.jobs

    @route(app, "GET", "/data-sources", returns="data_sources", since="1.1", query=_LIST)
    async def list(self, call: Call) -> Sequence[Annotated[bytes, wire_jobs.DataSource]]:
        """List the data sources of the tenant, in the order of their creation."""
        hide = call.hides_credentials
        return await self._lists.encoded(
            call, "data_sources", lambda record: wire_jobs.DataSource.of(record, hide)
        )

    @route(app, "GET", "/data-sources/<data_source_id>", returns="data_source", since="1.1")
    async def get(self, call: Call, data_source_id: str) -> wire_jobs.DataSource:
        """Return one data source."""
        id_ = DataSourceId(data_source_id)
        found = await self._store.read(lambda tx: tx.data_sources.get(call.tenant_id, id_))
        return wire_jobs.DataSource.of(found, call.hides_credentials)

    @route(
        app,
        "POST",
        "/data-sources",
        body=NewDataSource,
        returns="data_source",
        since="1.1",
        creates=True,
        plan="_plan_new",
        raises=(InvalidCredentials, InvalidData, DataSourceNameTaken),
    )
    async def create(self, call: Call, body: NewDataSource) -> wire_jobs.DataSource:
        """Create a data source. svcd does not check its location."""
        record = await self._commands.create_data_source(call.caller, body, call.key)
        return wire_jobs.DataSource.of(record, call.hides_credentials, created=True)

    async def _plan_new(self, call: Call, body: NewDataSource) -> RecordPlan:
        made = await self._commands.create_data_source(call.caller, body, dry=True)
        return RecordPlan(name=made.name)

    @route(app, "DELETE", "/data-sources/<data_source_id>", since="1.1", raises=(DeletionFailed,))
    async def delete(self, call: Call, data_source_id: str) -> None:
        """Delete a data source. It is refused while an execution refers to the data source."""
        id_ = DataSourceId(data_source_id)
        await self._store.tx(lambda tx: tx.data_sources.remove(call.tenant_id, id_))
