"""What rows of kept answers must do on every driver: a mixin beside families."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve

from svcd.errors import DataSourceNameTaken, IdempotencyKeyReused, QuotaExceeded
from svcd.model.idempotency import KEEP_S, KeyedRequest
from svcd.model.ids import DataSourceId, TenantId, timestamp
from svcd.model.job import DataSource
from svcd.ports.store import Page, Tx
from svcd.settings import Limits
from svcd.store.store import SqlStore
from tests.contract.store.rows import TENANT, at

T = TypeVar("T")
START = 1_767_225_600.0
ANSWER = b'{"id":"s-1","password":"p\\"w"}'


def keyed(
    key: bytes = b"k1",
    *,
    tenant_id: str = TENANT,
    user_id: str = "u1",
    route: str = "POST /v1.1/<tenant_id>/data-sources",
    path: Mapping[str, str] | None = None,
    query: Mapping[bytes, Sequence[bytes]] | None = None,
    body: bytes = b"{}",
    after_s: float = 0.0,
) -> KeyedRequest:
    """A request with a key, `after_s` seconds after the first."""
    return KeyedRequest.of(
        [key],
        tenant_id=TenantId(tenant_id),
        user_id=user_id,
        route=route,
        path=path or {},
        query=query or {},
        body=body,
        now=START + after_s,
    )


def source(number: int = 1) -> DataSource:
    return DataSource(
        id=DataSourceId(f"s-{number}"),
        tenant_id=TENANT,
        name=f"in{number}",
        description="",
        type="hdfs",
        url="/in",
        credentials=None,
        created_at=at(number),
    )


class KeptAnswersContract:
    """Needs `tx`, `result`, `fails`, `store` and the assertions of a test case."""

    store: SqlStore

    def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        raise NotImplementedError

    def keep(self, request: KeyedRequest, answer: bytes = ANSWER) -> None:
        self.tx(lambda tx: tx.kept_answers.add(request, answer))

    def kept(self, request: KeyedRequest) -> bytes | None:
        return self.tx(lambda tx: tx.kept_answers.find(request))

    def test_kept_answer_is_read_as_written(self: Any) -> None:
        """For the same request; before there is none."""
        self.assertIsNone(self.kept(keyed()))
        self.keep(keyed())
        self.assertEqual(self.kept(keyed(after_s=5.0)), ANSWER)

    def test_kept_answer_of_another_request(self: Any) -> None:
        """Another body, query or path: neither found nor replaced."""
        self.keep(keyed())
        for other in (keyed(body=b"{ }"), keyed(query={b"a": [b"1"]}), keyed(path={"id": "1"})):
            for work in (
                lambda tx, o=other: tx.kept_answers.find(o),
                lambda tx, o=other: tx.kept_answers.add(o, b"{}"),
            ):
                text = self.fails(work, IdempotencyKeyReused)
                self.assertIn("another request with this key has succeeded", text)
        self.assertEqual(self.kept(keyed()), ANSWER)

    def test_request_that_fails_keeps_no_answer(self: Any) -> None:
        """The row and the answer are written together or not at all, in any order."""

        async def answer_first(tx: Tx) -> None:
            await tx.kept_answers.add(keyed(b"k2"), ANSWER)
            await tx.data_sources.add(evolve(source(2), name="in1"))

        async def both(tx: Tx) -> None:
            await tx.data_sources.add(source(3))
            await tx.kept_answers.add(keyed(body=b"{ }"), ANSWER)

        self.tx(lambda tx: tx.data_sources.add(source(1)))
        self.fails(answer_first, DataSourceNameTaken)
        self.assertIsNone(self.kept(keyed(b"k2")))
        self.keep(keyed())
        self.fails(both, IdempotencyKeyReused)
        names = [each.name for each in self.tx(lambda tx: tx.data_sources.page(TENANT, Page()))]
        self.assertEqual(names, ["in1"])

    def test_kept_answers_of_a_tenant_are_bounded(self: Any) -> None:
        """Answers that have expired do not count, nor do those of others."""
        limits = Limits(idempotency_keys=2)
        store = SqlStore(self.store._database, self.store._sealer, limits=limits)

        def admit(request: KeyedRequest) -> bytes | None:
            return self.result(store.read(lambda tx: tx.kept_answers.admit(request)))

        def add(request: KeyedRequest) -> None:
            self.assertIsNone(admit(request))
            self.result(store.tx(lambda tx: tx.kept_answers.add(request, ANSWER)))

        add(keyed(b"k1"))
        add(keyed(b"k2", after_s=60.0))
        with self.assertRaises(QuotaExceeded) as refused:
            admit(keyed(b"k3", after_s=61.0))
        self.assertIn("2 Idempotency-Keys within 24 hours", str(refused.exception))
        self.assertIn("limits.idempotency_keys", str(refused.exception))
        self.assertEqual(admit(keyed(b"k1", after_s=61.0)), ANSWER)
        with self.assertRaises(IdempotencyKeyReused):
            admit(keyed(b"k1", body=b"[]", after_s=61.0))
        add(keyed(b"k3", tenant_id="t2", after_s=61.0))
        add(keyed(b"k3", after_s=KEEP_S))

    def test_old_answers_are_pruned(self: Any) -> None:
        """The oldest first, no more than the limit at once."""
        for number in (3, 1, 2):
            self.keep(keyed(b"k%d" % number, after_s=float(number)))
        before = timestamp(START + 2.0)
        self.assertEqual(self.tx(lambda tx: tx.kept_answers.prune(before, 1)), 1)
        kept = [self.kept(keyed(b"k%d" % number)) for number in (1, 2, 3)]
        self.assertEqual(kept, [None, ANSWER, ANSWER])
        self.assertEqual(self.tx(lambda tx: tx.kept_answers.prune(before, 10)), 1)
        self.assertEqual(self.tx(lambda tx: tx.kept_answers.prune(before, 10)), 0)
        self.assertEqual(self.kept(keyed(b"k3")), ANSWER)
        self.assertFalse(self.result(self.store.prune_answers(timestamp(START + 99.0))))
        self.assertIsNone(self.kept(keyed(b"k3")))

    def test_database_alone_reveals_no_body_and_no_answer(self: Any) -> None:
        """Nor whether a body is a certain one, without the key of the sealer."""
        self.keep(keyed(b"a-visible-key", body=b'{"password":"p"}'))
        text = self.dump("kept_answers")
        for secret in ("p\\", "password", "a-visible-key"):
            self.assertNotIn(secret, text)
