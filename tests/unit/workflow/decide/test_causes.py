"""The line of a log that tells why a program failed."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.failures import Code
from svcd.workflow.decide.causes import by_text
from svcd.workflow.decide.excerpts import (
    cause,
    python_cause,
    script_cause,
    script_end,
    task_cause,
    yarn_cause,
)


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
        self.assertEqual(cause("java.io.IOException: told:"), "java.io.IOException: told:")

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

    def test_a_log_made_of_frames_that_are_exceptions(self) -> None:
        """A log of this kind held svcd for seconds when each one's frames were searched."""
        frames = "\tat sun.ERROR a.Error\n" * 3000
        self.assertEqual(cause(frames), "a.Error")
        end = "java.io.IOException: full\n\tat sun.A.a(A.java:1)\n\tat my.B.b(B.java:2)\n"
        self.assertEqual(cause(frames + end + frames), "java.io.IOException: full (B.java:2)")

    def test_a_log_of_very_many_lines(self) -> None:
        """The last 8000 are searched: the others of a file of 64 KiB would hold svcd."""
        error = "java.io.IOException: full"
        for search in (cause, script_cause):
            self.assertEqual(search(f"{error}\n" + "\n" * 7999), error)
            self.assertEqual(search(f"{error}\n" + "\n" * 8000), "")
        trace = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: x\n'
        self.assertEqual(python_cause(trace + "\n" * 7990), "ValueError: x (a.py, line 1)")
        self.assertEqual(python_cause(trace + "\n" * 8000), "")


class TaskTests(SynchronousTestCase):
    """Diagnostics of attempts, and YARN's of applications; the words of Hadoop 3.5."""

    def test_the_first_frame_of_the_program_is_named(self) -> None:
        stack = (
            "Error: java.io.IOException: bad row\n"
            "\tat java.base/java.util.Objects.requireNonNull(Objects.java:233)\n"
            "\tat org.svcd.objstore.SwiftClient.get(SwiftClient.java:7)\n"
            "\tat org.example.Words$Mapper.map(Words.java:31)\n"
            "\tat org.apache.hadoop.mapreduce.Mapper.run(Mapper.java:145)\n"
        )
        self.assertEqual(task_cause(stack), "java.io.IOException: bad row (Words.java:31)")
        self.assertEqual(task_cause("Error: Java heap space"), "Java heap space")

    def test_a_program_that_ends_its_own_process(self) -> None:
        """With a code: its last words. Without an error YARN has no diagnostics."""
        once = (
            "[2026-11-26 16:00:00.123]Container exited with a non-zero exit code 1. Error file:"
            " prelaunch.err.\nLast 4096 bytes of prelaunch.err :\nLast 4096 bytes of stderr :\n"
            "cannot go on: bad record\nlog4j:WARN No appenders could be found\n\n"
        )
        said = (
            "[2026-11-26 16:00:00.122]Exception from container-launch.\nContainer id:"
            f" container_1_1_01_2\nExit code: 1\n\n{once}{once}"
        )
        found = task_cause(said)
        self.assertEqual(found, "cannot go on: bad record (exit code 1)")
        self.assertEqual(by_text(found), Code.EXIT_CODE)
        master = f"Failing this attempt.Diagnostics: {said}For more detailed output, check the"
        self.assertEqual(yarn_cause(master), found)
        killed = task_cause(said.replace("code: 1\n", "code: 137\n"))
        self.assertTrue(killed.startswith("Exception from container-launch."), killed)
        application = (
            "Application application_1_9 failed 2 times (global limit =2; local limit is =2) due to"
            " AM Container for appattempt_1_9_000002 exited with  exitCode: 0\n"
            "Failing this attempt.Diagnostics: For more detailed output, check the application"
            " tracking page: http://h:8088/x Then click on links to logs of each attempt.\n"
        )
        found = yarn_cause(application)
        self.assertEqual(
            found,
            "Application application_1_9 failed 2 times (global limit =2; local limit is =2) due to"
            " AM Container for appattempt_1_9_000002 exited with exitCode: 0: a program of the job"
            " ended its process (System.exit)",
        )
        self.assertEqual(by_text(found), Code.EXIT_CODE)


class ScriptTests(SynchronousTestCase):
    def test_the_last_words_of_a_script(self) -> None:
        """Without the launcher's own and those of loggers."""
        self.assertEqual(script_cause("WARNING: a\nno rate\nlog4j:WARN b\n\n"), "no rate")
        self.assertEqual(script_cause("begin\nno rate for EUR\n"), "no rate for EUR")
        self.assertEqual(script_cause("WARNING: a\n"), "")

    def test_a_fault_of_the_script_is_the_cause_of_what_follows(self) -> None:
        """A shell goes on without `set -e`, and so do other programs."""
        for fault in (
            "./x.sh: line 3: jq: command not found",
            "./x.sh: 3: jq: not found",
            "./x.sh: line 3: RATES: unbound variable",
            "./x.sh: line 3: syntax error near unexpected token `done'",
            "./x.sh: line 3: ${a b}: bad substitution",
            "./x.sh: line 3:  4711 Killed                  python3 price.py",
        ):
            log = f"begin\n{fault}\ncat: rates.json: No such file or directory\nlater\n"
            self.assertEqual(script_cause(log), fault)

    def test_the_last_error_of_a_script_ended_it(self) -> None:
        """Scripts go on after errors that do not matter."""
        for tolerated in (
            "rm: `/out': No such file or directory",
            "mkdir: `/out': File exists",
            "./x.sh: line 2: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)",
            "/bin/bash: warning: setlocale: LC_ALL: cannot change locale (de_DE.UTF-8)",
            "./x.sh: line 2: cd: /data: No such file or directory",
            "/usr/lib/x.py:3: DeprecationWarning: cannot be used for long",
        ):
            for fatal in (
                "sort: cannot read: words.txt: No such file or directory",
                "./x.sh: line 9: /out/a: Permission denied",
                "curl: (7) Failed to connect to rates port 80: Connection refused",
            ):
                self.assertEqual(script_cause(f"{tolerated}\n{fatal}\n"), fatal)

    def test_a_remark_behind_an_error(self) -> None:
        error = "sort: unrecognized option '--foo'"
        for remark in (
            "Try 'sort --help' for more information.",
            "Command exited with non-zero status 2",
            "removed the scratch folder",
            "/usr/lib/x.py:3: ResourceWarning: unclosed file",
            "2026-11-23 15:00:00,123 WARN util.NativeCodeLoader: cannot load",
        ):
            self.assertEqual(script_cause(f"{error}\n{remark}\n"), error)

    def test_the_trace_of_a_shell(self) -> None:
        """Of `set -x`: the commands say no reason, but a silent one is all that is known."""
        self.assertEqual(
            script_cause("+ echo begin\n++ date\n+ echo 'no rate'\nno rate\n+ exit 3\n"), "no rate"
        )
        self.assertEqual(
            script_cause("+ cat 'cannot.txt'\ncat: cannot.txt: Is a directory\n+ rm error:\n"),
            "cat: cannot.txt: Is a directory",
        )
        self.assertEqual(script_cause("+ echo begin\n+ test -s words.txt\n"), "+ test -s words.txt")

    def test_programs_of_a_script(self) -> None:
        """An error of Python or Java, with its place; the last one counts."""
        python = 'Traceback (most recent call last):\n  File "/d/a.py", line 2, in <module>\n'
        python += "KeyError: 'EUR'\n"
        java = 'Exception in thread "main" java.io.IOException: no\n\tat a.B.main(B.java:7)\n'
        java += "Caused by: java.lang.IllegalStateException: none\n\tat a.B.in(B.java:9)\n"
        shell = "./x.sh: line 9: jq: command not found\n"
        after = "make: *** [Makefile:2: all] Error 1\ncat: a: No such file or directory\n"
        for log, told in (
            (f"{python}{after}", "KeyError: 'EUR' (a.py, line 2)"),
            (f"{java}{after}", "java.lang.IllegalStateException: none (B.java:9)"),
            (f"{java}{python}", "KeyError: 'EUR' (a.py, line 2)"),
            (f"{python}{java}", "java.lang.IllegalStateException: none (B.java:9)"),
            (f"{python}{java}{shell}", "./x.sh: line 9: jq: command not found"),
        ):
            self.assertEqual(script_cause(log), told, log)

    def test_an_exit_code_is_no_news_when_it_is_good(self) -> None:
        """As the launcher prints it."""
        log = "Stdoutput hello\nExit code of the Shell command 3\n<<< Invocation of Shell\n"
        self.assertEqual(script_end(log), "Exit code of the Shell command 3")
        self.assertEqual(script_end("Exit code of the Shell command 0\n"), "")
