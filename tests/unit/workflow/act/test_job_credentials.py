"""Application credentials of jobs: handed over, deleted at every end, found after every crash."""

from __future__ import annotations

from typing import Any

from svcd.model.ids import ExecutionId
from svcd.model.job import ExecutionStatus as S
from svcd.model.job_credential import JobCredential
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault
from svcd.workflow.act.controller import Controller
from tests.unit.workflow.support import CALLER, CLUSTER, TENANT, RunningCase

HOUR = 3600.0


def fault(kind: Fault) -> CloudError:
    return CloudError("identity", kind, "said the identity service")


class _Case(RunningCase):
    def rows(self) -> list[JobCredential]:
        """Those of all executions."""

        async def read(tx: Any) -> list[JobCredential]:
            found = list(await tx.job_credentials.loose(100))
            for row in await tx.executions.unfinished():
                found += await tx.job_credentials.of_execution(row.id)
            return found

        return self.tx(read)

    def definition(self, id_: ExecutionId) -> str:
        return self.scripted.files.read(f"/user/hadoop/svcd/{id_}/workflow.xml").decode()

    def assertNothingLeft(self) -> None:
        self.assertEqual((self.rows(), self.credentials.living), ([], {}))

    def assertNothingLeftInAnHour(self) -> None:
        """No application credential lives; its name is searched once more."""
        self.assertEqual((len(self.rows()), self.credentials.living), (1, {}))
        self.clock.advance(3700.0)
        self.assertNothingLeft()

    def assertEnded(self, id_: ExecutionId, status: S) -> None:
        self.assertEqual(self.execution(id_).status, status)

    def events(self) -> list[str]:
        found = self.tx(lambda tx: tx.clusters.events(TENANT, CLUSTER))
        return [event.text for event in found if event.code == "JOB_CREDENTIAL"]


class HandedOverTests(_Case):
    def test_the_job_gets_an_application_credential_and_no_password(self) -> None:
        """With its end; its name says whose it is."""
        row = self.execute()
        self.clock.advance(0.1)
        text = self.definition(row.id)
        for name, value in (
            ("credential.id", "ac-1"),
            ("credential.secret", "ac-secret-1"),
            ("credential.expires", "2026-01-08T00:00:00Z"),
            ("container.box.credential.id", "ac-1"),
        ):
            self.assertIn(f"<name>fs.objstore.{name}</name><value>{value}</value>", text)
        self.assertNotIn("password", text)
        self.assertNotIn("ann", text)
        self.assertEqual(list(self.credentials.living), [f"svcd:c1::{row.id}:1"])

    def test_a_refused_account_gives_the_reason_to_the_job(self) -> None:
        """Which may not need it."""
        self.credentials.errors = [fault(Fault.UNAUTHORIZED)]
        row = self.execute()
        self.clock.advance(0.1)
        text = self.definition(row.id)
        reason = "identity: said the identity service"
        self.assertIn(f"<name>fs.objstore.refused</name><value>{reason}</value>", text)
        self.assertNotIn("credential", text)
        self.clock.advance(20.0)
        self.assertEnded(row.id, S.SUCCEEDED)
        self.assertNothingLeft()

    def test_a_passing_fault_is_shown_and_tried_again(self) -> None:
        """As a wait of the execution."""
        self.credentials.errors = [fault(Fault.SERVER_ERROR)]
        row = self.execute()
        self.clock.advance(0.1)
        waiting = self.execution(row.id).waiting
        assert waiting is not None
        self.assertEqual((waiting.code, waiting.step), ("JOB_CREDENTIAL", "credential"))
        self.clock.advance(30.0)
        self.assertEnded(row.id, S.SUCCEEDED)
        self.assertNothingLeftInAnHour()


class PasswordTests(_Case):
    def make_controller(self) -> Controller:
        self.credentials: Any = None
        return super().make_controller()

    def test_a_job_gets_the_password_where_the_operator_wants_it(self) -> None:
        """`cloud.job_credentials` is password."""
        row = self.execute()
        self.clock.advance(0.1)
        self.assertIn(
            "<name>fs.objstore.password</name><value>secret</value>", self.definition(row.id)
        )
        self.assertEqual(self.rows(), [])


class EndTests(_Case):
    def test_after_a_cancel_while_it_is_created(self) -> None:
        """The start then finds that nobody wants it."""
        self.credentials.lag_s = 4.0
        row = self.execute()
        self.clock.advance(1.0)
        self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEnded(row.id, S.KILLED)
        self.assertEqual(len(self.credentials.living), 1)
        self.clock.advance(5.0)
        self.assertNothingLeft()
        self.assertEqual(self.scripted.submissions, 0)


class SweepTests(_Case):
    def test_a_lost_answer_costs_a_second_one(self) -> None:
        """Of the same name, which takes the place of the first."""
        self.credentials.lose = True
        row = self.execute()
        self.clock.advance(30.0)
        self.assertEnded(row.id, S.SUCCEEDED)
        self.assertEqual(self.credentials.made, 2)
        self.assertNothingLeftInAnHour()

    def test_a_daemon_that_dies_before_the_answer_of_a_cancelled_job(self) -> None:
        """The sweep finds it by its name."""
        self.credentials.lag_s = 3.0
        row = self.execute()
        self.clock.advance(1.0)
        self.run_to_end(self.controller.stop())
        self.run_to_end(self.jobs.delete_execution(CALLER, row.id))
        self.controller = self.make_controller()
        self.controller.start()
        self.assertEqual(len(self.credentials.living), 1)
        self.clock.advance(61.0)
        self.assertNothingLeft()

    def test_one_that_appears_late_is_found_an_hour_later(self) -> None:
        """The service was stopped for a while, and then did what it had been asked for."""
        self.credentials.errors = [fault(Fault.TIMEOUT)]
        row = self.execute()
        self.clock.advance(0.1)
        self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.clock.advance(120.0)
        (left,) = self.rows()
        self.run_to_end(
            self.credentials.create_application_credential(TENANT, left.account, left.name, 0.0)
        )
        self.clock.advance(HOUR)
        self.assertNothingLeft()

    def test_a_deletion_that_is_refused_is_an_event_once_and_tried_until_its_end(self) -> None:
        """With a changed password, and where the policy of the cloud forbids it."""
        row = self.execute()
        self.clock.advance(1.0)
        self.credentials.errors = [fault(Fault.UNAUTHORIZED)] * 1000
        self.clock.advance(24 * HOUR)
        (text,) = self.events()
        begin = f"the application credential of job execution {row.id} could not be"
        self.assertTrue(text.startswith(begin), text)
        self.assertIn("it ends at 2026-01-08T00:00:00", text)
        self.assertNotIn("policy", text)
        self.assertEqual(self.tx(lambda tx: tx.job_credentials.known(TENANT)), [])
        self.assertEqual(len(self.rows()), 1)
        self.clock.advance(6.1 * 24 * HOUR)
        self.assertEqual(self.rows(), [])
        self.assertLess(1000 - len(self.credentials.errors), 50)
        self.credentials.errors = []
        self.execute()
        self.clock.advance(1.0)
        self.credentials.errors = [fault(Fault.FORBIDDEN)] * 10
        self.clock.advance(400.0)
        self.assertIn("must allow identity:delete_application_credential", self.events()[1])
