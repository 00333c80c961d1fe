"""The rows: families, transactions, and the seal of secrets, as Protocols."""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Coroutine,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from attrs import field, frozen

from svcd.errors import ServiceUnavailable
from svcd.model.changes import Changes, Cursor
from svcd.model.cluster import Cluster, ClusterEvent
from svcd.model.execution_log import ExecutionLog, LogPart
from svcd.model.idempotency import KeyedRequest
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
    Timestamp,
)
from svcd.model.job import DataSource, Execution, Job, JobBinary, JobBinaryInternal
from svcd.model.job_credential import JobCredential
from svcd.model.secret import Secret
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.trust import LooseTrust
from svcd.model.wire import View

T = TypeVar("T")


R = TypeVar("R")


I_contra = TypeVar("I_contra", contravariant=True)


Place: TypeAlias = tuple[str, str]
"""The place of a row in its list: `created_at` and id."""


@frozen(kw_only=True)
class Page:
    """A list request. filters: column name -> text, only columns that the family declares.

    limit: None means all. marker: the list begins after this id; an unknown id raises NotFound.
    after: the list begins after this place, and the marker does not count.
    """

    limit: int | None = None
    marker: str | None = None
    after: Place | None = None
    filters: Mapping[str, str] = field(factory=dict)


@frozen(kw_only=True)
class Rendered:
    """The JSON objects of a part of a list, joined by commas.

    rows: their number. last: the place of its last row; None when the list has no more rows.
    """

    text: bytes
    rows: int
    last: Place | None


class Rows(Protocol[R, I_contra]):
    """One family of records. Everything is inside one tenant; another tenant's id is NotFound."""

    async def add(self, record: R) -> None:
        """Raises the family's NameTaken leaf."""
        ...

    async def refuse_if_full(self, tenant_id: TenantId) -> None:
        """Raises QuotaExceeded, as `add` does.

        A transaction that reads before it adds calls this first: then it does not conflict with
        others of the tenant that add rows.
        """
        ...

    async def check_new(self, record: R) -> None:
        """Raise the errors of `add`, and write nothing."""
        ...

    async def get(self, tenant_id: TenantId, id_: I_contra) -> R:
        """Raises NotFound."""
        ...

    async def page(self, tenant_id: TenantId, page: Page) -> Sequence[R]:
        """The records of a page, ordered by creation, then id."""
        ...

    async def several(self, tenant_id: TenantId, ids: Sequence[I_contra]) -> Sequence[R]:
        """Those of `ids` that exist, in any order. At most a few hundred ids."""
        ...

    async def remove(self, tenant_id: TenantId, id_: I_contra) -> None:
        """Raises NotFound, and InvalidReference or DeletionFailed when something refers to it."""
        ...


class RenderedRows(Rows[R, I_contra], Protocol[R, I_contra]):
    """A family whose wire JSON is stored beside the record, written by the same statement."""

    async def rendered(self, tenant_id: TenantId, id_: I_contra) -> bytes:
        """The JSON object (unwrapped); of a cluster a line with its usage too. Raises NotFound."""
        ...

    async def rendered_many(
        self, keys: Sequence[tuple[TenantId, str]]
    ) -> Mapping[tuple[str, str], bytes]:
        """`rendered` of each (tenant_id, id) that exists. At most a few hundred."""
        ...

    async def rendered_page(self, tenant_id: TenantId, page: Page, rows: int) -> Rendered | None:
        """The JSON objects of the first rows of a page, whatever its limit.

        At most `rows`, and a few megabytes. None when there are no rows.
        """
        ...


@frozen
class StatusFigures:
    """Numbers of rows of all tenants, by status, and the time of the oldest unsettled one."""

    counts: Mapping[str, int]
    oldest: Timestamp | None


class VersionedRows(RenderedRows[R, I_contra], Protocol[R, I_contra]):
    """A family whose records change: each write of a row changes its version."""

    async def find(self, id_: I_contra, known: R | None = None) -> R | None:
        """By id in any tenant: for provisioning and jobs only.

        known: an earlier state of the record, which is returned when its version is the present
        one.
        """
        ...

    async def save(self, record: R, before: R | None = None) -> bool:
        """Compare-and-set: writes `record` with `version` + 1 if the row still has `version`.

        before: the state of the row with this version; what is the same need not be written.
        False when another writer was faster (or the row is gone): read again.
        """
        ...

    async def drop(self, id_: I_contra) -> None:
        """Delete the row. The executions of a cluster stay, and keep its id as cluster_id."""
        ...


class ClusterRows(VersionedRows[Cluster, ClusterId], Protocol):
    async def unsettled(self) -> Mapping[ClusterId, int]:
        """Clusters with generation > settled_generation -> generation; any tenant, oldest first."""
        ...

    async def active(self) -> Sequence[ClusterId]:
        """Active, settled clusters, ordered by tenant. The database scans all rows."""
        ...

    async def idle_transient(self) -> Sequence[ClusterId]:
        """Settled transient clusters that had an execution and have no unfinished one."""
        ...

    async def endings(self) -> Mapping[ClusterId, int]:
        """Clusters with a limit of idle time or age that are not being deleted -> their version."""
        ...

    async def figures(self) -> StatusFigures:
        """All clusters. oldest: when the oldest unsettled request was accepted."""
        ...

    async def seconds_by_tenant(self) -> Mapping[str, float]:
        """Seconds of the machines of each tenant's clusters, also of those deleted, until now."""
        ...

    async def instances_of_others(self, cluster: Cluster) -> int:
        """How many instances the tenant's other clusters have, all together."""
        ...

    async def uses_image(self, tenant_id: TenantId, image_id: str) -> str | None:
        """The name of a cluster that uses the image, or None."""
        ...

    async def add_events(self, id_: ClusterId, events: Sequence[ClusterEvent]) -> None:
        """Add events. A cluster keeps the newest 2,000; for a dropped cluster nothing is added."""
        ...

    async def events(
        self, tenant_id: TenantId, id_: ClusterId, since: int = 0
    ) -> Sequence[ClusterEvent]:
        """The events with a number above `since`, oldest first. Raises NotFound.

        The numbers have no gaps: only the oldest events are deleted.
        """
        ...

    async def with_events(
        self, tenant_id: TenantId, id_: ClusterId, since: int = 0
    ) -> tuple[Cluster, Iterator[ClusterEvent]]:
        """The row, and `events` of it, which are decoded one by one. Raises NotFound."""
        ...

    async def events_at(
        self, keys: Sequence[tuple[ClusterId, int]]
    ) -> Mapping[tuple[ClusterId, int], ClusterEvent]:
        """The events by cluster and number; those that exist. At most a few hundred."""
        ...


class ExecutionRows(VersionedRows[Execution, ExecutionId], Protocol):
    async def unfinished(self, known: Sequence[Execution] = ()) -> Sequence[Execution]:
        """Executions that have not ended, may still have a job, or are not tidied up.

        Any tenant, oldest first. known: executions as read before; one that
        still has its version is returned as it is and not read again, because every change of an
        execution changes its version.
        """
        ...

    async def figures(self) -> StatusFigures:
        """Executions that have not ended. oldest: when the oldest Pending one was created."""
        ...

    async def of_cluster(self, cluster_id: ClusterId) -> Sequence[Execution]: ...
    async def use_of(self, cluster_id: ClusterId) -> tuple[bool, Timestamp | None]:
        """Whether an execution of the cluster has not ended; when the newest one was created."""
        ...

    async def ended(
        self, before: Timestamp, after: Execution | None, limit: int
    ) -> Sequence[Execution]:
        """At most `limit` ended executions that were created before `before`. Any tenant.

        Ordered by creation, then id. after: the last one of the part before; None: from the first.
        """
        ...

    async def prune(self, execution: Execution) -> bool:
        """Compare-and-set: delete the ended execution if the row still has its version.

        False: it has not; or its folder is left in a cluster that exists; or an application
        credential is left.
        """
        ...


class InternalRows(Rows[JobBinaryInternal, JobBinaryInternalId], Protocol):
    """Internal binaries; the bytes are rows of 256 KiB."""

    async def begin(self, upload_id: str, tenant_id: TenantId, size: int) -> None:
        """Begin an upload and reserve `size` bytes until `finish` or `abandon`.

        Raises QuotaExceeded.
        """
        ...

    async def append(self, upload_id: str, index: int, piece: bytes) -> None:
        """Add a piece to an upload that no record owns yet.

        Raises ServiceUnavailable when another daemon has deleted the upload because this one seemed
        to be dead.
        """
        ...

    async def finish(self, upload_id: str, record: JobBinaryInternal) -> None:
        """Add the record, which then owns the pieces.

        Raises JobBinaryInternalNameTaken (the pieces stay), and ServiceUnavailable as `append`.
        """
        ...

    async def abandon(self, upload_id: str) -> None:
        """End an upload that is not finished; `Store.drop_pieces` deletes what it has stored."""
        ...

    async def piece(self, id_: JobBinaryInternalId, index: int) -> bytes | None: ...

    async def upload_id(self, id_: JobBinaryInternalId) -> str:
        """The upload that owns the pieces of the binary; "" when there is no such binary."""
        ...


class LooseTrustRows(Protocol):
    """Trusts that no cluster's row names."""

    async def add(self, trust: LooseTrust) -> None:
        """Add a trust. Idempotent: an existing id changes nothing."""
        ...

    async def take(self, id_: str) -> bool:
        """Delete the row, in the transaction that writes the cluster's row with the trust.

        False: svcd is deleting the trust, so the cluster's row must not be written.
        """
        ...

    async def doom(self, id_: str) -> bool:
        """Refuse every later `take`. False: there is no such row, for example after `take`.

        Waits for a running `take`.
        """
        ...

    async def delay(self, trust: LooseTrust) -> None:
        """Write its due_at, tries and trouble."""
        ...

    async def forget(self, id_: str) -> None: ...
    async def first(self, limit: int) -> Sequence[LooseTrust]:
        """At most `limit` rows, ordered by `due_at`."""
        ...


class JobCredentialRows(Protocol):
    """Application credentials of jobs."""

    async def add(self, new: JobCredential) -> None:
        """Idempotent: an existing name changes nothing."""
        ...

    async def save(self, row: JobCredential) -> bool:
        """Write its `made`, times, tries and trouble. False: there is no such row any more."""
        ...

    async def forget(self, name: str) -> None: ...
    async def of_execution(self, id_: ExecutionId) -> Sequence[JobCredential]:
        """Ordered by name."""
        ...

    async def loose(self, limit: int) -> Sequence[JobCredential]:
        """At most `limit` of executions that have ended or do not exist, ordered by `due_at`.

        It leaves out, and logs, rows that cannot be read.
        """
        ...

    async def known(self, tenant_id: TenantId) -> Sequence[str]:
        """The names in one tenant, without those that svcd could not delete so far."""
        ...


class ChangeRows(Protocol):
    """The change feed. The families write it, in the transaction of the row."""

    async def here(self, now_s: float) -> Cursor:
        """The cursor of the present moment of the transaction."""
        ...

    async def since(
        self, tenant_id: TenantId, cursor: Cursor, here: Cursor, limit: int
    ) -> Changes | None:
        """At most `limit` changes of the tenant after `cursor`: the newest of each record.

        here: of the same transaction. None: the cursor is not one of this database.
        """
        ...


class KeptAnswerRows(Protocol):
    """Answers to requests with an Idempotency-Key, each sealed."""

    async def find(self, keyed: KeyedRequest) -> bytes | None:
        """The JSON of the first answer; None when there is none in force.

        Raises IdempotencyKeyReused when the answer was for another request.
        """
        ...

    async def admit(self, keyed: KeyedRequest) -> bytes | None:
        """As `find`, before the transaction of the request: checks also that it may keep an answer.

        Requests at the same moment may exceed the limit by their number. Raises
        IdempotencyKeyReused, and QuotaExceeded when there is no answer and no room for one.
        """
        ...

    async def add(self, keyed: KeyedRequest, answer: bytes) -> None:
        """Keep the JSON of an answer, in the transaction that adds what the request makes.

        Raises IdempotencyKeyReused when an answer in force is there (`find` says for what request).
        """
        ...

    async def prune(self, before: Timestamp, limit: int) -> int:
        """Delete at most `limit` answers, the oldest first, that are not younger than `before`.

        Returns their number.
        """
        ...


class ExecutionLogRows(Protocol):
    """The kept logs of executions. They go with their executions."""

    async def find(self, id_: ExecutionId) -> ExecutionLog | None:
        """The state of a log; None before the first append."""
        ...

    async def read(self, id_: ExecutionId, offset: int) -> LogPart | None:
        """The kept text from `offset` on, a line for each gap; None before the first append."""
        ...

    async def append(self, log: ExecutionLog, text: bytes, at: Timestamp) -> bool:
        """Compare-and-set on `log.version`: append `text` at `log.end`, and write the state.

        False: another writer was faster, or the execution is gone. Of a long text the first
        `HEAD_BYTES` and the last `TAIL_BYTES` stay. The oldest texts of the tenant go beyond
        `limits.log_bytes`.
        """
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
    @property
    def job_credentials(self) -> JobCredentialRows: ...
    @property
    def execution_logs(self) -> ExecutionLogRows: ...
    @property
    def changes(self) -> ChangeRows: ...
    @property
    def kept_answers(self) -> KeptAnswerRows: ...
    async def notify(self, text: str) -> None:
        """Notify the other daemons of the database with `text` after the commit (best effort)."""
        ...


class Store(Protocol):
    """All rows. Raises ServiceUnavailable when no connection can serve."""

    async def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in one transaction, all or nothing; it may run again after a conflict."""
        ...

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work`, which only reads. It is cheaper than `tx`."""
        ...

    async def drop_pieces(self, upload_id: str) -> None:
        """Delete the pieces of an upload that was abandoned, or whose binary was removed.

        Pieces that still have an owner stay.
        """
        ...

    async def rendered(self, family: str, tenant_id: TenantId, id_: str) -> bytes:
        """`rendered` of the family that `Tx` names `family`; it serves many callers in one query.

        The result contains every change committed before the call, by any daemon. Raises NotFound.
        """
        ...

    def on_change(self, tenant_id: TenantId, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` after each commit that has changed a record or an event of the tenant.

        This holds for the commits of all daemons. The message of another daemon takes some ten
        milliseconds, and it may be lost, so look again from time to time. The returned function
        ends the calls.
        """
        ...

    async def ready(self) -> str:
        """ "" when the store answers, else the reason why it does not."""
        ...

    async def close(self) -> None: ...


Also: TypeAlias = Callable[[Tx, R], Awaitable[None]]
"""Further writes in the transaction that adds a record; an error of it refuses the record."""


async def added(
    store: Store,
    rows: Callable[[Tx], Rows[R, Any]],
    record: R,
    answer: Callable[[R], View],
    key: KeyedRequest | None,
    check: Callable[[Tx], Awaitable[None]] | None = None,
    dry: bool = False,
) -> R:
    """Add `record` to a family, and keep its `answer` under the key in the same transaction.

    Raises NameTaken, QuotaExceeded and the errors of `check`, which comes first. dry: raise the
    same errors, and write nothing.
    """

    async def work(tx: Tx) -> None:
        if check is not None:
            await check(tx)
        if dry:
            await rows(tx).check_new(record)
            return
        await rows(tx).add(record)
        if key is not None:
            await tx.kept_answers.add(key, answer(record).encoded())

    await (store.read(work) if dry else store.tx(work))
    return record


_MOST_LOST_RACES: Final = 20
"""Most attempts of `until_saved`."""


async def until_saved(name: str, attempt: Callable[[], Coroutine[Any, Any, tuple[bool, T]]]) -> T:
    """The result of the first `attempt` that saved its row.

    attempt: reads a row, decides, and writes it by compare-and-set; returns (whether it was saved,
    its result). name: the row's name for people. Raises ServiceUnavailable after many lost races.
    """
    for _ in range(_MOST_LOST_RACES):
        won, result = await attempt()
        if won:
            return result
    raise ServiceUnavailable(f"other requests are changing {name}; try again")


@frozen(kw_only=True)
class DatabaseFigures:
    """The connections of a database now, and their counts since the start.

    Now: busy, idle: connections; most: limit of connections; waiting: transactions that wait for a
    connection; reachable: whether transactions can begin. Since the start: opened, lost:
    connections; refused: transactions that got no connection; repeated: transactions run again
    after a conflict; waits: number of waits for a connection; waited_s: their total time.
    """

    busy: int
    idle: int
    most: int
    waiting: int
    reachable: bool
    opened: int
    lost: int
    refused: int
    repeated: int
    waits: int
    waited_s: float


class Sealer(Protocol):
    """Encrypts secrets for storage, and decrypts them."""

    def seal(self, secret: Secret) -> str: ...
    def open(self, sealed: str) -> Secret: ...
    def digest(self, data: bytes) -> str:
        """The HMAC of `data` in hex. Without the key it reveals nothing, also of short data."""
        ...
