"""What svcd reads of a job's containers, from answers of node managers and of the job history."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule, Faults
from svcd.embedded.scripted import ScriptedProbe
from svcd.model import engine_record
from svcd.model.engine_record import Record
from svcd.model.execution_log import FileEnds
from svcd.model.ids import ClusterId
from svcd.model.secret import Secret
from svcd.ports.engine import Endpoints
from svcd.ports.machines import Host, Location, Way, reachable
from svcd.runtime.clock import VirtualClock
from svcd.workflow.act.containers import Containers, Output
from svcd.workflow.act.rows import Place
from svcd.workflow.act.yarn import ResourceManager, manager_of
from svcd.workflow.decide.addresses import ways_to
from svcd.workflow.decide.evidence import Evidence
from svcd.workflow.decide.launchers import Family
from svcd.workflow.decide.stalls import ClusterMetrics
from tests.unit.workflow.recorded import parsed, record
from tests.unit.workflow.support import WorkflowCase

LAUNCHER_ID = "application_1_0001"
JOB = "jobs/job_1767225600000_0036"
NODE = "c1-master-001:8042"
LOGS = f"http://{NODE}/node/containerlogs/container_1_1_01_000001/root"
RUNS = b"This log file belongs to a running container (container_1) and so may not be complete.\n"
ASKED_TO_FAIL = "Error: java.io.IOException: asked to fail\n\tat X"


def framed(content: bytes, length: int | None = None, end: bytes = b"\n") -> bytes:
    """A page of a node manager, as Hadoop 3.5 writes it: nothing is between file and frame."""
    return (
        b"Container: container_1_1_01_000002 on n:8041\nLogAggregationType: LOCAL\n===\n"
        b"LogType:stderr\nLogLastModifiedTime:Mon Nov 23 07:24:25 +0000 2026\n"
        b"LogLength:%d\nLogContents:\n%bEnd of LogType:stderr.%b***\n\n"
        % (len(content) if length is None else length, content, end)
    )


def ran(id_: str, container: str = "container_1_1_01_000002", **more: str) -> dict[str, str]:
    """An attempt of a task, as the job history shows it."""
    return {"id": id_, "nodeHttpAddress": NODE, "assignedContainerId": container, **more}


SERVED = Endpoints(
    engine="",
    webhdfs="",
    name_node="",
    resource_manager="c1-master-001:8032",
    history="http://c1-master-001:19888/",
    user="",
)


class ContainersCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = VirtualClock()
        self.sealed_key = ""
        cluster = WorkflowCase.cluster(self, ClusterId("c1"), "c1")  # type: ignore[arg-type]
        self.place = Place(cluster, SERVED, ways_to(cluster, SERVED, Secret("key")))
        self.faults = Faults()
        self.probe = ScriptedProbe(self.clock, self.faults)
        self.probe.answer(r".", 404, b"")
        self.containers = Containers(self.probe, self.clock)
        self.manager = ResourceManager(self.probe, self.clock)
        self.mapreduce = parsed("job-killed-mapreduce-error")

    def answer(self, pattern: str, tree: Any) -> None:
        body = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
        self.probe.answer(pattern, 200, body)

    def result(self, work: Any) -> Any:
        return self.successResultOf(Deferred.fromCoroutine(work))

    def evidence(self, record: Record) -> Evidence:
        """As the end of a job reads it: first YARN's list of the applications."""
        assert record.failed is not None
        family = self.result(self.manager.family(self.place, record.failed))
        return self.result(self.containers.evidence(self.place, record, family, 10.0))

    def logs(self, record: Record, limit: int = 1000) -> Output:
        found: Output = self.result(self.containers.logs(self.place, record, limit, 10.0))
        return found

    def history(self, **attempts: Any) -> None:
        """Tasks of the recorded job, each with its attempt; one failed, unless others are given."""
        failed = ran("attempt_1", diagnostics=f"{ASKED_TO_FAIL}\n")
        told = attempts or {"t_m_0": None, "t_m_1": failed}
        tasks = [
            {"id": id_, "state": "FAILED" if attempt and "diagnostics" in attempt else "SUCCEEDED"}
            for id_, attempt in told.items()
        ]
        self.answer(f"mapreduce/{JOB}/tasks$", {"tasks": {"task": tasks}})
        for id_, attempt in told.items():
            if attempt:
                self.answer(f"{id_}/attempts$", {"taskAttempts": {"taskAttempt": attempt}})
        self.answer("containerlogs/container_1_1_01_000002/stderr", framed(b"boom\n"))

    def launcher(self, *pages: tuple[str, bytes]) -> Record:
        """A job of one launcher, whose node manager answers these pages."""
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {"amContainerLogs": LOGS}})
        for name, page in pages:
            self.answer(rf"container_1_1_01_000001/{name}\?", page)
        tree = record("job-killed-exit-3")
        tree["actions"][1]["consoleUrl"] = "http://localhost:8088/proxy/x/"
        return engine_record.parsed(tree)

    def dead(self, diagnostics: str, logs: str = "", type_: str = "map-reduce") -> Record:
        """A job whose launcher died, of which only the resource manager knows."""
        app = {"state": "FAILED", "diagnostics": diagnostics, "amContainerLogs": logs}
        self.answer(rf":8088/ws/v1/cluster/apps/{LAUNCHER_ID}$", {"app": app})
        action = {"id": "w@n", "name": "n", "type": type_, "status": "ERROR"}
        action |= {"externalId": LAUNCHER_ID, "consoleUrl": "http://127.1.0.2:8088/p/"}
        return engine_record.parsed({"status": "KILLED", "actions": [action]})


class AddressTests(ContainersCase):
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
        machine = Host(address="203.0.113.1", port=22, user="ubuntu", private_key=Secret(""))
        found = reachable("https://10.0.0.1:8090/ws", {"10.0.0.1": Way("10.0.0.1", machine)})
        self.assertEqual(found, Location("https://10.0.0.1:8090/ws", machine))  # never past SSH

    def test_the_resource_manager(self) -> None:
        """An engine that was not told the web address says localhost; a link may be no URL."""
        for link, url in (
            ("http://localhost:8088/proxy/x/", "http://rm:8088"),
            ("http://rm2:9/proxy/x/", "http://rm2:9"),
            ("http://h:1/engine/c1/yarn/proxy/application_1_1/", "http://h:1/engine/c1/yarn"),
            ("-", "http://rm:8088"),
            ("http://[::1/proxy/a", "http://rm:8088"),
            ("http://localhost:99999999/", "http://rm:8088"),
        ):
            self.assertEqual(manager_of(link, "rm"), url)


class ManagerTests(ContainersCase):
    """Answers of a resource manager, which is a machine of the tenant."""

    def metrics(self, app: bytes) -> ClusterMetrics:
        self.answer("cluster/metrics", {"clusterMetrics": {"activeNodes": 1}})
        self.answer("cluster/apps", app)
        found: ClusterMetrics = self.result(self.manager.metrics(self.place, ""))
        return found

    def test_an_answer_without_sense_is_read_all_the_same(self) -> None:
        """Deeply nested, with an endless number, and with half of a character."""
        self.assertIsNone(self.metrics(b"[" * 100_000).applications)
        app = b'{"apps": {"app": [{"id": "a", "elapsedTime": 1' + b"0" * 400 + b"}]}}"
        [one] = self.metrics(app).applications or ()
        self.assertEqual(one.age_s, float("inf"))
        [one] = (
            self.metrics(
                rb'{"apps": {"app": [{"id": "a", "diagnostics": "cut \ud83d"}]}}'
            ).applications
            or ()
        )
        self.assertEqual(one.diagnostics, "cut ?")

    def test_silence_is_told_unless_the_second_question_is_answered(self) -> None:
        dead = self.dead("")
        lost = self.faults.add(
            FaultRule(where="probe", path=r":8088/", effect=Effect.REFUSED, times=1)
        )
        self.assertEqual(self.evidence(dead).silent, "")
        self.assertEqual(lost.hits(), 1)
        self.faults.add(FaultRule(where="probe", path=r":8088/", effect=Effect.REFUSED))
        url = f"http://127.1.0.2:8088/ws/v1/cluster/apps/{LAUNCHER_ID}"
        self.assertEqual(self.evidence(dead).silent, f"{url}: connection refused (fault)")


class EvidenceTests(ContainersCase):
    def test_a_failing_task_tells_its_diagnostics_and_its_files(self) -> None:
        self.history()
        told = self.evidence(self.mapreduce)
        self.assertEqual(told.attempts, [ASKED_TO_FAIL])
        self.assertEqual([(f.place, f.name) for f in told.files], [("attempt_1", "stderr")])

    def test_a_task_that_could_not_run_tells_more_than_its_first_line(self) -> None:
        """The first line only says that; the exit code and the program's words come later."""
        lines = (
            "[2026-11-20 20:18:33.493]Exception from container-launch.",
            "Container id: container_1_1_01_000002",
            "Exit code: 1",
            "Last 4096 bytes of stderr :",
            'Exception in thread "main" java.lang.OutOfMemoryError: Java heap space',
        )
        self.history(t_m_1={"state": "FAILED", "diagnostics": "\n".join(lines)})
        self.assertEqual(self.evidence(self.mapreduce).attempts, ["\n".join(lines)])

    def test_a_reduce_that_was_killed_with_its_job_is_no_reason(self) -> None:
        """It may stand first, and is called FAILED too (both in one container)."""
        killed = {"state": "KILLED", "diagnostics": "Task KILL is received. Killing attempt!"}
        self.history(t_r_1=killed, t_m_1=ran("attempt_1", diagnostics=ASKED_TO_FAIL))
        self.assertEqual(self.evidence(self.mapreduce).attempts, [ASKED_TO_FAIL])

    def test_a_launcher_that_left_no_log_is_told_by_the_resource_manager(self) -> None:
        """As with a data node that was killed under the job; a log at what is no URL is none."""
        for logs in ("", "http://[::1/container_1_1_01_000001"):
            [told] = self.evidence(self.dead("IO error\n", logs)).applications
            wanted = (LAUNCHER_ID, "IO error", True)
            self.assertEqual((told.id, told.text, told.is_launcher), wanted)

    def test_a_master_that_died_without_a_history_tells_by_its_log(self) -> None:
        dead = self.dead("the launcher")
        node = f"http://{NODE}/node/containerlogs/container_1_2_01_000001/svcd"
        app = {"id": "application_1_0002", "state": "FAILED", "amContainerLogs": node}
        self.answer(r"cluster/apps\?applicationTags=\S+$", {"apps": {"app": [app]}})
        self.answer(r"cluster/apps/application_1_0002$", {"app": app})
        self.answer("containerlogs/container_1_2_01_000001/syslog", framed(b"boom\n"))
        told = self.evidence(dead)
        self.assertEqual([file.name for file in told.files], ["syslog"])
        self.assertEqual(len(told.of_masters("syslog")), 1)

    def test_children_of_a_launcher_are_found_by_the_engines_tag(self) -> None:
        """The words of YARN about each, and of their failed tasks. A list may be one object."""
        dead = self.dead("exit code [1]", type_="java")
        child = {"id": "application_1_0002", "state": "KILLED", "diagnostics": "killed by user"}
        self.answer(r"apps\?applicationTags=oozie-", {"apps": {"app": [child]}})
        self.answer(r"jobs/job_1_0002/tasks$", {"tasks": {"task": {"id": "t", "state": "FAILED"}}})
        attempt = {"id": "attempt_1", "diagnostics": "bad row"}
        self.answer(r"tasks/t/attempts$", {"taskAttempts": {"taskAttempt": attempt}})
        told = self.evidence(dead)
        self.assertEqual(
            [(app.id, app.state, app.text) for app in told.applications],
            [
                ("application_1_0001", "FAILED", "exit code [1]"),
                ("application_1_0002", "KILLED", "killed by user"),
            ],
        )
        self.assertEqual(told.attempts, ["bad row"])

    def test_what_a_launcher_prints_before_the_program_is_no_evidence(self) -> None:
        """Of each type. An older node manager answers a page of HTML."""
        for begun in (
            "Shell command line now >>",
            "Pig command line now >>>",
            "Main class now >>>",
        ):
            words = f"java.io.IOException: a\n>>> Invoking {begun}\nStdoutput hello\n"
            for page in (words, f"<!DOCTYPE html><pre>{words}</pre></html>"):
                told = self.evidence(self.launcher(("stdout", page.encode())))
                self.assertEqual(told.of_launcher("stdout"), "Stdoutput hello\n")

    def test_nobody_knows(self) -> None:
        """Every service answers 404, or nonsense."""
        for _ in range(2):
            told = self.evidence(self.mapreduce)
            self.assertEqual((told.attempts, told.files), ([], []))
            self.answer("tasks$", b"<html>")

    def test_nothing_is_asked_without_time_or_without_a_failure(self) -> None:
        for real, budget_s in ((self.mapreduce, 0.0), (parsed("job-succeeded-mapreduce"), 10.0)):
            told = self.result(self.containers.evidence(self.place, real, Family(), budget_s))
            self.assertEqual((*told.attempts, *told.files, *self.probe.asked), ())


class LogTests(ContainersCase):
    def test_files_of_failed_tasks_come_without_the_frame(self) -> None:
        self.history()
        [file] = self.logs(self.mapreduce).files
        self.assertEqual(
            (file.title, file.id), ("job-node attempt_1 stderr", "container_1_1_01_000002")
        )
        self.assertEqual(file.ends, FileEnds(tail=b"boom\n", size=5))

    def test_files_of_tasks_in_one_container_come_once(self) -> None:
        """A small job runs all tasks in its master's."""
        self.history(t_m_0=ran("attempt_m"), t_r_0=ran("attempt_r"))
        titles = [file.title for file in self.logs(self.mapreduce).files]
        self.assertEqual(titles, ["job-node attempt_m stderr"])

    def test_the_log_of_a_small_jobs_task_is_whole_when_the_task_has_ended(self) -> None:
        """The master's container runs on for seconds; that of another program may still write."""
        for number, state, may_grow in (
            (1, "SUCCEEDED", False),
            (1, "RUNNING", True),
            (2, "SUCCEEDED", True),
        ):
            container = f"container_1_1_01_{number:06}"
            self.history(t_m_0=ran("attempt_m", container, state=state))
            self.answer(f"{container}/stderr", framed(b"boom\n", end=RUNS))
            output = self.logs(self.mapreduce)
            self.assertEqual([file.ends.tail for file in output.files], [b"boom\n"])
            self.assertEqual(output.may_grow, may_grow, (number, state))

    def test_a_large_file_is_read_at_both_ends(self) -> None:
        """A quarter of the limit is the beginning; the node manager tells the length."""
        self.history()
        self.answer(r"000002/stderr\?size=-1000", framed(b"z" * 1000, 5000))
        self.answer(r"000002/stderr\?size=250", framed(b"a" * 250, 5000))
        output = self.logs(self.mapreduce)
        both = FileEnds(head=b"a" * 250, tail=b"z" * 1000, size=5000)
        self.assertEqual([file.ends for file in output.files], [both])
        self.assertFalse(output.may_grow or output.missed)
        self.probe.answer(r"000002/stderr\?size=250", 404, b"")
        output = self.logs(self.mapreduce)
        missed = "the beginning of stderr of container_1_1_01_000002 could not be read"
        self.assertEqual((output.files, output.missed), ([], missed))

    def test_what_is_beyond_the_limits_is_told(self) -> None:
        """Four times as much as the limit for one file is read, and five tasks of a job."""
        ids = [f"application_1_{number:04}" for number in range(1, 10)]
        for id_ in ids:
            logs = f"http://{NODE}/node/containerlogs/container{id_[11:]}_01_000001/u"
            self.answer(f"cluster/apps/{id_}", {"app": {"amContainerLogs": logs}})
        self.answer("containerlogs/.*/stderr", framed(b"boom\n", 500))
        actions = [
            {"id": f"w@{id_}", "name": "n", "type": "shell", "status": "OK", "externalId": id_}
            for id_ in ids
        ]
        real = engine_record.parsed({"status": "SUCCEEDED", "actions": actions})
        output = self.logs(real, 5)
        titles = [file.title[2:] for file in output.files]
        self.assertEqual(titles, [f"{id_} stderr" for id_ in ids[:4]])
        self.assertEqual(output.left_out, ", ".join(f"the files of {id_}" for id_ in ids[4:]))
        self.history(**{f"t_m_{number}": None for number in range(8)})
        left_out = "the files of 3 more tasks of job_1767225600000_0036"
        self.assertEqual(self.logs(self.mapreduce).left_out, left_out)

    def test_each_line_of_a_frame_is_read_whole(self) -> None:
        """Also the last one of a file that still grows. Recorded from Hadoop 3.5."""
        for content, length, end, may_grow in (
            (b"one\n", 4, b"\n", False),
            (b"one", 3, b"\n", False),
            (b"one\n", 4, RUNS, True),
            (b"one\n", 44_612, b"\n", False),
            (b"End of LogType:stderr.\n", 23, b"\n", False),
        ):
            found = self.logs(self.launcher(("stderr", framed(content, length, end))))
            self.assertEqual(found.files[0].ends.tail, content)
            self.assertEqual((found.may_grow, found.missed), (may_grow, ""), content)

    def test_nothing_proves_an_end(self) -> None:
        """A page without a frame, a container without files, an application without a container."""
        for page in (b"one\n", b"Container: x\nnonsense"):
            self.assertTrue(self.logs(self.launcher(("stdout", page))).may_grow)
        self.probe.answer(r".", 404, b"")
        nothing = Output(files=[], may_grow=True)
        self.assertEqual(self.logs(self.launcher()), nothing)
        self.answer(r"127.1.0.2:8088/ws/v1/cluster/apps/", {"app": {}})
        self.assertEqual(self.logs(parsed("job-succeeded-mapreduce")), nothing)

    def test_a_page_without_an_end_has_no_file(self) -> None:
        """It comes from a machine of the cluster, whose owner may make it as bad as he likes."""
        endless = b"<!DOCTYPE html>" + b"<pre>" * 800_000
        self.assertEqual(self.logs(self.launcher((".*", endless))).files, [])

    def test_what_is_missed_is_told(self) -> None:
        """A machine that does not answer, a status of a fault, a foreign machine; 404 is none."""
        self.faults.add(FaultRule(where="probe", path="stdout", effect=Effect.REFUSED, times=2))
        found = self.logs(self.launcher(("stderr", framed(b"boom\n"))))
        self.assertEqual([file.ends.tail for file in found.files], [b"boom\n"])
        self.assertRegex(found.missed, r"8042/.*/stdout\?size=-1000: connection refused")
        self.faults.clear()
        for status, missed in ((404, ""), (500, "127.1.0.2:8042 answers HTTP 500")):
            self.probe.answer("container_1_1_01_000001/", status, b"")
            self.assertEqual(self.logs(self.launcher()).missed, missed)
        foreign = self.logs(parsed("job-killed-exit-3"))
        self.assertEqual(foreign.missed, "a part of it is on no machine of the cluster")
