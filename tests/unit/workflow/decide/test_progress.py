"""How far an execution has come, and the exit code of its program."""

from __future__ import annotations

import math

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.engine_record import parsed
from svcd.workflow.act.yarn import applications_of
from svcd.workflow.decide.evidence import LAUNCHER, Evidence, LogFile
from svcd.workflow.decide.progress import progress, return_code, with_children
from svcd.workflow.decide.stalls import Application, tag_of
from tests.unit.workflow.recorded import record


def application(name: str, share: float) -> Application:
    return Application(id="application_1_1", name=name, state="RUNNING", age_s=1.0, progress=share)


class ProgressTests(SynchronousTestCase):
    def test_of_the_applications_that_do_the_work(self) -> None:
        """Their mean; a launcher alone says nothing."""
        launcher = application("oozie:launcher:T=pig:W=svcd:A=job-node:ID=1", 0.5)
        work = [application("PigLatin:count.pig", 0.3), application("PigLatin:count.pig", 0.0)]
        self.assertEqual(progress([launcher, *work], None), 0.15)
        self.assertEqual(progress(work[1:], 0.9), 0.0)
        self.assertEqual(progress([launcher], 0.9), 0.9)
        self.assertEqual(progress([launcher], None), 0.0)
        self.assertIsNone(progress([], None))

    def test_the_resource_managers_per_cent(self) -> None:
        """Whatever it answers, it becomes a number from 0.0 to 1.0."""
        for percent, share in (
            (5.0, 0.05),
            (100, 1.0),
            (130.0, 1.0),
            (-1, 0.0),
            ("NaN", 0.0),
            (math.nan, 0.0),
            (10**400, 1.0),
        ):
            row = {"id": "application_1_1", "state": "RUNNING", "progress": percent}
            [one] = applications_of({"apps": {"app": [row]}}) or ()
            self.assertEqual(one.progress, share)


class ChildrenTests(SynchronousTestCase):
    """The resource manager is a machine of the tenant, and may answer anything."""

    def setUp(self) -> None:
        action = {"id": "w@n", "name": "n", "type": "java", "externalId": "application_1_1"}
        self.record = parsed({"status": "RUNNING", "actions": [action]})

    def spark(self, id_: str, state: str = "RUNNING") -> Application:
        tags = frozenset([tag_of("w@n")])
        return Application(id=id_, name="p", state=state, age_s=1.0, tags=tags, kind="SPARK")

    def test_what_is_no_id_of_an_application_is_not_one(self) -> None:
        """An id is a part of a path of HDFS that svcd removes, and of a list with commas."""
        for id_ in ("", "../..", "application_1_2,application_1_3", "application_1_" + "1" * 99):
            self.assertIs(with_children(self.record, [self.spark(id_)]), self.record, id_)

    def test_other_applications_in_each_answer_add_up_to_a_bound(self) -> None:
        """The newest ones stay. A word for a state is short."""
        seen = self.record
        for number in range(2, 300):
            seen = with_children(seen, [self.spark(f"application_1_{number}", "A" * 9999)])
        self.assertEqual(len(seen.actions[0].child_ids), 100)
        self.assertEqual(seen.actions[0].child_ids[-1], "application_1_299")
        self.assertLess(len(str(seen.tree)), 4000)
        many = [self.spark(f"application_2_{number}") for number in range(300)]
        self.assertEqual(len(with_children(self.record, many).tree["actions"][0]["children"]), 100)


class ReturnCodeTests(SynchronousTestCase):
    def test_of_a_java_program(self) -> None:
        """As the real engine tells it."""
        self.assertEqual(return_code(parsed(record("job-killed-exit-3")), Evidence()), 3)

    def test_of_a_script(self) -> None:
        """Its launcher exits with 1 whatever the script does; the launcher's log has the code."""
        action = {
            "name": "job-node",
            "type": "shell",
            "status": "ERROR",
            "errorMessage": "Main class [ShellMain], exit code [1]",
        }
        failed = parsed({"status": "KILLED", "actions": [action]})
        end = "Stdoutput a\nExit code of the Shell command 3\n"
        evidence = Evidence(files=[LogFile(place=LAUNCHER, name="stdout", text=end)])
        self.assertEqual(return_code(failed, evidence), 3)
        self.assertIsNone(return_code(failed, Evidence()))

    def test_nobody_knows(self) -> None:
        for name in ("job-killed", "job-killed-exception", "job-killed-mapreduce-error"):
            self.assertIsNone(return_code(parsed(record(name)), Evidence()))
