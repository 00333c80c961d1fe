from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.engine_record import parsed
from svcd.model.failures import Code
from svcd.model.job import Failure
from svcd.workflow.decide import causes
from svcd.workflow.decide.causes import NOTHING, by_text
from svcd.workflow.decide.evidence import LAUNCHER, Ended, Evidence, LogFile
from svcd.workflow.decide.failures import failure
from tests.support.steps import ended
from tests.unit.workflow.recorded import record


def of_record(tree: Mapping[str, Any], evidence: Evidence = NOTHING) -> Failure:
    return ended(causes.judging(parsed(tree), evidence))


def logged(text: str) -> Evidence:
    """Texts of which only the launcher's syslog has something."""
    return Evidence(files=[LogFile(place=LAUNCHER, name="syslog", text=text)])


def of_giving_up(action: Mapping[str, Any]) -> Failure:
    return causes.of_giving_up(parsed({"actions": [action]}).actions[0])


WORDS = {
    # an interpreter, not the data: Pig numbers faults of both, and gzip ends like a shell
    "./x.sh: line 3: unexpected EOF while looking for matching `\"'": "SYNTAX_ERROR",
    "./x.sh: line 9: syntax error: unexpected end of file": "SYNTAX_ERROR",
    "./x.sh: 3: Syntax error: end of file unexpected": "SYNTAX_ERROR",
    "ERROR 1200: Pig script failed to parse": "SYNTAX_ERROR",
    "gzip: words.gz: unexpected end of file": None,
    "xml.etree.ElementTree.ParseError: syntax error: line 1, column 0": None,
    "ERROR 1002: Unable to store alias counts": None,
    "ERROR 1066: Unable to open iterator for alias counts": None,
    "ExecException: ERROR 1071: Cannot convert a tuple to a String": None,
    "ERROR 1075: Received a bytearray from the UDF or Union": None,
    # the output of the job, not a file of the program itself
    "mkdir: `/out': File exists": "OUTPUT_EXISTS",
    "org.apache.hadoop.fs.FileAlreadyExistsException: /out is a file": "OUTPUT_EXISTS",
    "mkdir: cannot create directory 'scratch': File exists": None,
    "FileExistsError: [Errno 17] File exists: 'scratch' (a.py, line 3)": None,
    "java.nio.file.FileAlreadyExistsException: scratch": None,
    # a class of Java; a program that a shell does not find
    "Class org.example.MyMapper not found": "CLASS_MISSING",
    "java.lang.ClassNotFoundException: MyMapper": "CLASS_MISSING",
    "ValueError: Class label not found in data (a.py, line 3)": None,
    "./x.sh: line 3: jq: command not found": "MODULE_MISSING",
    "./x.sh: 3: jq: not found": "MODULE_MISSING",
    "./x.sh: line 3: jq: not found": "MODULE_MISSING",
    "java.lang.IllegalStateException: customer 17: not found": None,
    # memory
    "Cannot reserve 4194304 bytes of direct buffer memory": "OUT_OF_MEMORY",
    "Error: unable to create native thread: possibly out of memory": "OUT_OF_MEMORY",
    "Reason: Container killed by YARN for exceeding physical memory limits. 1.5 GB of 1 GB": (
        "OUT_OF_MEMORY"
    ),
    "Required executor memory (9000 MB) is above the max threshold (2048 MB) of this cluster!": (
        "DOCUMENT_REFUSED"
    ),
    # the resource manager by its port, not any service that a program of the user calls
    "Call From vm/127.192.63.13 to 127.192.63.12:8030 failed on connection exception": (
        "RESOURCES_UNREACHABLE"
    ),
    "Call From vm/127.0.0.1 to db:9030 failed on connection exception: refused": None,
    # the file system of object stores names itself, and then the kind of the fault
    "objstore: NOT_FOUND: objstore://box/in does not exist": "INPUT_MISSING",
    "objstore: SERVER_ERROR: GET objstore://box/in was answered 503 in 13 tries": (
        "OBJECT_STORE_UNAVAILABLE"
    ),
    "objstore: MISCONFIGURED: neither fs.objstore.username nor": "OBJECT_STORE",
}
"""Words of real programs and services, and the code that they mean; None: no code of the list.

The recorded failures (test_causes_matrix) have many more.
"""
THREW = "User class threw exception: "


class WordsTests(SynchronousTestCase):
    def test_words_have_the_code_that_they_mean_and_no_other(self) -> None:
        for text, code in WORDS.items():
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)


class OfRecord(SynchronousTestCase):
    def told(self, name: str, evidence: Evidence = NOTHING) -> tuple[str, str, str]:
        found = of_record(record(name), evidence)
        return found.code, found.step, found.text.partition(";")[0]

    def test_a_failing_task_is_told_by_the_history(self) -> None:
        """The record has no reason then."""
        silent = "job-killed-mapreduce-error"
        stack = "Error: java.lang.IllegalStateException: no\n\tat a.B.map(B.java:7)\n"
        self.assertEqual(
            self.told(silent, Evidence(attempts=[stack])),
            ("EXCEPTION", "job-node", "java.lang.IllegalStateException: no (B.java:7)"),
        )
        self.assertEqual(
            self.told(silent, Evidence(attempts=["Task killed"])),
            ("TASK_FAILED", "job-node", "Task killed"),
        )
        self.assertEqual(self.told(silent)[0], "TASK_FAILED")

    def test_a_child_that_was_killed_is_no_failing_program(self) -> None:
        """The program only says that its job has failed."""
        words = "Application application_1_2 was killed by user svcd"
        child = Ended(id="application_1_2", state="KILLED", text=words)
        stdout = "java.lang.IllegalStateException: the job has failed\n"
        files = [LogFile(place=LAUNCHER, name="stdout", text=stdout)]
        self.assertEqual(
            self.told("job-killed-exit-3", Evidence(files=files, applications=[child])),
            ("KILLED_ELSEWHERE", "job-node", words),
        )
        exits = "java.lang.SecurityException: Intercepted System.exit(3)\n"
        self.assertEqual(self.told("job-killed-exit-3", logged(exits))[0], "EXIT_CODE")

    def spark(self, message: str, stderr: str = "", stdout: str = "") -> tuple[str, str]:
        """Code and reason of a job of Spark with these words of the engine and of the driver."""
        action = {"name": "n", "type": "java", "status": "ERROR", "errorCode": "JA018"}
        action |= {"errorMessage": f"application_1_2 FAILED: {message}"}
        driver = Ended(id="application_1_2", state="FINISHED", is_spark=True)
        files = [
            LogFile(place="application_1_2", name=name, text=text)
            for name, text in (("stdout", stdout), ("stderr", stderr))
        ]
        evidence = Evidence(applications=[driver], files=files)
        told = of_record({"status": "KILLED", "actions": [action]}, evidence)
        return told.code, told.text.partition(";")[0]

    def test_a_program_of_spark_without_a_session(self) -> None:
        """It ended, or used its own master, or Spark waited in vain. Recorded (4.2.0)."""
        line = "2026-11-27 11:33:48.800 ERROR org.apache.spark.deploy.yarn.ApplicationMaster:"
        lack = "java.lang.IllegalStateException: User did not initialize spark context!"
        dead = (
            "Application application_1_2 failed 1 times due to AM Container for x exited with "
            " exitCode: 13\nFailing this attempt.Diagnostics: [2026-11-27 11:33:49.183]Exception"
            " from container-launch.\nExit code: 13\nLast 4096 bytes of stderr :\n"
        )
        log = f"{line} Uncaught exception: \n{lack}\n"
        self.assertEqual(self.spark(f"{dead}{log}", log), ("NO_SPARK_SESSION", lack))
        late = "java.util.concurrent.TimeoutException: Future timed out after [100000 milliseconds]"
        log = f"{line} Uncaught exception: \n{late}\n\tat scala.concurrent.Future$.x(F.scala:1)\n"
        words = f"{late}, in which the program made no SparkSession on YARN"
        for message in (f"{dead}{log}", f"{dead}t.impl.Promise$DefaultPromise.result(P.scala:2)"):
            self.assertEqual(self.spark(message, log), ("NO_SPARK_SESSION", words))
        own = f'Traceback (most recent call last):\n  File "a.py", line 5, in <m>\n{late}\n'
        self.assertEqual(self.spark("User application exited with 1", stdout=own)[0], "EXCEPTION")

    SQL = "User class threw exception: org.svcd.spark.RunSql$SqlFailure: "

    def test_a_fault_of_a_statement_is_told_once(self) -> None:
        """With the lines of the script; the log counts those of the statement. Recorded."""
        fault = "ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'."
        words = f"statement 2, line 3: {fault} SQLSTATE: 42601 (line 3, pos 0)"
        stderr = (
            "Caused by: org.apache.spark.sql.catalyst.parser.ParseException: \n"
            f"{fault.partition(' ')[2]} SQLSTATE: 42601 (line 1, pos 0)\n\n"
            "== SQL ==\nSELEC nothing\n^^^\n\n\tat org.svcd.spark.RunSql.run(RunSql.java:72)\n"
        )
        self.assertEqual(self.spark(f"{self.SQL}{words}\n", stderr), ("SYNTAX_ERROR", words))

    def test_a_signal_is_explained_unless_the_cluster_sent_it(self) -> None:
        """KILL and TERM; a number in the message of a program's own exception is none."""
        for message, meaning in (
            (
                "User application exited with status 137",
                ": signal 9 (KILL) ended it: a person sent it, or the kernel of its machine did"
                " because the machine had no memory left",
            ),
            ("User application exited with status 143", ": signal 15 (TERM) ended it: a person"),
            ("Container preempted by scheduler. Exit code is 143", ""),
            ("Container killed by the ApplicationMaster. Exit code is 143", ""),
            (f"{THREW}ValueError: exit code 137 of child", ""),
            ("java.lang.IllegalStateException: row 137", ""),
            ("exit code 1370", ""),
        ):
            code, text = self.spark(message)
            self.assertEqual(code == "KILLED_ELSEWHERE", meaning != "", text)
            self.assertEqual("a person" in text, meaning != "", text)
            self.assertIn(meaning, text)

    def test_a_lack_of_memory_explains_a_signal(self) -> None:
        """YARN and Java say so; an executor ends itself with TERM when its heap is full."""
        lost = f"{THREW}a.b.CException: ExecutorLostFailure (executor 1 exited) Exit status: "
        for message, stderr, is_memory in (
            ("exitCode: 137: Container [pid=7] is beyond the 'PHYSICAL' memory limit", "", True),
            ("User application exited with status 143", "java.lang.OutOfMemoryError: a\n", True),
            (f"{lost}143.", "", True),
            (f"{lost}-100.", "", False),
        ):
            found = self.spark(message, stderr)
            self.assertEqual(found[0] == "OUT_OF_MEMORY", is_memory, found)

    def test_the_cause_below_a_fault_of_a_statement_is_told(self) -> None:
        words = "statement 1, line 1: SparkException: [TASK_WRITE_FAILED] Task failed."
        full = "java.io.IOException: No space left on device"
        self.assertEqual(
            self.spark(f"{self.SQL}{words}", f"Caused by: {full}\n"),
            ("NO_SPACE", f"{words}: {full}"),
        )

    def test_an_exception_of_main_is_not_that_of_a_task(self) -> None:
        """A program may go on after a job that failed; both are told then."""
        told = self.told("job-killed-exception", Evidence(attempts=["Error: a.b.CError: old"]))
        self.assertEqual(told, ("EXCEPTION", "job-node", "asked to fail: a.b.CError: old"))

    def test_a_full_disk_is_found_behind_a_job_without_a_history(self) -> None:
        """The disk was too full for the history too, and the engine says only that."""
        message = "JA017: Unknown hadoop job [job_1_0002] associated with action [w@job-node]"
        action = {"name": "job-node", "type": "map-reduce", "status": "FAILED"}
        record = {"status": "FAILED", "actions": [{**action, "errorMessage": message}]}
        log = logged(
            "org.apache.hadoop.ipc.RemoteException: File /tmp/job_1_0002_1.jhist could only be"
            " written to 0 of the 1 minReplication nodes"
        )
        told = of_record(record, log)
        self.assertEqual(told.code, "NO_SPACE")
        self.assertIn("make room for the data", told.text)

    def test_an_end_without_a_failed_action_is_not_the_programs(self) -> None:
        """Somebody killed the workflow at the engine, or the record says nothing."""
        self.assertEqual(self.told("job-killed")[0], "KILLED_ELSEWHERE")
        self.assertEqual(of_record({"status": "KILLED", "actions": []}).code, "KILLED_ELSEWHERE")
        self.assertEqual(of_record({"status": "FAILED"}).code, "UNKNOWN")


class GivingUp(SynchronousTestCase):
    def test_a_file_system_in_trouble_is_not_the_resource_manager(self) -> None:
        """Seen on the real one; a name node on a full disk goes into safe mode, as at a start."""
        mode = "JA009: Cannot create directory /user/svcd. Name node is in safe mode."
        for message, code in (
            ("JA009: hdfs://h:8020/action-data.seq not a SequenceFile", "FILE_SYSTEM"),
            ("JA009: Could not obtain block: BP-1:blk_1 file=/lib/a.jar", "FILE_SYSTEM"),
            ("JA009: There are 0 datanode(s) running and 0 node(s) are excluded", "FILE_SYSTEM"),
            ("Failed to find datanode, suggest to check cluster health.", "FILE_SYSTEM"),
            (mode, "FILE_SYSTEM"),
            (f"{mode}\nResources are low on NN. Please add more resources.", "NO_SPACE"),
        ):
            told = of_giving_up({"name": "n", "status": "START_MANUAL", "errorMessage": message})
            self.assertEqual(told.code, code, message)

    def test_the_waiting_action_is_found(self) -> None:
        """START_MANUAL with its reason; the engine pads the code with blanks."""
        action = parsed(record("job-yarn-down")).gave_up
        assert action is not None
        told = causes.of_giving_up(action)
        self.assertEqual(
            (told.code, told.step, told.text),
            (
                "RESOURCES_UNREACHABLE",
                "job-node",
                "JA006: Connection refused",
            ),
        )

    def test_more_memory_than_a_node_has_is_the_jobs_fault(self) -> None:
        """The engine gives it the code of a resource manager that does not answer."""
        message = (
            "JA009: Invalid resource request! Cannot allocate containers as requested resource is"
            " greater than maximum allowed allocation. Requested resource type=[memory-mb],"
            " Requested resource=<memory:9999999, vCores:1>"
        )
        held = {"name": "job-node", "status": "START_MANUAL", "errorMessage": message}
        action = parsed({"actions": [held]}).actions[0]
        given = {"mapreduce.map.memory.mb": 9999999, "a": "1"}
        told = causes.of_giving_up(action, given)
        self.assertEqual(told.code, "DOCUMENT_REFUSED")
        self.assertEqual(
            told.text,
            f'$.job_configs.configs["mapreduce.map.memory.mb"]: {message}; correct the named value',
        )

    def test_an_unknown_queue_is_the_fault_of_its_configuration(self) -> None:
        """The words of YARN 3.5.0; a program may also name the queue itself."""
        words = (
            "YarnException: Failed to submit application_1_0001 to YARN : Application"
            " application_1_0001 submitted by user svcd to unknown queue: nosuch"
        )
        action = {"name": "job-node", "type": "shell", "status": "ERROR", "errorMessage": words}
        killed = parsed({"status": "KILLED", "actions": [action]})
        for configs, place in (
            ({"oozie.launcher.queue": "nosuch"}, '$.job_configs.configs["oozie.launcher.queue"]: '),
            ({"oozie.launcher.queue": "other"}, ""),
        ):
            told = ended(causes.judging(killed, configs=configs))
            self.assertEqual(told.code, "DOCUMENT_REFUSED")
            self.assertEqual(told.text, f"{place}{words}; correct the named value")

    def test_a_record_without_sense_is_read_all_the_same(self) -> None:
        """A status that is no text, actions that are none."""
        odd = {"status": ["KILLED"], "actions": [{"status": ["ERROR"], "name": {}}, 1, None]}
        self.assertEqual(of_record(odd).code, "UNKNOWN")
        self.assertIsNone(parsed(odd).gave_up)


class Texts(SynchronousTestCase):
    def test_a_reason_is_one_bounded_line(self) -> None:
        told = failure(Code.UNKNOWN, "s", "a\n  b" + "c" * 5000).text
        self.assertTrue(told.startswith("a bccc"))
        self.assertLess(len(told), 2100)

    def test_a_reason_that_goes_on_for_ever(self) -> None:
        """The engine runs on the caller's machines; its words are searched in bounded time."""
        bad = "Input Path " * 100_000
        told = of_record(
            {"actions": [{"name": "s", "status": "ERROR", "errorCode": "X", "errorMessage": bad}]}
        )
        self.assertEqual(told.code, "EXCEPTION")
