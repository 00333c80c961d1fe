"""The line of a log that tells why a program failed."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.workflow.causes import cause


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
        self.assertEqual(len(cause("java.io.IOException: " + "x" * 5000)), 2000)
