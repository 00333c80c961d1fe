from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.scripted import ScriptedProbe
from svcd.model import engine_record
from svcd.model.engine_record import Record
from svcd.model.execution_log import FileEnds
from svcd.model.ids import ClusterId
from svcd.model.secret import Secret
from svcd.ports.engine import Identity
from svcd.runtime.clock import VirtualClock
from svcd.workflow.act.containers import Containers, Output
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import ResourceManager, manager_of
from svcd.workflow.decide.addresses import ways_to
from svcd.workflow.decide.evidence import Evidence
from svcd.workflow.decide.launchers import Family
from tests.unit.workflow.recorded import parsed, record
from tests.unit.workflow.support import WorkflowCase

LAUNCHER_ID = "application_1_0001"
FRAMED = (
    b"Container: container_1_1_01_000002 on n:8041\nLogAggregationType: LOCAL\n=====\n"
    b"LogType:stderr\nLogLength:5\nLogContents:\nboom\n\nEnd of LogType:stderr.\n****\n"
)


@frozen
class Served:
    engine: str = ""
    webhdfs: str = ""
    name_node: str = ""
    resource_manager: str = "c1-master-001:8032"
    history: str = "http://c1-master-001:19888/"
    user: str = ""
    identities: Sequence[Identity] = ()


class Urls(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.sealed_key = ""
        cluster = WorkflowCase.cluster(self, ClusterId("c1"), "c1")  # type: ignore[arg-type]
        served = Served()
        self.place = Place(cluster, served, ways_to(cluster, served, Secret("key")))

    def test_names_of_machines_become_addresses(self) -> None:
        """Names with or without a domain, and internal addresses."""
        for host in ("c1-master-001", "c1-master-001.local", "127.1.0.2", "10.0.0.2"):
            at = self.place.at(f"http://{host}:8042/a?b=c")
            assert at is not None and at.machine is not None
            self.assertEqual(at.url, "http://127.1.0.2:8042/a?b=c")
            self.assertEqual((at.machine.address, at.machine.internal), ("10.0.0.2", "127.1.0.2"))

    def test_a_url_to_elsewhere_is_not_followed(self) -> None:
        """Whoever owns the cluster may write what he likes into its services' answers."""
        for url in ("http://169.254.169.254/latest", "http://127.1.0.20:80/", "file:///etc", ""):
            self.assertIsNone(self.place.at(url), url)

    def test_the_resource_manager(self) -> None:
        """An engine that was not told the web address says localhost."""
        self.assertEqual(manager_of("http://localhost:8088/proxy/x/", "rm"), "http://rm:8088")
        self.assertEqual(manager_of("http://rm2:9/proxy/x/", "rm"), "http://rm2:9")
        self.assertEqual(manager_of("-", "rm"), "http://rm:8088")


class Reading(Urls):
    def setUp(self) -> None:
        super().setUp()
        self.probe = ScriptedProbe(self.clock)
        self.probe.answer(r".", 404, b"")
        self.containers = Containers(self.probe, self.clock)
        self.manager = ResourceManager(self.probe, self.clock)

    def answer(self, pattern: str, tree: Any) -> None:
        self.probe.answer(
            pattern, 200, tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        )

    def result(self, work: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(work))

    def evidence(self, record: Record, budget_s: float = 10.0) -> Evidence:
        """As the end of a job reads it: first YARN's list of the applications."""
        assert record.failed is not None
        family = self.result(self.manager.family(self.place, record.failed))
        return self.result(self.containers.evidence(self.place, record, family, budget_s))

    def history(self) -> None:
        job = "jobs/job_1767225600000_0036"
        tasks = [{"id": "t_m_0", "state": "SUCCEEDED"}, {"id": "t_m_1", "state": "FAILED"}]
        self.answer(f"mapreduce/{job}/tasks$", {"tasks": {"task": tasks}})
        attempt = {
            "id": "attempt_1",
            "diagnostics": "Error: java.io.IOException: asked to fail\n\tat X\n",
            "nodeHttpAddress": "c1-master-001:8042",
            "assignedContainerId": "container_1_1_01_000002",
        }
        self.answer(f"{job}/tasks/t_m_1/attempts$", {"taskAttempts": {"taskAttempt": [attempt]}})
        self.answer("containerlogs/container_1_1_01_000002/stderr", FRAMED)

    def test_a_failing_task_tells_its_diagnostics(self) -> None:
        self.history()
        real = parsed("job-killed-mapreduce-error")
        told = self.evidence(real)
        self.assertEqual(told.attempts, ["Error: java.io.IOException: asked to fail\n\tat X"])
        self.assertEqual([(f.place, f.name) for f in told.files], [("attempt_1", "stderr")])

    def test_a_task_that_could_not_run_tells_more_than_its_first_line(self) -> None:
        """The first line only says that; the exit code and the program's words come later."""
        self.history()
        lines = (
            "[2026-11-20 20:18:33.493]Exception from container-launch.",
            "Container id: container_1_1_01_000002",
            "Exit code: 1",
            "Last 4096 bytes of stderr :",
            'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        )
        attempt = {"state": "FAILED", "diagnostics": "\n".join(lines)}
        self.answer(r"tasks/t_m_1/attempts$", {"taskAttempts": {"taskAttempt": attempt}})
        real = parsed("job-killed-mapreduce-error")
        self.assertEqual(self.evidence(real).attempts, ["\n".join(lines)])

    def launcher(self) -> Record:
        """Its program died, and neither log nor history of it is to be had."""
        action = {"name": "job-node", "type": "map-reduce", "status": "ERROR"}
        action |= {"externalId": "application_1_0001", "consoleUrl": "http://127.1.0.2:8088/p/"}
        return engine_record.parsed({"status": "KILLED", "actions": [action]})

    def ended(self, diagnostics: str) -> None:
        app = {"state": "FAILED", "diagnostics": diagnostics, "amContainerLogs": ""}
        self.answer(r":8088/ws/v1/cluster/apps/application_1_0001$", {"app": app})

    def test_a_launcher_that_left_no_log_is_told_by_the_resource_manager(self) -> None:
        """As it was with a data node that was killed under the job."""
        self.ended("IO error\n")
        [told] = self.evidence(self.launcher()).applications
        self.assertEqual((told.id, told.text, told.is_launcher), (LAUNCHER_ID, "IO error", True))

    def test_a_master_that_died_without_a_history_is_read(self) -> None:
        """Its own log says why."""
        real = self.launcher()
        self.ended("the launcher")
        node = "http://c1-master-001:8042/node/containerlogs/container_1_2_01_000001/svcd"
        app = {"id": "application_1_0002", "state": "FAILED", "amContainerLogs": node}
        self.answer(r"cluster/apps\?applicationTags=\S+$", {"apps": {"app": [app]}})
        self.answer(r"cluster/apps/application_1_0002$", {"app": app})
        self.answer("containerlogs/container_1_2_01_000001/syslog", FRAMED)
        told = self.evidence(real)
        self.assertEqual([each.name for each in told.files], ["syslog"])
        self.assertEqual(len(told.of_masters("syslog")), 1)

    def test_logs_at_what_is_no_url_are_not_read(self) -> None:
        logs = "http://[::1/container_1_1_01_000001"
        app = {"finalStatus": "FAILED", "diagnostics": "IO error", "amContainerLogs": logs}
        self.answer(r":8088/ws/v1/cluster/apps/application_1_0001$", {"app": app})
        [told] = self.evidence(self.launcher()).applications
        self.assertEqual((told.id, told.text, told.is_launcher), (LAUNCHER_ID, "IO error", True))

    def test_a_resource_manager_that_does_not_answer_is_told(self) -> None:
        """Nothing else is known then."""
        faults = Faults()
        faults.add(FaultRule(where="probe", path=r":8088/", effect=Effect.REFUSED))
        self.manager = ResourceManager(ScriptedProbe(self.clock, faults), self.clock)
        url = "http://127.1.0.2:8088/ws/v1/cluster/apps/application_1_0001"
        self.assertEqual(
            self.evidence(self.launcher()).silent, f"{url}: connection refused (fault)"
        )

    def test_a_lost_answer_is_asked_for_again(self) -> None:
        faults = Faults()
        faults.add(FaultRule(where="probe", path=r":8088/", effect=Effect.REFUSED, times=1))
        self.manager = ResourceManager(ScriptedProbe(self.clock, faults), self.clock)
        self.assertEqual(self.evidence(self.launcher()).silent, "")

    def test_a_reduce_that_was_killed_with_its_job_is_no_reason(self) -> None:
        """It may stand first, and is called FAILED too (both in one container)."""
        self.history()
        tasks = [{"id": "t_r_1", "state": "FAILED"}, {"id": "t_m_1", "state": "FAILED"}]
        self.answer(r"tasks$", {"tasks": {"task": tasks}})
        killed = {"state": "KILLED", "diagnostics": "Task KILL is received. Killing attempt!"}
        self.answer(r"tasks/t_r_1/attempts$", {"taskAttempts": {"taskAttempt": killed}})
        real = parsed("job-killed-mapreduce-error")
        self.assertEqual(
            self.evidence(real).attempts, ["Error: java.io.IOException: asked to fail\n\tat X"]
        )

    def test_the_logs_of_a_failing_task(self) -> None:
        """Of the failed tasks only, without the node manager's frame."""
        self.history()
        real = parsed("job-killed-mapreduce-error")
        output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(
            [(file.title, file.id, file.ends) for file in output.files],
            [
                (
                    "job-node attempt_1 stderr",
                    "container_1_1_01_000002",
                    FileEnds(tail=b"boom\n", size=5),
                )
            ],
        )

    def test_the_logs_of_tasks_in_one_container_come_once(self) -> None:
        """A small job runs all tasks in its master's."""
        self.history()
        tasks = [{"id": f"t_{kind}_0", "state": "SUCCEEDED"} for kind in "mr"]
        self.answer(r"tasks$", {"tasks": {"task": tasks}})
        for kind in "mr":
            attempt = {
                "id": f"attempt_{kind}",
                "nodeHttpAddress": "c1-master-001:8042",
                "assignedContainerId": "container_1_1_01_000002",
            }
            self.answer(f"t_{kind}_0/attempts$", {"taskAttempts": {"taskAttempt": [attempt]}})
        real = parsed("job-killed-mapreduce-error")
        output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual([file.title for file in output.files], ["job-node attempt_m stderr"])

    def test_the_log_of_a_small_jobs_task_is_whole_when_the_task_has_ended(self) -> None:
        """The master's container runs on for seconds; that of another program may still write."""
        real = parsed("job-killed-mapreduce-error")
        runs = b"This log file belongs to a running container"
        page = FRAMED.replace(b"****", runs + b" (container_1) and so may not be complete.\n****")
        for number, state, may_grow in (
            (1, "SUCCEEDED", False),
            (1, "RUNNING", True),
            (2, "SUCCEEDED", True),
        ):
            self.history()
            self.answer(r"tasks$", {"tasks": {"task": [{"id": "t_m_0", "state": "SUCCEEDED"}]}})
            container = f"container_1_1_01_{number:06}"
            attempt = {
                "id": "attempt_m",
                "state": state,
                "nodeHttpAddress": "c1-master-001:8042",
                "assignedContainerId": container,
            }
            self.answer(r"t_m_0/attempts$", {"taskAttempts": {"taskAttempt": [attempt]}})
            self.answer(f"{container}/stderr", page)
            output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
            self.assertEqual([file.ends.tail for file in output.files], [b"boom\n"])
            self.assertEqual(output.may_grow, may_grow, (number, state))

    def test_a_log_without_the_words_of_the_launcher(self) -> None:
        """What the launcher prints before the program is no evidence."""
        logs = "http://c1-master-001:8042/node/containerlogs/container_1_1_01_000001/root"
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {"amContainerLogs": logs}})
        page = b"java.io.IOException: a\n>>> Invoking Shell command line now >>\nStdoutput hello\n"
        self.answer(r"container_1_1_01_000001/stdout", page)
        real = record("job-killed-exit-3")
        real["actions"][1]["consoleUrl"] = "http://localhost:8088/proxy/x/"
        told = self.evidence(engine_record.parsed(real))
        self.assertEqual(told.of_launcher("stdout"), "Stdoutput hello\n")

    def test_children_of_a_launcher(self) -> None:
        """Found by the engine's tag; the words of YARN about each, and of their failed tasks."""
        action = {"id": "w@n", "name": "n", "type": "java", "status": "ERROR"}
        action |= {"externalId": "application_1_0001", "consoleUrl": "http://127.1.0.2:8088/p/"}
        real = engine_record.parsed({"status": "KILLED", "actions": [action]})
        self.ended("exit code [1]")
        child = {"id": "application_1_0002", "state": "KILLED", "diagnostics": "killed by user"}
        self.answer(r"apps\?applicationTags=oozie-", {"apps": {"app": [child]}})
        self.answer(r"jobs/job_1_0002/tasks$", {"tasks": {"task": {"id": "t", "state": "FAILED"}}})
        attempt = {"id": "attempt_1", "diagnostics": "bad row"}
        self.answer(r"tasks/t/attempts$", {"taskAttempts": {"taskAttempt": attempt}})
        told = self.evidence(real)
        self.assertEqual(
            [(each.id, each.state, each.text) for each in told.applications],
            [
                ("application_1_0001", "FAILED", "exit code [1]"),
                ("application_1_0002", "KILLED", "killed by user"),
            ],
        )
        self.assertEqual(told.attempts, ["bad row"])

    def test_a_large_file_is_read_at_both_ends(self) -> None:
        """A quarter of the limit is the beginning; the node manager tells the length."""
        self.history()
        end = b"\nEnd of LogType:stderr.\n****\n"
        frame = FRAMED[: FRAMED.index(b"LogLength")] + b"LogLength:5000\nLogContents:\n"
        self.answer(r"000002/stderr\?size=-1000", frame + b"z" * 1000 + end)
        self.answer(r"000002/stderr\?size=250", frame + b"a" * 250 + end)
        real = parsed("job-killed-mapreduce-error")
        output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(
            [file.ends for file in output.files],
            [FileEnds(head=b"a" * 250, tail=b"z" * 1000, size=5000)],
        )
        self.assertFalse(output.may_grow or output.missed)
        self.probe.answer(r"000002/stderr\?size=250", 404, b"")
        output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(
            (output.files, output.missed),
            ([], "the beginning of stderr of container_1_1_01_000002 could not be read"),
        )

    def test_files_beyond_the_limit_are_told(self) -> None:
        """Four times as much as the limit for one file is read."""
        ids = [f"application_1_{number:04}" for number in range(1, 10)]
        for id_ in ids:
            logs = f"http://c1-master-001:8042/node/containerlogs/container{id_[11:]}_01_000001/u"
            self.answer(f"cluster/apps/{id_}", {"app": {"amContainerLogs": logs}})
        self.answer("containerlogs/.*/stderr", FRAMED.replace(b"LogLength:5", b"LogLength:500"))
        actions = [
            {"id": f"w@{id_}", "name": "n", "type": "shell", "status": "OK", "externalId": id_}
            for id_ in ids
        ]
        real = engine_record.parsed({"status": "SUCCEEDED", "actions": actions})
        output = self.result(self.containers.logs(self.place, real, 5, 10.0))
        self.assertEqual(
            [file.title[2:] for file in output.files], [f"{i} stderr" for i in ids[:4]]
        )
        self.assertEqual(
            output.left_out,
            "".join(f"the files of application_1_000{number}, " for number in range(5, 10))[:-2],
        )

    def test_tasks_that_are_not_read_are_told(self) -> None:
        self.history()
        tasks = [{"id": f"t_m_{number}", "state": "SUCCEEDED"} for number in range(8)]
        self.answer(r"tasks$", {"tasks": {"task": tasks}})
        real = parsed("job-killed-mapreduce-error")
        output = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(output.left_out, "the files of 3 more tasks of job_1767225600000_0036")

    def test_a_page_without_an_end(self) -> None:
        """It comes from a machine of the cluster, whose owner may make it as bad as he likes."""
        logs = "http://c1-master-001:8042/node/containerlogs/container_1_1_01_000001/root"
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {"amContainerLogs": logs}})
        self.answer(r"container_1_1_01_000001/", b"<!DOCTYPE html>" + b"<pre>" * 800_000)
        tree = record("job-killed-exit-3")
        tree["actions"][1]["consoleUrl"] = "http://localhost:8088/proxy/x/"
        real = engine_record.parsed(tree)
        found = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(found.files, [])

    def output_of(self, *pages: tuple[str, bytes]) -> Output:
        """The output of a launcher whose node manager answers these pages."""
        logs = "http://c1-master-001:8042/node/containerlogs/container_1_1_01_000001/root"
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {"amContainerLogs": logs}})
        for name, page in pages:
            self.answer(rf"container_1_1_01_000001/{name}\?", page)
        tree = record("job-killed-exit-3")
        tree["actions"][1]["consoleUrl"] = "http://localhost:8088/proxy/x/"
        found: Output = self.result(
            self.containers.logs(self.place, engine_record.parsed(tree), 1000, 10.0)
        )
        return found

    def test_frames_of_a_node_manager(self) -> None:
        """Each line is read whole, also the last one of a file that still grows.

        Recorded from Hadoop 3.5: nothing stands between the file and the end of the frame.
        """
        begin = b"Container: container_1_1_01_000001 on n:8041\nLogAggregationType: LOCAL\n===\n"
        begin += b"LogType:stdout\nLogLastModifiedTime:Mon Nov 23 07:24:25 +0000 2026\n"
        runs = b"This log file belongs to a running container (container_1_1_01_000001) and so may"
        for content, length, end, may_grow in (
            (b"one\n", 4, b"\n", False),
            (b"one", 3, b"\n", False),
            (b"one\n", 4, runs + b" not be complete.\n", True),
            (b"one\n", 44_612, b"\n", False),
            (b"End of LogType:stdout.\n", 23, b"\n", False),
        ):
            page = begin + b"LogLength:%d\nLogContents:\n%bEnd of LogType:stdout.%b***\n\n" % (
                length, content, end,
            )  # fmt: skip
            found = self.output_of(("stdout", page))
            self.assertEqual(found.files[0].ends.tail, content)
            self.assertEqual((found.may_grow, found.missed), (may_grow, ""), page)

    def test_nothing_proves_an_end(self) -> None:
        """A page without a frame, a container without files, an application without a container."""
        self.assertTrue(self.output_of(("stdout", b"one\n")).may_grow)
        self.assertTrue(self.output_of(("stdout", b"Container: x\nnonsense")).may_grow)
        self.assertTrue(self.output_of((".*", b"<html>")).may_grow)
        self.probe.answer(r".", 404, b"")
        self.assertEqual(self.output_of(), Output(files=[], may_grow=True))
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {}})
        real = parsed("job-succeeded-mapreduce")
        found = self.result(self.containers.logs(self.place, real, 1000, 10.0))
        self.assertEqual(found, Output(files=[], may_grow=True))

    def test_what_is_missed_is_told(self) -> None:
        """A machine that does not answer is no empty file; a file that is not there is none."""
        fault = FaultRule(where="probe", path="stdout", effect=Effect.REFUSED)
        self.probe._faults.add(fault)
        found = self.output_of(("stderr", FRAMED))
        self.assertEqual([file.ends.tail for file in found.files], [b"boom\n"])
        self.assertRegex(found.missed, r"8042/.*/stdout\?size=-1000: connection refused")
        self.probe.answer("container_1_1_01_000001/stderr", 500, b"")
        self.assertEqual(self.output_of().missed, found.missed)

    def test_faults_and_absence(self) -> None:
        """A status of a fault is missed, 404 is not, and a foreign machine is never asked."""
        for status, missed in ((404, ""), (500, "127.1.0.2:8042 answers HTTP 500")):
            self.probe.answer("container_1_1_01_000001/", status, b"")
            self.assertEqual(self.output_of().missed, missed)
        foreign = parsed("job-killed-exit-3")
        found = self.result(self.containers.logs(self.place, foreign, 1000, 10.0))
        self.assertEqual(found.missed, "a part of it is on no machine of the cluster")

    def test_nobody_knows(self) -> None:
        """Every service answers 404, or nonsense."""
        real = parsed("job-killed-mapreduce-error")
        self.assertEqual((self.evidence(real).attempts, self.evidence(real).files), ([], []))
        self.answer("tasks$", b"<html>")
        self.assertEqual((self.evidence(real).attempts, self.evidence(real).files), ([], []))

    def test_after_its_time_nothing_is_asked(self) -> None:
        real = parsed("job-killed-mapreduce-error")
        told = self.result(self.containers.evidence(self.place, real, Family(), 0.0))
        self.assertEqual(told.attempts, [])
        self.assertEqual(self.probe.asked, ())

    def test_a_job_that_did_not_fail_is_not_asked_about(self) -> None:
        real = parsed("job-succeeded-mapreduce")
        told = self.result(self.containers.evidence(self.place, real, Family(), 10.0))
        self.assertEqual(told, Evidence())
        self.assertEqual(self.probe.asked, ())
