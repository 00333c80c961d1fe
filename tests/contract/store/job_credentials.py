"""What rows of jobs' application credentials must do on every driver: a mixin beside families."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import evolve

from svcd.model.ids import ClusterId, ExecutionId, TenantId
from svcd.model.job import Credentials, ExecutionStatus
from svcd.model.job_credential import ApplicationCredential, JobCredential
from svcd.model.secret import Secret
from svcd.ports.store import Tx
from tests.contract.store.rows import TENANT, at, execution

T = TypeVar("T")
MADE = ApplicationCredential(id="ac", secret=Secret('s"ecret'))


def noted(number: int, of: int = 1, **changes: Any) -> JobCredential:
    made = JobCredential(
        name=f"svcd:{of}:{number}",
        execution_id=ExecutionId(f"e-{of}"),
        cluster_id=ClusterId("c-1"),
        tenant_id=TENANT,
        account=Credentials(user="ann", password='p"w'),
        asked_at=at(number),
        expires_at=at(1000),
        due_at=at(100 - number),
    )
    return evolve(made, **changes)


class JobCredentialsContract:
    """Needs `tx` and the assertions of a test case."""

    def tx(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        raise NotImplementedError

    def noted(self, *rows: JobCredential) -> None:
        for row in rows:
            self.tx(lambda tx, r=row: tx.job_credentials.add(r))

    def loose(self, limit: int = 10) -> list[JobCredential]:
        return list(self.tx(lambda tx: tx.job_credentials.loose(limit)))

    def test_job_credentials_are_read_as_written(self: Any) -> None:
        """Those of one execution, by their names; an existing name changes nothing."""
        first, second = noted(1, made=MADE), noted(2, tries=3, trouble='it\'s "away"')
        self.noted(second, first, noted(3, of=2), noted(1))
        found = self.tx(lambda tx: tx.job_credentials.of_execution(ExecutionId("e-1")))
        self.assertEqual(list(found), [first, second])

    def test_job_credential_is_confirmed(self: Any) -> None:
        """Only while its row exists."""
        self.noted(noted(1))
        confirmed = noted(1, made=MADE, due_at=at(7), tries=1, trouble="x")
        self.assertEqual(self.tx(lambda tx: tx.job_credentials.save(confirmed)), True)
        found = self.tx(lambda tx: tx.job_credentials.of_execution(ExecutionId("e-1")))
        self.assertEqual(list(found), [confirmed])
        self.tx(lambda tx: tx.job_credentials.forget(confirmed.name))
        self.assertEqual(self.tx(lambda tx: tx.job_credentials.save(confirmed)), False)

    def test_job_credentials_of_ended_executions_are_loose(self: Any) -> None:
        """And those whose execution does not exist; those due first at the head."""
        over = {"status": ExecutionStatus.KILLED, "end_time": at(3)}
        rows = (
            execution(1),
            execution(2, **over),
            execution(3, **over, submitting=True),
            execution(4, **over, delete_requested=True),
        )
        for row in rows:
            self.tx(lambda tx, r=row: tx.executions.add(r))
        self.noted(*(noted(number, of=number) for number in range(1, 6)))
        names = [noted(number, of=number).name for number in (5, 4, 2)]
        self.assertEqual([row.name for row in self.loose()], names)
        self.assertEqual([row.name for row in self.loose(2)], names[:2])

    def test_known_job_credentials_of_a_tenant(self: Any) -> None:
        """Without those whose deletion has failed."""
        other = TenantId("another")
        self.noted(noted(2), noted(1), noted(3, tenant_id=other), noted(4, trouble="away"))
        found = self.tx(lambda tx: tx.job_credentials.known(TENANT))
        self.assertEqual(list(found), [noted(1).name, noted(2).name])
