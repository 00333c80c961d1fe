"""The rows: families, transactions, and the seal of secrets, as Protocols."""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from typing import Any, Final, Protocol, TypeVar

from attrs import field, frozen

from svcd.errors import ServiceUnavailable
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.ids import (
    ClusterId,
    ClusterTemplateId,
    DataSourceId,
    ExecutionId,
    JobBinaryId,
    JobBinaryInternalId,
    JobId,
    NodeGroupTemplateId,
    TenantId,
)
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobBinaryInternal
from svcd.model.secret import Secret
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.trust import LooseTrust

T = TypeVar("T")


R = TypeVar("R")


I_contra = TypeVar("I_contra", contravariant=True)


@frozen(kw_only=True)
class Page:
    """A list request. filters: column name -> text, only names the family declares.

    limit None means all. marker: the id after which to begin (exclusive); unknown -> NotFound.
    """

    limit: int | None = None
    marker: str | None = None
    filters: Mapping[str, str] = field(factory=dict)


class Rows(Protocol[R, I_contra]):
    """One family of records. Everything is inside one tenant; another tenant's id is NotFound."""

    async def add(self, record: R) -> None:
        """Raises the family's NameTaken leaf."""
        ...

    async def get(self, tenant_id: TenantId, id_: I_contra) -> R:
        """Raises NotFound."""
        ...

    async def page(self, tenant_id: TenantId, page: Page) -> Sequence[R]:
        """Ordered by creation, then id."""
        ...

    async def remove(self, tenant_id: TenantId, id_: I_contra) -> None:
        """Raises NotFound, and InvalidReference or DeletionFailed when something refers to it."""
        ...


class RenderedRows(Rows[R, I_contra], Protocol[R, I_contra]):
    """A family whose wire JSON is stored beside the record, written by the same statement."""

    async def rendered(self, tenant_id: TenantId, id_: I_contra) -> bytes:
        """The JSON object (unwrapped). Raises NotFound."""
        ...

    async def rendered_page(self, tenant_id: TenantId, page: Page) -> Sequence[bytes]:
        """In pieces; joined by commas they are what a JSON array of the page's objects holds."""
        ...


class ClusterRows(RenderedRows[Cluster, ClusterId], Protocol):
    async def find(self, id_: ClusterId) -> Cluster | None:
        """By id in any tenant: for provisioning only."""
        ...

    async def save(self, cluster: Cluster) -> bool:
        """Compare-and-set: writes `cluster` with `version` + 1 if the row still has `version`.

        False when another writer was faster (or the row is gone): read again.
        """
        ...

    async def drop(self, id_: ClusterId) -> None:
        """Delete the row and its events; executions stay, and keep its id as cluster_id."""
        ...

    async def unsettled(self) -> Mapping[ClusterId, int]:
        """Those with generation > settled_generation -> generation; any tenant, oldest first."""
        ...

    async def active(self) -> Sequence[ClusterId]:
        """Those that are Active and settled, tenant by tenant. The database looks at all rows."""
        ...

    async def idle_transient(self) -> Sequence[ClusterId]:
        """Transient clusters at rest that had an execution and have none unfinished."""
        ...

    async def uses_image(self, tenant_id: TenantId, image_id: str) -> str | None:
        """Name of a cluster that uses the image, or None."""
        ...

    async def add_events(self, id_: ClusterId, events: Sequence[ClusterEvent]) -> None:
        """At most 2,000 newest are kept per cluster, none of one that has gone."""
        ...

    async def events(self, tenant_id: TenantId, id_: ClusterId) -> Sequence[ClusterEvent]:
        """Oldest first. Raises NotFound."""
        ...


class ExecutionRows(RenderedRows[Execution, ExecutionId], Protocol):
    async def find(self, id_: ExecutionId) -> Execution | None: ...
    async def save(self, execution: Execution) -> bool:
        """Compare-and-set on version, as ClusterRows.save."""
        ...

    async def drop(self, id_: ExecutionId) -> None: ...
    async def unfinished(self, mine: Callable[[str], bool] | None = None) -> Sequence[Execution]:
        """Without end_time, in doubt, or to be deleted; any tenant, oldest first.

        mine: asked with each one's `lease_key`; only those it wants are decoded. None: all.
        """
        ...

    async def untidy(self) -> Sequence[ExecutionId]:
        """Ended, with a folder in the HDFS of a cluster. The database looks at all that ended."""
        ...

    async def of_cluster(self, cluster_id: ClusterId) -> Sequence[Execution]: ...


class InternalRows(Rows[JobBinaryInternal, JobBinaryInternalId], Protocol):
    """Internal binaries; the bytes are rows of 256 KiB."""

    async def begin(self, upload_id: str) -> None: ...
    async def append(self, upload_id: str, index: int, piece: bytes) -> None:
        """Pieces of an upload that no record owns yet.

        Raises ServiceUnavailable when it was thrown away, because its holder seemed to be dead.
        """
        ...

    async def finish(self, upload_id: str, record: JobBinaryInternal) -> None:
        """The record takes over the pieces.

        Raises JobBinaryInternalNameTaken (pieces stay), ServiceUnavailable as `append`.
        """
        ...

    async def abandon(self, upload_id: str) -> None: ...
    async def piece(self, id_: JobBinaryInternalId, index: int) -> bytes | None: ...


class LooseTrustRows(Protocol):
    """Trusts that no cluster's row names."""

    async def add(self, trust: LooseTrust) -> None:
        """Again with the same id: nothing happens."""
        ...

    async def take(self, id_: str) -> bool:
        """In the transaction that writes the row which names the trust: it is loose no more.

        False: it is being given back, and the row must not be written.
        """
        ...

    async def doom(self, id_: str) -> bool:
        """From now on no row can take it. False: it is not there, as after `take`.

        Waits for a `take` that is under way.
        """
        ...

    async def delay(self, trust: LooseTrust) -> None:
        """Write its due_at, tries and trouble."""
        ...

    async def forget(self, id_: str) -> None: ...
    async def first(self, limit: int) -> Sequence[LooseTrust]:
        """So many, those due first at the head."""
        ...


class Tx(Protocol):
    """One transaction. Only methods of its families may be awaited inside."""

    @property
    def node_group_templates(
        self,
    ) -> RenderedRows[NodeGroupTemplate, NodeGroupTemplateId]: ...
    @property
    def cluster_templates(self) -> RenderedRows[ClusterTemplate, ClusterTemplateId]: ...
    @property
    def clusters(self) -> ClusterRows: ...
    @property
    def data_sources(self) -> Rows[DataSource, DataSourceId]: ...
    @property
    def internals(self) -> InternalRows: ...
    @property
    def job_binaries(self) -> Rows[JobBinary, JobBinaryId]: ...
    @property
    def jobs(self) -> Rows[Job, JobId]: ...
    @property
    def executions(self) -> ExecutionRows: ...
    @property
    def loose_trusts(self) -> LooseTrustRows: ...
    async def tell(self, text: str) -> None:
        """When this is committed, the other daemons of the database hear `text`, most likely."""
        ...


class Store(Protocol):
    """All rows. Raises ServiceUnavailable when no connection can serve."""

    async def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in one transaction: all or nothing; it may be run again after a conflict."""
        ...

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """The same for reading only: cheaper, and nothing is written."""
        ...

    async def rendered(self, family: str, tenant_id: TenantId, id_: str) -> bytes:
        """`rendered` of the `RenderedRows` that `Tx` names `family`, cheaper when many ask at once.

        Raises NotFound. What was committed before the call shows, whoever wrote it.
        """
        ...

    async def ready(self) -> str:
        """ "" when the store answers, else why not."""
        ...

    async def close(self) -> None: ...


_MOST_LOST_RACES: Final = 20


async def until_saved(name: str, attempt: Callable[[], Coroutine[Any, Any, tuple[bool, T]]]) -> T:
    """The result of the first `attempt` that loses no race: (whether it lost none, its result).

    attempt: reads a row, decides, and writes it by compare-and-set. name: of the row, for people.
    Raises ServiceUnavailable after many lost races.
    """
    for _ in range(_MOST_LOST_RACES):
        won, result = await attempt()
        if won:
            return result
    raise ServiceUnavailable(f"{name} is being changed by others; try again")


class Sealer(Protocol):
    """Seals secrets for rest."""

    def seal(self, secret: Secret) -> str: ...
    def open(self, sealed: str) -> Secret: ...
