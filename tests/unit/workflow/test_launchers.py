"""A job whose launcher died: how that is recognized, and what becomes of what it had begun."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule
from svcd.model.engine_record import Record, parsed
from svcd.workflow.decide.launchers import Sweep, died, lost, suspect
from tests.unit.workflow.support import CALLER, YarnCase

LAUNCHER = "application_1795305754044_0001"
DIED = (
    "Application application_1795305754044_0001 failed 1 times (global limit =2; local limit is =1)"
    " due to AM Container for appattempt_1795305754044_0001_000001 exited with  exitCode: 137\n"
    "Failing this attempt."
)
DIES = {"svcd.fake.outcome": "launcher"}


def record(**changes: Any) -> Record:
    """Of a workflow whose launcher was killed, as Oozie 5.2.1 leaves it."""
    action = {
        "id": "0000000-261122000229626-oozie-root-W@job-node",
        "name": "job-node",
        "type": "pig",
        "status": "ERROR",
        "externalStatus": "FAILED/KILLED",
        "externalId": LAUNCHER,
        "errorCode": None,
        "errorMessage": None,
        **changes,
    }
    start = {"name": ":start:", "type": ":START:", "status": "OK", "externalId": "-"}
    return parsed({"status": "KILLED", "actions": [start, action]})


class SuspectTests(SynchronousTestCase):
    def test_an_action_that_failed_without_a_word_of_its_program_is_suspect(self) -> None:
        """Or with an error of the engine, of a map-reduce job whose launcher had submitted."""
        words = 'NullPointerException: Cannot invoke "...JobID.getId()" because "id" is null'
        for changes, is_suspect in (
            ({}, True),
            ({"type": "map-reduce", "errorMessage": words}, True),
            ({"status": "KILLED"}, False),  # by the engine, which has killed the children too
            ({"status": "OK"}, False),
            ({"externalId": None}, False),
        ):
            action = suspect(record(**changes))
            self.assertEqual(action is not None, is_suspect, changes)
        self.assertIsNone(suspect(parsed({"status": "KILLED", "actions": None})))

    def test_only_yarn_ends_a_launcher_as_failed_or_killed(self) -> None:
        states = ("FAILED", "KILLED", "FINISHED", "RUNNING", "")
        self.assertEqual([state for state in states if died(state)], ["FAILED", "KILLED"])


class LostTests(SynchronousTestCase):
    """The words on a launcher that died."""

    def text(self, sweep: Sweep, diagnostics: str = "") -> str:
        action = suspect(record())
        assert action is not None
        failure = lost(action, diagnostics, sweep)
        self.assertEqual((failure.code, failure.step), ("LAUNCHER_LOST", "job-node"))
        head = f"the launcher {LAUNCHER} died: "
        self.assertTrue(failure.text.startswith(head))
        return failure.text[len(head) :]

    def test_what_yarn_says_is_quoted_in_one_line(self) -> None:
        self.assertEqual(self.text(Sweep(), DIED), " ".join(DIED.split()))

    def test_what_was_killed_what_still_runs_and_what_is_not_known_is_said(self) -> None:
        sweep = Sweep(killed=("application_1_2",), left=("application_1_3",), reason="no")
        self.assertEqual(
            self.text(sweep),
            "YARN gives no reason; svcd killed its children application_1_2; "
            "still running: application_1_3 (no)",
        )
        self.assertEqual(
            self.text(Sweep(left=None, reason="silent")),
            "YARN gives no reason; whether more of it runs is not known (silent)",
        )


class LaunchersTests(YarnCase):
    """On the scripted engine and its resource manager."""

    def child_runs(self) -> bool:
        jobs, now = self.scripted.jobs.values(), self.scripted.now()
        return self.scripted.yarn.answer("apps", jobs, now) != {"apps": None}

    def test_the_child_is_killed_before_the_end_is_told(self) -> None:
        row = self.execute(configs=DIES)
        self.clock.advance(12)
        info = self.info(row.id)
        self.assertEqual(info["status"], "KILLED")
        self.assertEqual(info["failure"]["code"], "LAUNCHER_LOST")
        self.assertIn(
            "svcd killed its children application_1767225600000_00011",
            info["failure"]["text"],
        )
        self.assertFalse(self.child_runs())

    def test_a_cancel_that_comes_too_late_leaves_no_child(self) -> None:
        """The engine has ended the workflow by itself, so its kill does nothing."""
        row = self.execute(configs={**DIES, "svcd.fake.run_s": "2"})
        self.faults.add(FaultRule(where="engine", method="GET", effect=Effect.RESET_BEFORE))
        self.clock.advance(8)
        self.assertTrue(self.child_runs())
        self.faults.clear()
        self.run_to_end(self.jobs.cancel(CALLER, row.id))
        self.assertEqual(self.info(row.id)["status"], "KILLED")
        self.assertFalse(self.child_runs())

    def test_a_refused_kill_is_told(self) -> None:
        rule = FaultRule(where="yarn", method="PUT", effect=Effect.ANSWER, status=403)
        self.faults.add(rule)
        row = self.execute(configs=DIES)
        self.clock.advance(40)
        self.assertIn(
            "; still running: application_1767225600000_00011 "
            "(the resource manager refuses to kill them: HTTP 403)",
            self.info(row.id)["failure"]["text"],
        )

    def test_a_silent_resource_manager_keeps_no_job_from_its_end(self) -> None:
        self.faults.add(FaultRule(where="yarn", effect=Effect.RESET_BEFORE))
        row = self.execute(configs=DIES)
        self.clock.advance(60)
        info = self.info(row.id)
        self.assertEqual(
            (info["status"], info["failure"]["code"]), ("KILLED", "RESOURCES_UNREACHABLE")
        )
