"""How a kept log grows, with literal values."""

from __future__ import annotations

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.model.execution_log import ExecutionLog, LogSource
from svcd.model.ids import ExecutionId
from svcd.model.job import ExecutionStatus, Failure
from svcd.workflow.decide.log_growth import GAP, MOST_SOURCES, closing, grown
from tests.unit.workflow.decide.test_planner import execution

EMPTY = ExecutionLog(execution_id=ExecutionId("e1"))


def appended(*answers: list[tuple[str, str]], whole: bool = False) -> list[str]:
    """The texts that are appended when the files have these contents, one after the other."""
    log, texts = EMPTY, []
    for number, parts in enumerate(answers, 1):
        log, text = grown(log, parts, whole and number == len(answers))
        texts.append(text)
    return texts


class GrownTests(SynchronousTestCase):
    def test_a_file_that_grows_is_appended_to(self) -> None:
        """Its title comes once, as long as no other file speaks."""
        self.assertEqual(
            appended([("engine", "one\n")], [("engine", "one\ntwo\n")], [("engine", "one\ntwo\n")]),
            ["==> engine <==\none\n", "two\n", ""],
        )

    def test_each_change_of_the_file_shows_its_title(self) -> None:
        self.assertEqual(
            appended([("a", "1\n"), ("b", "2\n")], [("a", "1\n3\n"), ("b", "2\n4\n")]),
            ["==> a <==\n1\n==> b <==\n2\n", "==> a <==\n3\n==> b <==\n4\n"],
        )

    def test_a_line_like_a_title_gets_a_space(self) -> None:
        """A program cannot hide its words as those of another file. Its other arrows stay."""
        mine = "==> engine <==\n==> part-0 <==\n==> job-node application_1_2 stdout <==\n"
        kept = " ==> engine <==\n==> part-0 <==\n ==> job-node application_1_2 stdout <==\n"
        again = "==> job execution 1: KILLED <=="
        self.assertEqual(
            appended([("a", mine)], [("a", mine + "1\n" + again)], whole=True),
            [f"==> a <==\n{kept}", f"1\n {again}\n"],
        )

    def test_an_unfinished_line_waits(self) -> None:
        """Until it ends, or until the log is completed: a secret is never cut in two."""
        self.assertEqual(
            appended([("a", "one\npass")], [("a", "one\npassword ***\nla")]),
            ["==> a <==\none\n", "password ***\n"],
        )
        self.assertEqual(
            appended([("a", "one\npart")], [("a", "one\npart")], whole=True),
            ["==> a <==\none\n", "part\n"],
        )

    def test_a_window_that_moves_is_found_again(self) -> None:
        """By the last characters that were seen."""
        lines = [f"line {n}\n" for n in range(300)]
        first, second = "".join(lines[:200]), "".join(lines[100:])
        texts = appended([("a", first)], [("a", second)])
        self.assertEqual(texts[1], "".join(lines[200:]))

    def test_a_window_that_has_moved_too_far_is_named(self) -> None:
        """Nothing is left out in silence."""
        self.assertEqual(
            appended([("a", "one\n")], [("a", "seven\n")]),
            ["==> a <==\none\n", f"==> a <==\n{GAP}\nseven\n"],
        )

    def test_an_engine_that_begins_anew_is_named_once(self) -> None:
        """Then its new file grows as the old one did."""
        self.assertEqual(
            appended(
                [("engine", "old 1\nold 2\n")],
                [("engine", "new 1\n")],
                [("engine", "new 1\nnew 2\n")],
            )[1:],
            [f"==> engine <==\n{GAP}\nnew 1\n", "new 2\n"],
        )

    def test_equal_lines_are_counted(self) -> None:
        """Of a file that is there from its beginning."""
        self.assertEqual(appended([("a", "x\n" * 600)], [("a", "x\n" * 602)])[1], "x\n" * 2)

    def test_a_file_that_is_gone_changes_nothing(self) -> None:
        """Nor does an empty one."""
        self.assertEqual(
            appended([("a", "1\n")], [], [("a", "")], [("a", "1\n2\n")])[1:], ["", "", "2\n"]
        )

    def test_the_number_of_files_is_bounded(self) -> None:
        """And so is the memory about each."""
        log, _ = grown(EMPTY, [(f"f{n}", "y" * 5000 + "\n") for n in range(MOST_SOURCES + 5)], True)
        self.assertEqual(len(log.sources), MOST_SOURCES)
        self.assertEqual(log.sources[0], LogSource(title="f0", seen=5001, tail="y" * 511 + "\n"))


class ClosingTests(SynchronousTestCase):
    def test_the_last_lines(self) -> None:
        """The status, the failure, and what is missing."""
        row = evolve(execution(), status=ExecutionStatus.FAILED)
        failed = evolve(row, failure=Failure(code="JOB_FAILED", step="pig", text="no such file"))
        self.assertEqual(closing(row, ""), f"==> job execution {row.id}: FAILED <==\n")
        self.assertEqual(
            closing(failed, "the cluster is gone").splitlines()[1:],
            [
                "JOB_FAILED in pig: no such file",
                "[svcd: the end of the log could not be read: the cluster is gone]",
            ],
        )
