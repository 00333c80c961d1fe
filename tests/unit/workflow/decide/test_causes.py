"""The line of a log that tells why a program failed."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.workflow.decide.causes import cause, own_words, script_end


class CauseTests(SynchronousTestCase):
    def test_the_last_exception_of_a_log_is_the_cause(self) -> None:
        """Frames and other lines do not count."""
        log = (
            "INFO starting\n"
            "2026-11-20 18:00:00 ERROR Launcher - org.apache.pig.PigException: ERROR 1070: no\n"
            "\tat org.apache.pig.Main(Main.java:1)\n"
            "Caused by: java.io.IOException: disk full\n"
            "done\n"
        )
        self.assertEqual(cause(log), "java.io.IOException: disk full")
        self.assertEqual(cause("nothing here"), "")

    def test_wrappers_are_not_the_cause(self) -> None:
        """What the launcher of a broken Pig script printed."""
        log = (
            "2026 [main] ERROR org.apache.pig.Grunt  - ERROR 1070: Could not resolve X\n"
            "java.lang.reflect.InvocationTargetException\n"
            "Caused by: org.apache.oozie.action.hadoop.LauncherMainException\n"
        )
        self.assertEqual(cause(log), "ERROR 1070: Could not resolve X")
        self.assertEqual(
            cause("java.lang.NullPointerException\n"), "java.lang.NullPointerException"
        )

    def test_where_an_exception_stands_in_its_line(self) -> None:
        """At the beginning, after usual words, or behind the level of a line of a log."""
        for line, told in (
            ("java.io.IOException: a java.io.OtherException: b", 0),
            ("Caused by: java.io.IOException: a", 11),
            ("Error: java.io.IOException: a", 7),
            ("x ERROR y: java.io.IOException: a", 11),
            ("10:00 ERROR org.apache.pig.PigException: ERROR 1070: no", 12),
        ):
            self.assertEqual(cause(line), line[told:])
        for line in ("see java.io.IOException: a", "at java.lang.Errors", "ERROR 12: x"):
            self.assertEqual(cause(line), "")

    def test_a_line_made_to_be_searched_for_long(self) -> None:
        """A job prints what it likes: were each beginning tried with each end, it took hours."""
        bad = "ERROR " * 5000 + "a." * 15_000
        self.assertEqual(cause(bad), "")
        self.assertEqual(cause(f"{bad}\njava.io.IOException: full"), "java.io.IOException: full")

    def test_a_long_message_is_cut(self) -> None:
        self.assertEqual(len(cause("java.io.IOException: " + "x" * 5000)), 4000)

    def test_output_that_exists_already(self) -> None:
        """Pig tells it in the line behind its error; from the log of a real one."""
        log = (
            "2026-11-22 08:25:28,317 [main] ERROR org.apache.pig.tools.grunt.Grunt  - ERROR 6000: "
            "<file count.pig, line 3, column 0> Output Location Validation Failed for: '/out More "
            "info to follow:\n"
            "Output directory hdfs://127.193.151.10:8020/out already exists\n"
            "2026-11-22 08:25:28,318 [main] INFO  org.apache.pig.Main  - Pig script completed\n"
            "java.lang.reflect.InvocationTargetException\n"
            "\tat java.base/java.lang.reflect.Method.invoke(Method.java:569)\n"
            "Caused by: org.apache.oozie.action.hadoop.LauncherMainException\n"
        )
        self.assertEqual(
            cause(log),
            "ERROR 6000: <file count.pig, line 3, column 0> Output Location Validation Failed for: "
            "'/out More info to follow: "
            "Output directory hdfs://127.193.151.10:8020/out already exists",
        )
        self.assertEqual(cause("java.io.IOException: told:"), "java.io.IOException: told:")

    def test_input_that_is_missing(self) -> None:
        """What follows from it for Pig is no cause; from the log of a real one."""
        log = (
            "org.apache.pig.backend.executionengine.ExecException: ERROR 2118: Input path does not "
            "exist: hdfs://127.193.151.10:8020/missing\n"
            "\tat org.apache.pig.backend.hadoop.PigInputFormat.getSplits(PigInputFormat.java:288)\n"
            "Caused by: java.io.IOException: Input path does not exist: hdfs://h:8020/missing\n"
            "\t... 22 more\n"
            "2026-11-22 08:25:55,303 [main] ERROR org.apache.pig.tools.pigstats.PigStats  - ERROR "
            "0: java.lang.IllegalStateException: Job in state DEFINE instead of RUNNING\n"
            "Caused by: java.lang.IllegalStateException: Job in state DEFINE instead of RUNNING\n"
        )
        self.assertEqual(
            cause(log), "java.io.IOException: Input path does not exist: hdfs://h:8020/missing"
        )


class OwnWordsTests(SynchronousTestCase):
    """The launcher of an action prints much before it begins the program."""

    def test_lines_of_the_launcher_are_left_out(self) -> None:
        for line in (
            "Invoking Pig command line now >>>",
            "Invoking Shell command line now >>",
            "Invoking Main class now >>>",
        ):
            log = f"Launcher AM configuration loaded\n>>> Invoking Main class now >>>\n>>> {line}\n"
            own = own_words(f"{log}Stdoutput hello\n".encode())
            self.assertEqual(own.splitlines()[-1], b"Stdoutput hello")
            self.assertNotIn(b"Launcher AM", own)
        self.assertEqual(own_words(b"a\nb\n>>> Invoking Main class now >>>\nhello\n"), b"hello\n")

    def test_other_logs_stay_as_they_are(self) -> None:
        self.assertEqual(
            own_words(b"hello\n>>> Invoking nobody\n"), b"hello\n>>> Invoking nobody\n"
        )

    def test_the_end_of_a_script(self) -> None:
        """As the launcher prints it; a good one is no news."""
        log = "Stdoutput hello\nExit code of the Shell command 3\n<<< Invocation of Shell\n"
        self.assertEqual(script_end(log), "Exit code of the Shell command 3")
        self.assertEqual(script_end("Exit code of the Shell command 0\n"), "")
