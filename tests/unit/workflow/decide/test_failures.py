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


class OfRecord(SynchronousTestCase):
    def told(self, name: str, evidence: Evidence = NOTHING) -> tuple[str, str, str]:
        found = of_record(record(name), evidence)
        return found.code, found.step, found.text.partition(";")[0]

    def test_recorded_failures_get_their_codes(self) -> None:
        """Each way in which the real engine failed is told apart."""
        cases = {
            "job-killed-exception": ("EXCEPTION", "asked to fail"),
            "job-killed-no-class": (
                "CLASS_MISSING",
                "java.lang.ClassNotFoundException: Class svcd.examples.Nothing not found",
            ),
            "job-killed-exit-3": (
                "EXIT_CODE",
                "Main Class [org.apache.oozie.action.hadoop.JavaMain], exit code [3]",
            ),
            "job-killed-mapreduce-no-input": (
                "INPUT_MISSING",
                "Input path does not exist: /user/root/record/nothing",
            ),
            "job-killed-mapreduce-output-exists": (
                "OUTPUT_EXISTS",
                "Output directory /user/root/record/mr already exists",
            ),
            "job-pig-script-missing": (
                "FILE_MISSING",
                "JA008: File does not exist: hdfs://namenode.loopback:8020/user/root/apps/"
                "noscript/none.pig#none.pig",
            ),
            "job-action-undefined-variable": (
                "VARIABLE_UNKNOWN",
                "variable [nosuch] cannot be resolved",
            ),
        }
        for name, (code, text) in cases.items():
            self.assertEqual(self.told(name), (code, "job-node", text), name)

    def test_a_resource_manager_that_died_under_a_job_is_told(self) -> None:
        """Seen on the real one, killed while the job's program ran."""
        message = (
            "Call From vm/127.192.63.13 to 127.192.63.12:8030 failed on connection exception:"
            " java.net.ConnectException: Connection refused; For more details see: "
            " http://wiki.apache.org/hadoop/ConnectionRefused"
        )
        action = {"name": "job-node", "type": "map-reduce", "status": "ERROR"}
        action |= {"errorCode": "JA018", "errorMessage": message}
        told = of_record({"status": "KILLED", "actions": [action]})
        self.assertEqual(told.code, "RESOURCES_UNREACHABLE")
        self.assertTrue(told.text.endswith("hadoop/ConnectionRefused"), told.text)

    def test_only_the_words_of_an_interpreter_are_a_syntax_error(self) -> None:
        """Pig numbers faults of data like those of scripts, and gzip ends like a shell."""
        for text, code in (
            ("./x.sh: line 3: unexpected EOF while looking for matching `\"'", "SYNTAX_ERROR"),
            ("./x.sh: line 9: syntax error: unexpected end of file", "SYNTAX_ERROR"),
            ("./x.sh: 3: Syntax error: end of file unexpected", "SYNTAX_ERROR"),
            ("ERROR 1200: Pig script failed to parse", "SYNTAX_ERROR"),
            ("gzip: words.gz: unexpected end of file", None),
            ("xml.etree.ElementTree.ParseError: syntax error: line 1, column 0", None),
            ("Cannot reserve 4194304 bytes of direct buffer memory", "OUT_OF_MEMORY"),
            ("Error: unable to create native thread: possibly out of memory", "OUT_OF_MEMORY"),
            ("ERROR 1002: Unable to store alias counts", None),
            ("ERROR 1066: Unable to open iterator for alias counts", None),
            ("ExecException: ERROR 1071: Cannot convert a tuple to a String", None),
            ("ERROR 1075: Received a bytearray from the UDF or Union", None),
        ):
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)

    def test_a_file_of_the_program_itself_is_no_output(self) -> None:
        """Only what Hadoop refuses to overwrite is the output of the job."""
        for text, code in (
            ("mkdir: `/out': File exists", "OUTPUT_EXISTS"),
            ("put: `/out/words': File exists", "OUTPUT_EXISTS"),
            ("org.apache.hadoop.fs.FileAlreadyExistsException: /out is a file", "OUTPUT_EXISTS"),
            ("mkdir: cannot create directory 'scratch': File exists", None),
            ("FileExistsError: [Errno 17] File exists: 'scratch' (a.py, line 3)", None),
            ("java.nio.file.FileAlreadyExistsException: scratch", None),
        ):
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)

    def test_only_a_class_of_java_is_missing(self) -> None:
        """The word alone means many things."""
        for text, code in (
            ("Class org.example.MyMapper not found", "CLASS_MISSING"),
            ("java.lang.ClassNotFoundException: MyMapper", "CLASS_MISSING"),
            ("ValueError: Class label not found in data (a.py, line 3)", None),
        ):
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)

    def test_sizes_of_spark_that_do_not_fit(self) -> None:
        """In the words of Spark's allocator and of spark-submit, from its source (4.2)."""
        for text, code in (
            (
                "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage"
                " 1.0 failed 4 times: ExecutorLostFailure (executor 1 exited caused by one of the"
                " running tasks) Reason: Container killed by YARN for exceeding physical memory"
                " limits. 1.5 GB of 1 GB physical memory used.",
                "OUT_OF_MEMORY",
            ),
            (
                'spark-submit ended with exit code 1: Exception in thread "main"'
                " java.lang.IllegalArgumentException: Required executor memory (9000 MB), offHeap"
                " memory (0) MB, overhead (900 MB), and PySpark memory (0 MB) is above the max"
                " threshold (2048 MB) of this cluster! Please check the values",
                "DOCUMENT_REFUSED",
            ),
        ):
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)

    def test_only_a_shell_says_that_a_program_is_not_found(self) -> None:
        """The words are common ones."""
        for text, code in (
            ("./x.sh: line 3: jq: command not found", "MODULE_MISSING"),
            ("./x.sh: 3: jq: not found", "MODULE_MISSING"),
            ("./x.sh: line 3: jq: not found", "MODULE_MISSING"),
            ("java.lang.IllegalStateException: customer 17: not found", None),
        ):
            found = by_text(text)
            self.assertEqual(found and found.value, code, text)

    def test_another_service_that_refuses_is_not_the_resource_manager(self) -> None:
        """A program of the user's own may call anything."""
        message = "Call From vm/127.0.0.1 to db:9030 failed on connection exception: refused"
        action = {"name": "a", "type": "java", "status": "ERROR", "errorMessage": message}
        told = of_record({"status": "KILLED", "actions": [action]})
        self.assertEqual(told.code, "EXCEPTION")

    def test_a_job_that_is_unknown_for_its_resource_manager_is_dead(self) -> None:
        """Seen on the real one: the engine only says that it does not find the job."""
        message = "JA017: Unknown hadoop job [application_1_0001] associated with action [w@n]"
        action = {"name": "n", "type": "map-reduce", "status": "FAILED", "errorMessage": message}
        record = {"status": "FAILED", "actions": [action]}
        told = of_record(record, Evidence(silent="http://h:8088/x: refused"))
        self.assertEqual(told.code, "RESOURCES_UNREACHABLE")
        self.assertIn("does not answer: http://h:8088/x: refused", told.text)

    def test_a_file_system_without_data_nodes_is_not_the_resource_manager(self) -> None:
        """Seen on the real one, whose only data node was killed while the job's program ran."""
        action = {"name": "job-node", "type": "map-reduce", "status": "START_MANUAL"}
        messages = (
            "JA009: hdfs://h:8020/user/svcd/oozie-root/1-W/job-node--map-reduce/action-data.seq"
            " not a SequenceFile",
            "JA009: Could not obtain block: BP-1:blk_1 file=/user/svcd/svcd/1/lib/a.jar",
            "JA009: File /a could only be written to 0 of the 1 minReplication nodes. There are 0"
            " datanode(s) running and 0 node(s) are excluded in this operation.",
            "Failed to find datanode, suggest to check cluster health.",
        )
        for message in messages:
            told = of_giving_up({**action, "errorMessage": message})
            self.assertEqual(told.code, "FILE_SYSTEM", message)

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

    def test_programs_of_spark(self) -> None:
        """The line of the program, of its task, of the statement, or of the driver in Python."""
        threw = "User class threw exception: "
        thrown = "java.lang.IllegalStateException: no rate"
        stack = f"{thrown}\n\tat org.example.App.main(App.java:7)\n"
        self.assertEqual(
            self.spark(f"{threw}{thrown}", stack), ("EXCEPTION", f"{thrown} (App.java:7)")
        )
        aborted = "org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 failed"
        lost = f"{threw}{aborted} 4 times, most recent failure: {stack}"
        self.assertEqual(self.spark(lost, f"Caused by: {stack}")[0], "EXCEPTION")
        self.assertIn(f"{thrown} (App.java:7)", self.spark(lost, f"Caused by: {stack}")[1])
        words = "statement 2, line 3: ParseException: [PARSE_SYNTAX_ERROR] Syntax error at 'SELEC'"
        self.assertEqual(
            self.spark(f"{threw}org.svcd.spark.RunSql$SqlFailure: {words}"), ("SYNTAX_ERROR", words)
        )
        trace = (
            'Traceback (most recent call last):\n  File "/a/wc.py", line 5, in <module>\n'
            "KeyError: 'EUR'\n"
        )
        self.assertEqual(
            self.spark("User application exited with 1", stdout=trace),
            ("EXCEPTION", "KeyError: 'EUR' (wc.py, line 5)"),
        )

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

    def test_a_newer_java_than_the_machines(self) -> None:
        """The master of a MapReduce job dies of it before the job has a history. Recorded."""
        words = (
            "java.lang.UnsupportedClassVersionError: Hello has been compiled by a more recent"
            " version of the Java Runtime (class file version 65.0), this version of the Java"
            " Runtime only recognizes class file versions up to 61.0"
        )
        stack = f"{words}\n\tat java.base/java.lang.ClassLoader.defineClass1(Native Method)\n"
        self.assertEqual(
            self.spark(f"User class threw exception: {words}", stack), ("JAVA_TOO_NEW", words)
        )
        text = (
            "Exception from container-launch.\nExit code: 1\nLast 4096 bytes of stderr :\nlog4j:W"
        )
        master = Ended(id="application_1_2", state="FAILED", text=text)
        syslog = f"2026-11-27 11:53:20,693 ERROR [main] o.MRAppMaster: Error starting\n{stack}"
        files = [LogFile(place="application_1_2", name="syslog", text=syslog)]
        action = {"name": "job-node", "type": "map-reduce", "status": "ERROR"}
        told = of_record(
            {"status": "KILLED", "actions": [action]}, Evidence(applications=[master], files=files)
        )
        self.assertEqual((told.code, told.text.partition(";")[0]), ("JAVA_TOO_NEW", words))

    SQL = "User class threw exception: org.svcd.spark.RunSql$SqlFailure: "

    def test_a_fault_of_a_statement_is_told_once(self) -> None:
        """With the lines of the script; the log counts those of the statement. Recorded."""
        fault = "ParseException: [PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'."
        words = f"statement 2, line 3: {fault} SQLSTATE: 42601 (line 3, pos 0)"
        stderr = (
            "2026-11-23 16:41:18.493 ERROR org.apache.spark.deploy.yarn.ApplicationMaster: User"
            f" class threw exception: \norg.svcd.spark.RunSql$SqlFailure: {words}\n"
            "\tat org.svcd.spark.RunSql.run(RunSql.java:78)\n"
            "Caused by: org.apache.spark.sql.catalyst.parser.ParseException: \n"
            f"{fault.partition(' ')[2]} SQLSTATE: 42601 (line 1, pos 0)\n\n"
            "== SQL ==\nSELEC nothing\n^^^\n\n\tat org.svcd.spark.RunSql.run(RunSql.java:72)\n"
        )
        self.assertEqual(self.spark(f"{self.SQL}{words}\n", stderr), ("SYNTAX_ERROR", words))
        missing = "ExtendedAnalysisException: [TABLE_OR_VIEW_NOT_FOUND] No `rates`."
        stderr = (
            f"Caused by: org.apache.spark.sql.catalyst.{missing}\nVerify the spelling.\n"
            "\tat org.svcd.spark.RunSql.run(RunSql.java:72)\n"
        )
        words = f"statement 2, line 2: {missing}"
        self.assertEqual(self.spark(f"{self.SQL}{words}", stderr), ("SYNTAX_ERROR", words))

    def test_a_variable_of_a_statement_without_a_value(self) -> None:
        words = "statement 1, line 2: the variable ${LEAST} has no value: give the job a parameter"
        self.assertEqual(self.spark(f"{self.SQL}{words}"), ("VARIABLE_UNKNOWN", words))

    def test_words_of_another_thread_are_not_the_cause(self) -> None:
        """Spark's reporter is interrupted while the driver ends. Recorded."""
        words = "statement 1, line 2: the variable ${LEAST} has no value: give the job a parameter"
        stderr = (
            "2026-11-24 12:07:39.635 ERROR org.apache.spark.deploy.yarn.ApplicationMaster: User"
            f" class threw exception: \norg.svcd.spark.RunSql$SqlFailure: {words}\n"
            "\tat org.svcd.spark.RunSql.run(RunSql.java:68)\n"
            "2026-11-24 12:07:39.755 WARN org.apache.spark.deploy.yarn.ApplicationMaster: Reporter"
            " thread fails 1 time(s) in a row.\njava.io.InterruptedIOException: Call interrupted\n"
            "\tat org.apache.hadoop.ipc.Client.call(Client.java:1541)\n"
        )
        self.assertEqual(self.spark(f"{self.SQL}{words}", stderr), ("VARIABLE_UNKNOWN", words))

    def test_a_parameter_of_pig_without_a_value(self) -> None:
        words = (
            "org.apache.pig.tools.parameters.ParameterSubstitutionException: Undefined parameter :"
            " MOST"
        )
        told = by_text(words)
        self.assertEqual(told and told.value, "VARIABLE_UNKNOWN")

    def test_the_cause_below_a_fault_of_a_statement_is_told(self) -> None:
        words = "statement 1, line 1: SparkException: [TASK_WRITE_FAILED] Task failed."
        full = "java.io.IOException: No space left on device"
        self.assertEqual(
            self.spark(f"{self.SQL}{words}", f"Caused by: {full}\n"),
            ("NO_SPACE", f"{words}: {full}"),
        )

    KILLED = "signal 9 (KILL) ended it: a person sent it, or the kernel of its machine did because"
    AM_KILLED = (
        "Application application_1_2 failed 1 times (global limit =2; local limit is =1) due to AM"
        " Container for appattempt_1_2_000001 exited with  exitCode: 137\nFailing this"
        " attempt.Diagnostics: [2026-11-23 20:38:19.697]Container killed on request. Exit code is"
        " 137\n[2026-11-23 20:38:19.699]Container exited with a non-zero exit code 137.\n"
        "[2026-11-23 20:38:19.699]Killed by external signal\nFor more detailed output, check"
    )

    def test_a_signal_is_explained(self) -> None:
        """In the words of Spark on a driver in Python, of YARN, and of Spark on an executor."""
        lost = (
            "User class threw exception: org.apache.spark.SparkException: Job aborted due to stage"
            " failure: ExecutorLostFailure (executor 1 exited) Reason: Container from a bad node:"
            " container_1 on host: h. Exit status: 137. Diagnostics: Container killed on request."
        )
        for message, begins in (
            ("User application exited with status 137", "User application exited with status 137"),
            (self.AM_KILLED, "Container killed on request. Exit code is 137 Container exited"),
            (lost, "org.apache.spark.SparkException: Job aborted"),
        ):
            code, text = self.spark(message)
            self.assertEqual(code, "KILLED_ELSEWHERE", text)
            self.assertTrue(text.startswith(begins), text)
            self.assertIn(f": {self.KILLED} the machine had no memory left", text)
        code, text = self.spark("User application exited with status 143")
        self.assertIn("143: signal 15 (TERM) ended it", text)

    def test_a_signal_of_the_cluster_itself_is_no_person(self) -> None:
        """Nor is a number in the message of a program's own exception."""
        for message in (
            "Container preempted by scheduler. Container killed on request. Exit code is 143",
            "Container killed by the ApplicationMaster. Container killed on request. Exit code is"
            " 143",
            "User class threw exception: ValueError: exit code 137 of child",
        ):
            code, text = self.spark(message)
            self.assertNotEqual(code, "KILLED_ELSEWHERE", text)
            self.assertNotIn("a person", text)

    def test_a_limit_of_memory_explains_a_signal(self) -> None:
        """YARN and Java say so."""
        for message, stderr in (
            ("exitCode: 137: Container [pid=7] is running beyond the 'PHYSICAL' memory limit", ""),
            (self.AM_KILLED, "java.lang.OutOfMemoryError: Java heap space\n"),
            ("User application exited with status 143", "java.lang.OutOfMemoryError: a\n"),
        ):
            self.assertEqual(self.spark(message, stderr)[0], "OUT_OF_MEMORY", message)

    def test_an_executor_without_heap_ends_itself(self) -> None:
        """With TERM; KILL comes from others, and YARN's own ends have negative numbers."""
        lost = "Job aborted: ExecutorLostFailure (executor 1 exited) Reason: Exit status: "
        for number, code in (("143.", "OUT_OF_MEMORY"), ("-100.", "EXCEPTION")):
            found, text = self.spark(f"User class threw exception: a.b.CException: {lost}{number}")
            self.assertEqual((found, "heap is full" in text), (code, code == "OUT_OF_MEMORY"), text)

    def test_a_number_is_no_signal(self) -> None:
        for message in ("java.lang.IllegalStateException: row 137", "exit code 1370"):
            self.assertEqual(self.spark(message)[0], "EXCEPTION", message)

    def test_an_exception_of_main_is_not_that_of_a_task(self) -> None:
        """A program may go on after a job that failed; both are told then."""
        told = self.told("job-killed-exception", Evidence(attempts=["Error: a.b.CError: old"]))
        self.assertEqual(told, ("EXCEPTION", "job-node", "asked to fail: a.b.CError: old"))

    def test_a_log_line_says_more_than_an_exit_code(self) -> None:
        """An exit code alone is no reason."""
        log = logged("java.lang.OutOfMemoryError: Java heap space")
        self.assertEqual(
            self.told("job-killed-exit-3", log),
            ("OUT_OF_MEMORY", "job-node", "java.lang.OutOfMemoryError: Java heap space"),
        )

    def test_the_object_stores_faults_are_told_apart(self) -> None:
        """The file system of object stores names itself first, and then the kind of the fault."""
        where = "objstore://box/in"
        cases = {
            "UNAUTHORIZED: Keystone refused user a of project b at http://i/v3": (
                "OBJECT_STORE_CREDENTIALS"
            ),
            "EXPIRED: application credential a was valid until b": "JOB_CREDENTIAL_EXPIRED",
            f"FORBIDDEN: user a of project b at http://i/v3 may not GET {where}": (
                "OBJECT_STORE_FORBIDDEN"
            ),
            "NOT_FOUND: the container box does not exist, as user a sees it": "CONTAINER_MISSING",
            f"NOT_FOUND: {where} does not exist": "INPUT_MISSING",
            f"UNREACHABLE: GET {where} got no answer in 13 tries": "OBJECT_STORE_UNAVAILABLE",
            f"SERVER_ERROR: GET {where} was answered 503 in 13 tries": "OBJECT_STORE_UNAVAILABLE",
            f"REFUSED: PUT {where} was answered 413: over quota": "OBJECT_STORE",
            "MISCONFIGURED: neither fs.objstore.username nor": "OBJECT_STORE",
        }
        for text, code in cases.items():
            action = {"name": "job-node", "type": "map-reduce", "status": "ERROR"}
            told = {**action, "errorMessage": f"objstore: {text}", "errorCode": "JA018"}
            found = of_record({"status": "KILLED", "actions": [told]})
            self.assertEqual((found.code, text in found.text), (code, True), found.text)

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

    def test_a_name_node_without_space_is_no_other_trouble_of_the_file_system(self) -> None:
        """On a full disk it goes into safe mode; so it does while it starts."""
        action = {"name": "job-node", "type": "map-reduce", "status": "START_MANUAL"}
        mode = "JA009: Cannot create directory /user/svcd. Name node is in safe mode."
        full = f"{mode}\nResources are low on NN. Please add or free up more resources."
        found = [of_giving_up({**action, "errorMessage": text}).code for text in (mode, full)]
        self.assertEqual(found, ["FILE_SYSTEM", "NO_SPACE"])

    def test_a_kill_by_others_is_no_failing_program(self) -> None:
        """Somebody killed the workflow at the engine."""
        self.assertEqual(self.told("job-killed")[0], "KILLED_ELSEWHERE")

    def test_a_record_without_actions(self) -> None:
        """Killed before it began; failed without a word."""
        self.assertEqual(of_record({"status": "KILLED", "actions": []}).code, "KILLED_ELSEWHERE")
        self.assertEqual(of_record({"status": "FAILED"}).code, "UNKNOWN")


class GivingUp(SynchronousTestCase):
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

    def test_a_running_job_waits_for_nobody(self) -> None:
        self.assertIsNone(parsed(record("job-running")).gave_up)


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
