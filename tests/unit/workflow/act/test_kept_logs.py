"""The kept log when reads overlap, writes are lost, and machines do not answer."""

from __future__ import annotations

import json

from attrs import evolve
from twisted.internet.defer import Deferred

from svcd.embedded.faults import Effect, FaultRule
from svcd.model.execution_log import LogPart
from svcd.model.job import Execution, ExecutionStatus
from svcd.workflow.decide.log_growth import ANEW
from tests.unit.workflow.support import WorkflowCase

CONTAINER = "container_1767225600000_0001_01_000001"
NODE = "http://c1-master-001:8042/node/containerlogs"
RUNS = f"This log file belongs to a running container ({CONTAINER}) and so may not be complete.\n"
HANG = {"svcd.fake.outcome": "hang"}


class KeptLogCase(WorkflowCase):
    def setUp(self) -> None:
        super().setUp()
        self.probe.answer(r".", 404, b"")
        self.app({"amContainerLogs": f"{NODE}/{CONTAINER}/root"})
        self.controller.start()

    def app(self, tree: dict[str, str]) -> None:
        self.probe.answer(r"/cluster/apps/application_", 200, json.dumps({"app": tree}).encode())

    def prints(self, text: str, ended: bool = True) -> None:
        """The output of the launcher now, as a node manager of Hadoop 3.5 frames it."""
        end = "\n" if ended else RUNS
        page = (
            f"Container: {CONTAINER} on c1-master-001:8041\nLogAggregationType: LOCAL\n"
            f"{'=' * 70}\nLogType:stdout\nLogLength:{len(text)}\nLogContents:\n"
            f"{text}End of LogType:stdout.{end}{'*' * 71}\n\n"
        )
        self.probe.answer(f"{CONTAINER}/stdout", 200, page.encode())

    def running(self, configs: dict[str, str]) -> Execution:
        """An execution that the engine runs; svcd has its record."""
        id_ = self.execute(configs=configs).id
        self.clock.advance(4)
        row = self.execution(id_)
        self.assertEqual(row.status, ExecutionStatus.RUNNING)
        return row

    def ended(self) -> Execution:
        """One that has just succeeded; its log was not read yet."""
        row = self.running({})
        waited = 0.0
        while self.execution(row.id).status is ExecutionStatus.RUNNING and waited < 30:
            self.clock.advance(0.25)
            waited += 0.25
        row = self.execution(row.id)
        self.assertEqual(row.status, ExecutionStatus.SUCCEEDED)
        return row

    def part(self, row: Execution) -> LogPart:
        found: LogPart = self.run_to_end(self.controller.kept_logs.part(row, 0))
        return found

    def programs(self, row: Execution) -> str:
        """The kept text without the engine's lines."""
        text = self.run_to_end(self.store.read(lambda tx: tx.execution_logs.read(row.id, 0)))
        parts = text.text.decode().split("==> ")
        return "".join(f"==> {each}" for each in parts if each and not each.startswith("engine"))


class OverlapTests(KeptLogCase):
    def test_the_slower_of_two_reads(self) -> None:
        """Its older text is not appended again below the newer one."""
        row = self.running(HANG)
        self.prints("one\n", ended=False)
        slow = self.faults.add(
            FaultRule(where="engine", path="show=log", effect=Effect.DELAY, delay_s=5.0, times=1)
        )
        first = Deferred.fromCoroutine(self.controller.kept_logs.part(row, 0))
        self.clock.advance(2.5)
        self.assertEqual(slow.hits(), 1)
        self.prints("one\ntwo\n", ended=False)
        second = self.part(row)
        self.assertIn(b"one\ntwo\n", second.text)
        self.clock.advance(5)
        third: LogPart = self.successResultOf(first)
        self.assertNotIn(ANEW.encode(), third.text)
        self.assertEqual((third.text.count(b"one"), third.text.count(b"two")), (1, 1))


class SilenceTests(KeptLogCase):
    def test_a_machine_that_does_not_answer(self) -> None:
        """It is asked again, and the log is complete when it has answered."""
        row = self.ended()
        self.prints("the end\n")
        rule = self.faults.add(
            FaultRule(where="probe", path="containerlogs", effect=Effect.REFUSED)
        )
        self.assertFalse(self.run_to_end(self.controller.kept_logs.complete(row)))
        self.assertFalse(self.part(row).complete)
        rule.remove()
        self.clock.advance(45)
        self.assertTrue(self.part(row).complete)
        self.assertIn("the end\n", self.programs(row))
        self.assertNotIn("[svcd:", self.programs(row))


class EarlyEndTests(KeptLogCase):
    def test_a_container_that_still_runs(self) -> None:
        """Its files are read again, until it has ended or has had its time."""
        self.prints("one\n", ended=False)
        row = self.ended()
        self.assertFalse(self.part(row).complete)
        self.prints("one\ntwo\n")
        self.assertFalse(self.part(row).complete)
        self.clock.advance(0.5)
        found = self.part(row)
        self.assertTrue(found.complete)
        self.assertIn(b"stdout <==\ntwo\n", found.text)

    def test_a_job_that_the_history_does_not_know_yet(self) -> None:
        """Its tasks may have printed more."""
        self.prints("one\n")
        row = self.ended()
        record = dict(row.record or {})
        record["actions"] = [
            {**each, "externalChildIDs": "job_1767225600000_0009"} for each in record["actions"]
        ]
        self.run_to_end(self.controller.rows.change(row.id, lambda now: evolve(now, record=record)))
        row = self.execution(row.id)
        self.assertFalse(self.part(row).complete)
        tasks = {"tasks": {"task": [{"id": "t1"}]}}
        attempt = {"nodeHttpAddress": "c1-master-001:8042", "assignedContainerId": CONTAINER}
        attempts = {"taskAttempts": {"taskAttempt": [{**attempt, "id": "attempt_1"}]}}
        self.probe.answer("_0009/tasks$", 200, json.dumps(tasks).encode())
        self.probe.answer("/t1/attempts$", 200, json.dumps(attempts).encode())
        self.clock.advance(0.5)
        found = self.part(row)
        self.assertTrue(found.complete)
        self.assertIn(b" attempt_1 stdout <==\none\n", found.text)
