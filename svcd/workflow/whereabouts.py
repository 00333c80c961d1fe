"""Where an execution runs, and which secrets the engine's record of it may hold."""

from __future__ import annotations

from collections.abc import Sequence

from svcd.model.cluster import Cluster
from svcd.model.job import Execution
from svcd.model.secret import Secret
from svcd.ports import Store, Tx
from svcd.workflow import document
from svcd.workflow.engines import Endpoints, Engines


class Whereabouts:
    """Asks the rows anew each time."""

    def __init__(self, store: Store, engines: Engines) -> None:
        self._store = store
        self._engines = engines

    async def of(self, row: Execution) -> tuple[Cluster, Endpoints] | None:
        """None when its cluster is gone, or has no engine."""
        if row.cluster_id is None:
            return None
        cluster_id = row.cluster_id
        cluster = await self._store.read(lambda tx: tx.clusters.find(cluster_id))
        if cluster is None:
            return None
        endpoints = self._engines.endpoints(cluster)
        return None if endpoints is None else (cluster, endpoints)

    async def secrets(self, row: Execution) -> Sequence[Secret]:
        """Of its data sources and its configurations. Raises NotFound when one was deleted."""

        async def look(tx: Tx) -> Sequence[Secret]:
            ids = [id_ for id_ in (row.input_id, row.output_id) if id_ is not None]
            sources = [await tx.data_sources.get(row.tenant_id, id_) for id_ in ids]
            return document.secrets_of(sources, row.job_configs)

        return await self._store.read(look)
