"""The place in a Pig script, from the lines that real Pig wrote."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.trial.unittest import SynchronousTestCase

from svcd.workflow.decide.excerpts import with_pig_place

WORDS = 'ERROR 1031: Incompatible schema: left is "a:NULL,b:NULL", right is "n:long"'
GRUNT = "2026-11-27 08:07:39,856 [main] ERROR org.apache.pig.tools.grunt.Grunt  - "
VALIDATE = "pig script failed to validate: org.apache.pig.impl.logicalLayer.FrontendException: "


def logged(stdout: str, stderr: str = "") -> Sequence[str]:
    return [stdout, stderr]


class NamedTests(SynchronousTestCase):
    def test_the_outer_exception_has_the_place(self) -> None:
        log = (
            f"Caused by: <file top.pig, line 4, column 6> {VALIDATE}{WORDS}\n"
            "\tat org.apache.pig.parser.LogicalPlanBuilder.buildForeachOp(X.java:1)\n"
            f"{GRUNT}{WORDS}\n"
        )
        self.assertEqual(
            with_pig_place([WORDS], logged(log)), [f"{WORDS} (top.pig, line 4, column 6)"]
        )

    def test_a_part_without_a_place_of_its_own_gets_that_of_its_statement(self) -> None:
        """The place is in the other file of the launcher."""
        words = "ERROR 1052: <file top.pig, line 0, column 0> Cannot cast long to bag"
        stderr = (
            f"{words}\norg.apache.pig.impl.TypeCheckerException: ERROR 1059: "
            "<file top.pig.substituted, line 4, column 6> Problem while reconciling output schema\n"
            f"Caused by: org.apache.pig.X: {words}\n"
        )
        self.assertEqual(
            with_pig_place([words], logged(f"{GRUNT}{words}\n", stderr)),
            ["ERROR 1052: Cannot cast long to bag (top.pig, line 4, column 6)"],
        )

    def test_a_reason_with_its_place_stays(self) -> None:
        reason = "ERROR 1200: <file top.pig, line 5, column 0>  mismatched input 'STORE'"
        log = "Caused by: <file top.pig, line 4, column 6> Undefined alias: nothing\n"
        self.assertEqual(with_pig_place([reason], logged(log)), [reason])

    def test_warnings_and_other_programs_name_no_place(self) -> None:
        warning = "2026-11-27 08:07:39,856 [main] WARN  org.apache.pig.X  - <file a.pig, line 1>\n"
        for log in ("", warning, "<file > is open, line 4\n", "<file a.pig, line 0, column 0>\n"):
            self.assertEqual(with_pig_place([WORDS], logged(log)), [WORDS], log)
