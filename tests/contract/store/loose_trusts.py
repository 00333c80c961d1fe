"""What rows of loose trusts must do on every driver: a mixin beside families."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import evolve

from svcd.model.ids import ClusterId
from svcd.model.trust import LooseTrust
from svcd.ports.store import Tx
from tests.contract.store.rows import TENANT, at, cluster

T = TypeVar("T")


def loose(number: int, **changes: Any) -> LooseTrust:
    made = LooseTrust(
        id=f"lt-{number}",
        cluster_id=ClusterId(f"c-{number}"),
        tenant_id=TENANT,
        trustor_id="u1",
        expires_at="2134-05-06T07:08:09.000000Z",
        asked_at=at(number),
        due_at=at(100 + number),
    )
    return evolve(made, **changes)


class LooseTrustsContract:
    """Needs `tx` and the assertions of a test case."""

    def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        raise NotImplementedError

    def first(self) -> list[LooseTrust]:
        return list(self.tx(lambda tx: tx.loose_trusts.first(10)))

    def put_loose(self, trust: LooseTrust) -> None:
        self.tx(lambda tx: tx.loose_trusts.add(trust))

    def test_loose_trusts_are_read_as_written(self: Any) -> None:
        """Those due first at the head, as many as asked for."""
        second = loose(2, doomed=True, trust_id="t", tries=3, trouble='it\'s "away"')
        for each in (second, loose(1)):
            self.put_loose(each)
        self.assertEqual(self.first(), [loose(1), second])
        self.assertEqual(list(self.tx(lambda tx: tx.loose_trusts.first(1))), [loose(1)])

    def test_loose_trust_that_is_there_already(self: Any) -> None:
        """The first one stays."""
        self.put_loose(loose(1))
        self.put_loose(loose(1, expires_at="another"))
        self.assertEqual(self.first(), [loose(1)])

    def test_taken_trust_is_loose_no_more(self: Any) -> None:
        """Once; and it cannot be doomed then."""
        self.put_loose(loose(1))
        self.assertEqual(self.tx(lambda tx: tx.loose_trusts.take("lt-1")), True)
        self.assertEqual(self.first(), [])
        self.assertEqual(self.tx(lambda tx: tx.loose_trusts.take("lt-1")), False)
        self.assertEqual(self.tx(lambda tx: tx.loose_trusts.doom("lt-1")), False)

    def test_doomed_trust_cannot_be_taken(self: Any) -> None:
        """However often it is doomed."""
        self.put_loose(loose(1))
        for _ in range(2):
            self.assertEqual(self.tx(lambda tx: tx.loose_trusts.doom("lt-1")), True)
        self.assertEqual(self.tx(lambda tx: tx.loose_trusts.take("lt-1")), False)
        self.assertEqual(self.first(), [loose(1, doomed=True)])

    def test_trust_that_was_taken_for_a_row_not_written_is_loose_again(self: Any) -> None:
        """Both go together."""
        self.put_loose(loose(1))

        async def work(tx: Tx) -> None:
            await tx.clusters.add(cluster(1))
            await tx.loose_trusts.take("lt-1")
            raise KeyError("the transaction fails")

        with self.assertRaises(KeyError):
            self.tx(work)
        self.assertEqual(self.first(), [loose(1)])

    def test_loose_trust_is_put_off_and_forgotten(self: Any) -> None:
        """Its time, tries and trouble are written, nothing else."""
        self.put_loose(loose(1))
        later = loose(1, due_at=at(500), tries=2, trouble="away", expires_at="not written")
        self.tx(lambda tx: tx.loose_trusts.delay(later))
        self.assertEqual(self.first(), [loose(1, due_at=at(500), tries=2, trouble="away")])
        for _ in range(2):
            self.tx(lambda tx: tx.loose_trusts.forget("lt-1"))
        self.assertEqual(self.first(), [])
